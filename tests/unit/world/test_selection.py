"""Who is selected where hardly anybody can be."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.world.clients import Selection, Server
from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.world.preferences import Flad
from stalesim.simulator.world.selection import Pool
from stalesim.simulator.world.streams import Streams
from tests.support import everything, played
from tests.unit.protocols.replay import staleness

N = 100_000
"""So many that a given client is among the first candidates with a chance of 1 %."""


def pool(by: str, since=None, n: int = N) -> Pool:
    world: Any = SimpleNamespace(
        num_clients=n,
        streams=Streams(1),
        delays=SimpleNamespace(prefetch=lambda _: None),
        presence=SimpleNamespace(is_always=since is None),
        present_since=since,
    )
    return Pool(Selection(in_flight=n, by=by, weights="m"), world)


@pytest.mark.parametrize("by", ["uniform", "weighted", "cyclic"])
def test_the_only_one_who_is_there_is_found(by: str) -> None:
    alone = 54_321
    found = pool(by, lambda client, now: now if client == alone else now + 1)
    assert found.take(5.0) == alone
    assert found.take(5.0) is None  # is under way
    found.give_back(alone)
    assert found.take(6.0) == alone


def test_the_only_one_who_is_not_under_way_is_found() -> None:
    found = pool("cyclic")
    for client in range(N):
        assert found.take(0.0) == client
    assert found.take(0.0) is None
    found.give_back(777)
    found.give_back(50_000)
    assert found.waiting() == [777, 50_000]
    assert {found.take(0.0), found.take(0.0)} == {777, 50_000}
    assert found.take(0.0) is None


def test_everybody_is_selected_as_often_as_the_weights_say() -> None:
    n, times = 4, 40_000
    found = pool("weighted", n=n)
    counts = np.zeros(n)
    for _ in range(times):
        client = found.take(0.0)
        assert client is not None
        counts[client] += 1
        found.give_back(client)
    share = np.arange(1, n + 1) / 10
    # Five standard deviations of a binomial share.
    assert (abs(counts / times - share) < 5 * np.sqrt(share / times)).all()


@pytest.mark.parametrize(
    ("losses", "free", "steps"),
    [
        # the mean is 0.95: the only one behind is busy
        ([2.0, 0.5, 0.6, 0.7], [1, 2, 3], {3: 2}),
        # so are two who are equally far behind
        ([2.0, 2.0, 0.5, 0.6, 0.7], [2, 3, 4], {4: 2}),
        ([2.0, 1.9, 0.6, 0.7], [2, 3], {3: 2}),
        # who is behind alone, or as far as all, is the worst
        ([2.0, 0.5, 0.6, 0.7], [0, 1], {0: 6}),
        ([2.0, 2.0, 0.5, 0.6], [0, 1, 2], {0: 6, 1: 6}),
        ([0.1, 0.1, 0.1], [0, 2], {0: 6, 2: 6}),
        ([2.0, np.nan, 0.6, 0.7], [1, 2], {1: 6}),
    ],
)
def test_flad_gives_a_stand_in_the_least_steps(
    losses: list[float], free: list[int], steps: dict[int, int]
) -> None:
    given: dict[int, int] = {}
    pool: Any = SimpleNamespace(
        free=lambda now: free,
        answers=SimpleNamespace(losses=np.array(losses)),
        most_steps=6,
        give_steps=given.update,
    )
    assert sorted(Flad(least_steps=2).make(pool)(9, 0.0)) == sorted(steps)
    assert given == steps


def test_a_queue_at_the_server_does_not_keep_the_limit_of_jobs() -> None:
    """With two jobs under way each contribution is one commit stale, not seven."""
    by = {"kind": "staleness", "target": 1.0, "every": 20}
    clients = {
        "compute": {"law": "expon"},
        "selection": {"in_flight": 8, "in_flight_by": by},
    }
    server = Server(service=Constant(value=1e-6))
    plan = played(Asynchronous(), clients, 8, server=server, commits=2000)
    late = staleness(everything(plan)[0])[1000:]
    assert np.mean(late) < 1.5
