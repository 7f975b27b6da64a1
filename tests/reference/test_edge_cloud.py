"""CSGD, ASGD, AUDP and MAPA against a slow NumPy twin written without sight of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.client_work import NOISE
from stalesim.simulator.algorithms.edge_cloud.part import Audp, Mapa
from stalesim.simulator.algorithms.edge_cloud.stages import stages
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import key_of
from tests.reference import mapa_twin
from tests.runs import execute, prepared, rows_of
from tests.support import SGD

LAWS = {
    "radial_exponential": "radial_exp",
    "spherical_laplace": "gamma",
    "laplace": "iid_laplace",
}
RATES = {"equation_10": "eq10", "equation_11": "eq11"}
BASE = merge(
    SGD,
    {
        "engine": {"precision": "float64"},
        "stop": {"commits": 60},
        "evaluate": {"every": {"commits": 60}, "metrics": ["objective"]},
        "protocol": {"kind": "cyclic"},
        "algorithm": {"kind": "mapa", "epsilon": 0.5, "batch": 7},
    },
)
PRIVATE = {"kind": "audp", "epsilon": 0.5, "batch": 7}
BINARY = {
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "iid", "clients": 5},
    }
}
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "csgd": (
        {
            "algorithm": {"kind": "csgd", "batch": 7},
            "protocol": {"kind": "centralised"},
        },
    ),
    "asgd": ({"algorithm": {"kind": "asgd", "batch": 7}},),
    "audp": ({"algorithm": PRIVATE},),
    "audp, equation 11": ({"algorithm": PRIVATE | {"rate": "equation_11"}},),
    "audp, clip 15": ({"algorithm": PRIVATE | {"clip_bound": 15.0}},),
    "mapa": ({},),
    "mapa, asynchronous": ({"protocol": {"kind": "asynchronous"}},),
    "mapa, binary": (BINARY,),
    "mapa, per sample": (
        {"algorithm": {"clip": "sample", "clip_bound": 2.0, "gap": 0.001}},
    ),
    # Epsilon 2 and a theta of 0.9: P is clamped, where the two rules differ.
    "mapa, table II's stages": (
        {
            "algorithm": {
                "stage_rule": "bound",
                "epsilon": 2.0,
                "theta": 0.9,
                "gap": 0.01,
            }
        },
    ),
    "mapa, spherical": ({"algorithm": {"noise": "spherical_laplace", "gap": 1e-5}},),
    "mapa, laplace": ({"algorithm": {"noise": "laplace", "theta": 0.7}},),
    "mapa, paper's variance": (
        {
            "algorithm": {
                "noise": "laplace",
                "variance_in_analysis": "paper",
                "gap": 1.0,
                "epsilon": [0.1, 0.5, 1.0, 0.2, 0.3],
            }
        },
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_kernels_agree_with_the_twin(name: str) -> None:
    with jax.enable_x64(True):
        run = prepared(BASE, *RUNS[name], seed=5)
        memory, _ = execute([run])
        rows, samples = rows_of(run)
        config = run.run.scenario.algorithm
        classes = run.shape.num_outputs
        width = run.shape.num_features + 1
        key = key_of(5)
        program = []
        for row in range(rows.time.size):
            client, job = int(rows.worker[row, 0]), int(rows.job[row, 0])
            noise = None
            if hasattr(config, "epsilon"):
                own = jax.random.fold_in(jax.random.fold_in(key, client), job)
                zero = jnp.zeros(classes * width, float)
                unit = NOISE[config.noise](own, zero, jnp.asarray(1.0)).value
                noise = np.asarray(unit).reshape(classes, width).T
            program.append(
                mapa_twin.Row(
                    client, int(rows.read_version[row, 0]), samples[row, 0], noise
                )
            )
    problem = run.problem
    penalised = np.arange(width) < width - 1
    twin_problem = mapa_twin.Problem(
        np.asarray(problem.x),
        np.asarray(problem.y),
        "logistic" if classes == 1 else "softmax",
        float(problem.l2),
        penalised,
    )
    epsilon = getattr(config, "epsilon", np.inf)
    clients = run.timeline.num_clients
    constants = mapa_twin.Constants(
        batch_size=7,
        theta=getattr(config, "theta", 0.5),
        f_gap=getattr(config, "gap", 50.0),
        max_staleness=clients,
        epsilons=tuple(np.broadcast_to(epsilon, clients).tolist()),
    )
    options = mapa_twin.Options(
        law=LAWS[getattr(config, "noise", "radial_exponential")],
        variance_in_analysis=getattr(config, "variance_in_analysis", "law"),
        clip_mode="sample" if getattr(config, "clip", "") == "sample" else "batch",
        clip_bound=getattr(config, "clip_bound", None),
        audp_rate=RATES[getattr(config, "rate", "equation_10")],
        stage_rule=getattr(config, "stage_rule", "theta"),
    )
    start = np.zeros((width, classes))
    twin = mapa_twin.run(config.kind, twin_problem, program, start, constants, options)

    def column(of: str) -> np.ndarray:
        return memory.column("commits", of)

    def expected(of: str) -> list[float]:
        return [getattr(commit, of) for commit in twin.commits]

    np.testing.assert_allclose(column("step_size"), expected("step_size"), rtol=1e-6)
    if hasattr(config, "epsilon"):
        # The trace keeps float32.
        np.testing.assert_allclose(
            column("sensitivity"), expected("sensitivity"), rtol=1e-6
        )
        np.testing.assert_allclose(
            column("noise_norm"), expected("noise_norm"), rtol=1e-6
        )
        batch = 7 if options.clip_mode == "sample" else 1
        clipped = np.array(expected("num_clipped")) / batch
        np.testing.assert_allclose(column("clipped_fraction"), clipped, atol=1e-6)
    if config.kind == "mapa":
        assert column("stage").tolist() == expected("stage")
        assert len(twin.stages) > 1
    # Through the metric, the last model: a sum of squares of everything in it.
    objective = mapa_twin.objective(
        twin_problem, twin.versions[-1], np.arange(len(twin_problem.labels))
    )
    found = memory.column("evaluations", "objective")
    np.testing.assert_allclose(found[-1], objective, rtol=1e-9)


def test_table_2s_stages_fall_faster_where_the_divisor_is_clamped() -> None:
    """M-07: equal until P would be below 1, then further down."""
    for epsilon, differ in ((0.1, False), (0.5, True)):
        rules = [
            stages(Mapa(epsilon=epsilon, sigma=5.477, stage_rule=rule), 12, 5, 785)
            for rule in ("theta", "bound")
        ]
        ratio = rules[1][1].sensitivity / rules[0][1].sensitivity
        # (2 / b) sqrt(4 / (6 epsilon^2)) = 0.272 in place of 0.5, sigma aside.
        expected = 0.2722 / 0.5 if differ else 1.0
        assert ratio == pytest.approx(expected, rel=1e-3)


def test_a_rate_and_a_step_size_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="rate must be left out with step_size"):
        Audp(epsilon=1.0, rate="equation_11", step_size=0.1)


def test_one_privacy_level_for_each_client() -> None:
    from stalesim.simulator.config.errors import ScenarioError

    with pytest.raises(ScenarioError, match=r"epsilon must have one entry per client"):
        prepared(BASE, {"algorithm": {"epsilon": [0.1, 0.2]}})
