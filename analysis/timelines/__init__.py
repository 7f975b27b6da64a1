"""Recorded timelines: what happened in them, tables and pictures of it.

`measures` takes speed, staleness and waiting from the jobs, after the `start` of a run;
`laws` and `theory` give the closed forms that hold for a world. A `view` keeps both,
`report` makes tables of them, `drawing` figures (`comparison`), `chrome` trace events.
"""

from .measures import (
    by_client,
    by_client_group,
    by_group,
    by_part,
    by_run,
    contributions,
    histogram,
    spectral_gap,
    with_starts,
)
from .report import export, save, standard, tables
from .view import View

__all__ = [
    "View",
    "by_client",
    "by_client_group",
    "by_group",
    "by_part",
    "by_run",
    "contributions",
    "export",
    "histogram",
    "save",
    "spectral_gap",
    "standard",
    "tables",
    "with_starts",
]
