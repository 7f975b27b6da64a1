"""Work of a user's own, row by row on the host, is that of our compiled engine."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from stalesim import simulator
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.parts.errors import ScenarioError, UserError
from tests import own_work
from tests.runs import execute, prepared
from tests.support import SGD, scenario

DOUBLE = {"engine": {"precision": "float64"}, "problem": {"l2": 0.0}}
STEP = {"step_size": 0.1, "batch": 11}
MALENIA = {
    "protocol": {"kind": "collect", "harmonic_mean": 2},
    "algorithm": {"kind": "malenia", **STEP},
}
ADAM = {"kind": "adam", "learning_rate": 0.1}
HERE = own_work.__name__
PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {"kind": "asynchronous"},
    "buffered": {"kind": "buffered", "size": 3},
    "synchronous": {"kind": "synchronous"},
    "t_synchronous": {"kind": "t_synchronous", "t": 2},
    "collect": {"kind": "collect", "count": 3},
}
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "local steps, compensated, adam": (
        PROTOCOLS["asynchronous"],
        {
            "local_steps": 3,
            "local_step_size": 0.1,
            "compensation": {"strength": 0.1, "adaptive": True},
            "optimizer": {"kind": "adam"},
        },
    ),
    "clipped and noisy": (
        PROTOCOLS["synchronous"],
        {"mechanism": {"clip_bound": 1, "multiplier": 0.1, "clip": "contribution"}},
    ),
    "fed_avg, epochs": (
        PROTOCOLS["synchronous"],
        {"kind": "fed_avg", **STEP, "local_epochs": 2},
    ),
    "fed_buff": (
        PROTOCOLS["buffered"],
        {"kind": "fed_buff", **STEP, "local_steps": 2},
    ),
    "common samples": (PROTOCOLS["synchronous"], {"samples": "common"}),
    "mapa": ({"kind": "asynchronous"}, {"kind": "mapa", "epsilon": 1.0}),
}
CNN = {"kind": "cnn", "image": [8, 8, 1], "channels": [4, 3], "kernel": 2}


def chained(work: dict[str, Any]) -> dict[str, Any]:
    """Returns a chain with some client's work."""
    rest = [{"kind": name} for name in ("weigh", "mean", "step")]
    return {"kind": "chained", **STEP, "chain": [work, *rest]}


def changes(
    work: str | None,
    protocol: dict[str, Any],
    algorithm: dict[str, Any] | None = None,
    **problem: Any,
) -> tuple[dict[str, Any], ...]:
    """Returns the changes of a small study, with or without a function's work."""
    named = {"work": f"{HERE}:{work}"} if work else {}
    entries = {"protocol": protocol, "problem": {**named, **problem}}
    return SGD, DOUBLE, {**entries, "algorithm": algorithm or {}}


def runner_of(plan: Prepared, mode: str) -> Runner:
    return simulation._runner([plan], simulation._program([plan], mode))


def learned(*given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Returns the model after a run, the losses of its rows, and its test losses."""
    with jax.enable_x64(True):
        plan = prepared(*given)
        mode = "host" if plan.scenario.problem.work else "compiled"
        runner = runner_of(plan, mode)
        records = [record for record in runner.records() if record]
        model = np.asarray(plan.kernel.read_out(runner._carry.state))
    losses = np.concatenate([record.infos["loss"] for record in records])
    tested = [e[2]["test_loss"] for record in records for e in record.evaluations]
    return model, losses, tested


def assert_agree(one: Any, other: Any, tolerance: float) -> None:
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, tolerance, tolerance)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numpy_makes_what_jax_makes(protocol: str) -> None:
    ours = learned(*changes(None, PROTOCOLS[protocol]))
    assert len(ours[1]) >= 200 and np.abs(ours[0]).max() > 0.1  # noqa: PT018
    assert_agree(learned(*changes("linear", PROTOCOLS[protocol])), ours, 1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_all_that_is_made_of_gradients_is_ours(name: str) -> None:
    ours = learned(*changes(None, *METHODS[name]))
    assert_agree(learned(*changes("linear", *METHODS[name])), ours, 1e-9)


@pytest.mark.parametrize(
    ("protocol", "model"),
    [("asynchronous", "linear"), ("buffered", "linear"), ("synchronous", "cnn")],
)
def test_pytorch_makes_what_jax_makes(protocol: str, model: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is an optional package")
    problem = {"model": CNN if model == "cnn" else {"kind": "linear"}}
    ours = learned(*changes(None, PROTOCOLS[protocol], **problem))
    theirs = learned(*changes(f"torch_{model}", PROTOCOLS[protocol], **problem))
    assert_agree(theirs, ours, 1e-6)


VECTOR = {
    "kind": "vector",
    "weights": f"{HERE}:zeros",
    "evaluate": f"{HERE}:measured",
}


def test_a_vector_needs_no_model_of_ours_and_info_becomes_columns() -> None:
    ours = learned(*changes(None, PROTOCOLS["synchronous"]))
    given = changes("flat", PROTOCOLS["synchronous"], model=VECTOR)
    model, losses, tested = learned(*given)
    assert_agree((model.reshape(10, -1), losses, tested), ours, 1e-9)
    with jax.enable_x64(True):
        memory, (end,) = execute([prepared(*given)], "host")
    assert (end["mode"], end["stop"]) == ("host", "commits")
    np.testing.assert_array_equal(memory.column("commits", "client_seen"), 2.0)
    assert np.unique(memory.column("commits", "seed")).size == 200
    shape = prepared(*given).shape
    assert shape.num_weights == 650


def test_a_run_continues_from_what_was_kept() -> None:
    with jax.enable_x64(True):
        plan = prepared(*changes("flat", PROTOCOLS["buffered"], model=VECTOR))
        first, second = runner_of(plan, "host"), runner_of(plan, "host")
        whole = [record for record in runner_of(plan, "host").records() if record]
        begun: list[Any] = []
        for record in first.records(pauses=lambda: len(begun) == 1):
            if record is None:
                break
            begun.append(record)
        second.restore(first.state())
        rest = [record for record in second.records() if record]
    for name in ("loss", "seed"):
        kept, undisturbed = (
            np.concatenate([record.infos[name] for record in records])
            for records in (begun + rest, whole)
        )
        np.testing.assert_array_equal(kept, undisturbed)


def study(**given: Any) -> Any:
    tree = scenario(SGD, {"problem": {"l2": 0.0}, "stop": {"commits": 30}})
    return simulator.simulate(tree.model_dump(mode="json", exclude_unset=True), **given)


def test_objects_of_a_program_are_known_by_their_content(tmp_path: Path) -> None:
    def work(weights: Any, client: int, job: int, rows: Any) -> Any:
        return own_work.flat(weights, client, job, rows)

    given = {"work": work, "weights": np.zeros(650), "evaluate": own_work.measured}
    found = study(folder=tmp_path / "study", **given)
    (run,) = found.manifest["runs"]
    assert run["mode"] == "host"
    ats = {
        name.partition("@")[0]: each for name, each in found.manifest["inputs"].items()
    }
    assert {*ats} == {"memory:work", "memory:weights", "memory:evaluate"}
    assert ats["memory:work"]["at"].endswith("work")
    again = simulator.resume(tmp_path / "study", **given)
    assert again.table("commits").equals(found.table("commits"))
    with pytest.raises(UserError, match="must"):
        study(folder=tmp_path / "study", **{**given, "work": own_work.flat})
    ours = study()
    near = (
        found.table("evaluations")["test_loss"],
        ours.table("evaluations")["test_loss"],
    )
    np.testing.assert_allclose(*near, 1e-5)


def no_pair(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights


def no_loss(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights, {}


def too_short(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights[:-1], {"loss": 1}


def no_number(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights * np.nan, {"loss": 1.0}


def lost_at_once(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights, {"loss": np.nan}


def mistaken(weights: Any, client: int, job: int, rows: Any) -> Any:
    raise KeyError("learning_rate")


def changing(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights, {"loss": 1.0, **({"more": 1.0} if job else {})}


def clashing(weights: Any, client: int, job: int, rows: Any) -> Any:
    return weights, {"loss": 1.0, "weight": 1.0}


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (no_pair, "must return a message and info, a mapping that has loss"),
        (no_loss, "must return a message and info, a mapping that has loss"),
        (too_short, r"of the weights' shape \[10, 65\], got \[9, 65\]"),
        (no_number, "must return a finite message, got NaN or infinity"),
        (lost_at_once, "must return a finite loss, got NaN or infinity"),
        (mistaken, r"got KeyError: 'learning_rate' \(test_host.py:\d+\)"),
        (changing, "info of the same names for every job, got more after loss"),
        (clashing, "info by new names, got 'weight'"),
    ],
)
def test_a_mistake_in_a_function_is_one_line_with_its_cause(
    work: Any, text: str
) -> None:
    with pytest.raises(UserError, match=text) as caught:
        study(work=work)
    assert "\n" not in str(caught.value)
    if work in (no_number, mistaken):
        assert "problem.work (client=" in str(caught.value)
    if work is mistaken:
        assert 'raise KeyError("learning_rate")' in str(caught.value.__cause__)


def diverging(weights: Any, client: int, job: int, rows: Any) -> Any:
    lost = job > 2
    return weights + (np.inf if lost else 1), {"loss": np.inf if lost else 1.0}


def test_a_run_whose_loss_is_lost_on_the_way_has_diverged() -> None:
    (run,) = study(work=diverging).manifest["runs"]
    assert run["stop"] == "diverged"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (MALENIA, "problem.work must be left out for the"),
        ({"problem": {"l2": 0.1}}, "problem.l2 must be left out with problem.work"),
        ({"engine": {"mode": "compiled"}}, "engine.mode must be left out with"),
        ({"probe": {"every": 3}}, "probe must be left out with problem.work"),
        (
            {"algorithm": {"mechanism": {"clip_bound": 1, "multiplier": 1}}},
            "algorithm.mechanism must be left out with problem.work",
        ),
        (
            {"algorithm": {"local_optimizer": {"kind": "adam", "learning_rate": 0.1}}},
            "algorithm.local_optimizer must be left out with problem.work",
        ),
        (
            {"algorithm": {"kind": "fed_async", **STEP, "local_steps": 2}},
            r"algorithm\.mu must be 0 with problem\.work.*; write mu: 0 \(fed_async",
        ),
        (
            {
                "algorithm": chained({"kind": "local_work", "local_optimizer": ADAM})
                | {"step_size": 1}
            },
            "algorithm.chain.0.local_optimizer must be left out with problem.work",
        ),
        ({"problem": {"work": None, "model": VECTOR}}, "problem.work is missing"),
    ],
)
def test_what_a_function_would_leave_out_is_refused(
    wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises((ScenarioError, ValueError), match=text):
        scenario(*changes("linear", PROTOCOLS["asynchronous"]), wrong)


def test_functions_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ScenarioError, match="work, weights and evaluate must be given"):
        study(weights=np.zeros(650), evaluate=own_work.measured)
    with pytest.raises(ScenarioError, match="work, weights and evaluate must be given"):
        study(work=own_work.flat, weights=np.zeros(650))
    with pytest.raises(UserError, match="must be a vector of floating numbers, got"):
        study(work=own_work.flat, weights=np.zeros((2, 3)), evaluate=own_work.measured)
    with pytest.raises(UserError, match="must return the metrics of evaluate"):
        study(work=own_work.flat, weights=np.zeros(650), evaluate=lambda w, test: {})
