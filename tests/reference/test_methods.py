"""Methods of the field against a blind NumPy twin: events, staleness and models."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from simulator.protocols.routed.playing import Routes
from simulator.scenario.study import merge
from simulator.streams import Purpose, Streams
from simulator.timeline import NO_COMMIT, Jobs, Kind, Outcome
from simulator.world.world import World
from tests.reference import methods_twin as twin
from tests.runs import execute, prepared
from tests.support import Memory, everything

K, d, COMMITS = 5, 3, 60
STEP = 0.07
SEED = 11
BASE: dict[str, Any] = {
    "problem": {
        "data": {
            "kind": "quadratic",
            "clients": K,
            "dimension": d,
            "condition": 7,
            "heterogeneity": 2.0,
            "noise": 1.5,
            "samples": 6,
        },
        "partition": {"kind": "natural", "clients": K},
        "model": {"kind": "diagonal"},
        "loss": "squared",
        "l2": 0.01,
    },
    "algorithm": {"kind": "sgd", "step_size": STEP, "batch": 2},
    "clients": {"compute": {"law": "expon", "scale": "m"}},
    "protocol": {"kind": "asynchronous"},
    "engine": {"precision": "float64", "chunk": 32},
    "stop": {"commits": COMMITS},
    "evaluate": {
        "every": {"commits": 1},
        "metrics": ["objective", "gradient_norm_squared", "optimality_gap"],
    },
}
TAU = tuple(float(m) for m in range(1, K + 1))
"""Means of the clients' computing times."""
P = [1 - np.exp(-1.3 / tau) for tau in TAU]
"""Chances that a job is done in 1.3 s."""
Q = [m / sum(range(K + 1)) for m in range(1, K + 1)]
"""Chances of the clients where tasks are routed."""
STOPS: dict[str, Any] = {"late": "stop"}
MINDFLAYER = {"kind": "collect", "quota": "m", "allotted": 1.3}


def routes(kind: str = "random") -> Callable[[int], int]:
    """Returns the clients of tasks, by their numbers."""
    found = Routes(kind, np.array(Q), Streams(SEED))  # pyright: ignore
    drawn: list[int] = []

    def route(task: int) -> int:
        while len(drawn) <= task:
            drawn.append(found.first(0))
        return drawn[task]

    return route


Method = Callable[[twin.World], twin.Run]
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any], Method]] = {
    "asgd": ({}, {}, lambda w: twin.asgd(w, twin.constant(STEP))),
    "Rennala": (
        {"kind": "collect", "count": 7},
        {},
        lambda w: twin.rennala(w, 7, STEP, stops=False),
    ),
    "Rennala with stops": (
        {"kind": "collect", "count": 7} | STOPS,
        {},
        lambda w: twin.rennala(w, 7, STEP, stops=True),
    ),
    "Rennala, the fastest": (
        {"kind": "collect", "count": 3, "fastest": 3} | STOPS,
        {},
        lambda w: twin.rennala(w, 3, STEP, stops=True, fastest=TAU),
    ),
    "m-synchronous": (
        {"kind": "collect", "count": 3, "repeats": False},
        {},
        lambda w: twin.m_synchronous(w, 3, STEP, stops=False),
    ),
    "m-synchronous with stops": (
        {"kind": "collect", "count": 3, "repeats": False} | STOPS,
        {},
        lambda w: twin.m_synchronous(w, 3, STEP, stops=True),
    ),
    "Malenia": (
        {"kind": "collect", "harmonic_mean": 1.4},
        {"kind": "malenia"},
        lambda w: twin.malenia(w, 1.4 * K, STEP, stops=False),
    ),
    "Malenia with stops": (
        {"kind": "collect", "harmonic_mean": 2} | STOPS,
        {"kind": "malenia"},
        lambda w: twin.malenia(w, 2 * K, STEP, stops=True),
    ),
    "Ringmaster": (
        {"staleness_bound": 3},
        {},
        lambda w: twin.ringmaster(w, 4, STEP, stops=False),
    ),
    "Ringmaster with stops": (
        {"staleness_bound": 3, "beyond": "stop"},
        {},
        lambda w: twin.ringmaster(w, 4, STEP, stops=True),
    ),
    "Ringleader": (
        {"kind": "phases"},
        {"kind": "ringleader"},
        lambda w: twin.ringleader(w, STEP),
    ),
    "IA2SGD": (
        {"warm_up": True},
        {"kind": "ia2sgd"},
        lambda w: twin.ia2sgd(w, STEP),
    ),
    "ACED": (
        {"warm_up": True},
        {"kind": "ia2sgd", "max_age": 8},
        lambda w: twin.aced(w, STEP, 8, empty="commit"),
    ),
    "CA2FL": (
        {"kind": "buffered", "size": 3},
        {"kind": "ca2fl"},
        lambda w: twin.ca2fl(w, 3, STEP),
    ),
    "MindFlayer": (
        MINDFLAYER,
        {"divisor": sum(p * trials for trials, p in enumerate(P, start=1))},
        lambda w: twin.mindflayer(w, range(1, K + 1), [1.3] * K, P, STEP),
    ),
    "clipped": (
        {},
        {
            "mechanism": {
                "clip_bound": 0.5,
                "clip": "contribution",
                "multiplier": 0,
            }
        },
        lambda w: twin.clipped_asgd(w, STEP, 0.5),
    ),
    "Mishchenko": (
        {},
        {"weight": {"kind": "inverse", "concurrency": 3}},
        lambda w: twin.asgd(w, twin.inverse_delay(STEP, 3)),
    ),
    "Rescaled ASGD": (
        {},
        {"weight": {"kind": "inverse_share", "shares": "1 / m"}},
        lambda w: twin.asgd(w, twin.rescaled(STEP, TAU)),
    ),
    "Generalized AsyncSGD": (
        {"kind": "routed", "tasks": 8, "weights": "m"},
        {"weight": {"kind": "inverse_share", "shares": "m"}},
        lambda w: twin.generalized(w, 8, routes(), Q, STEP),
    ),
    "AsGrad, shuffled": (
        {"kind": "routed", "tasks": 4, "route": "shuffled"},
        {},
        lambda w: twin.generalized(w, 4, routes("shuffled"), [1 / K] * K, STEP),
    ),
    "delay-adaptive": (
        {},
        {"weight": {"kind": "delay_adaptive", "concurrency": 2, "smoothness": 2.0}},
        lambda w: twin.asgd(w, twin.delay_adaptive(STEP, 2, 2.0)),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_events_and_models_are_those_of_the_twin(name: str) -> None:
    protocol, algorithm, method = METHODS[name]
    kind = protocol.get("kind", "asynchronous")
    changes = {
        "protocol": {"kind": kind, **protocol},
        "algorithm": BASE["algorithm"] | algorithm,
    }
    with jax.enable_x64(True):
        run = prepared(merge(BASE, changes), seed=SEED)
        memory, _ = execute([run])
        rows, jobs, _ = everything(run.timeline)
    found = method(world_of(run))
    commits = rows.kind == Kind.COMMIT
    np.testing.assert_allclose(
        rows.time[commits], [c.time_s for c in found.commits], rtol=1e-12
    )
    assert_jobs_alike(jobs, found, too_old_is_applied=name == "ACED")
    assert_models_alike(memory, run, found)


def world_of(run: Any) -> twin.World:
    """Returns the run's world and gradients, as the twin takes them."""
    scenario, problem = run.run.scenario, run.problem
    world = World(scenario.clients, K, SEED)
    drawn: dict[int, list[float]] = {client: [] for client in range(K)}

    def duration(client: int, job: int) -> float:
        while len(drawn[client]) <= job:
            drawn[client].append(float(world.draw(Purpose.COMPUTE, client)))
        return drawn[client][job]

    x, y = np.asarray(problem.x, float), np.asarray(problem.y, float)

    def gradient(client: int, job: int, weights: np.ndarray) -> np.ndarray:
        ids = run.sampler.batch(client, job)
        residual = weights * x[ids] - y[ids]
        return (2 / d * residual * x[ids]).mean(axis=0) + 0.01 * weights

    return twin.World(
        num_clients=K,
        duration=duration,
        gradient=gradient,
        start=np.zeros(d),
        num_commits=COMMITS,
    )


def assert_jobs_alike(jobs: Jobs, found: twin.Run, *, too_old_is_applied: bool) -> None:
    """Compares who was applied in which commit, rejected and stopped.

    The twin carries the last commit out to its end, where the run has stopped. The age
    of ACED's entries is the algorithm's matter: a timeline has all arrivals applied.
    """
    applied = jobs.commit != NO_COMMIT
    entries = zip(
        jobs.commit[applied], jobs.client[applied], jobs.job[applied], strict=True
    )
    mine = {(int(k), int(c), int(j)) for k, c, j in entries}
    wanted = {(c.version, s.client, s.job) for c in found.commits for s in c.entered}
    unused = ("overwritten", "rejected") if too_old_is_applied else ("overwritten",)
    left_out = {(c, j) for _, c, j, fate in found.fates if fate in unused}
    assert {entry for entry in mine if entry[1:] not in left_out} == wanted
    if too_old_is_applied:
        return
    for outcome, fate in ((Outcome.REJECTED, "rejected"), (Outcome.STOPPED, "stopped")):
        theirs = {(c, j) for t, c, j, f in found.fates if f == fate}
        last = found.commits[-1].time_s
        at_end = {(c, j) for t, c, j, f in found.fates if f == fate and t == last}
        here = jobs.outcome == outcome
        got = set(zip(jobs.client[here].tolist(), jobs.job[here].tolist(), strict=True))
        assert got - at_end == theirs - at_end


def assert_models_alike(memory: Memory, run: Any, found: twin.Run) -> None:
    """Compares three numbers of every version, in double precision."""
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y, float)
    models = np.array([np.zeros(d), *(commit.x for commit in found.commits)])
    residual = models[:, None, :] * x - y
    objective = (residual**2).mean(axis=(1, 2)) + 0.005 * (models**2).sum(axis=1)
    gradient = (2 / d * residual * x).mean(axis=1) + 0.01 * models
    norms = (gradient**2).sum(axis=1)
    got = memory.column("evaluations", "objective")
    assert got.size == COMMITS + 1
    np.testing.assert_allclose(got, objective, rtol=1e-9)
    got = memory.column("evaluations", "gradient_norm_squared")
    np.testing.assert_allclose(got, norms, rtol=1e-7, atol=1e-12)
    curvature = 2 / d * (x**2).mean(axis=0) + 0.01
    slope = 2 / d * (x * y).mean(axis=0)
    least = (y**2).mean() - (slope**2 / (2 * curvature)).sum()
    got = memory.column("evaluations", "optimality_gap")
    np.testing.assert_allclose(got, objective - least, rtol=1e-7, atol=1e-10)


ENGINES = ["stepwise", "batched", "shared"]
NEW = [
    *("Rennala with stops", "Malenia", "Ringleader", "ACED", "CA2FL", "MindFlayer"),
]


@pytest.mark.long
@pytest.mark.parametrize("mode", ENGINES)
@pytest.mark.parametrize("name", NEW)
def test_engines_agree(name: str, mode: str) -> None:
    """Two seeds together give what each gives alone; `shared` differs in the step."""
    protocol, algorithm, _ = METHODS[name]
    kind = protocol.get("kind", "asynchronous")
    tree = {
        "protocol": {"kind": kind, **protocol},
        "algorithm": BASE["algorithm"] | algorithm,
        "stop": {"commits": 25},
    }
    if mode == "shared":
        changes = [merge(tree, {"algorithm": {"step_size": s}}) for s in (0.03, STEP)]
        seeds = [SEED, SEED]
    else:
        changes, seeds = [tree, tree], [SEED, SEED + 1]
    with jax.enable_x64(True):
        runs = [
            prepared(merge(BASE, change), seed=seed, number=number)
            for number, (change, seed) in enumerate(zip(changes, seeds, strict=True))
        ]
        alone = [execute([run])[0] for run in runs]
        if mode == "stepwise":
            together = [execute([run], "stepwise")[0] for run in runs]
        else:
            both, _ = execute(runs, mode)
            together = [both, both]
    for number, (one, other) in enumerate(zip(alone, together, strict=True)):
        for metric in ("objective", "gradient_norm_squared"):
            np.testing.assert_allclose(
                other.column("evaluations", metric, number),
                one.column("evaluations", metric, number),
                rtol=1e-9,
            )
