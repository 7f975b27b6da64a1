"""Who is selected where hardly anybody can be."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.world.clients import Selection
from stalesim.simulator.world.selection import Pool
from stalesim.simulator.world.streams import Streams

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
