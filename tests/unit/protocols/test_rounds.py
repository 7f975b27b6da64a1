"""Rounds: how long they last, who reads what, and how many messages they take."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import StopReason
from stalesim.simulator.world.clients import Clients, Link, Server
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.workload import Workload
from tests.support import everything, played
from tests.unit.protocols.replay import (
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
        plan = played(protocol, clients, 2, 1, Workload(4, 4, 2, steps=5), rounds=2)
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
    plan = played(Rounds(order="sequential"), clients, 3, server=server, rounds=1)
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
        most = 7 * bytes_per_round + extra
        plan = played(protocol, clients, 3, 1, Workload(3, 5, 3), bytes=most)
        rows, _, why = everything(plan)
        assert why is StopReason.BYTES
        assert rows.round[-1] == rounds - 1


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
