"""The kernels against slow NumPy twins that were written without sight of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.vafl.noise import draw
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.engine.simulation import Prepared, _row_stream, key_of
from stalesim.simulator.files.timeline import NO_WORKER, Kind
from stalesim.simulator.privacy import gdp
from tests.reference import vafl_twin
from tests.runs import prepared, rows_of

DOUBLE = {"engine": {"precision": "float64"}}
SHORT = {"stop": {"commits": 80}}
DIGITS = {
    "problem": {
        "data": {"kind": "digits", "scale": "unit", "limit": 150},
        "partition": {"kind": "vertical", "parties": 5},
    },
    "algorithm": {"batch": 13},
}
MODES = {
    "async": {},
    "t-sync 1": {"protocol": {"kind": "t_synchronous", "t": 1}},
    "t-sync 3": {"protocol": {"kind": "t_synchronous", "t": 3}},
    "sync": {"protocol": {"kind": "synchronous"}},
    "sync own": {"protocol": {"kind": "synchronous"}, "algorithm": {"samples": "own"}},
    "centralised": {"protocol": {"kind": "centralised"}},
    "bounded": {"protocol": {"kind": "bounded", "staleness_bound": 9}},
    "rejecting": {"protocol": {"staleness_bound": 3}},
    "waiting": {"protocol": {"staleness_bound": 3, "beyond": "wait"}},
}
UPLOADS = {
    "batch": {"algorithm": {"upload": "batch"}},
    "all": {"algorithm": {"upload": "all"}},
}
VARIANTS = {
    "plain": {},
    "query first": {"algorithm": {"client_order": "query_first"}},
    "after": {"algorithm": {"server_gradient": "after"}},
    "noise": {"algorithm": {"perturbation": {"std": 0.3}}},
    "sum": {"problem": {"reduction": "sum"}, "algorithm": {"step_size": 0.01}},
    "repeats": {"algorithm": {"sampling": "replacement"}},
    "one party": {"problem": {"partition": {"parties": 1}}},
    "server step": {
        "algorithm": {
            "server_step_size": {
                "kind": "bounded_strongly_convex",
                "staleness_bound": 5,
                "smoothness": 2.0,
                "strong_convexity": 0.5,
                "activation": [0.2, 0.2, 0.2, 0.2, 0.2],
            }
        }
    },
}


def carried(
    plan: Prepared, *, stepwise: bool = False
) -> tuple[Any, dict[str, np.ndarray]]:
    """Executes a run; returns its last state and all diagnostics."""
    program = Program(plan.kernel, plan.problem, stepwise=stepwise)
    runner = Runner(program, [_row_stream(plan, 40)], [plan], 40)
    records = list(runner.records())
    names = records[0].infos
    infos = {n: np.concatenate([r.infos[n] for r in records]) for n in names}
    return runner._carry.state, infos


def twin_of(plan: Prepared) -> vafl_twin.Trace:
    """Gives the twin the same rows, samples and noise."""
    scenario, algorithm, problem = plan.run.scenario, plan.kernel, plan.problem
    rows, samples = rows_of(plan)
    program: list[Any] = []
    for row in range(rows.time.size):
        workers = [int(w) for w in rows.worker[row] if w != NO_WORKER]
        jobs = [int(j) for j in rows.job[row][: len(workers)]]
        if plan.coordinated:
            M = problem.num_parties
            workers, jobs = list(range(M)), jobs[:1] * M
        ids = [samples[row, min(i, samples.shape[1] - 1)] for i in range(len(workers))]
        if rows.kind[row] == Kind.REFRESH:
            bound = scenario.protocol.staleness_bound
            program.append(
                vafl_twin.Refresh(tuple(workers[1:]), tuple(jobs[1:]), ids[0], bound)
            )
        else:
            program.append(vafl_twin.Commit(tuple(workers), tuple(jobs), tuple(ids)))
    config = scenario.algorithm
    options = vafl_twin.Options(
        upload=config.upload,
        client_order=config.client_order,
        # Plain SGD: section 4 knows no order of server and clients.
        server_gradient="before" if plan.coordinated else config.server_gradient,
        coordinated=plan.coordinated,
        loss=problem.loss,
        reduction=problem.reduction,
        l2=scenario.problem.l2,
        step_size=lambda k: float(algorithm.step_size.at(k)),
        server_step_size=lambda k: float(algorithm.server_step_size.at(k)),
    )
    widths = problem.num_features
    features = [np.asarray(problem.x[m])[:, :p] for m, p in enumerate(widths)]
    return vafl_twin.run(
        features,
        np.asarray(problem.y),
        problem.embedding.num_outputs,
        program,
        options,
        noise_of(plan),
    )


def noise_of(plan: Prepared) -> Callable[[int, int, int], np.ndarray] | None:
    perturbation = plan.run.scenario.algorithm.perturbation
    if perturbation is None:
        return None
    key, C = key_of(plan.run.seed), plan.problem.embedding.num_outputs
    N = plan.problem.num_samples
    one = jax.jit(lambda m, j: draw(key, m, j, jnp.arange(N), C))
    seen: dict[tuple[int, int], np.ndarray] = {}

    def noise(party: int, job: int, sample: int) -> np.ndarray:
        if (party, job) not in seen:
            seen[party, job] = perturbation.std * np.asarray(one(party, job))
        return seen[party, job][:, sample]

    return noise


def assert_agree(
    plan: Prepared, state: Any, infos: dict[str, np.ndarray], twin: vafl_twin.Trace
) -> None:
    rows, _ = rows_of(plan)
    commits = rows.kind == Kind.COMMIT
    for party, p in enumerate(plan.problem.num_features):
        mine = np.asarray(state.weights[party])
        np.testing.assert_allclose(mine[:, :p], twin.theta[party].T, 1e-9, 1e-12)
        assert (mine[:, p:] == 0).all()
    np.testing.assert_allclose(state.server, twin.bias, 1e-9, 1e-12)
    np.testing.assert_allclose(infos["loss"][commits], twin.loss, 1e-9)
    np.testing.assert_allclose(
        infos["gradient_norm"][commits], twin.gradient_norm, 1e-9
    )
    if state.store is None:
        return
    for at, row in enumerate(np.flatnonzero(commits)):
        workers = rows.worker[row][rows.worker[row] != NO_WORKER]
        if plan.run.scenario.protocol.kind == "bounded":
            workers = workers[:1]
        M = plan.problem.num_parties
        others = np.arange(M) != workers[:, None]
        ages = np.stack(twin.ages[at])  # [W, B, M]
        used = np.broadcast_to(others[:, None], ages.shape)
        expected = ages[used].mean() if used.any() else 0
        assert infos["embedding_staleness_mean"][row] == pytest.approx(expected, 1e-5)
        largest = ages[used].max() if used.any() else 0
        assert infos["embedding_staleness_max"][row] == largest


CASES = [
    *((mode, "batch", "plain") for mode in MODES),
    *((mode, "all", "plain") for mode in ("async", "t-sync 3", "sync", "bounded")),
    *(("async", "batch", variant) for variant in VARIANTS if variant != "plain"),
    *(("async", "all", variant) for variant in ("query first", "noise", "repeats")),
    *(("t-sync 3", "all", variant) for variant in ("query first", "after", "noise")),
]


@pytest.mark.parametrize(("mode", "upload", "variant"), CASES)
def test_vafl_agrees_with_its_twin(mode: str, upload: str, variant: str) -> None:
    changes = (MODES[mode], UPLOADS[upload], VARIANTS[variant])
    with jax.enable_x64(True):
        plan = prepared(DIGITS, SHORT, DOUBLE, *changes)
        state, infos = carried(plan)
        assert_agree(plan, state, infos, twin_of(plan))


@pytest.mark.parametrize("mode", ["sync", "centralised"])
@pytest.mark.parametrize("variant", ["noise", "after"])
def test_the_coordinated_options_agree_with_the_twin(mode: str, variant: str) -> None:
    with jax.enable_x64(True):
        plan = prepared(DIGITS, SHORT, DOUBLE, MODES[mode], VARIANTS[variant])
        state, infos = carried(plan)
        assert_agree(plan, state, infos, twin_of(plan))


def test_the_sigmoid_loss_and_unequal_parties_agree_with_the_twin() -> None:
    groups = {
        "problem": {
            "partition": {
                "parties": None,
                "groups": {"a": ["0-2"], "b": [29], "c": ["3-20"]},
            }
        }
    }
    with jax.enable_x64(True):
        plan = prepared(DOUBLE, SHORT, groups)
        assert plan.problem.num_features == (3, 1, 18)
        state, infos = carried(plan)
        assert_agree(plan, state, infos, twin_of(plan))


def test_the_private_mode_that_follows_the_weights() -> None:
    target = {
        "algorithm": {
            "perturbation": {"mu": 5.0, "releases": 200, "input_diameter": 2.0}
        }
    }
    with jax.enable_x64(True):
        plan = prepared(DIGITS, SHORT, DOUBLE, target)
        _, infos = carried(plan)
    z = gdp.noise_multiplier(5.0, 200, 13 / 150, "gdp_uniform")
    norms = infos["workers/weight_norm"]
    assert (norms[50:] > 0).all()
    np.testing.assert_allclose(infos["workers/noise_std"], 2.0 * z * norms, 1e-9)
