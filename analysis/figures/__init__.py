"""Figures of studies, and how they are drawn, labelled and written.

Each figure has a module: a function that draws it and, if a report shows it,
`standard(study)`, which yields file names and figures, and `CAPTIONS`, by patterns of
these names. The list below is the only one; `report` draws the standard figures in its
order, then those of plug-ins (`plugin`). Modules share `style` (colours, names,
Matplotlib's settings), `layout` (titles, legends, notes, panels), `facets` (panels of
many groups), `venues`, `lines` (groups that a line joins) and `files` (with captions);
`gantt` is of timelines.
Names are imported when they are used.
"""

from typing import TYPE_CHECKING

from ...simulator.parts.lazy import attach
from ..folders import takes_folder

if TYPE_CHECKING:
    # isort: off
    from .learning_curves import convergence
    from .instants import values_after
    from .sweeps import final_over
    from .heat_maps import heat_map
    from .winner_maps import winner_map
    from .privacy import privacy_utility
    from .tails import staleness_tails
    from .staleness import staleness_histogram
    from .fairness import client_accuracies
    from .speed_ups import speed_up_bars
    from .medians import commits_over, time_to_target_over
    from .plugin import StudyFigure
    from .report import save, standard
    from . import style

__getattr__, __dir__, __all__ = attach(__name__, __file__, takes_folder)
