"""Gossip: who averages with whom when, what is read, and that nobody waits for ever."""

from collections import Counter, defaultdict
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from stalesim.analysis.theory.gossip import expected_pairwise_averaging, spectral_gap
from stalesim.simulator.catalogue.protocols.gossip import Gossip
from stalesim.simulator.catalogue.protocols.gossip.playing import Pair, Pairs
from stalesim.simulator.catalogue.protocols.graphs.kinds import (
    Arcs,
    Bipartite,
    Complete,
    Edges,
    ErdosRenyi,
    Exponential,
    RandomRegular,
    Ring,
    Torus,
    UndirectedExponential,
)
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import NO_SLOT, Kind, Outcome, StopReason
from stalesim.simulator.world.clients import Clients, Link
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.slowdowns import NamedSlowdown, RandomSlowdown
from stalesim.simulator.world.streams import Purpose, Streams
from stalesim.simulator.world.workload import Workload
from tests.support import everything, played
from tests.unit.protocols.replay import (
    averaging_matrix,
    check_conservation,
    edges_of,
    kinds,
    pairs,
    replay_models,
    workers,
)

EXPON = Scipy(law="expon")
ORDERS = ("average_then_step", "step_then_average", "during")
GRAPHS = (
    Bipartite(),
    Ring(),
    Torus(),
    Complete(),
    RandomRegular(degree=3),
    RandomRegular(degree=7),
    ErdosRenyi(probability=0.4),
    Edges(edges=tuple((1, k) for k in range(2, 13))),
    UndirectedExponential(),
)


def linked(compute, latency, **options) -> Clients:
    return Clients(compute=compute, upload=Link(latency=latency), **options)


def test_the_initiator_averages_and_then_steps() -> None:
    """The first of two is a sender, the second a receiver, who just steps."""
    clients = linked(Constant(value=(1, 2)), Constant(value=0.25))
    rows, jobs, _ = everything(played(Gossip(), clients, 2, time=2.5))
    assert kinds(rows) == ["AVERAGE", "COMMIT", "COMMIT", "AVERAGE", "COMMIT"]
    assert rows.time.tolist() == [1.25, 1.25, 2, 2.5, 2.5]
    assert workers(rows) == [(0, 1), (0,), (1,), (0, 1), (0,)]
    assert rows.version.tolist() == [0, 0, 1, 2, 2]
    assert rows.read_version[:, 0].tolist() == [0, 0, 0, 2, 1]
    assert (rows.read_slot[rows.kind == Kind.AVERAGE] == NO_SLOT).all()
    applied = jobs.outcome == Outcome.APPLIED
    assert jobs.computed_time[applied].tolist() == [1, 2, 2.25]
    assert jobs.applied_time[applied].tolist() == [1.25, 2, 2.5]
    assert jobs.uploads[applied].tolist() == [1, 1, 1]
    replay_models(rows, jobs, 2)


def test_the_step_may_come_first() -> None:
    clients = linked(Constant(value=(1, 2)), Constant(value=0.25))
    protocol = Gossip(order="step_then_average")
    rows, jobs, _ = everything(played(protocol, clients, 2, time=2.5))
    assert kinds(rows) == ["COMMIT", "AVERAGE", "COMMIT", "COMMIT", "AVERAGE"]
    assert rows.time.tolist() == [1, 1.25, 2, 2.25, 2.5]
    # The initiator has no job under way while it averages: it reads what comes of it.
    averaged = rows.kind == Kind.AVERAGE
    assert rows.read_slot[averaged].tolist() == [[0, NO_SLOT]] * 2
    assert rows.read_version[3, 0] == 1
    replay_models(rows, jobs, 2)


def test_averaging_during_a_gradient_makes_it_no_longer() -> None:
    clients = linked(Constant(value=(1, 5)), Constant(value=(0.25, 1)))
    rows, *_ = everything(played(Gossip(order="during"), clients, 2, time=2.25))
    assert kinds(rows) == ["AVERAGE", "COMMIT", "AVERAGE", "COMMIT", "AVERAGE"]
    assert rows.time.tolist() == [0.25, 1, 1.25, 2, 2.25]
    assert rows.read_version[1, 0] == 0
    assert rows.version[1] == 0  # an averaging is no commit
    slow = linked(Constant(value=(1, 50)), Constant(value=3))
    rows, *_ = everything(played(Gossip(order="during"), slow, 2, time=6))
    assert rows.time.tolist() == [3, 3, 6, 6]  # both are waited for


def test_requests_wait_at_their_partner_in_order() -> None:
    """All others ask worker 2, after 1 s, 1.5 s and 1.25 s of gradient."""
    clients = linked(Constant(value=(1, 99, 1.5, 1.25)), Constant(value=1))
    graph = Edges(edges=((1, 2), (3, 2), (4, 2)))
    rows, *_ = everything(played(Gossip(graph=graph), clients, 4, time=5))
    assert pairs(rows) == [(0, 1), (3, 1), (2, 1), (0, 1)]
    assert rows.time[rows.kind == Kind.AVERAGE].tolist() == [2, 3, 4, 5]


def test_who_waits_is_not_held() -> None:
    began: list[Pair] = []
    over: list[int] = []
    exchanges = Pairs(4, began.append, lambda pair: over.append(pair.number))
    for initiator, partner in ((3, 2), (1, 2), (0, 1)):
        exchanges.ask(initiator, partner, lambda _: None)
    # Worker 1 waits for worker 2, and meanwhile exchanges with worker 0.
    assert [pair[:3] for pair in began] == [(1, 3, 2), (3, 0, 1)]
    exchanges.end(began[0])
    assert len(began) == 2
    exchanges.end(began[1])
    assert began[2][:3] == (2, 1, 2)
    assert over == [1, 3]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.kind)
def test_a_worker_averages_with_one_other_at_a_time(order, graph) -> None:
    latency = 0.75  # so an averaging that ends at t began at t - 0.75
    clients = linked(EXPON, Constant(value=latency))
    protocol = Gossip(graph=graph, initiator="every", order=order)
    rows, *_ = everything(played(protocol, clients, 12, commits=400))
    ends = defaultdict(list)
    for row in np.flatnonzero(rows.kind == Kind.AVERAGE):
        for worker in rows.worker[row]:
            ends[int(worker)].append(float(rows.time[row]))
    for times in ends.values():
        assert all(b - a >= latency - 1e-9 for a, b in pairwise(times))


@pytest.mark.parametrize(
    ("protocol", "rho"),
    [
        (Gossip(graph=Ring(), initiator="every"), 0.99524),
        (Gossip(), 0.93750),
        (Gossip(graph=Complete()), 0.93333),
    ],
    ids=["ring", "random receiver", "any pair"],
)
def test_partners_are_uniform_and_mix_as_fast_as_theory_says(protocol, rho) -> None:
    """Workers of equal laws ask equally often, and each neighbour alike.

    Constant times let all that ask do so once a second, so a worker's n requests are
    n independent uniform draws: an edge's share of all N requests has a standard
    deviation of at most sqrt(p / N). The second eigenvalues of two matrices differ by
    at most the norm of their difference, here a Laplacian of the shares' errors, which
    is at most the largest error times the largest degree (and times 2 / 2).
    """
    K = 16
    edges = edges_of(protocol.graph, K)
    clients = Clients(compute=Constant(value=1))
    rows, *_ = everything(played(protocol, clients, K, commits=32_000))
    found = Counter((min(pair), max(pair)) for pair in pairs(rows))
    total = found.total()
    assert set(found) == set(edges)
    share = 1 / len(edges)
    error = max(abs(found[edge] / total - share) for edge in edges)
    assert error <= 5 * sqrt(share / total)

    wanted = expected_pairwise_averaging(K, edges)
    mean = sum(n / total * averaging_matrix(edge, K) for edge, n in found.items())
    assert 1 - spectral_gap(wanted) == pytest.approx(rho, abs=5e-6)
    degree = max(Counter(worker for edge in edges for worker in edge).values())
    difference = abs(spectral_gap(np.asarray(mean)) - spectral_gap(wanted))
    assert difference <= 5 * sqrt(share / total) * degree


def test_only_senders_initiate_half_of_the_averagings() -> None:
    """A-09: with equal workers half of all iterations have no averaging."""
    clients = Clients(compute=Constant(value=1))
    for initiator, averagings in ((None, 800), ("every", 1600)):
        protocol = Gossip(initiator=initiator)
        rows, *_ = everything(played(protocol, clients, 16, time=100))
        assert (rows.kind == Kind.AVERAGE).sum() == averagings
        assert (rows.kind == Kind.COMMIT).sum() == 1600


def test_all_with_equal_constant_delays_is_sync() -> None:
    clients = linked(Constant(value=1), Constant(value=0.5))
    rows, jobs, stop = everything(played(Gossip(average="all"), clients, 4, rounds=3))
    assert stop is StopReason.ROUNDS
    assert kinds(rows) == [*["COMMIT"] * 4, "AVERAGE_ALL"] * 3
    assert rows.round.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    replay_models(rows, jobs, 4)
    check_conservation(rows, jobs, 4)
    sync, *_ = everything(played(Synchronous(), clients, 4, rounds=3))
    averaged = rows.kind == Kind.AVERAGE_ALL
    assert rows.time[averaged].tolist() == sync.time.tolist() == [1.5, 3, 4.5]
    for made, row in enumerate(sync.worker):
        of_round = (rows.round == made) & ~averaged
        assert rows.worker[of_round, 0].tolist() == row.tolist()


def test_all_waits_for_the_slowest() -> None:
    clients = linked(Constant(value=(1, 3)), Constant(value=(0.5, 0.25)))
    rows, *_ = everything(played(Gossip(average="all"), clients, 2, rounds=2))
    assert rows.time.tolist() == [1, 3, 3.5, 4.5, 6.5, 7]


@pytest.mark.parametrize("order", ["average_then_step", "step_then_average"])
def test_neighbours_average_at_once_when_all_are_ready(order) -> None:
    """D-PSGD on a ring: two uploads each, one after the other; all wait."""
    clients = linked(Constant(value=(1, 3, 1, 1)), Constant(value=(0.5, 0.5, 1, 0.5)))
    protocol = Gossip(average="neighbours", graph=Ring(), order=order)
    rows, jobs, stop = everything(played(protocol, clients, 4, rounds=2))
    assert stop is StopReason.ROUNDS
    averaged = rows.kind == Kind.AVERAGE_ALL
    assert rows.time[averaged].tolist() == [5, 10]
    steps_first = order == "step_then_average"
    assert (rows.read_slot[averaged, 0] == 0).all() == steps_first
    assert np.flatnonzero(averaged).tolist() == ([4, 9] if steps_first else [0, 5])
    assert jobs.uploads[jobs.outcome == Outcome.APPLIED].tolist() == [2] * 8
    replay_models(rows, jobs, 4)


def test_directed_exponential_graphs_go_twice_as_far_each_round() -> None:
    phases = Exponential().receivers(6)
    assert [phase[0] for phase in phases] == [[1], [2], [4]]
    matrices = Exponential().mixing(8, pushes=True)
    np.testing.assert_array_equal(matrices.sum(axis=1), 1)
    # Three rounds of eight workers mix exactly.
    np.testing.assert_allclose(matrices[2] @ matrices[1] @ matrices[0], 1 / 8)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 12, 16])
def test_undirected_exponential_graphs_link_powers_of_two(n) -> None:
    """Neighbours and Metropolis weights of the whole matrix of distances."""
    ahead = (np.arange(n) - np.arange(n)[:, None]) % n
    powers = np.isin(ahead, 2 ** np.arange(10))
    linked_to = powers | powers.T
    expected = linked_to / (1 + linked_to.sum(axis=0))  # all have equal degrees
    expected += np.eye(n) * (1 - expected.sum(axis=0))
    (matrix,) = UndirectedExponential().mixing(n, pushes=False)
    np.testing.assert_allclose(matrix, expected)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.kind)
def test_metropolis_weights_keep_the_mean(graph) -> None:
    """They and equal parts are weights on the edges alone, and none is negative."""

    def draw(number):
        return Streams(1).at(Purpose.GRAPH, 0, number)

    for pushes in (False, True):
        (matrix,) = graph.mixing(12, draw, pushes=pushes)
        np.testing.assert_allclose(matrix.sum(axis=0), 1)
        linked_to = {(int(i), int(j)) for i, j in np.argwhere(matrix) if i < j}
        assert linked_to == set(edges_of(graph, 12))
        assert (matrix >= 0).all()
        if not pushes:
            np.testing.assert_allclose(matrix, matrix.T)
            assert spectral_gap(matrix) > 0


def test_push_sum_weights_stand_in_columns() -> None:
    graph = Arcs(arcs=((1, 2), (2, 3), (3, 1), (1, 3)))
    (matrix,) = graph.mixing(3, pushes=True)
    third = 1 / 3
    np.testing.assert_allclose(
        matrix, [[third, 0, 0.5], [third, 0.5, 0], [third, 0.5, 0.5]]
    )


def test_one_slow_worker_hardly_disturbs_the_others() -> None:
    """Case II: one worker is 10 times slower; times 9.44 and 0.66 % of the work.

    In 10 s the others make 150 steps and the slow one 1; in rounds there are 16.
    """
    clients = Clients(
        compute=Constant(value=1), slowdowns=(NamedSlowdown(clients=(1,), factor=10),)
    )
    rows, *_ = everything(played(Gossip(), clients, 16, time=1000))
    commits = rows.kind == Kind.COMMIT
    assert commits.sum() == 15_100
    assert (rows.worker[commits, 0] == 0).sum() == 100
    sync, *_ = everything(played(Gossip(average="all"), clients, 16, time=1000))
    assert (sync.kind == Kind.COMMIT).sum() == 1600

    stale = rows.version[commits] - rows.read_version[commits, 0]
    assert stale.max() == 150
    # Every iteration makes the jobs of the 15 other workers one iteration staler.
    assert stale.mean() == pytest.approx(15, rel=0.005)


def test_a_random_slow_worker_in_every_iteration_slows_rounds_alone() -> None:
    """Case I: a round takes 2 s instead of 1, a worker's step 17 / 16 s on average.

    Each of the 16 workers makes about n / 16 of the n steps; the number of those that
    are slow is binomial, so the time of a worker's k steps has a standard deviation of
    sqrt(k 15) / 16, and the ratio at n = 16,000 one of 0.2 %, less over 16 workers.
    """
    clients = Clients(compute=Constant(value=1), slowdowns=(RandomSlowdown(factor=2),))
    ends = []
    for average in ("all", "pairwise"):
        rows, *_ = everything(
            played(Gossip(average=average), clients, 16, commits=16_000)
        )
        ends.append(float(rows.time[-1]))
    assert ends[0] == 2000
    assert ends[0] / ends[1] == pytest.approx(2 / (17 / 16), rel=0.01)


def test_the_world_is_the_same_whatever_the_graph() -> None:
    """Gradients take the same times; without links averaging takes none."""
    clients = Clients(compute=EXPON)
    times = [
        everything(played(Gossip(graph=graph), clients, 12, commits=200))[0]
        for graph in (Ring(), Complete())
    ]
    ring, complete = (rows.time[rows.kind == Kind.COMMIT] for rows in times)
    np.testing.assert_array_equal(ring, complete)


@pytest.mark.parametrize(
    ("stop", "reason", "commits"),
    [
        ({"commits": 30}, StopReason.COMMITS, 30),
        ({"contributions": 30}, StopReason.CONTRIBUTIONS, 30),
        ({"epochs": 3}, StopReason.EPOCHS, 12),
        ({"bytes": 80}, StopReason.BYTES, None),
    ],
)
@pytest.mark.parametrize("average", ["pairwise", "all"])
def test_a_run_ends_where_it_is_told_to(stop, reason, commits, average) -> None:
    clients = Clients(compute=Constant(value="m"))
    protocol = Gossip(average=average)
    plan = played(protocol, clients, 4, 1, Workload(5, 3, 4), **stop)
    rows, _, why = everything(plan, 7)
    assert why is reason
    found = (rows.kind == Kind.COMMIT).sum()
    if commits is None:  # 2 models per averaging of two; up and down for one of all
        pairwise = average == "pairwise"
        assert (len(pairs(rows)) == 8) if pairwise else (found == 10)
    else:
        assert found == commits


@pytest.mark.parametrize(
    ("graph", "num_workers", "degrees"),
    [
        (Ring(), 5, [2] * 5),
        (Ring(), 2, [1, 1]),
        (Torus(), 12, [4] * 12),
        (Torus(rows=2), 8, [3] * 8),
        (Complete(), 6, [5] * 6),
        (Bipartite(), 5, [2, 3, 2, 3, 2]),
        (Edges(edges=((2, 1), (1, 2), (3, 2))), 3, [1, 2, 1]),
        *((RandomRegular(degree=d), 14, [d] * 14) for d in (2, 5, 13)),
        (RandomRegular(degree=1), 2, [1, 1]),
    ],
)
def test_graphs_have_their_degrees(graph, num_workers, degrees) -> None:
    for seed in range(5):
        edges = edges_of(graph, num_workers, seed)
        assert len(set(edges)) == len(edges)
        assert all(i < j for i, j in edges)
        found = Counter(worker for edge in edges for worker in edge)
        assert [found[worker] for worker in range(num_workers)] == degrees


def test_random_graphs_are_keyed_by_the_seed() -> None:
    for graph in (RandomRegular(degree=4), ErdosRenyi(probability=0.3)):
        assert edges_of(graph, 20, 1) == edges_of(graph, 20, 1)
        assert edges_of(graph, 20, 1) != edges_of(graph, 20, 2)


def test_erdos_renyi_draws_each_pair_with_the_same_chance() -> None:
    """At p = 0.5 hardly any graph of 12 is not connected; 200 * 66 draws of a pair."""
    edges = [len(edges_of(ErdosRenyi(probability=0.5), 12, s)) for s in range(200)]
    n = 200 * 66
    assert abs(sum(edges) - n / 2) <= 5 * sqrt(n / 4)


def test_graphs_that_only_a_draw_decides_are_refused_when_played() -> None:
    clients = Clients(compute=EXPON)
    sparse = Gossip(graph=ErdosRenyi(probability=0.01))
    with pytest.raises(ValueError, match=r"raise its probability \(above log\(K\) / K"):
        everything(played(sparse, clients, 30, commits=5))
    odd = Gossip(graph=RandomRegular(degree=4), initiator="sender")
    with pytest.raises(ValueError, match="must be 'every' for a graph with a cycle"):
        everything(played(odd, clients, 9, commits=5))


def test_a_run_may_end_between_the_steps_of_a_round() -> None:
    """They happen at one instant where the averaging comes first."""
    protocol = Gossip(average="neighbours", graph=Ring())
    clients = Clients(compute=Constant(value=1))
    rows, _, stop = everything(played(protocol, clients, 6, commits=10))
    assert stop is StopReason.COMMITS
    assert (rows.kind == Kind.COMMIT).sum() == 10


@pytest.mark.parametrize("average", ["pairwise", "all"])
def test_a_worker_idles_and_asks_before_it_computes(average: str) -> None:
    clients = Clients(
        idle=Constant(value=2), read=Constant(value=0.5), compute=Constant(value=1)
    )
    _, jobs, _ = everything(played(Gossip(average=average), clients, 4, commits=12))
    order = np.lexsort((jobs.job, jobs.client))
    reads = jobs.read_time[order].reshape(4, -1)
    # Averaging takes no time: a cycle is 2 + 0.5 + 1, and its read comes after 2.5.
    assert (reads[:, :3] == 2.5 + 3.5 * np.arange(3)).all()
