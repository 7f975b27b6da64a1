"""Recorded timelines: what happened in them, tables and pictures of it.

`measures` takes speed, staleness and waiting from the jobs, after the `start` of a run;
`laws` and `theory` give the closed forms that hold for a world. A `View` keeps both,
`report` makes tables of them, `drawing` figures (`comparison`).
"""

from .measures import contributions, spectral_gap
from .report import standard, tables
from .view import View

__all__ = ["View", "contributions", "spectral_gap", "standard", "tables"]
