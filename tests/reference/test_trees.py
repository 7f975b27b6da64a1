"""Fragile SGD and Amelie SGD against their twins and the theory's bounds."""

from collections import defaultdict
from math import sqrt
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.graphs import (
    Complete,
    Edges,
    Ring,
    Torus,
    Undirected,
)
from stalesim.simulator.catalogue.protocols.spanning_tree.spanning_tree import (
    SpanningTree,
)
from stalesim.simulator.files.timeline import (
    NO_COMMIT,
    Jobs,
    Kind,
    Outcome,
    Rows,
    check,
)
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.world.clients import Clients, Link
from stalesim.simulator.world.laws.constant import Constant
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.streams import Purpose
from stalesim.simulator.world.world import World
from tests.reference import trees_twin as twin
from tests.reference.hierarchy_twin import successive
from tests.reference.methods_support import BASE, SEED, STEP, K, d
from tests.reference.test_hierarchy import gradient_of, objectives
from tests.runs import execute, prepared
from tests.support import everything, played
from tests.unit.protocols.replay import replay_registers

LINE = Edges(edges=tuple((k, k + 1) for k in range(1, 7)))
BUSY = Clients(
    compute=Scipy(law="expon", scale="m"),
    upload=Link(latency=Scipy(law="expon", scale=0.7)),
    download=Link(latency=Scipy(law="gamma", a=2.0, scale=0.3)),
)


def twin_of(
    protocol: SpanningTree, clients: Clients, n: int, seed: int, rounds: int
) -> list[twin.Round]:
    world = World(clients, n, seed)
    pivot = protocol.pivot - 1
    nodes = twin.tree_of(protocol.graph.edges_of(n), n, pivot)
    return twin.play(
        nodes,
        pivot,
        successive(lambda c: world.draw(Purpose.COMPUTE, c)),
        successive(lambda c: world.transit(Purpose.UPLOAD, c)),
        successive(lambda c: world.transit(Purpose.DOWNLOAD, c)),
        rounds,
        count=protocol.count,
        mean=protocol.harmonic_mean or 0.0,
        stops=protocol.late == "stop",
    )


def applied(jobs: Jobs) -> list[set[tuple[int, int]]]:
    """Returns the jobs of each commit."""
    found: dict[int, set[tuple[int, int]]] = defaultdict(set)
    done = jobs.commit != NO_COMMIT
    entries = zip(jobs.commit[done], jobs.client[done], jobs.job[done], strict=True)
    for commit, client, job in entries:
        found[int(commit)].add((int(client), int(job)))
    return [found[k] for k in sorted(found)]


def conserved(rows: Rows, jobs: Jobs, n: int) -> None:
    """Every job ends in one way, and none is applied that another model was for."""
    check(rows, 1)
    replay_registers(rows)
    assert (rows.read_version[:, 0] == rows.version).all()
    for client in range(n):
        mine = np.sort(jobs.job[jobs.client == client])
        np.testing.assert_array_equal(mine, np.arange(mine.size))
    named = np.isin(jobs.outcome, (Outcome.APPLIED, Outcome.BUFFERED)).sum()
    assert named == rows.time.size
    ends = (Outcome.REJECTED, Outcome.STOPPED, Outcome.IN_FLIGHT)
    assert named + np.isin(jobs.outcome, ends).sum() == jobs.job.size


RULES = ({"count": 9}, {"count": 1}, {"harmonic_mean": 2.5})


@pytest.mark.parametrize("late", ["stop", "reject"])
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    ("graph", "pivot"),
    [(LINE, 1), (LINE, 4), (Ring(), 3), (Complete(), 2), (Torus(), 1)],
    ids=["end of a line", "middle of a line", "ring", "star", "torus"],
)
def test_rounds_are_those_of_the_twin(
    graph: Undirected, pivot: int, rule: dict[str, Any], late: Any
) -> None:
    n = 9 if isinstance(graph, Torus) else 7
    protocol = SpanningTree(graph=graph, pivot=pivot, late=late, **rule)
    rows, jobs, _ = everything(played(protocol, BUSY, n, 5, rounds=25))
    wanted = twin_of(protocol, BUSY, n, 5, 25)
    ends = rows.kind == Kind.COMMIT
    np.testing.assert_allclose(
        rows.time[ends], [one.time_s for one in wanted], rtol=1e-12
    )
    assert applied(jobs) == [set(one.applied) for one in wanted]
    conserved(rows, jobs, n)


@pytest.mark.parametrize("late", ["stop", "reject"])
def test_a_tree_of_depth_one_without_links_is_the_star(late: Any) -> None:
    """The same rows and jobs, to the bit, as the protocol with a server."""
    clients = Clients(compute=Scipy(law="expon", scale="m"))
    tree = SpanningTree(graph=Complete(), count=6, late=late)
    star = Collect(count=6, late=late)
    rows, jobs, _ = everything(played(tree, clients, 5, 3, commits=40))
    wanted, others, _ = everything(played(star, clients, 5, 3, commits=40))
    for name in ("time", "kind", "worker", "job", "version", "read_version", "round"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(wanted, name), name)
    for name in ("read_time", "begun_time", "computed_time", "applied_time", "commit"):
        mine, theirs = (
            getattr(each, name)[np.lexsort((each.job, each.client))]
            for each in (jobs, others)
        )
        np.testing.assert_array_equal(mine, theirs, name)


def test_means_over_a_star_without_links_are_those_of_a_server() -> None:
    """The pivot knows every count at once: its rounds are Malenia's with stops."""
    clients = Clients(compute=Scipy(law="expon", scale="m"))
    tree = SpanningTree(graph=Complete(), harmonic_mean=2, late="stop")
    rows, jobs, _ = everything(played(tree, clients, 5, 3, commits=40))
    star = Collect(harmonic_mean=2, late="stop")
    wanted, others, _ = everything(played(star, clients, 5, 3, commits=40))
    ends, theirs = rows.kind == Kind.COMMIT, wanted.kind == Kind.COMMIT
    np.testing.assert_array_equal(rows.time[ends], wanted.time[theirs])
    assert applied(jobs) == applied(others)


def test_events_on_a_line_come_in_this_order() -> None:
    """Three clients in a row, the pivot first; 1 s over an edge, jobs of 2.2, 2, 1.5 s.

    The pivot is done at 2.2 s and 4.4 s. Client 2 begins at 1 s; its first goes up at
    3 s, and its edge is free at 4 s. Client 3 begins at 2 s; its first goes up at
    3.5 s, is at client 2 at 4.5 s, where nothing else waits, and at the pivot at 5.5 s,
    the fourth. Only then is the edge free for client 2's second, of 5 s, in vain.
    """
    line = Edges(edges=((1, 2), (2, 3)))
    link = Link(latency=Constant(value=1))
    compute = Constant(value=(2.2, 2, 1.5))
    clients = Clients(compute=compute, upload=link, download=link)
    protocol = SpanningTree(graph=line, count=4, late="stop")
    rows, jobs, _ = everything(played(protocol, clients, 3, time=6.7))
    assert rows.time.tolist() == [2.2, 4, 4.4, 5.5]
    assert rows.worker[:, 0].tolist() == [0, 1, 0, 2]
    assert [Kind(k).name for k in rows.kind] == ["CONTRIBUTE"] * 3 + ["COMMIT"]
    said = {
        (int(jobs.client[k]), int(jobs.job[k])): (
            *(float(times[k]) for times in (jobs.read_time, jobs.sent_time)),
            int(jobs.uploads[k]),
            Outcome(jobs.outcome[k]).name,
        )
        for k in range(jobs.job.size)
    }
    assert said[1, 0] == (1, 3, 1, "APPLIED")
    assert said[2, 0] == (2, 3.5, 2, "APPLIED")  # over its own edge and client 2's
    assert said[1, 1] == (3, 5.5, 1, "REJECTED")
    assert said[2, 1] == (3.5, 5, 1, "REJECTED")
    assert said[0, 2][0] == 4.4
    assert said[0, 2][3] == said[1, 2][3] == "STOPPED"  # at 5.5 s and 6.5 s
    assert said[0, 3][0] == 5.5
    assert said[1, 3][0] == 6.5
    conserved(rows, jobs, 3)


def distances(edges: list[tuple[int, int]], n: int) -> np.ndarray:
    far = np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    for i, j in edges:
        far[i, j] = far[j, i] = 1
    for k in range(n):
        far = np.minimum(far, far[:, k : k + 1] + far[k])
    return far


def rounds_of(
    graph: Undirected, h: Any, rho: float, n: int, rounds: int, **rule: Any
) -> tuple[np.ndarray, Jobs]:
    """Returns how long rounds last with stops and constant times, and all jobs."""
    link = Link(latency=Constant(value=rho))
    clients = Clients(compute=Constant(value=h), upload=link, download=link)
    protocol = SpanningTree(graph=graph, late="stop", **rule)
    rows, jobs, _ = everything(played(protocol, clients, n, rounds=rounds))
    conserved(rows, jobs, n)
    return np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0), jobs


def line_of(n: int) -> Edges:
    return Edges(edges=tuple((k, k + 1) for k in range(1, n)))


def a_tree(
    seed: int, r: np.random.Generator
) -> tuple[Undirected, np.ndarray, float, int]:
    """Draws a graph, seconds of its clients' jobs and of an edge, and a pivot."""
    n = int(r.integers(3, 12))
    graphs: list[Undirected] = [Ring(), Complete(), line_of(n)]
    h, rho = r.uniform(0.2, 4, n), float(r.choice([0.05, 0.5, 3]))
    return graphs[seed % 3], h, rho, int(r.integers(n))


@pytest.mark.parametrize("seed", range(10))
def test_a_round_of_sums_is_of_the_order_of_its_equilibrium_time(seed: int) -> None:
    """t* <= round <= 4 t*, with stops and constant times.

    t*(s, h, tau) = min_k max(max(h_k, tau_k), s / sum_{i <= k} 1 / h_i), the clients
    sorted by max(h_i, tau_i), tau_i = 2 rho dist(i).
    At least: what counts has h_i + tau_i <= T, and T / h_i of a client do at most. At
    most: an edge that is busy costs a hop once more, so that after 4 t* each of the k
    clients has had 2 t* >= 2 h_i at the model, which is t* / h_i jobs or more.

    Source: Tyurin and Richtarik (2024), equilibrium time.
    """
    r = np.random.default_rng(seed)
    graph, h, rho, pivot = a_tree(seed, r)
    n, count = h.size, int(r.integers(1, 40))
    rounds, _ = rounds_of(graph, tuple(h), rho, n, 12, pivot=pivot + 1, count=count)
    tau = 2 * rho * distances(graph.edges_of(n), n)[pivot]
    order = np.argsort(np.maximum(h, tau))
    most = np.maximum(h, tau)[order]
    least = np.maximum(most, count / np.cumsum(1 / h[order])).min()
    assert (rounds <= 4 * least * (1 + 1e-9)).all()
    assert (rounds >= least * (1 - 1e-9)).all()


@pytest.mark.parametrize("s", [1, 200])
@pytest.mark.parametrize("rho", [0.01, 4.0])
@pytest.mark.parametrize("kind", ["line", "ring", "torus", "star"])
def test_equal_clients_on_graphs_have_closed_forms(
    kind: str, rho: float, s: int
) -> None:
    """T1 = min(s h, max(h, a, s h / n)), up to constants that are derived.

    Where N(r) clients are within r hops, t* = min_r max(h, 2 rho r, s h / N(r)). From
    the middle of a line and on a ring N(r) = 2 r + 1, so a = sqrt(rho h s) and
    t* / T1 is in [sqrt(2/3), 2]. On a torus r^2 <= N(r) <= 5 r^2, N(r) >= n / 2 from
    where it closes, so a = (rho^2 h s)^(1/3), and t* / T1 is in [0.8^(1/3), 4]. On a
    star all are one hop away, a = 2 rho. A round is in [t*, 4 t*].

    Source: Tyurin and Richtarik (2024), eq. 15.
    """
    n, h = 25, 1.0
    star = Edges(edges=tuple((1, k) for k in range(2, n + 1)))
    cases: dict[str, tuple[Undirected, int, float, float, float]] = {
        "line": (line_of(n), 13, sqrt(rho * h * s), sqrt(2 / 3), 2.0),
        "ring": (Ring(), 1, sqrt(rho * h * s), sqrt(2 / 3), 2.0),
        "torus": (Torus(), 1, (rho**2 * h * s) ** (1 / 3), 0.8 ** (1 / 3), 4.0),
        "star": (star, 1, 2 * rho, 1.0, 1.0),
    }
    graph, pivot, a, low, high = cases[kind]
    rounds, _ = rounds_of(graph, h, rho, n, 8, pivot=pivot, count=s)
    form = min(s * h, max(h, a, s * h / n))
    assert (rounds >= low * form * (1 - 1e-9)).all()
    assert (rounds <= 4 * high * form * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_round_of_means_is_of_the_order_of_its_bound(seed: int) -> None:
    """M <= round <= 11 M, M = max(max_ij tau_ij, max h, mean(h) * harmonic mean).

    At least: everyone contributes once and hears of the model; n / sum(1 / s_i) is at
    most T / mean(h). At most: model, counts, end of the round and sums each go over
    the tree, waiting for a busy edge as long again (8 times the depth in seconds); and
    counts are enough max h + mean(h) * mean after the last has heard of the model; a
    job's count may wait for one job of a child (max h).

    Source: Tyurin and Richtarik (2024), Amelie SGD.
    """
    r = np.random.default_rng(seed)
    graph, h, rho, pivot = a_tree(seed, r)
    n, mean = h.size, float(r.uniform(1, 9))
    rule = {"pivot": pivot + 1, "harmonic_mean": mean}
    rounds, jobs = rounds_of(graph, tuple(h), rho, n, 6, **rule)
    far = rho * distances(graph.edges_of(n), n)
    bound = max(far.max(), h.max(), h.mean() * mean)
    assert (rounds <= 11 * bound).all()
    assert (rounds >= bound * (1 - 1e-9)).all()
    for commit in applied(jobs):
        counts = np.bincount([client for client, _ in commit], minlength=n)
        assert n / (1 / counts).sum() >= mean * (1 - 1e-9)


METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Fragile": ({"count": 7}, {}),
    "Amelie": ({"harmonic_mean": 1.6}, {"kind": "malenia"}),
}
LINKED: dict[str, Any] = {
    "clients": {
        "compute": {"law": "expon", "scale": "m"},
        "upload": {"latency": {"law": "expon", "scale": 0.5}},
        "download": {"latency": {"law": "expon", "scale": 0.2}},
    },
    "stop": {"commits": 25},
}


def tree_of(name: str) -> dict[str, Any]:
    protocol, algorithm = METHODS[name]
    kind = {"kind": "spanning_tree", "graph": {"kind": "ring"}, "late": "stop"}
    changes = {"protocol": kind | protocol, "algorithm": BASE["algorithm"] | algorithm}
    return merge(merge(BASE, LINKED), changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("Fragile", "compiled"), ("Amelie", "compiled")),
        pytest.param("Fragile", "stepwise", marks=pytest.mark.long),
        pytest.param("Amelie", "batched", marks=pytest.mark.long),
    ],
)
def test_models_are_those_of_the_twin(name: str, mode: str) -> None:
    """Steps by the mean of what came, or by the mean over clients of their means."""
    numbers = (0, 1) if mode == "batched" else (0,)
    with jax.enable_x64(True):
        runs = [prepared(tree_of(name), seed=SEED + k, number=k) for k in numbers]
        memory, _ = execute(runs, mode)
    run = runs[0]
    scenario, gradient = run.run.scenario, gradient_of(run)
    models = [np.zeros(d)]
    for one in twin_of(scenario.protocol, scenario.clients, K, SEED, 25):
        of = defaultdict(list)
        for client, job in one.applied:
            ids = run.sampler.batch(client, job)
            of[client].append(gradient(ids, models[-1]))
        if name == "Amelie":
            step = np.mean([np.mean(of[client], axis=0) for client in range(K)], axis=0)
        else:
            step = np.mean([g for each in of.values() for g in each], axis=0)
        models.append(models[-1] - STEP * step)
    got = memory.column("evaluations", "objective", 0)
    np.testing.assert_allclose(got, objectives(run, models), rtol=1e-9)


def test_a_long_line_without_links_nests_no_calls() -> None:
    """Two thousand edges that take no time are more than Python's stack holds."""
    n = 2000
    clients = Clients(compute=Scipy(law="expon"))
    protocol = SpanningTree(graph=line_of(n), count=50, late="stop")
    rows, _, _ = everything(played(protocol, clients, n, commits=2))
    assert rows.time.size == 100
