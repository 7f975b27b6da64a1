"""Figures of studies, and how they are drawn, labelled and written.

Each figure has a module: a function that draws it and, if a report shows it,
`standard(study)`, which yields file names and figures, and `CAPTIONS`. The list below
is the only one; `report` draws the standard figures in its order, then those of
plug-ins (`plugin`). Modules share `style` (colours, names, Matplotlib's settings),
`layout` (titles, legends, notes), `facets` (panels of many
groups), `venues`, `captions`, `lines` (groups that a line joins), `medians` (of what
may not arrive), `names` and `files`; `gantt` is of timelines. Names are imported when
they are used.
"""

from typing import TYPE_CHECKING

from simulator.lazy import attach

if TYPE_CHECKING:
    # isort: off
    from analysis.figures.learning_curves import convergence
    from analysis.figures.instants import values_after
    from analysis.figures.sweeps import final_over
    from analysis.figures.heat_maps import heat_map
    from analysis.figures.privacy import privacy_utility
    from analysis.figures.commits import commits_over
    from analysis.figures.tails import staleness_tails
    from analysis.figures.staleness import staleness_histogram
    from analysis.figures.fairness import client_accuracies
    from analysis.figures.speed_ups import speed_up_bars
    from analysis.figures.target_times import time_to_target_over
    from analysis.figures.costs import cost_bars
    from analysis.figures.plugin import StudyFigure
    from analysis.figures.report import save, standard
    from analysis.figures import style

__getattr__, __dir__, __all__ = attach(__name__, __file__)
