"""Models, losses and arrays that a program hands over."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim import simulator
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.studies import running
from tests import own_models
from tests.unit.studies.small import SMALL

DRAW = np.random.default_rng(2)
SCENARIO: dict[str, Any] = SMALL | {
    "problem": {
        "data": {"kind": "digits", "scale": "standard"},
        "partition": {"kind": "iid", "clients": 3},
    },
    "algorithm": {"kind": "sgd", "step_size": 0.2, "batch": 8},
    "stop": {"commits": 30},
    "evaluate": {"every": {"commits": 15}, "metrics": ["test_loss"]},
    "engine": {},
    "replicates": 2,
}


def arrays() -> dict[str, Any]:
    draw = np.random.default_rng(3)  # the same whichever tests ran before
    x = {
        "image": draw.integers(0, 255, (60, 4, 4)).astype(np.uint8),
        "tokens": draw.integers(0, 50, (60, 6)),
        "dose": draw.normal(size=60),
    }
    y = np.stack([x["dose"], x["tokens"].mean(axis=1) / 50], axis=1)
    return {"x": x, "y": y}


def absolute(outputs: Any, targets: Any) -> Any:
    return jnp.abs(outputs - targets).sum(axis=1)


def test_a_mapping_needs_no_data_where_arrays_take_their_place() -> None:
    problem = {"partition": SCENARIO["problem"]["partition"], "data": {"scale": "unit"}}
    mine = running.with_data({**SCENARIO, "problem": problem})
    assert (mine["problem"]["data"]["kind"], mine["problem"]["data"]["scale"]) == (
        "npz",
        "unit",
    )
    assert running.with_data(SCENARIO) is SCENARIO
    x, y = DRAW.normal(size=(40, 3)), np.arange(40) % 2
    short = {**SCENARIO, "problem": problem, "replicates": 1}
    study = simulator.simulate(short, data={"x": x, "y": y})
    (run,) = study.manifest["runs"]
    assert run["stop"] == "commits"
    assert run["scaling"] == "unit: each column by its extremes in 32 training rows"


@pytest.mark.long
def test_a_model_a_loss_and_data_of_several_inputs_in_two_processes(
    tmp_path: Path,
) -> None:
    given = {"model": own_models.mixed, "loss": absolute, "data": arrays()}
    # Larger steps jump to and fro over the kink of an absolute error.
    careful = SCENARIO | {"algorithm": SCENARIO["algorithm"] | {"step_size": 0.02}}
    study = simulator.simulate(careful, tmp_path / "two", jobs=2, **given)
    found = study.table("evaluations")
    assert len(found) == 6
    for _, run in found.groupby("run"):
        assert run["test_loss"].iloc[-1] < run["test_loss"].iloc[0]
    told = {name.split("@")[0]: each for name, each in study.manifest["inputs"].items()}
    assert told["memory:model"]["at"] == "tests.own_models.mixed"
    assert told["memory:loss"]["at"].endswith("test_in_memory.absolute")
    # As the numbers of a process alone are; and a study is not continued with others.
    alone = simulator.simulate(careful, tmp_path / "one", **given)
    np.testing.assert_array_equal(
        found["test_loss"], alone.table("evaluations")["test_loss"]
    )
    with pytest.raises(UserError, match="choose another folder"):
        simulator.simulate(careful, tmp_path / "one", **(given | {"loss": "squared"}))


def test_an_object_is_known_by_its_content() -> None:
    scenario = simulator.Scenario.model_validate(SCENARIO)

    def named(model: Any) -> str:
        changed = running.with_objects(scenario, model=model)
        return changed.problem.model.build

    one, two = (own_models.Noisy(2, 5, key=jax.random.key(k)) for k in (0, 1))
    again = own_models.Noisy(2, 5, key=jax.random.key(0))
    assert named(one) == named(again) != named(two)
    assert named(own_models.linear) != named(own_models.party)
    with pytest.raises(UserError, match="model must be something that can be pickled"):
        named(x for x in ())


def test_names_of_arrays() -> None:
    x, y = np.ones((3, 2)), np.ones(3)
    assert {*running.arrays((x, y))} == {"x", "y"}
    assert {*running.arrays((x, y, x, y))} == {"x", "y", "x_test", "y_test"}
    assert {*running.arrays({"x": {"a": x, "b": x}, "y": y})} == {"x/a", "x/b", "y"}
    with pytest.raises(UserError, match="must be x and y, or x, y, x_test, y_test"):
        running.arrays((x, y, x))


@pytest.mark.long
def test_next_tokens_of_a_rule_are_learned() -> None:
    """Tokens follow one another by a rule, which the model learns."""
    start = DRAW.integers(0, 9, (200, 1))
    text = (start + 2 * np.arange(8)) % 9
    data = {"x": text[:, :-1], "y": text[:, 1:]}
    learning = {
        **SCENARIO,
        "replicates": 1,
        "problem": SCENARIO["problem"] | {"data": {"kind": "digits", "scale": "raw"}},
        "algorithm": {"kind": "sgd", "step_size": 3.0, "batch": 20},
        "stop": {"commits": 300},
        "evaluate": {
            "every": {"commits": 300},
            "metrics": ["test_loss", "test_accuracy"],
        },
    }
    study = simulator.simulate(learning, model=own_models.tokens, data=data)
    found = study.table("evaluations")
    assert found["test_accuracy"].iloc[-1] == 1.0
    assert found["test_loss"].iloc[-1] < 0.5
