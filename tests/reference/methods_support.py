"""Runs of methods with a server, their twins, and the comparison of the two."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stalesim.simulator.engine.client_work import NOISE
from stalesim.simulator.engine.simulation import Prepared, key_of
from stalesim.simulator.files.timeline import (
    NO_COMMIT,
    NO_SAMPLE,
    NO_WORKER,
    Jobs,
    Kind,
    Outcome,
)
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.world.streams import Purpose
from stalesim.simulator.world.world import World as Draws
from tests.reference import events_twin as events
from tests.reference import server_twin as twin
from tests.runs import execute, prepared, rows_of
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
Stages = dict[str, tuple[str, Callable[..., twin.Stage]]]


def tree_of(
    protocol: dict[str, Any] | None = None,
    algorithm: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Returns the scenario of a method."""
    method = {
        "protocol": {"kind": "asynchronous", **(protocol or {})},
        "algorithm": BASE["algorithm"] | (algorithm or {}),
    }
    return merge(merge(BASE, method), changes)


# What a run gives to its twins


def problem_of(plan: Prepared) -> twin.Problem:
    """Returns a run's data and loss."""
    problem = plan.problem
    arrays = (np.asarray(part, float) for part in (problem.x, problem.y))
    return twin.Problem(*arrays, problem.loss, float(problem.l2))


def start_of(plan: Prepared) -> np.ndarray:
    """Returns a model of zeros."""
    width = plan.problem.x.shape[1]
    squared = plan.problem.loss == "squared"
    return np.zeros(width if squared else (plan.shape.num_outputs, width))


def law_of(algorithm: Any) -> str | None:
    """Returns the law of the noise of what is sent."""
    if hasattr(algorithm, "epsilon"):
        return algorithm.noise
    return getattr(getattr(algorithm, "mechanism", None), "law", None)


def jobs_of(plan: Prepared) -> list[twin.Row]:
    """Returns what happens in a run, row by row."""
    rows, samples = rows_of(plan)
    sizes, law = plan.shares.num_samples, law_of(plan.scenario.algorithm)
    start, key, found = start_of(plan), key_of(plan.run.seed), []

    def noise_of(client: int, number: int) -> np.ndarray | None:
        if law is None:
            return None
        own = jax.random.fold_in(jax.random.fold_in(key, client), number)
        zero, one = jnp.zeros(start.size, float), jnp.asarray(1.0)
        return np.asarray(NOISE[law](own, zero, one)[0]).reshape(start.shape)

    for row, kind in enumerate(rows.kind):
        jobs = []
        for column in np.flatnonzero(rows.worker[row] != NO_WORKER):
            client, number, version = (
                int(table[row, column])
                for table in (rows.worker, rows.job, rows.read_version)
            )
            ids = samples[row, min(column, samples.shape[1] - 1)]
            batches = [b[b != NO_SAMPLE] for b in ids.reshape(-1, plan.sampler.size)]
            batches = [batch for batch in batches if batch.size]
            size, noise = int(sizes[client]), noise_of(client, number)
            jobs.append(twin.Job(client, number, version, batches, size, noise))
        found.append(twin.Row(jobs, kind == Kind.COMMIT, kind != Kind.READ))
    return found


def played(plan: Prepared, stages: Stages = twin.STAGES) -> twin.Server:
    """Returns the server of a run's twin at its end."""
    o = plan.scenario.algorithm.model_dump()
    shares = (o.get("weight") or {}).get("shares")
    if isinstance(shares, str):
        o["weight"]["shares"] = [eval(shares, {"m": m}) for m in range(1, K + 1)]
    server = twin.Server(
        *(problem_of(plan), start_of(plan), plan.timeline.num_clients),
        *twin.rates_of(o),
    )
    return twin.play(server, twin.chain_of(twin.opened(o), stages), jobs_of(plan))


class RunWorld(NamedTuple):
    """What twins with a loop of their own take of a run.

    Attributes:
        gradient: Of a client, a job and a model: the sum of the gradients of the job's
            local steps, of size `STEP`.
    """

    gradient: Callable[[int, int, np.ndarray], np.ndarray]


def world_of(plan: Prepared) -> RunWorld:
    """Returns the gradients of a run."""
    problem, sampler = problem_of(plan), plan.sampler

    def gradient(client: int, job: int, weights: np.ndarray) -> np.ndarray:
        total, moved = np.zeros_like(weights), weights
        for ids in sampler.batch(client, job).reshape(sampler.steps, -1):
            own = ids[ids != NO_SAMPLE]
            if own.size:
                _, found, _ = twin.of_batch(problem, moved, own)
                total, moved = total + found, moved - STEP * found
        return total

    return RunWorld(gradient)


# Numbers


class Tolerance(NamedTuple):
    """Relative errors of objectives, and of their slopes."""

    objective: float = 1e-9
    slope: float = 1e-7


COLUMNS = {"loss": "loss", "weight": "weight", "clipped": "clipped_fraction"}


def assert_like_twin(
    tree: dict[str, Any],
    *more: dict[str, Any],
    stages: Stages = twin.STAGES,
    near: Tolerance = Tolerance(),  # noqa: B008
) -> tuple[Memory, twin.Server]:
    """Executes a run, and compares each version and row with those of the twin."""
    with jax.enable_x64(True):
        plan = prepared(tree, *more, seed=SEED)
        memory, _ = execute([plan])
        server = played(plan, stages)
    assert_models_alike(memory, server, near)
    here = [i for i, row in enumerate(server.rows) if not np.isnan(row["loss"])]
    for name, column in COLUMNS.items():
        got = memory.column("commits", column)
        wanted = np.array([row[name] for row in server.rows])[here]
        if got.size and not np.isnan(wanted).all():  # columns are of single precision
            np.testing.assert_allclose(got[here], wanted, 2e-6, 1e-7, err_msg=name)
    return memory, server


def assert_models_alike(
    memory: Memory,
    server: twin.Server,
    near: Tolerance = Tolerance(),  # noqa: B008
) -> None:
    """Compares numbers of every version that was evaluated, in double precision."""
    made = memory.column("evaluations", "commits").astype(int)
    assert made[-1] == server.commits > 0
    models = [server.models[k] for k in made]
    got = memory.column("evaluations", "objective")
    wanted = [twin.objective(server.problem, model) for model in models]
    np.testing.assert_allclose(got, wanted, rtol=near.objective)
    assert np.unique(got).size > 1
    gaps = memory.column("evaluations", "optimality_gap")
    if gaps.size:
        apart = np.array(wanted) - least(server.problem)
        np.testing.assert_allclose(gaps, apart, rtol=near.slope, atol=1e-10)
    whole = range(len(server.problem.labels))
    slopes = [twin.of_batch(server.problem, model, whole)[1] for model in models]
    got = memory.column("evaluations", "gradient_norm_squared")
    wanted = [float((slope**2).sum()) for slope in slopes]
    np.testing.assert_allclose(got, wanted, rtol=near.slope, atol=1e-12)


def least(problem: twin.Problem) -> float:
    """Returns the least objective of the squared loss, one parabola per weight."""
    x, y, l2 = problem.features, problem.labels, problem.l2
    curvature = 2 / x.shape[1] * (x**2).mean(axis=0) + l2
    slope = 2 / x.shape[1] * (x * y).mean(axis=0)
    return float((y**2).mean() - (slope**2 / (2 * curvature)).sum())


# Events


def timing_of(plan: Prepared, commits: int) -> events.World:
    """Returns a run's world, whose jobs take the sum of their steps' seconds."""
    clients = plan.scenario.clients
    draws = Draws(clients, K, SEED)
    steps = plan.sampler.own_steps if clients.compute_per == "step" else [1] * K

    def nth(draw: Callable[[int], float]) -> Callable[[int, int], float]:
        drawn: dict[int, list[float]] = {client: [] for client in range(K)}

        def of(client: int, number: int) -> float:
            while len(drawn[client]) <= number:
                drawn[client].append(float(draw(client)))
            return drawn[client][number]

        return of

    step = nth(lambda client: draws.draw(Purpose.COMPUTE, client))
    return events.World(
        num_clients=K,
        seconds=lambda client, job: float(
            np.sum(
                [step(client, job * steps[client] + q) for q in range(steps[client])]
            )
        ),
        num_commits=commits,
        download=nth(lambda client: draws.transit(Purpose.DOWNLOAD, client)),
    )


def assert_events_alike(
    tree: dict[str, Any], protocol: Callable[[events.World], events.Run]
) -> None:
    """Compares times of commits, what entered them, and what was lost."""
    plan = prepared(tree, seed=SEED)
    rows, jobs, _ = everything(plan.timeline)
    found = protocol(timing_of(plan, tree["stop"]["commits"]))
    np.testing.assert_allclose(
        rows.time[rows.kind == Kind.COMMIT],
        [commit.time_s for commit in found.commits],
        rtol=1e-12,
    )
    applied = jobs.commit != NO_COMMIT
    columns = (jobs.commit, jobs.client, jobs.job, jobs.read_version)
    mine = {*zip(*(column[applied].tolist() for column in columns), strict=True)}
    assert mine == {
        (number, *source)
        for number, commit in enumerate(found.commits, 1)
        for source in commit.entered
    }
    assert_lost_alike(jobs, found)


def assert_lost_alike(jobs: Jobs, found: events.Run) -> None:
    """Compares who was rejected and stopped.

    The twin carries the last commit out to its end, where the run has stopped.
    """
    last = found.commits[-1].time_s
    for outcome, fate in ((Outcome.REJECTED, "rejected"), (Outcome.STOPPED, "stopped")):
        own = [each for each in found.lost if each.fate == fate]
        at_end = {(each.client, each.job) for each in own if each.time_s == last}
        here = jobs.outcome == outcome
        got = {*zip(jobs.client[here].tolist(), jobs.job[here].tolist(), strict=True)}
        assert got - at_end == {(each.client, each.job) for each in own} - at_end
