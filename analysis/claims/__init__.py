"""Claims of each kind, and the verdicts on those of a study.

Each kind has its entries, their rules, the data that it needs of a study, and its
judge, which weighs the evidence for and against it in the terms of `verdict`;
`simulator.claims` has the common part of all kinds. `final_values`, `sweeps` and
`speed` have several kinds each, the other modules one. All share `numbers`.

A scenario is read with these modules and without pandas: functions of other modules
that need it are imported when a study is measured. `measured` takes from the study the
quantities that its claims need, and keeps no more to judge them again. `sequential`
corrects p-values for interim analyses and many claims; `groups` has what a claim is
about, and `findings` decides.
"""

from typing import TYPE_CHECKING

from ...simulator.parts.lazy import attach
from ..folders import takes_folder

if TYPE_CHECKING:
    from .final_values import difference, of_group
    from .findings import (
        COLUMNS,
        all_decided,
        evaluate,
        judge,
    )
    from .groups import undecidable
    from .measured import Measured
    from .verdict import (
        FAILS,
        HOLDS,
        OPEN,
        UNDECIDABLE,
        UNDECIDED,
        Evidence,
        Judged,
        judged,
        near,
        side,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__, takes_folder)
