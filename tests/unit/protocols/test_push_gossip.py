"""Gossip learning: who pushes to whom and when, and what token accounts promise."""

from math import floor, sqrt
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.gossip.accounts import (
    Account,
    Generalised,
    Randomised,
    Simple,
)
from stalesim.simulator.catalogue.protocols.gossip.push import PushGossip
from stalesim.simulator.catalogue.protocols.graphs.kinds import Arcs, Ring
from stalesim.simulator.files.timeline import NO_SLOT, Kind, Rows
from stalesim.simulator.timelines.simulated import TOGETHER, SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Link, Loss
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import kinds, workers

PERIOD = 1.0
AT_ONCE = Constant(law="constant", value=0)
ACCOUNTS: dict[str, Account | None] = {
    "proactive": None,
    "simple": Simple(capacity=5),
    "generalised": Generalised(capacity=10, divisor=3),
    "randomised": Randomised(capacity=10, divisor=5),
}


def clients(delay: float = 0.01, **options: Any) -> Clients:
    idle = Constant(law="constant", value=PERIOD)
    latency = Constant(law="constant", value=delay)
    link = Link(latency=latency)
    return Clients(idle=idle, compute=AT_ONCE, upload=link, **options)


def pushed(account: Account | None, n: int = 20, **options: Any) -> SimulatedTimeline:
    return played(PushGossip(tokens=account), clients(**options), n, time=200.0)


def pushes(rows: Rows, worker: int) -> np.ndarray:
    return rows.time[(rows.kind == Kind.SEND) & (rows.worker[:, 1] == worker)]


def test_a_cycle_of_two_by_hand() -> None:
    protocol = PushGossip(graph=Arcs(arcs=((1, 2), (2, 1))))
    idle = Constant(law="constant", value=4)
    compute = Constant(law="constant", value=3)
    latency = Constant(law="constant", value=1)
    world = Clients(idle=idle, compute=compute, upload=Link(latency=latency))
    rows, jobs, _ = everything(played(protocol, world, 2, time=10))
    # Both wake up at 4 and 8, and get a model a second later; a job takes 3.
    expected = [
        *((4, "SEND", (1, 0)), (4, "SEND", (0, 1))),
        *((5, "MERGE", (1, 0)), (5, "MERGE", (0, 1))),
        *((8, "SEND", (1, 0)), (8, "COMMIT", (1,)), (8, "SEND", (0, 1))),
        *((8, "COMMIT", (0,)), (9, "MERGE", (1, 0)), (9, "MERGE", (0, 1))),
    ]
    found = list(zip(rows.time.tolist(), kinds(rows), workers(rows), strict=True))
    assert sorted(found) == sorted(expected)
    assert rows.read_slot[rows.kind == Kind.MERGE, 0].tolist() == [1, 0, 1, 0]
    assert jobs.read_time.tolist() == [5, 5, 9, 9]
    assert jobs.uploads.tolist()[:2] == [2, 2]


@pytest.mark.parametrize("name", ACCOUNTS)
def test_a_worker_sends_at_most_t_over_delta_and_its_capacity(name: str) -> None:
    account = ACCOUNTS[name]
    capacity = 0 if account is None else account.capacity
    rows, _, _ = everything(pushed(account))
    largest = 0.0
    for worker in range(20):
        sent = pushes(rows, worker)
        for first in range(sent.size):
            # In [sent[first], sent[last]], wherever it lies, at most t / Delta + 1 are
            # wake-ups: C of the messages are of tokens that were saved before.
            windows = sent[first:] - sent[first]
            number = np.arange(1, windows.size + 1)
            most = np.floor(windows / PERIOD + 1e-9) + 1 + capacity
            assert (number <= most).all()
            largest = max(largest, (number - windows / PERIOD).max())
        # And in all what was granted but for what is saved: no token is lost.
        wakes = floor(200.0 / PERIOD)
        assert wakes - capacity <= sent.size <= wakes
    if account is not None:  # bursts there are, or the bound would say nothing
        assert largest > 2


def test_accounts_are_those_of_the_paper() -> None:
    simple, general = Simple(capacity=3), Generalised(capacity=6, divisor=2)
    random = Randomised(capacity=6, divisor=2)
    assert [simple.proactive(a) for a in range(5)] == [0, 0, 0, 1, 1]
    assert [simple.reactive(a) for a in range(4)] == [0, 1, 1, 1]
    assert [general.proactive(a) for a in (5, 6)] == [0, 1]
    assert [general.reactive(a) for a in range(7)] == [0, 1, 1, 2, 2, 3, 3]
    rising = [random.proactive(a) for a in range(8)]
    np.testing.assert_allclose(rising, [0, 0, 0.2, 0.4, 0.6, 0.8, 1, 1])
    assert [random.reactive(a) for a in range(4)] == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("name", [name for name in ACCOUNTS if ACCOUNTS[name]])
def test_no_account_spends_what_it_lacks(name: str) -> None:
    account = ACCOUNTS[name]
    assert account is not None
    assert account.proactive(account.capacity) == 1
    for tokens in range(account.capacity + 1):
        assert 0 <= account.proactive(tokens) <= 1
        assert np.ceil(account.reactive(tokens)) <= tokens


def test_reactions_let_a_model_hop_sooner() -> None:
    # Each hop of a model takes half a period where pushes are proactive alone, and
    # little but the transfer where a token is there: an order of magnitude (abstract).
    hops = {}
    for name in ("proactive", "randomised"):
        rows, _, _ = everything(pushed(ACCOUNTS[name]))
        length, carried = np.zeros(20, int), {}
        for kind, slots, who in zip(
            rows.kind, rows.read_slot, rows.worker, strict=True
        ):
            if kind == Kind.SEND:
                carried[slots[1]] = length[who[1]]
            elif kind == Kind.MERGE:
                length[who[0]] = max(length[who[0]], carried[slots[1]] + 1)
        hops[name] = length.max()
    assert hops["randomised"] > 2 * hops["proactive"] > 100


def test_messages_are_lost_by_chance() -> None:
    loss = Loss(chance=0.3, timeout=1, retries=0)
    plan = pushed(ACCOUNTS["simple"], loss=loss)
    rows, _, _ = everything(plan)
    lost = rows.read_slot[rows.kind == Kind.SEND, 1] == NO_SLOT
    assert abs(lost.mean() - 0.3) < 4 * sqrt(0.21 / lost.size)  # four deviations
    incidents = sum(chunk.incidents.time.size for chunk in plan.chunks(500))
    assert incidents == lost.sum()
    under_way = lost.size - lost.sum() - (rows.kind == Kind.MERGE).sum()
    assert 0 <= under_way <= 20 * 6


def test_messages_on_their_way_have_a_register_each() -> None:
    delays = Scipy(law="uniform", loc=1, scale=9)  # Ormandi et al.: 1 to 10 periods
    idle = Constant(law="constant", value=PERIOD)
    world = Clients(idle=idle, compute=AT_ONCE, upload=Link(latency=delays))
    plan = played(PushGossip(graph=Ring()), world, 6, time=100)
    rows, _, _ = everything(plan)
    taken: dict[int, int] = {}
    most = 0
    for kind, slots, worker in zip(rows.kind, rows.read_slot, rows.worker, strict=True):
        if kind == Kind.SEND:
            assert slots[1] not in taken
            assert slots[1] >= 6
            taken[slots[1]] = worker[1]
            most = max(most, len(taken))
        elif kind == Kind.MERGE:
            assert taken.pop(slots[1]) == worker[1]
    assert 0 <= plan.num_registers - 6 - most < TOGETHER
    assert (plan.num_registers - 6) % TOGETHER == 0  # replicates share a program
    assert most > 24  # 5.5 periods each, on average
