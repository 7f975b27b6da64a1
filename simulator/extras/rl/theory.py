"""The closed form of staleness in asynchronous reinforcement learning.

C slots generate samples, S of a group; groups enter a queue of q batches, which drops
the oldest; a trainer takes B samples per step. `rho` is samples generated per second
over samples trained per second, if neither waits; `tail` is the mean length of a
group's longest sample over the mean length. Staleness is in versions, from the start of
a sample to the start of the step that trains it.
"""


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
        RL training (July 2026), PQS and IQS; methods.md, section 13.
    """
    waiting = rho if rho < 1 else (2 * capacity + rho - 1) / (2 * rho)
    return slots * tail / (batch * max(1.0, rho)), waiting
