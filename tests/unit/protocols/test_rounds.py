"""Rounds: how long they last, who reads what, and how many messages they take."""

import numpy as np
import pytest

from stalesim.simulator.config.stop import Stop
from stalesim.simulator.laws.constant import Constant
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.protocols import Rounds, Synchronous
from stalesim.simulator.timeline import Outcome, StopReason
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Crashes, Link, Selection, Server
from stalesim.simulator.world.slowdowns import NamedSlowdown
from stalesim.simulator.world.workload import Workload
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    replay_registers,
    staleness,
    workers,
)

BOTH = (Rounds(), Rounds(order="sequential"))
LINKED = Clients(
    compute=Constant(value=(1, 2, 3)),
    upload=Link(latency=Constant(value=(0.5, 0.25, 0.25))),
    download=Link(latency=Constant(value=0.125)),
)


def test_a_parallel_round_is_one_row_and_as_long_as_its_slowest_party() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    rows, _, stop = everything(played(Rounds(), clients, 3, rounds=3))
    assert stop is StopReason.ROUNDS
    assert rows.time.tolist() == [3.5, 7, 10.5]
    assert workers(rows) == [(0, 1, 2)] * 3
    assert rows.version.tolist() == rows.round.tolist() == [0, 1, 2]
    assert rows.read_version.tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_in_sequence_later_parties_read_what_earlier_ones_left() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    plan = played(Rounds(order="sequential"), clients, 3, rounds=2)
    rows, _, stop = everything(plan)
    assert stop is StopReason.ROUNDS
    assert rows.time.tolist() == [1, 3, 6.5, 7.5, 9.5, 13]
    assert workers(rows) == [(0,), (1,), (2,)] * 2
    assert rows.round.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows.read_version[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_local_steps_take_their_time_one_by_one() -> None:
    clients = Clients(compute=Constant(value=(1, 2)), compute_per="step")
    for protocol, ends in zip(BOTH, ([10, 20], [5, 15, 20, 30]), strict=True):
        traffic = Workload(4, 4, 2, steps=5)
        plan = SimulatedTimeline(clients, protocol, 2, 1, Stop(rounds=2), traffic)
        assert everything(plan)[0].time.tolist() == ends


def test_the_exchange_takes_the_links_time() -> None:
    rows, jobs, _ = everything(played(Rounds(), LINKED, 3, rounds=2))
    assert rows.time.tolist() == [3.375, 6.75]  # the third party: 0.125 + 3 + 0.25
    assert jobs.computed_time[:3].tolist() == [1.125, 2.125, 3.125]
    assert jobs.arrived_time[:3].tolist() == [1.625, 2.375, 3.375]


def test_in_sequence_all_parties_send_what_they_hold_of_a_new_batch() -> None:
    turns = np.cumsum([1.625, 2.375, 3.375] * 2)  # down, compute, up
    rows, *_ = everything(played(Rounds(order="sequential"), LINKED, 3, rounds=2))
    assert rows.time.tolist() == (turns + np.repeat([0.5, 1], 3)).tolist()


def test_a_new_batch_shares_the_servers_link() -> None:
    server = Server(upload_bandwidth=8.0)
    clients = Clients(compute=Constant(value=1))
    traffic = Workload(4, 4, 3)
    rounds = Rounds(order="sequential")
    plan = SimulatedTimeline(
        clients, rounds, 3, 1, Stop(rounds=1), traffic, server=server
    )
    # 3 messages of 4 bytes share 8 bytes/s: 1.5 s; then each turn is 1 s + 0.5 s.
    assert everything(plan)[0].time.tolist() == [3, 4.5, 6]


@pytest.mark.parametrize("num_parties", range(2, 18))
def test_messages_of_an_exchange_and_of_a_round(num_parties: int) -> None:
    K = num_parties
    star, pairs = Rounds(), Rounds(exchange="pairwise")
    assert star.messages_per_exchange(K) == 2 * (K - 1)
    assert pairs.messages_per_exchange(K) == K * K - K
    assert star.messages_per_round(K) == (K - 1, K - 1)
    assert pairs.messages_per_round(K) == (K * K - K, 0)
    for exchange, single, reply in (("star", K - 1, K - 1), ("pairwise", K * K - K, 0)):
        sequential = Rounds(order="sequential", exchange=exchange)
        assert sequential.messages_per_round(K) == (2 * single, reply)


@pytest.mark.parametrize(
    ("protocol", "bytes_per_round"),
    [
        (Rounds(), 2 * 3 + 2 * 5),
        (Rounds(exchange="pairwise"), 6 * 3),
        (Rounds(order="sequential"), 4 * 3 + 2 * 5),
    ],
)
def test_a_run_ends_when_its_bytes_are_sent(protocol, bytes_per_round: int) -> None:
    clients = Clients(compute=Constant(value=1))
    for extra, rounds in ((0, 7), (1, 8)):
        stop = Stop(bytes=7 * bytes_per_round + extra)
        plan = SimulatedTimeline(clients, protocol, 3, 1, stop, Workload(3, 5, 3))
        rows, _, why = everything(plan)
        assert why is StopReason.BYTES
        assert rows.round[-1] == rounds - 1


@pytest.mark.parametrize("protocol", BOTH, ids=lambda p: p.order)
@pytest.mark.parametrize("chunk", [7, 4096])
def test_nobody_is_ever_stale(protocol, chunk) -> None:
    clients = Clients(
        compute=Scipy(law="expon"),
        crashes=Crashes(after=Scipy(law="expon", scale=4), down=Constant(value=1)),
        slowdowns=(NamedSlowdown(clients=(2,), factor=3.0),),
    )
    rows, jobs, _ = everything(played(protocol, clients, 4, rounds=50), chunk)
    assert (jobs.outcome == Outcome.CRASHED).any()
    assert set(staleness(rows)) == {0}
    assert rows.round.tolist() == sorted(rows.round.tolist())
    replay_registers(rows)
    check_conservation(rows, jobs, 4)


def test_in_parallel_they_are_synchronous_rounds() -> None:
    clients = Clients(compute=Scipy(law="expon"))
    one, *_ = everything(played(Rounds(), clients, 5, rounds=50))
    other, *_ = everything(played(Synchronous(), clients, 5, rounds=50))
    for column, wanted in zip(one, other, strict=True):
        np.testing.assert_array_equal(column, wanted)


def test_one_party_has_nobody_to_exchange_with() -> None:
    assert Rounds().messages_per_exchange(1) == 0
    for protocol in BOTH:
        plan = played(protocol, Clients(compute=Constant(value=1)), 1, rounds=3)
        assert everything(plan)[0].time.tolist() == [1, 2, 3]


def test_everyone_takes_part() -> None:
    clients = Clients(compute=Constant(value=1), selection=Selection(in_flight=2))
    with pytest.raises(ValueError, match=r"clients.selection must not be set"):
        Rounds().check_setting(clients, Server(), 3)
