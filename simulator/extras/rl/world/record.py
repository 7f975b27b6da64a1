"""The record of a world of samples: who made what when, and what became of it."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class SampleOutcome(IntEnum):
    """The end of a sample; every one that was started has exactly one."""

    TRAINED = 0
    DROPPED = 1
    """The queue gave it up: too old, or too many."""
    ABORTED = 2
    """It was stopped by an update of the weights, and made again."""
    MASKED = 3
    """It was in a batch, too old: its reward counts for its group, it has no gradient.
    """
    UNDER_WAY = 4
    """Generated, waiting or in training when the run ended."""


NO_STEP = 0
"""Step of a sample that was not trained; steps count from 1."""


class Rollouts(NamedTuple):
    """What happened in a run.

    Attributes:
        samples: Columns of samples in the order of their starts, a row each time that
            one starts: `group`, `prompt`, `member`, `attempt`, `slot`, `tokens` that
            were generated, `start_time`, `finish_time`, `ready_time` (entry into the
            queue; NaN without), `outcome` (`SampleOutcome`), `start_version`,
            `ready_version` (of the trainer at entry), `step` of its batch from 1, and
            `start_work`, `finish_work`, the tokens that a busy slot had generated
            by then.
        steps: Columns of steps: `start_time`, `end_time` (NaN if the run ended before),
            `samples`, `tokens`, `left` (samples in the queue after the batch was
            taken).
        loads: Columns of loads of the weights, the first one version 0 at time 0:
            `time`, `work`, `version`.
        pieces: Tokens of samples continued after a load in a mode with pieces of their
            own: columns `sample`, `version`, `tokens`. Else empty, and `loads` with the
                columns of work have the same.
        slot_seconds: Seconds of all slots by their activity: `busy`, `paused` (by a
            load), `blocked` (by a full queue), `down`; they were idle for the rest.
        end_time: Virtual seconds of the run.
        stop: Why it ended: `steps`, `samples` or `time`; of a real system, `log`.
        player: `events`, or `log`.
    """

    samples: dict[str, np.ndarray]
    steps: dict[str, np.ndarray]
    loads: dict[str, np.ndarray]
    pieces: dict[str, np.ndarray]
    slot_seconds: dict[str, float]
    end_time: float
    stop: str
    player: str


TYPES: dict[str, type[np.integer]] = {
    "group": np.int64,
    "prompt": np.int64,
    "member": np.int32,
    "attempt": np.int32,
    "slot": np.int32,
    "outcome": np.int8,
    "start_version": np.int64,
    "ready_version": np.int64,
    "step": np.int64,
    "samples": np.int64,
    "left": np.int64,
    "version": np.int64,
    "sample": np.int64,
}
"""Types of columns that are not float64."""


def columns(lists: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Returns lists as arrays, each of its column's type."""
    return {
        name: np.asarray(values, TYPES.get(name, np.float64))
        for name, values in lists.items()
    }
