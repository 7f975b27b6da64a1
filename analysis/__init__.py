"""Reads traces and runs nothing: statistics, frames, figures, claims, theory.

Arrays below (`statistics`, `theory`), labelled frames above (`frames`, `curves`,
`targets`, `instants`, `paired`, `staleness`, `claims`, `summary`), `figures` and
`timelines` on top, `tables`, and all of it on a `page`. Public names are imported only
when they are used, pandas and matplotlib with them.
"""

from typing import TYPE_CHECKING

from ..simulator.parts.lazy import attach
from .folders import takes_folder

if TYPE_CHECKING:
    # Each figure is listed there, and nowhere else; names that follow are as here.
    from .figures import *  # noqa: F403

    # isort: split
    from . import choices, claims, fairness, figures, paired, racing, staleness
    from .curves import mean_curve
    from .expenses import spent_by_activity
    from .figures import style
    from .frames import Study, evaluations, joined, runs, tidy
    from .instants import value_at, values_at
    from .markup import markdown
    from .racing import best
    from .targets import final_values, time_to_target, times_to_target
    from .timelines.stragglers import stragglers
    from .timelines.view import by_client
    from .waste import wasted

__getattr__, __dir__, __all__ = attach(__name__, __file__, takes_folder)
