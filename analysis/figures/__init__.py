"""Figures of studies, and how they are drawn, labelled and written.

Each figure has a module: `learning_curves`, `sweeps`, `heat_maps`, `privacy`, `costs`,
and `gantt` of timelines. `report` draws the standard ones of a study. They share
`style` (colours, names, Matplotlib's settings), `layout` (titles, legends, notes),
`lines` (which groups a line joins) and `files`.
"""

from analysis.figures.costs import cost_bars
from analysis.figures.heat_maps import heat_map
from analysis.figures.learning_curves import convergence
from analysis.figures.privacy import privacy_utility
from analysis.figures.report import save, standard
from analysis.figures.speed_ups import speed_up_bars
from analysis.figures.staleness import staleness_histogram
from analysis.figures.sweeps import commits_over, final_over

__all__ = [
    "commits_over",
    "convergence",
    "cost_bars",
    "final_over",
    "heat_map",
    "privacy_utility",
    "save",
    "speed_up_bars",
    "staleness_histogram",
    "standard",
]
