"""What tests of methods share: a run, its twin's world, and their comparison."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.streams import Purpose
from stalesim.simulator.timeline import NO_COMMIT, NO_SAMPLE, Jobs, Kind, Outcome
from stalesim.simulator.timelines.of_run import timeline
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.world import World
from tests.reference import methods_twin as twin
from tests.runs import execute, prepared
from tests.support import Memory, everything, scenario
from tests.unit.timelines.random_worlds import compare

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
Method = Callable[[twin.World], twin.Run]
Case = tuple[dict[str, Any], dict[str, Any], Method]
"""Protocol and algorithm of a run, and its twin."""


def assert_like_twin(
    case: Case,
    *,
    commits: int = COMMITS,
    too_old_is_applied: bool = False,
    **changes: Any,
) -> tuple[Memory, twin.Run]:
    """Compares a run with its twin: times of commits, fates of jobs, models.

    Args:
        case: The run.
        commits: Commits that it makes.
        too_old_is_applied: As of `assert_jobs_alike`.
        changes: Other entries of its scenario.
    """
    with jax.enable_x64(True):
        run = prepared(
            merge(tree_of(case), {"stop": {"commits": commits}} | changes), seed=SEED
        )
        memory, _ = execute([run])
        assert isinstance(run.timeline, SimulatedTimeline)
        rows, jobs, _ = everything(run.timeline)
    found = case[2](world_of(run, commits))
    committed = rows.kind == Kind.COMMIT
    np.testing.assert_allclose(
        rows.time[committed], [c.time_s for c in found.commits], rtol=1e-12
    )
    assert_jobs_alike(jobs, found, too_old_is_applied=too_old_is_applied)
    assert_models_alike(memory, run, found)
    return memory, found


def assert_players_agree(case: Case, *, in_arrays: bool, **changes: Any) -> None:
    """Arrays make the timeline that SimPy plays, or the world is SimPy's.

    Args:
        case: The run.
        in_arrays: Whether the protocol has no feedback on who acts when.
        changes: Other entries of its scenario.
    """
    found = scenario(merge(tree_of(case), {"stop": {"commits": 200}} | changes))
    made = timeline(Run(0, "base", {}, 0, SEED, found))
    assert isinstance(made, SimulatedTimeline)
    protocol = case[0].get("kind", "asynchronous")
    because = "" if in_arrays else f"the protocol {protocol}"
    assert made.feedback == because
    if in_arrays:
        compare(made)


def tree_of(case: Case) -> dict[str, Any]:
    """Returns the scenario of a case."""
    protocol, algorithm, _ = case
    kind = protocol.get("kind", "asynchronous")
    changes = {
        "protocol": {"kind": kind, **protocol},
        "algorithm": BASE["algorithm"] | algorithm,
    }
    return merge(BASE, changes)


def world_of(run: Any, commits: int = COMMITS) -> twin.World:
    """Returns the run's world and gradients, as the twin takes them."""
    scenario, problem = run.run.scenario, run.problem
    world = World(scenario.clients, K, SEED)
    drawn: dict[int, list[float]] = {client: [] for client in range(K)}

    def duration(client: int, job: int) -> float:
        while len(drawn[client]) <= job:
            drawn[client].append(float(world.draw(Purpose.COMPUTE, client)))
        return drawn[client][job]

    links: dict[int, list[float]] = {client: [] for client in range(K)}

    def download(client: int, job: int) -> float:
        while len(links[client]) <= job:
            links[client].append(float(world.transit(Purpose.DOWNLOAD, client)))
        return links[client][job]

    x, y = np.asarray(problem.x, float), np.asarray(problem.y, float)

    batches = run.sampler.steps

    def gradient(client: int, job: int, weights: np.ndarray) -> np.ndarray:
        """Returns the sum of the gradients of local steps of size STEP."""
        total, moved = np.zeros_like(weights), weights
        for ids in run.sampler.batch(client, job).reshape(batches, -1):
            own = ids[ids != NO_SAMPLE]
            if own.size:
                residual = moved * x[own] - y[own]
                found = (2 / d * residual * x[own]).mean(axis=0) + 0.01 * moved
                total, moved = total + found, moved - STEP * found
        return total

    return twin.World(
        num_clients=K,
        duration=duration,
        gradient=gradient,
        start=np.zeros(d),
        num_commits=commits,
        download=download,
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
    assert got.size == len(models)
    np.testing.assert_allclose(got, objective, rtol=1e-9)
    got = memory.column("evaluations", "gradient_norm_squared")
    np.testing.assert_allclose(got, norms, rtol=1e-7, atol=1e-12)
    curvature = 2 / d * (x**2).mean(axis=0) + 0.01
    slope = 2 / d * (x * y).mean(axis=0)
    least = (y**2).mean() - (slope**2 / (2 * curvature)).sum()
    got = memory.column("evaluations", "optimality_gap")
    np.testing.assert_allclose(got, objective - least, rtol=1e-7, atol=1e-10)


def assert_engines_agree(case: Case, mode: str, other_step: Any, **more: Any) -> None:
    """Two runs together give what each gives alone; `shared` differs in the step.

    Args:
        case: The run.
        mode: `stepwise`, `batched` (two seeds) or `shared` (two steps).
        other_step: Change of its scenario in `shared`.
        more: Other entries of its scenario.
    """
    tree = merge(tree_of(case), {"stop": {"commits": 25}} | more)
    changes, seeds = [{}, {}], [SEED, SEED + 1]
    if mode == "shared":
        changes, seeds = [other_step, {}], [SEED, SEED]
    with jax.enable_x64(True):
        runs = [
            prepared(merge(tree, change), seed=seed, number=number)
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
