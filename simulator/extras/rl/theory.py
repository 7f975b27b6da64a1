"""Closed forms of asynchronous reinforcement learning: staleness, speed, best split.

C slots generate samples, S of a group; groups enter a queue of q batches, which drops
the oldest; a trainer takes B samples a step. `rho` is samples generated per second over
samples trained per second, if neither waits; `tail` is the mean length of a group's
longest sample over the mean length. Staleness is in versions, from the start of a
sample to that of the step that trains it.
"""

import numpy as np


def rollout_staleness(
    slots: float, batch: float, capacity: float, rho: float, tail: float
) -> tuple[float, float]:
    """Returns the mean staleness as published: in generation, and in the queue.

    The first is from a sample's start to its group's last end, in versions; the second
    from there to the step that trains it.

    Args:
        slots: C, >= 1.
        batch: B, >= 1.
        capacity: q, batches that the queue holds, >= 1.
        rho: > 0; above 1 the trainer is the slower side.
        tail: >= 1; 1 for groups of one sample.

    Source: Applied Compute, Predicting and controlling staleness in fully asynchronous
        RL training (July 2026), PQS and IQS.
    """
    waiting = rho if rho < 1 else (2 * capacity + rho - 1) / (2 * rho)
    return slots * tail / (batch * max(1.0, rho)), waiting


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

    Both sides take the time of the slower one.
    """
    generating = np.arange(1, machines)
    made = batch / (samples_per_second * generating)
    took = step_seconds / (machines - generating)
    each = np.maximum(made, took)
    best = int(each.argmin())
    return int(generating[best]), float(each[best])
