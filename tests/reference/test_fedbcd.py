"""FedSGD, FedBCD and FedPBCD against a blind NumPy twin, in every mode."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import Prepared, key_of
from tests.reference import fedbcd_async_twin
from tests.reference import fedbcd_twin as twin
from tests.reference.test_against_twins import carried
from tests.runs import execute, prepared, rows_of

BATCH = 13
BASE: dict[str, Any] = {
    "problem": {"partition": {"parties": 4}, "l2": 0.01},
    "clients": {"compute": {"law": "expon", "scale": "m", "loc": 0.1}},
    "protocol": {"kind": "rounds"},
    "algorithm": {
        "kind": "fed_bcd",
        "step_size": 0.1,
        "batch": BATCH,
        "local_steps": 3,
    },
    "stop": {"commits": 24},
    "evaluate": {
        "every": {"commits": 24},
        "metrics": ["objective", "test_accuracy", "test_auc"],
    },
    "engine": {"precision": "float64", "chunk": 32},
}
SEQUENTIAL = {"protocol": {"kind": "rounds", "order": "sequential"}}
ASYNC = {"protocol": {"kind": "asynchronous"}}
FALLING = {"algorithm": {"step_size": {"kind": "inverse_root", "value": 0.3}}}
FROZEN = {"algorithm": {"local_gradient": "frozen"}}
TAYLOR = {"problem": {"loss": "taylor"}}
MLP = {"problem": {"model": {"kind": "mlp", "hidden": 5, "activation": "tanh"}}}
RELU = {"problem": {"model": {"kind": "mlp", "hidden": 5, "activation": "relu"}}}


def method(kind: str, **options: Any) -> dict[str, Any]:
    options = {"step_size": 0.1, "batch": BATCH, **options}
    return {"algorithm": {"kind": kind, **options}}


PULLED = method("fed_pbcd", local_steps=4, proximal=0.5)
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "fed_sgd": (method("fed_sgd"),),
    "parallel": (),
    "parallel, falling": (FALLING,),
    "parallel, frozen": (FROZEN,),
    "parallel, taylor": (TAYLOR,),
    "parallel, mlp": (MLP,),
    "parallel, mlp, frozen": (RELU, FROZEN),
    "parallel, one party": ({"problem": {"partition": {"parties": 1}}},),
    "parallel, 17 parties": ({"problem": {"partition": {"parties": 17}}},),
    "proximal": (PULLED,),
    "proximal, mlp": (PULLED, MLP),
    "sequential": (SEQUENTIAL,),
    "sequential, falling": (SEQUENTIAL, FALLING),
    "sequential, frozen": (SEQUENTIAL, FROZEN),
    "sequential, mlp": (SEQUENTIAL, MLP),
    "asynchronous": (ASYNC,),
    "asynchronous, falling": (ASYNC, FALLING),
    "asynchronous, frozen": (ASYNC, FROZEN),
    "asynchronous, proximal, mlp": (ASYNC, PULLED, MLP),
}
MODES = ["stepwise", "batched", "shared"]


def plan_of(*changes: dict[str, Any], number: int = 0) -> Prepared:
    tree = BASE
    for change in changes:
        tree = merge(tree, change)
    return prepared(tree, number=number)


def flat(plan: Prepared, party: int, weights: np.ndarray) -> np.ndarray:
    """Lays a party's weights out as the twin does, without padding."""
    model, held = plan.run.scenario.problem.model, plan.shares.num_features[party]
    if model.kind == "linear":
        assert (weights[:, held:] == 0).all()
        return weights[:, :held].T.ravel()
    h, P = model.hidden, plan.problem.embedding.num_features
    first, bias, last = np.split(weights, [h * P, h * P + h])
    first = first.reshape(h, P)
    assert (first[:, held:] == 0).all()
    return np.concatenate([first[:, :held].T.ravel(), bias, last])


def twin_problem(plan: Prepared) -> tuple[twin.Problem, list[np.ndarray]]:
    problem, config = plan.problem, plan.run.scenario.problem
    widths = plan.shares.num_features
    if config.model.kind == "linear":
        models: list[Any] = [twin.Linear(p) for p in widths]
    else:
        hidden, act = config.model.hidden, config.model.activation
        models = [twin.Mlp(p, hidden, act) for p in widths]
    x = [np.asarray(problem.x[k])[:, :p] for k, p in enumerate(widths)]
    y = 2.0 * np.asarray(problem.y) - 1
    loss = "taylor2" if problem.loss == "taylor" else "logistic"
    start = np.asarray(problem.start(key_of(plan.run.seed)))
    params = [flat(plan, k, start[k]) for k in range(len(widths))]
    return twin.Problem(models, x, y, loss, config.l2), params


def twin_of(plan: Prepared) -> list[np.ndarray]:
    """Gives the twin the same batches and step sizes; returns the last parameters."""
    scenario = plan.run.scenario
    config, protocol = scenario.algorithm, scenario.protocol
    problem, params = twin_problem(plan)
    rows, samples = rows_of(plan)
    K, Q = len(params), getattr(config, "local_steps", 1)
    local = getattr(config, "local_gradient", "recompute")
    falling = isinstance(config.step_size, float) is False

    def step(t: int) -> float:
        return float(0.3 / np.sqrt(t + 1)) if falling else 0.1

    if protocol.kind == "asynchronous":
        events: list[tuple] = []
        for row in range(rows.time.size):
            party = int(rows.worker[row, 0])
            events += [("serve", party, samples[row, 0]), ("commit", party)]
        steps = np.array([step(row // K) for row in range(rows.time.size)])
        mu = getattr(config, "proximal", 0.0)
        return fedbcd_async_twin.async_fedbcd(
            problem, params, events, Q, steps, local, mu
        ).params[-1]
    if protocol.order == "sequential":
        batches = [samples[row, 0] for row in range(0, rows.time.size, K)]
        steps = np.array([step(t) for t in range(len(batches))])
        return twin.fedbcd_s(problem, params, batches, Q, steps, local).params[-1]
    batches = [samples[row, 0] for row in range(rows.time.size)]
    steps = np.array([step(t) for t in range(len(batches))])
    if config.kind == "fed_sgd":
        return twin.fedsgd(problem, params, batches, steps).params[-1]
    if config.kind == "fed_pbcd":
        mu = config.proximal
        return twin.fedpbcd_p(problem, params, batches, Q, steps, mu).params[-1]
    return twin.fedbcd_p(problem, params, batches, Q, steps, local).params[-1]


def assert_same(plan: Prepared, weights: np.ndarray, expected: list[Any]) -> None:
    for party, theta in enumerate(expected):
        mine = flat(plan, party, np.asarray(weights[party]))
        np.testing.assert_allclose(mine, theta, 1e-9, 1e-12)


PLAIN = ("fed_sgd", "parallel", "sequential", "asynchronous")


@pytest.mark.parametrize(
    "name",
    [
        name if name in PLAIN else pytest.param(name, marks=pytest.mark.slow)
        for name in RUNS
    ],
)
def test_kernels_agree_with_the_twin(name: str) -> None:
    with jax.enable_x64(True):
        plan = plan_of(*RUNS[name])
        state, infos = carried(plan)
        expected = twin_of(plan)
        _, begun = twin_problem(plan)
    assert_same(plan, state.weights, expected)
    moved = sum(np.sum((a - b) ** 2) for a, b in zip(expected, begun, strict=True))
    assert moved > 1e-4, "a run that goes nowhere shows nothing"
    assert (infos["moved_norm"] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["parallel", "sequential", "asynchronous"])
def test_engines_agree(name: str, mode: str) -> None:
    with jax.enable_x64(True):
        plans = [plan_of(*RUNS[name], number=number) for number in (0, 1)]
        alone, _ = execute(plans[:1])
        together, _ = execute(plans[: 1 if mode == "stepwise" else 2], mode)
    for metric in ("objective", "test_auc"):
        found = together.column("evaluations", metric)
        expected = alone.column("evaluations", metric)
        np.testing.assert_allclose(found, expected, 1e-9)


def test_one_party_is_plain_sgd() -> None:
    changes = ({"problem": {"partition": {"parties": 1}}}, method("fed_sgd"))
    with jax.enable_x64(True):
        plan = plan_of(*changes)
        state, _ = carried(plan)
        _, samples = rows_of(plan)
    x, y = np.asarray(plan.problem.x[0]), np.asarray(plan.problem.y)
    w = np.zeros(x.shape[1])
    for ids in samples[:, 0]:
        error = 1 / (1 + np.exp(-x[ids] @ w)) - y[ids]
        w = w - 0.1 * (x[ids].T @ error / BATCH + 0.01 * w)
    np.testing.assert_allclose(state.weights[0, 0], w, 1e-9, 1e-12)


def weights_of(*changes: dict[str, Any]) -> bytes:
    """Returns the last models of a run, bit by bit."""
    return np.asarray(carried(plan_of(*changes))[0].weights).tobytes()


SINGLE = {"engine": {"precision": "float32"}}


@pytest.mark.parametrize("model", [{}, MLP])
def test_one_local_step_is_fedsgd(model: dict[str, Any]) -> None:
    one = method("fed_bcd", local_steps=1)
    sgd = method("fed_sgd")
    assert weights_of(SINGLE, model, one) == weights_of(SINGLE, model, sgd)


@pytest.mark.parametrize("order", [{}, SEQUENTIAL, ASYNC])
def test_without_its_pull_fedpbcd_is_fedbcd(order: dict[str, Any]) -> None:
    free = method("fed_pbcd", local_steps=3, proximal=0.0)
    assert weights_of(SINGLE, order, free) == weights_of(SINGLE, order)


def test_the_order_of_one_party_is_no_order() -> None:
    alone = {"problem": {"partition": {"parties": 1}}}
    assert weights_of(SINGLE, alone, SEQUENTIAL) == weights_of(SINGLE, alone)


@pytest.mark.parametrize("t", [None, 3, 4])
def test_asynchronously_one_step_is_vafl_without_a_server_model(t: int | None) -> None:
    protocol = {"protocol": {"kind": "t_synchronous", "t": t}} if t else ASYNC
    vafl = method("vafl", upload="batch", server_step_size=0.0)
    with jax.enable_x64(True):
        theirs, those = carried(plan_of(protocol, vafl))
        mine, these = carried(plan_of(protocol, method("fed_sgd")))
    np.testing.assert_allclose(mine.weights, theirs.weights, 1e-9, 1e-12)
    assert (np.asarray(theirs.server) == 0).all()
    for name in ("loss", "embedding_staleness_mean", "embedding_staleness_max"):
        np.testing.assert_allclose(these[name], those[name], 1e-9, err_msg=name)


def test_a_run_says_the_largest_step_that_theorem_2_allows() -> None:
    with jax.enable_x64(True):
        plan = plan_of()
        _, infos = carried(plan)
    x = np.concatenate([np.asarray(part) for part in plan.problem.x], axis=1)

    def smoothness(x: np.ndarray) -> float:
        return 0.25 * np.linalg.norm(x, 2) ** 2 / len(x) + 0.01

    of_parties = [smoothness(np.asarray(part)) for part in plan.problem.x]
    root = np.sqrt(sum(np.square(of_parties)) + 3 * max(of_parties) ** 2)
    expected = min(1 / (2 * smoothness(x)), 1 / (2 * 3 * root))
    np.testing.assert_allclose(infos["step_bound"], expected, 1e-5)
