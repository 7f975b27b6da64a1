"""How the uploads of many jobs fare: those that `world.faults.Lossy` has one by one."""

from math import log
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ...streams import Purpose
from ...world.clients import Loss
from ...world.world import World

NEAR = 1e-9
"""Distance from a whole number within which a logarithm is worked out once more."""


class Losses(NamedTuple):
    """How the uploads of some jobs fare.

    Attributes:
        sends: Messages sent.
        wait: Seconds after the first sending at which the last one is sent, or after
            which the client gives up.
        lost: Whether none arrived.
        twice: Whether a copy follows.
    """

    sends: Int[np.ndarray, "C n"]
    wait: Float[np.ndarray, "C n"]
    lost: Bool[np.ndarray, "C n"]
    twice: Bool[np.ndarray, "C n"]


def losses(
    world: World, clients: Int[np.ndarray, " C"], job: Int[np.ndarray, " C"], n: int
) -> Losses:
    """Returns how the uploads of successive jobs fare.

    Args:
        world: World of the clients.
        clients: Their numbers, each once.
        job: Number of the first job of each.
        n: Jobs of each.
    """
    shape = clients.size, n
    sends, wait = np.ones(shape, np.int64), np.zeros(shape)
    lost, twice = np.zeros(shape, bool), np.zeros(shape, bool)
    group_of = world.group_of[clients]
    for number, group in enumerate(world.groups):
        mine = np.flatnonzero(group_of == number)
        if group.config.loss is None or not mine.size:
            continue
        own = _of_group(world, group.config.loss, clients[mine], job[mine], n)
        sends[mine], wait[mine], lost[mine], twice[mine] = own
    return Losses(sends, wait, lost, twice)


def _of_group(
    world: World, config: Loss, clients: np.ndarray, job: np.ndarray, n: int
) -> Losses:
    """Returns how the uploads of a group fare, as `Lossy.send` has it."""
    streams = world.streams
    uniform = streams.rectangle(Purpose.LOSS, clients, job, n)
    times = np.zeros(uniform.shape, np.int64)
    if config.chance:
        by = log(config.chance)
        ratio = np.log(uniform) / by
        times = ratio.astype(np.int64)
        # NumPy's logarithm may differ from Python's in the last bit.
        doubtful = abs(ratio - np.rint(ratio)) < NEAR * (1 + ratio)
        for place in zip(*np.nonzero(doubtful), strict=True):
            times[place] = int(log(uniform[place]) / by)
    lost = times > config.retries
    sends = np.minimum(times, config.retries) + 1
    wait = np.where(lost, sends, sends - 1) * config.timeout
    copied = streams.rectangle(Purpose.DUPLICATE, clients, job, n)
    twice = ~lost & (copied < config.duplicates)
    return Losses(sends + twice, wait, lost, twice)
