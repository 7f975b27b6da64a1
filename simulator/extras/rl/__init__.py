"""Asynchronous reinforcement learning: stale rollouts, and their effect on a policy.

For users who train a policy on samples of older versions: how stale are they, and what
does a bound or a correction cost (docs/extras/rl.md)?

- `world`: options, random numbers, the player, its record and its measures.
- `scenario`: a world of samples alone, and the protocol `rollouts` of a study, whose
  timeline is in `timeline`; `recording` plays and writes a world.
- `policy_gradient`: the algorithm and its metric; `arithmetic`: data with answers.
- `logs`: worlds that are fitted to the log of a real system; `commands` imports one.
- `report`, `figures`: recorded worlds, with the closed forms of `theory`.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from ...parts.attached import Extra, ExtraWorld, Recorder
from ...parts.lazy import attach

if TYPE_CHECKING:
    from . import theory
    from .figures import best_split, histogram, swept
    from .logs import import_samples, log_of
    from .recording import record_rollouts
    from .scenario import GenerateAndTrain, RolloutScenario
    from .tables import closing, compared, fitted

COMMITS = {
    "reward": ("float32", "", "mean reward of the batch's samples"),
    "ratio_max": (
        *("float32", ""),
        "largest ratio of the policies' chances of a sample's action",
    ),
    "limited_fraction": (
        *("float32", "fraction"),
        "of samples whose ratio was truncated or clipped",
    ),
    "effective_fraction": (
        *("float32", "fraction"),
        "of the samples: (sum of weights)^2 / sum of squares, over their number",
    ),
}
STEPS = {
    "step": ("int64", "", "step of the trainer, from 1"),
    "start_time": ("float64", "virtual s", "when it began"),
    "end_time": ("float64", "virtual s", "when it ended; NaN if the run ended before"),
    "samples": ("int64", "", "samples of its batch"),
    "tokens": ("float64", "tokens", "of its batch"),
    "left": ("int64", "", "samples in the queue after the batch was taken"),
}
AGES = {
    "staleness": (
        *("int64", "commits"),
        "of what was trained after the start of the run",
    ),
    "samples": ("int64", "", "samples of that staleness"),
    "tokens": (
        *("float64", "tokens"),
        "of that staleness, each by the version that made it",
    ),
}
SAMPLES = {
    "sample": ("int64", "", "in the order of starts, from 1"),
    "group": ("int64", "", "samples that enter the queue together"),
    "prompt": ("int64", "", "what it answers, from 0"),
    "member": ("int32", "", "its place in its group, from 0"),
    "attempt": ("int32", "", "times that it was made before"),
    "slot": ("int32", "", "slot that generated it, from 0"),
    "tokens": ("float64", "tokens", "that were generated"),
    "start_time": ("float64", "virtual s", "of its first token"),
    "finish_time": ("float64", "virtual s", "of its last one, or NaN"),
    "ready_time": ("float64", "virtual s", "when it entered the queue, or NaN"),
    "outcome": ("string", "", "TRAINED, DROPPED, ABORTED, MASKED or UNDER_WAY"),
    "start_version": ("int64", "commits", "version that it began with"),
    "ready_version": (
        *("int64", "commits"),
        "of the trainer when it entered the queue",
    ),
    "step": ("int64", "", "step of its batch, from 1; else 0"),
}


class Samples(ExtraWorld):
    """A world of samples, which a trainer takes from a queue."""

    kind = "samples"
    entries = ("generation", "queue", "trainer", "weights")

    def scenario(self) -> "type[RolloutScenario]":
        from .scenario import RolloutScenario

        return RolloutScenario

    def record(self) -> Recorder:
        from .recording import record_rollouts

        return record_rollouts

    def report(self) -> ModuleType:
        from . import report

        return report


EXTRA = Extra(
    commands=f"{__name__}.commands",
    worlds=(Samples(),),
    tables={
        "commits": COMMITS,
        "steps": STEPS,
        "sample_ages": AGES,
        "samples": SAMPLES,
    },
    growing=("samples",),
)

__getattr__, __dir__, __all__ = attach(__name__, __file__)
