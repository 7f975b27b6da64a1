"""Pipelines against a blind twin, and against what they are without delays."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.pipelined.kernel import stage_of
from stalesim.simulator.catalogue.protocols.turns import Pipeline
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.files.timeline import Outcome
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.keys import key_of
from stalesim.simulator.scenario.study import merge
from tests.reference.layers_twin import Network
from tests.reference.pipeline_twin import pipeline
from tests.runs import execute, prepared
from tests.support import everything, played
from tests.unit.protocols.replay import replay_registers

COMMITS, STEP, L2 = 14, 0.4, 0.01
NETWORK = Network((64, 5, 4, 4, 10), L2)
BASE: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits", "limit": 120},
        "partition": {"kind": "iid", "clients": 1},
        "model": {"kind": "dense", "hidden": [5, 4, 4], "activation": "tanh"},
        "l2": L2,
    },
    "clients": None,
    "protocol": {"kind": "pipeline", "stages": 4},
    "algorithm": {"kind": "pipelined", "step_size": STEP, "batch": 6},
    "engine": {"precision": "float64", "chunk": 8},
    "stop": {"commits": COMMITS},
    "evaluate": {"every": {"commits": 1}, "metrics": ["objective"]},
}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, ...]]] = {
    "PipeDream": ({"stages": 4}, {}, (3, 2, 1, 0)),
    "PipeDream-2BW": ({"stages": 4, "schedule": "2bw"}, {}, (1, 1, 1, 1)),
    "both remedies": (
        {"stages": 3},
        {"delay_power": 0.5, "look_ahead": 0.6},
        (2, 2, 1, 0),
    ),
    "one stage": ({"stages": 1}, {"look_ahead": 0.3}, (0, 0, 0, 0)),
}


def plan(protocol: dict[str, Any], algorithm: dict[str, Any], **run: int) -> Prepared:
    changes = {"protocol": protocol, "algorithm": algorithm}
    with jax.enable_x64(True):
        return prepared(merge(BASE, changes), **run)


def twin_of(run: Prepared, delay: tuple[int, ...], **options: float) -> list[float]:
    """Returns the objectives of the twin's models."""
    with jax.enable_x64(True):
        start = np.asarray(run.problem.start(key_of(run.run.seed)), float)
    x, y = np.asarray(run.problem.x, float), np.asarray(run.problem.y)
    ids = [run.sampler.batch(0, job) for job in range(COMMITS)]
    models = pipeline(
        NETWORK,
        NETWORK.laid_out(start),
        delay,
        [(x[each], y[each]) for each in ids],
        STEP,
        power=options.get("delay_power", 0.0),
        beta=options.get("look_ahead", 0.0),
    )
    return [NETWORK.loss(model, x, y) for model in models]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_models_are_those_of_the_twin(name: str) -> None:
    protocol, algorithm, delay = SETTINGS[name]
    run = plan(protocol, algorithm)
    with jax.enable_x64(True):
        memory, _ = execute([run])
    got = memory.column("evaluations", "objective")
    wanted = twin_of(run, delay, **algorithm)
    if max(delay):
        prompt = twin_of(run, (0, 0, 0, 0), **algorithm)
        assert np.abs(np.subtract(wanted, prompt)).max() > 1e-4
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
    lag = max(run.run.scenario.protocol.delays)
    stale = memory.column("commits", "staleness_max")
    np.testing.assert_array_equal(stale, np.minimum(np.arange(COMMITS), lag))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["stepwise", "batched", "shared"])
def test_engines_agree(mode: str) -> None:
    """Runs that differ in seed, step or powers of delays are one program."""
    options = [{"delay_power": 0.5}, {"delay_power": 1.0, "look_ahead": 0.2}]
    seeds = (1, 1) if mode == "shared" else (1, 2)
    runs = [
        plan({"stages": 4}, own, seed=seed, number=number)
        for number, (own, seed) in enumerate(zip(options, seeds, strict=True))
    ]
    with jax.enable_x64(True):
        if mode == "stepwise":
            found = [execute([run], mode)[0] for run in runs]
        else:
            found = [execute(runs, mode)[0]] * 2
    for number, (memory, own) in enumerate(zip(found, options, strict=True)):
        got = memory.column("evaluations", "objective", number)
        wanted = twin_of(runs[number], (3, 2, 1, 0), **own)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.slow
def test_one_stage_is_centralised_sgd() -> None:
    """The optimiser included: the same steps on the same batches, by another kernel."""
    optimizer = {"kind": "adamw", "learning_rate": 0.02, "weight_decay": 0.1}
    adamw = {"step_size": None, "batch": 6, "optimizer": optimizer}
    run = plan({"stages": 1}, adamw)
    other = plan({"kind": "centralised"}, {"kind": "sgd"} | adamw)
    with jax.enable_x64(True):
        mine, theirs = (execute([each])[0] for each in (run, other))
    for column in ("objective", "time"):
        np.testing.assert_allclose(
            mine.column("evaluations", column),
            theirs.column("evaluations", column),
            rtol=1e-10,
        )


@pytest.mark.long
def test_muon_goes_through_a_pipeline() -> None:
    """It takes the matrices of all stages, each with a gradient of its own delay."""
    optimizer = {"kind": "muon", "learning_rate": 0.01}
    run = plan({"stages": 4}, {"step_size": None, "optimizer": optimizer})
    with jax.enable_x64(True):
        memory, _ = execute([run])
    found = memory.column("evaluations", "objective")
    assert found[-1] < found[0] - 0.02


@pytest.mark.parametrize(
    ("schedule", "stages", "delays"),
    [("1f1b", 4, (3, 2, 1, 0)), ("1f1b", 1, (0,)), ("2bw", 3, (1, 1, 1))],
)
def test_minibatches_enter_and_leave_in_this_order(
    schedule: Any, stages: int, delays: tuple[int, ...]
) -> None:
    """Minibatch k enters at step k - d_1 and is applied by step k; none is lost."""
    protocol = Pipeline(stages=stages, schedule=schedule)
    assert protocol.delays == delays
    rows, jobs, _ = everything(played(protocol, None, 1, commits=9))
    lag = max(delays)
    np.testing.assert_array_equal(rows.time, np.arange(1, 10))
    np.testing.assert_array_equal(rows.job[:, 0], np.arange(9))
    entered = np.maximum(np.arange(9) - lag, 0)
    np.testing.assert_array_equal(rows.read_version[:, 0], entered)
    replay_registers(rows)
    order = np.argsort(jobs.job)
    np.testing.assert_array_equal(jobs.job[order], np.arange(9 + lag + 1))
    np.testing.assert_array_equal(
        jobs.read_time[order], np.maximum(np.arange(9 + lag + 1) - lag, 0)
    )
    assert (jobs.outcome == Outcome.APPLIED).sum() == 9
    assert (jobs.outcome == Outcome.IN_FLIGHT).sum() == lag + 1


def test_stages_have_successive_matrices_with_their_biases() -> None:
    shapes = ((3, 2), (3,), (4, 3), (4,), (2, 4), (2,))
    of = stage_of(shapes, 2)
    assert of.tolist() == [0] * (6 + 3 + 12 + 4) + [1] * (8 + 2)
    assert stage_of(((2, 2), (5,), (2, 2)), 2).tolist() == [0] * 9 + [1] * 4


def test_more_stages_than_matrices_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"stages must be at most .* \(4\), got 5"):
        plan({"stages": 5}, {})
