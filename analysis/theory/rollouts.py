"""Closed forms of asynchronous reinforcement learning: staleness, speed, best split.

C slots generate samples, S of a group; groups enter a queue of q batches, which drops
the oldest; a trainer takes B samples a step. `rho` is samples generated per second over
samples trained per second, if neither waits; `tail` is the mean length of a group's
longest sample over the mean length. Staleness is in versions, from the start of a
sample to that of the step that trains it.
"""

from typing import NamedTuple

import numpy as np


class RolloutStaleness(NamedTuple):
    """Mean staleness, and its parts.

    Attributes:
        in_generation: Versions between a sample's start and its group's last end.
        in_queue: Versions from there to the step that trains it.
    """

    in_generation: float
    in_queue: float

    @property
    def mean(self) -> float:
        """Both together."""
        return self.in_generation + self.in_queue


def rollout_staleness(
    slots: float, batch: float, capacity: float, rho: float, tail: float
) -> RolloutStaleness:
    """Returns the mean staleness as published.

    Args:
        slots: C, >= 1.
        batch: B, >= 1.
        capacity: q, batches that the queue holds, >= 1.
        rho: > 0; above 1 the trainer is the slower side.
        tail: >= 1; 1 for groups of one sample.

    Source: Applied Compute, Predicting and controlling staleness in fully asynchronous
        RL training (July 2026), PQS and IQS; methods.md, section 13.
    """
    waiting = rho if rho < 1 else (2 * capacity + rho - 1) / (2 * rho)
    return RolloutStaleness(slots * tail / (batch * max(1.0, rho)), waiting)


def fluid_in_queue(capacity: float, rho: float) -> float:
    """Returns the versions in the queue if groups come and go as a steady flow.

    A batch that is taken from a full queue came between q and q - 1 batches before, and
    every step that ended since counts as a whole; the published form takes half a
    version for that rounding. They agree where that is right on average, as for q = 2
    and rho = 1.5, and differ by up to a half: for q = 1 all of a batch came during one
    step, so that it waits exactly one version, whatever `rho` > 1 is.

    Args:
        capacity: q, batches that the queue holds, >= 1.
        rho: > 0.
    """
    if rho < 1:
        return rho
    low, high = (capacity - 1) / rho, capacity / rho
    return 1 + (_floors(high) - _floors(low)) / (high - low)


def _floors(end: float) -> float:
    """Returns the integral of the integer part from 0."""
    whole = np.floor(end)
    return float(whole * (whole - 1) / 2 + whole * (end - whole))


def seconds_per_step(step_seconds: float, rho: float) -> float:
    """Returns the mean time from one step to the next.

    Args:
        step_seconds: Mean of a step alone, > 0.
        rho: > 0; below 1 the trainer waits for samples.
    """
    return step_seconds / min(1.0, rho)


def best_split(
    machines: int, samples_per_second: float, batch: float, step_seconds: float
) -> tuple[int, float]:
    """Returns the number of generating machines with the shortest steps, and these.

    Args:
        machines: In all, >= 2; the others train.
        samples_per_second: That one machine generates, > 0.
        batch: Samples of a step.
        step_seconds: Of a step on one machine, > 0; N machines take an Nth of it.

    Source: methods.md, section 13: both sides take the time of the slower one.
    """
    generating = np.arange(1, machines)
    made = batch / (samples_per_second * generating)
    took = step_seconds / (machines - generating)
    each = np.maximum(made, took)
    best = int(each.argmin())
    return int(generating[best]), float(each[best])
