"""Clients that compute real gradients, and the model that their server has."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.federated.chain import (
    AttackPart,
    ReadPart,
    SendPart,
    StagePart,
    WrittenChain,
)
from stalesim.simulator.catalogue.algorithms.federated.clients import LocalWork
from stalesim.simulator.catalogue.algorithms.federated.server import (
    Mean,
    ServerStep,
    Weigh,
)
from stalesim.simulator.engine import simulation
from stalesim.simulator.extras.testbed import running
from stalesim.simulator.extras.testbed.gradients import BodyLayout
from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.extras.testbed.wire import WireError
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.problem.models.parts import ProblemShape
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import expand
from tests.extras.testbed.test_runs import applied, logged

TREE: dict[str, Any] = {
    "name": "bed",
    "problem": {
        "data": {"kind": "digits", "scale": "unit"},
        "partition": {"kind": "dirichlet", "clients": 3, "alpha": 0.5},
        "model": {"kind": "linear"},
    },
    "clients": {"compute": {"law": "expon", "scale": 0.01}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.5, "batch": 8},
    "stop": {"commits": 30},
    "evaluate": {"every": {"commits": 10}},
}
GRADIENTS: dict[str, Any] = {"compute": "gradients"}
ADAM = {"kind": "adam", "learning_rate": 0.1, "state": "kept"}
MLP = {**TREE["problem"], "model": {"kind": "dense", "hidden": [16]}}
FAMILIES: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD with a bound, noise and a network": {
        "protocol": {"kind": "asynchronous", "staleness_bound": 1, "beyond": "stop"},
        "problem": MLP,
        "algorithm": {
            "kind": "sgd",
            "step_size": 0.5,
            "mechanism": {"clip_bound": 1.0, "multiplier": 0.1},
        },
    },
    "FedBuff": {
        "protocol": {"kind": "buffered", "size": 4},
        "algorithm": {"kind": "fed_buff", "step_size": 0.2, "local_steps": 3},
        "stop": {"commits": 8},
    },
    "FedAvg": {
        "protocol": {"kind": "synchronous"},
        "algorithm": {"kind": "fed_avg", "step_size": 0.5, "local_epochs": 1},
        "stop": {"commits": 6},
    },
    "clients with optimisers": {
        "algorithm": {"kind": "sgd", "step_size": 0.5, "local_optimizer": ADAM},
        "engine": {"precision": "float64"},
    },
    "MAPA": {
        "algorithm": {
            "kind": "mapa",
            "step_size": 0.5,
            "epsilon": 100.0,
            "clip_bound": 4.0,
        },
    },
    "collect": {"protocol": {"kind": "collect", "count": 4}, "stop": {"commits": 6}},
    "t-synchronous": {"protocol": {"kind": "t_synchronous", "t": 2}},
}


class Behind(ReadPart):
    kind: Literal["behind"] = "behind"


class Halved(SendPart):
    kind: Literal["halved"] = "halved"

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        return given // 2


class Swapped(AttackPart):
    kind: Literal["swapped"] = "swapped"


def with_changes(changes: dict[str, Any]) -> dict[str, Any]:
    algorithm = {"batch": 8, **changes.get("algorithm", TREE["algorithm"])}
    return {**TREE, **changes, "algorithm": algorithm}


def replayed(tree: dict[str, Any], timeline: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the model before and after a replay by the simulator's engine."""
    scenario = validated(tree | {"timeline": {"replay": str(timeline)}})
    plan = simulation.prepare(expand(scenario)[0])
    with jax.enable_x64(scenario.engine.precision == "float64"):
        runner = simulation._runner([plan], simulation._program([plan], "compiled"))
        start = np.array(plan.kernel.read_out(runner._carry.state))
        assert list(runner.records())
        return start, np.asarray(plan.kernel.read_out(runner._carry.state))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_s_replay_has_the_model_of_the_server(
    family: str, tmp_path: Path
) -> None:
    tree, bed = with_changes(FAMILIES[family]), tmp_path / "bed"
    lines: list[str] = []
    found = act_out(Bench(validated(tree), bed, lines.append, **GRADIENTS))
    model = np.load(bed / "model.npy")
    start, expected = replayed(tree, bed / "timeline")
    np.testing.assert_allclose(model, expected, rtol=0, atol=1e-5)
    assert np.abs(model - start).max() > 0.01
    # What was applied, and how stale it was, are in the log as well.
    assert logged(bed / "log.csv") == applied(found.timeline)
    # So does the line that is said at the end.
    (said,) = re.findall(r"test_loss (\S+) \((\S+)\)", lines[-1])
    own, again = map(float, said)
    assert own == pytest.approx(again, rel=1e-4)


def test_a_client_computes_before_it_sleeps_what_is_left(tmp_path: Path) -> None:
    """A law shorter than the computation adds nothing; a longer one is slept."""
    slow = {"law": "constant", "value": [1e-6, 0.05, 1e-6]}
    tree = with_changes({"clients": {"compute": slow}, "stop": {"commits": 20}})
    found = act_out(Bench(validated(tree), tmp_path / "bed", **GRADIENTS))
    jobs = found.timeline.table("jobs")
    done = jobs[jobs["outcome"] == "APPLIED"]
    took = done["computed_time"] - done["begun_time"]
    assert (took > 0).all()
    assert (took[done["client"] == 2] >= 0.05).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"algorithm": {"kind": "malenia", "step_size": 0.1, "batch": 8},
             "protocol": {"kind": "collect", "harmonic_mean": 1.0}},
            "algorithm.kind must be one whose clients compute by themselves",
        ),
        (
            {"algorithm": {"kind": "fed_avg", "local_steps": 2, "batch": 8,
                           "step_size": {"kind": "inverse_root", "value": 1}},
             "protocol": {"kind": "synchronous"}},
            "the step size of several local steps must be constant",
        ),
        (
            {"algorithm": TREE["algorithm"] | {
                 "mechanism": {"clip_bound": 1.0, "multiplier": 1.0}},
             "privacy": {"budget": 5.0, "delta": 1e-5}},
            "a budget of privacy must not be set on a testbed",
        ),
    ],
)  # fmt: skip
def test_what_clients_cannot_compute_is_refused_in_one_line(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said) as error:
        act_out(Bench(validated(TREE | changes), tmp_path / "bed", **GRADIENTS))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("place", "stage", "said"),
    [
        (0, Behind(), "chain.0 must be left out .* messages are whole arrays"),
        (1, Halved(), "chain.1 must be left out .* whole arrays, got 'halved'"),
        (1, Swapped(), "chain.1 must be left out .* nothing in its place, got 'swapp"),
    ],
)
def test_stages_that_change_messages_are_refused(
    place: int, stage: StagePart, said: str
) -> None:
    stages: list[StagePart] = [LocalWork(), Weigh(), Mean(), ServerStep()]
    stages.insert(place, stage)
    method = WrittenChain.model_construct(chain=tuple(stages))
    scenario = SimpleNamespace(problem=SimpleNamespace(work=None), algorithm=method)
    with pytest.raises(UserError, match=said):
        running._refuse_undivided(scenario)


def test_arrays_stand_one_after_the_other_in_a_message() -> None:
    tree = {"b": np.arange(3, dtype=np.int32), "a": np.array([[1.5, -2]], np.float32)}
    layout = BodyLayout(tree)
    body = layout.packed(tree)
    assert body == b"\0\0\xc0\x3f\0\0\0\xc0" + b"\0\0\0\0\1\0\0\0\2\0\0\0"
    found = layout.unpacked(body)
    assert found.keys() == tree.keys()
    for name, values in tree.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype
    with pytest.raises(WireError, match="20"):
        layout.unpacked(body + b"\0")


@pytest.mark.slow
def test_a_client_that_is_killed_comes_back_and_computes(tmp_path: Path) -> None:
    """All are killed, and one is started again, without which there is no end."""
    kill = ("1@0.1+0.1", "2@0.2", "3@0.3")
    slow = {"compute": {"law": "expon", "scale": 0.05}}
    tree, bed = with_changes({"clients": slow}), tmp_path / "bed"
    found = act_out(Bench(validated(tree), bed, kill=kill, **GRADIENTS))
    assert found.timeline.manifest["runs"][0]["stop"] == "commits"
    _, expected = replayed(tree, bed / "timeline")
    np.testing.assert_allclose(np.load(bed / "model.npy"), expected, rtol=0, atol=1e-5)
    jobs = found.timeline.table("jobs")
    assert (jobs["outcome"] == "CRASHED").any()
    assert jobs.loc[jobs["read_time"] > 0.3, "client"].isin([1, 3]).all()
