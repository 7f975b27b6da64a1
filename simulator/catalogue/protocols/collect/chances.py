"""How many trials of a round end in their time, by the laws of the clients."""

from collections.abc import Sequence

import numpy as np

from ....parts.base import LocatedError
from ....world.clients import Behaviour, Clients
from ....world.laws.base import Draws, Population
from ....world.streams import Streams

GRID = 1_000_000
"""Values of a law's quantile function that its probability is counted by, to 1e-6."""


def expected_trials_in_time(
    clients: Clients, quotas: Sequence[int], allotted: Sequence[float], seed: int
) -> float:
    """Returns sum_i p_i B_i, p_i being the chance that a job of client i is in time.

    Args:
        clients: Clients whose jobs consist of computing alone.
        quotas: B_i, trials of each client.
        allotted: Virtual seconds of each client's trial.
        seed: Seed of the run, on which parameters that are drawn depend.

    Raises:
        LocatedError: A job consists of more than computing, whose chance is not known;
            or no trial of any client can be in time.

    Source: Maranjyan, Omar and Richtarik, MindFlayer SGD (2025), section 3.
    """
    uniform = (np.arange(GRID) + 0.5) / GRID
    total, nearest = 0.0, (np.inf, 0, 0.0)
    for first, size, behaviour in clients.behaviours(len(quotas)):
        _refuse_other_stages(behaviour, clients)
        assert behaviour.compute is not None
        stage = "clients.compute"
        law = behaviour.compute.make(Population(size, Streams(seed), first, stage))
        for own in range(size):
            times = np.asarray(law.draw(Draws(uniform, own, 0), None))
            client, least = first + own, float(times.min())
            total += float(np.mean(times <= allotted[client])) * quotas[client]
            if quotas[client]:
                nearest = min(nearest, (least - allotted[client], client, least))
    if not total:
        _, client, least = nearest
        raise LocatedError(
            f"protocol.allotted must be enough for a trial of some client, got "
            f"{allotted[client]:g} s for client {client + 1}, whose shortest trial "
            f"takes {least:g} s; raise it",
        )
    return total


def _refuse_other_stages(behaviour: Behaviour, clients: Clients) -> None:
    others = ("read", "power", "upload", "download", "crashes", "loss", "leave")
    there = [name for name in others if getattr(behaviour, name) is not None]
    if behaviour.compute_per != "job":
        there.append("compute_per")
    if clients.slowdowns:
        there.append("slowdowns")
    if there:
        raise LocatedError(
            f"algorithm.divisor must be a number where a job has more to it than a "
            f"law of computing, got 'expected' with clients.{there[0]}; give "
            f"sum_i p_i B_i",
        )
