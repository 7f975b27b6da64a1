"""Reads traces and runs nothing: statistics, frames, figures, claims, theory.

Arrays below (`statistics`, `theory`), labelled frames above (`frames`, `curves`,
`targets`, `paired`, `staleness`, `claims`, `summary`), `figures` and `timelines` on
top, and all of it on a `page`.
Public names are imported only when they are used, pandas and matplotlib with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis import claims, figures, paired
    from analysis.curves import area_under_curve, mean_curve
    from analysis.figures import (
        convergence,
        speed_up_bars,
        staleness_histogram,
        style,
    )
    from analysis.figures.costs import cost_bars
    from analysis.figures.heat_maps import heat_map
    from analysis.figures.privacy import privacy_utility
    from analysis.figures.report import save
    from analysis.figures.sweeps import commits_over, final_over
    from analysis.frames import Study, evaluations, runs, tidy
    from analysis.markup import markdown
    from analysis.targets import final_values, time_to_target, times_to_target

_MODULES = {
    "claims": "analysis.claims",
    "figures": "analysis.figures",
    "paired": "analysis.paired",
    "style": "analysis.figures.style",
}
_PUBLIC = {
    "Study": "analysis.frames",
    "area_under_curve": "analysis.curves",
    "commits_over": "analysis.figures.sweeps",
    "convergence": "analysis.figures",
    "cost_bars": "analysis.figures.costs",
    "evaluations": "analysis.frames",
    "final_over": "analysis.figures.sweeps",
    "final_values": "analysis.targets",
    "heat_map": "analysis.figures.heat_maps",
    "markdown": "analysis.markup",
    "mean_curve": "analysis.curves",
    "privacy_utility": "analysis.figures.privacy",
    "runs": "analysis.frames",
    "save": "analysis.figures.report",
    "speed_up_bars": "analysis.figures",
    "staleness_histogram": "analysis.figures",
    "tidy": "analysis.frames",
    "time_to_target": "analysis.targets",
    "times_to_target": "analysis.targets",
}

__all__ = [
    "Study",
    "area_under_curve",
    "claims",
    "commits_over",
    "convergence",
    "cost_bars",
    "evaluations",
    "figures",
    "final_over",
    "final_values",
    "heat_map",
    "markdown",
    "mean_curve",
    "paired",
    "privacy_utility",
    "runs",
    "save",
    "speed_up_bars",
    "staleness_histogram",
    "style",
    "tidy",
    "time_to_target",
    "times_to_target",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
