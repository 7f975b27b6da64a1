"""Reads traces and runs nothing: statistics, frames, figures, claims, theory.

Arrays below (`statistics`, `theory`), labelled frames above (`frames`, `curves`,
`targets`, `staleness`, `claims`, `summary`), figures on top (`figures`, `report`).
Public names are imported only when they are used, pandas and matplotlib with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.curves import mean_curve
    from analysis.figures import convergence, speed_up_bars, staleness_histogram
    from analysis.frames import Study, evaluations, runs
    from analysis.report import markdown, save
    from analysis.targets import time_to_target

_PUBLIC = {
    "Study": "analysis.frames",
    "convergence": "analysis.figures",
    "evaluations": "analysis.frames",
    "markdown": "analysis.report",
    "mean_curve": "analysis.curves",
    "runs": "analysis.frames",
    "save": "analysis.report",
    "speed_up_bars": "analysis.figures",
    "staleness_histogram": "analysis.figures",
    "time_to_target": "analysis.targets",
}

__all__ = [
    "Study",
    "convergence",
    "evaluations",
    "markdown",
    "mean_curve",
    "runs",
    "save",
    "speed_up_bars",
    "staleness_histogram",
    "time_to_target",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
