"""Asynchronous reinforcement learning: stale rollouts, and what they do to a policy.

For who trains a policy on samples that older versions of it have generated: how stale
are they, and what does a bound or a correction cost (docs/extras/rl.md)?

- `world`: options, random numbers, the player, its record and its measures.
- `scenario`: a world of samples alone, and the protocol `rollouts` of a study, whose
  timeline is in `timeline`; `recording` plays and writes a world (`columns`).
- `policy_gradient`: the algorithm and its metric; `arithmetic`: data with answers.
- `logs`: worlds that are fitted to the log of a real system; `commands` imports one.
- `report`, `tables`, `figures`: recorded worlds, with the closed forms of `theory`.
"""

from typing import TYPE_CHECKING

from ...parts.attached import Extra, ExtraWorld
from ...parts.lazy import attach
from .columns import TABLES

if TYPE_CHECKING:
    from . import theory
    from .figures import best_split, histogram, swept
    from .logs import import_samples, log_of
    from .recording import record_rollouts
    from .scenario import GenerateAndTrain, RolloutScenario
    from .tables import closing, compared, fitted

EXTRA = Extra(
    commands=f"{__name__}.commands",
    worlds=(
        ExtraWorld(
            kind="samples",
            entries=("generation", "queue", "trainer", "weights"),
            scenario=f"{__name__}.scenario:RolloutScenario",
            record=f"{__name__}.recording:record_rollouts",
            report=f"{__name__}.report",
        ),
    ),
    tables=TABLES,
)

__getattr__, __dir__, __all__ = attach(__name__, __file__)
