"""Hierarchical averaging against a twin without events, and its limits."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.hierarchy import Hierarchy
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.delays import StageDelays
from stalesim.simulator.world.laws.base import Population
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.streams import Purpose, Streams
from stalesim.simulator.world.world import World
from tests.reference import hierarchy_twin as twin
from tests.reference.methods_support import BASE, SEED, STEP, K, d
from tests.runs import execute, prepared
from tests.support import everything, played
from tests.unit.protocols.replay import check_conservation, kinds, workers

VISITS, ROUNDS, MIXING = 12, 3, 0.3
LINKS = {
    "upload": {"law": "expon", "scale": 2.0},
    "download": {"law": "gamma", "a": 2.0, "scale": 0.4},
}


def tree(
    cloud: str, within: str | None = None, edge: str = "synchronous"
) -> dict[str, Any]:
    protocol: dict[str, Any] = {"edges": 2, "rounds": ROUNDS, "cloud": cloud}
    if within:
        inner = {"edges": 2, "rounds": 2, "cloud": within, "edge": edge}
        protocol["within"] = {"kind": "hierarchy", **inner, **LINKS}
    else:
        protocol["edge"] = edge
    protocol |= {"kind": "hierarchy", **LINKS}
    algorithm = {"kind": "hierarchical", "mixing": MIXING, "local_steps": 2}
    changes = {"protocol": protocol, "algorithm": algorithm}
    return merge(
        merge(BASE, changes),
        {
            "algorithm": {"step_size": STEP, "batch": 2},
            "stop": {"commits": VISITS},
        },
    )


def gradient_of(run: Prepared) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns the gradient of the mean over some rows, at a model."""
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y, float)

    def gradient(ids: np.ndarray, model: np.ndarray) -> np.ndarray:
        return (2 / d * (model * x[ids] - y[ids]) * x[ids]).mean(axis=0) + 0.01 * model

    return gradient


def objectives(run: Prepared, models: list[np.ndarray]) -> np.ndarray:
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y, float)
    w = np.array(models)
    residual = w[:, None, :] * x - y
    return (residual**2).mean(axis=(1, 2)) + 0.005 * (w**2).sum(axis=1)


def ways(level: Hierarchy, first: int, number: int) -> list[twin.Draw]:
    """Returns the seconds of a level's ways up and down, by an edge's number."""
    streams, found = Streams(SEED), []
    for name, purpose in (("up", Purpose.EDGE_UP), ("down", Purpose.EDGE_DOWN)):
        law = getattr(level, f"{name}load")
        population = Population(number, streams, first, purpose.name.lower())
        stage = StageDelays(law.make(population), purpose, population, None)
        found.append(twin.successive(stage.next))
    return found


def grown(
    protocol: Hierarchy, clients: Any, seconds: twin.Draw, trained: twin.Train
) -> twin.Branch:
    """Returns the twin of a hierarchy; its cloud merges `VISITS` times."""

    def no_way(*_: int) -> float:
        return 0.0

    root = twin.Branch(0, VISITS, None, [], no_way, no_way)
    nodes: list[tuple[Any, Any]] = [(root, clients)]
    first = 0
    for level in protocol.levels:
        number = len(nodes) * level.edges
        up, down = ways(level, first, number)
        below: list[tuple[Any, Any]] = []
        for node, mine in nodes:
            node.mixing = None if level.cloud == "synchronous" else MIXING
            node.below = []
            for part in np.array_split(mine, level.edges):
                k = first + len(below)
                edge: Any = twin.Branch(k, level.rounds, None, [], up, down)
                if level.within is None:
                    if level.edge == "synchronous":
                        edge = twin.Leaf(
                            k, part.tolist(), level.rounds, seconds, trained, up, down
                        )
                    else:
                        edge.mixing = MIXING
                        edge.below = [
                            twin.Leaf(c, [c], 1, seconds, trained, no_way, no_way)
                            for c in part.tolist()
                        ]
                node.below.append(edge)
                below.append((edge, part))
        nodes, first = below, first + number
    return root


WAITS, GOES_ON = "synchronous", "asynchronous"
CLOUDS = [
    (WAITS, None, WAITS, "compiled"),
    (GOES_ON, None, WAITS, "compiled"),
    (WAITS, GOES_ON, WAITS, "compiled"),
    (WAITS, None, GOES_ON, "compiled"),
    *(
        pytest.param(*case, marks=pytest.mark.long)
        for case in (
            (GOES_ON, WAITS, WAITS, "compiled"),
            (WAITS, WAITS, WAITS, "compiled"),
            (GOES_ON, GOES_ON, WAITS, "stepwise"),
            (GOES_ON, None, GOES_ON, "batched"),
            (GOES_ON, GOES_ON, GOES_ON, "batched"),
            (WAITS, GOES_ON, GOES_ON, "stepwise"),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cloud", "within", "edge", "mode"), CLOUDS)
def test_models_and_times_are_those_of_the_twin(
    cloud: str, within: str | None, edge: str, mode: str
) -> None:
    numbers = (0, 1) if mode == "batched" else (0,)
    whole = tree(cloud, within, edge)
    with jax.enable_x64(True):
        runs = [prepared(whole, seed=SEED + k, number=k) for k in numbers]
        memory, _ = execute(runs, mode)
    run = runs[0]
    scenario, gradient = run.run.scenario, gradient_of(run)
    world = World(scenario.clients, K, SEED)

    def trained(client: int, job: int, model: np.ndarray) -> np.ndarray:
        for own in run.sampler.batch(client, job).reshape(2, -1):
            model = model - STEP * gradient(own, model)
        return model

    seconds = twin.successive(lambda c: world.draw(Purpose.COMPUTE, c))
    cloud_twin = grown(scenario.protocol, np.arange(K), seconds, trained)
    wanted = twin.play(cloud_twin, np.zeros(d))
    rows, _, _ = everything(run.timeline)
    merges = rows.kind == Kind.COMMIT
    times = [visit.time_s for visit in wanted]
    np.testing.assert_allclose(rows.time[merges], times, rtol=1e-12)
    based = [visit.based_on for visit in wanted]
    np.testing.assert_array_equal(rows.read_version[merges, 0], based)
    models = [np.zeros(d), *(visit.cloud for visit in wanted)]
    got = memory.column("evaluations", "objective", 0)
    np.testing.assert_allclose(got, objectives(run, models), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_edge_and_one_round_is_the_star(seed: int) -> None:
    """A tree of depth one: rows, times and jobs of rounds with a server."""
    clients = Clients(compute=Scipy(law="expon", scale="m"))
    one = played(Hierarchy(edges=1), clients, 5, seed, commits=20)
    star = played(Collect(count=5, repeats=False), clients, 5, seed, commits=20)
    rows, jobs, _ = everything(one)
    wanted, others, _ = everything(star)
    for name in ("time", "kind", "worker", "job", "version", "read_version", "round"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(wanted, name), name)
    for name in ("read_time", "computed_time", "arrived_time", "applied_time"):
        mine, theirs = (
            getattr(each, name)[np.lexsort((each.job, each.client))]
            for each in (jobs, others)
        )
        np.testing.assert_array_equal(mine, theirs, name)


FLAT = {
    "edges": 2,
    "rounds": 3,
    "cloud": "asynchronous",
    "upload": {"law": "constant", "value": [2.0, 0.5]},
}


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        ({"edges": 1, "within": {"edges": 1, "within": {"edges": 1}}}, {"edges": 1}),
        ({"edges": 1, "within": FLAT}, FLAT),
        ({**FLAT, "within": {"edges": 1}}, FLAT),
        ({**FLAT, "rounds": 1, "within": {"edges": 1, "rounds": 3}}, FLAT),
    ],
)
def test_a_level_of_one_child_is_none(
    nested: dict[str, Any], flat: dict[str, Any]
) -> None:
    """A level whose edges have one edge each, and meet it each round, changes nothing.

    Under a cloud, it passes models on; what it takes no time for takes none.
    """
    clients = Clients(compute=Scipy(law="expon", scale="m"))
    runs = [
        everything(played(Hierarchy.model_validate(each), clients, 5, 3, commits=20))[
            :2
        ]
        for each in (nested, flat)
    ]
    for mine, theirs in zip(*map(jax.tree.leaves, runs), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
def test_one_edge_that_does_not_wait_is_asynchronous_averaging() -> None:
    """Events of `asynchronous`, models of FedAsync: the cloud is what its edge is."""
    whole = tree(WAITS, None, GOES_ON)
    whole["protocol"] = {"kind": "hierarchy", "edges": 1, "edge": GOES_ON}
    plain = {"kind": "fed_async", "weight": {"kind": "constant"}, "proximal": 0}
    star = {**whole, "algorithm": whole["algorithm"] | plain}
    star["protocol"] = {"kind": "asynchronous"}
    with jax.enable_x64(True):
        runs = [prepared(each, seed=SEED) for each in (whole, star)]
        objectives = [
            execute([run])[0].column("evaluations", "objective", 0) for run in runs
        ]
    rows, wanted = (everything(run.timeline)[0] for run in runs)
    for name in ("time", "kind", "worker", "job", "version", "read_version"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(wanted, name), name)
    assert np.ptp(rows.version - rows.read_version[:, 0]) > 0
    np.testing.assert_allclose(*objectives, rtol=1e-9)


def test_clients_of_an_edge_that_is_away_wait_for_it() -> None:
    """One edge of clients that take 1 s and 1.5 s; a visit every 2 rounds, 2 s away.

    Rounds end at 1 s and 1.5 s, and the edge is back at 3.5 s. The first client has
    begun anew at 1 s and has come at 2 s, so that its model is merged at 3.5 s; the
    second, whose model the edge has taken along, begins then and is there at 5 s.
    """
    clients = Clients(compute=Constant(value=(1, 1.5)))
    protocol = Hierarchy(
        edges=1,
        rounds=2,
        edge=GOES_ON,
        upload=Constant(value=1),
        download=Constant(value=1),
    )
    rows, jobs, _ = everything(played(protocol, clients, 2, time=5.6))
    con, com = "CONTRIBUTE", "COMMIT"
    # At 4.5 s the first has come again: the second round, and the edge is away.
    assert rows.time.tolist() == [1, 2.5, 3.5, 5.5]
    assert kinds(rows) == [con, com, con, com]
    assert workers(rows) == [(0,), (1,), (0,), (0,)]
    assert rows.read_version[:, 0].tolist() == [0, 0, 0, 1]
    done = jobs.outcome == Outcome.APPLIED
    assert sorted(jobs.arrived_time[done].tolist()) == [1, 1.5, 2, 4.5]
    check_conservation(rows, jobs, 2)


def test_events_of_two_edges_come_in_this_order() -> None:
    """Edges of clients 1, 2 and 3, 4; two rounds of an edge, 1 s to the cloud.

    The first edge's rounds take 2 s and end at 4 s, the second's 3 s, at 6 s. They come
    to the cloud at 5 s and 7 s; the first edge's third round begins at 5 s.
    """
    clients = Clients(compute=Constant(value=(1, 2, 2.5, 3)))
    protocol = Hierarchy(
        edges=2, rounds=2, cloud="asynchronous", upload=Constant(value=1)
    )
    rows, jobs, _ = everything(played(protocol, clients, 4, time=9.5))
    con, com = "CONTRIBUTE", "COMMIT"
    assert rows.time.tolist() == [1, 2, 2.5, 3, 3, 5, 5.5, 6, 7, 7, 8, 9.5]
    assert kinds(rows) == [con] * 5 + [com, con, con, con, com, con, con]
    order = [(0,), (1,), (2,), (3,), (0,), (1,), (2,), (0,), (1,), (3,), (0,), (2,)]
    assert workers(rows) == order
    assert rows.read_version[:, 0].tolist() == [0] * 7 + [1, 1, 0, 1, 2]
    done = jobs.outcome == Outcome.APPLIED
    of_second = np.isin(jobs.client, (2, 3)) & done
    assert set(jobs.commit[of_second].tolist()) == {2}
    assert set(jobs.commit[done & ~of_second].tolist()) == {1}
    check_conservation(rows, jobs, 4)


# FedAT


def tiers(run: Prepared, commits: int, proximal: float) -> tuple[list, list]:
    """Returns times and cloud models of FedAT (Chai et al. 2021): a heap of visits."""
    protocol, steps = run.run.scenario.protocol, run.scenario.algorithm.local_steps
    world, gradient = World(run.run.scenario.clients, K, SEED), gradient_of(run)
    seconds = twin.successive(lambda c: world.draw(Purpose.COMPUTE, c))
    up, down = ways(protocol, 0, protocol.edges)
    parts = [part.tolist() for part in np.array_split(np.arange(K), protocol.edges)]
    jobs, trips, cloud = [0] * K, [0] * len(parts), np.zeros(d)
    newest, counts = [cloud for _ in parts], [0] * len(parts)

    def visit(m: int, at: float, model: np.ndarray) -> tuple[float, int, list]:
        ends, models = [], []
        for c in parts[m]:
            own = model
            for ids in run.sampler.batch(c, jobs[c]).reshape(steps, -1):
                own = own - STEP * (gradient(ids, own) + proximal * (own - model))
            ends.append(at + seconds(c, jobs[c]))
            models.append(own)
            jobs[c] += 1
        return max(ends) + up(m, trips[m]), m, np.mean(models, axis=0).tolist()

    heap = [visit(m, 0.0, cloud) for m in range(len(parts))]
    times, clouds = [], [cloud]
    while len(times) < commits:
        heap.sort()
        time, m, model = heap.pop(0)
        newest[m], counts[m] = np.array(model), counts[m] + 1
        weights = [counts[len(parts) - 1 - i] / sum(counts) for i in range(len(parts))]
        cloud = sum(w * x for w, x in zip(weights, newest, strict=True))
        times.append(time)
        clouds.append(cloud)
        back = down(m, trips[m])
        trips[m] += 1
        heap.append(visit(m, time + back, cloud))
    return times, clouds


def fed_at(edges: int, **algorithm: Any) -> dict[str, Any]:
    protocol = {"kind": "hierarchy", "edges": edges, "cloud": GOES_ON}
    own = {"kind": "fed_at", "step_size": STEP, "batch": 2} | algorithm
    return merge(
        merge(BASE, {"protocol": protocol, "algorithm": own}), {"stop": {"commits": 20}}
    )


@pytest.mark.parametrize(("edges", "links"), [(2, LINKS), (3, LINKS)])
def test_fed_at_is_that_of_a_heap_of_visits(edges: int, links: dict[str, Any]) -> None:
    whole = merge(fed_at(edges, local_steps=3, proximal=0.4), {"protocol": links})
    with jax.enable_x64(True):
        run = prepared(whole, seed=SEED)
        memory, _ = execute([run])
    times, clouds = tiers(run, 20, 0.4)
    rows, _, _ = everything(run.timeline)
    np.testing.assert_allclose(rows.time[rows.kind == Kind.COMMIT], times, rtol=1e-12)
    got = memory.column("evaluations", "objective", 0)
    np.testing.assert_allclose(got, objectives(run, clouds), rtol=1e-9)


def test_fed_at_of_one_tier_is_averaging() -> None:
    """M = 1: the only tier has all the weight, as in rounds of all clients."""
    one = fed_at(1, local_steps=2)
    usual = fed_at(1, local_steps=2, kind="hierarchical", mixing=1.0)
    with jax.enable_x64(True):
        found = [execute([prepared(each, seed=SEED)])[0] for each in (one, usual)]
    np.testing.assert_allclose(
        *(each.column("evaluations", "objective", 0)[1:] for each in found), rtol=1e-12
    )


def test_fed_at_gives_a_slow_tier_the_weight_of_a_fast_one_s_updates() -> None:
    """Tiers of 1 s and 3 s whose clients step to their optima, 0, 2 and 4, 10.

    After T = (T_1, T_2) updates the cloud is (T_2 + 7 T_1) / T, or 0 before the second
    tier's first; the optimum of all is 4.
    """
    data = {"clients": 4, "dimension": 1, "condition": 1, "heterogeneity": 0.0}
    data |= {"noise": 0.0, "samples": 1, "optima": [0, 2, 4, 10]}
    whole = merge(
        fed_at(2, step_size=1, batch=1),
        {
            "problem": {"data": data, "partition": {"clients": 4}, "l2": 0.0},
            "clients": {"compute": {"law": "constant", "value": [1, 1, 3, 3]}},
            "stop": {"commits": 9},
        },
    )
    with jax.enable_x64(True):
        memory, _ = execute([prepared(whole, seed=SEED)])
    after = [(1, 0), (2, 0), (2, 1), (3, 1), (4, 1), (5, 1), (5, 2), (6, 2), (7, 2)]
    clouds = [(slow + 7 * fast) / (slow + fast) if slow else 0 for fast, slow in after]
    wanted = [8.0, *((x - 4) ** 2 / 2 for x in clouds)]
    found = memory.column("evaluations", "optimality_gap", 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ({"cloud": WAITS}, "protocol.cloud must be asynchronous with fed_at"),
        ({"rounds": 2}, "protocol.rounds must be 1 with fed_at, .* got 2"),
        ({"edge": GOES_ON}, "protocol.edge must be synchronous"),
        ({"within": {"edges": 1}}, "protocol.within must be left out"),
    ],
)
def test_fed_at_refuses_other_hierarchies(protocol: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        prepared(merge(fed_at(2), {"protocol": protocol}), seed=SEED)
