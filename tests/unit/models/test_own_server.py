"""A model of one's own as the server's network: its rows, and what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim import simulator
from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.problem.data.outputs import OutputForm
from stalesim.simulator.problem.models.server.part import ServerModel
from tests import own_models
from tests.runs import prepared

TWO = OutputForm("softmax", 2)
OWN = {"width": 3, "build": "tests.own_models:server"}
SCENARIO: dict[str, Any] = {
    "name": "own-server",
    "clients": {"compute": {"law": "expon"}},
    "problem": {
        "data": {"kind": "breast_cancer", "limit": 120},
        "loss": "softmax",
        "partition": {"kind": "vertical", "parties": 3},
        "model": {"kind": "dense", "hidden": [4]},
        "server": {"width": 3},
    },
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 8, "upload": "batch"},
    "stop": {"commits": 4},
    "evaluate": {"every": {"commits": 2}, "metrics": ["test_loss"]},
}


def start(key: Any) -> Any:
    del key
    return jnp.zeros((2, 6))


def last(num_outputs: int, shape: tuple[int, ...]) -> Any:
    """Takes the last number that each party sends."""

    def apply(weights: Any, sent: Any) -> Any:
        return sent[(slice(None), slice(None), *[-1] * (len(shape) - 1))] @ weights

    return lambda key: jnp.ones((shape[0], num_outputs)), apply


def dropping(num_outputs: int, shape: tuple[int, ...]) -> Any:
    def apply(weights: Any, sent: Any, key: Any = None) -> Any:
        return sent.reshape(len(sent), -1) @ weights

    return lambda key: jnp.zeros((shape[0] * shape[1], num_outputs)), apply


def narrow(num_outputs: int) -> Any:
    del num_outputs
    return start, lambda weights, sent: sent[:, :, 0]


def failing(num_outputs: int) -> Any:
    del num_outputs
    return start, lambda weights, sent: sent @ weights


def not_a_number(num_outputs: int) -> Any:
    def apply(weights: Any, sent: Any) -> Any:
        return jnp.log(-1 - sent[:, 0, :num_outputs] ** 2) + weights[None, :, 0]

    return start, apply


def printing(num_outputs: int) -> Any:
    def apply(weights: Any, sent: Any) -> Any:
        jax.debug.print("{}", weights.sum())
        return sent[:, 0, :num_outputs] * weights[0, 0]

    return start, apply


@pytest.mark.parametrize("views", [1, 2])
def test_rows_are_what_the_parties_send_of_a_sample(views: int) -> None:
    config = ServerModel(width=4, views=views, build=f"{__name__}:last")
    network = config.make(3, TWO)
    h = np.random.default_rng(1).normal(size=(3, views * 4, 5)).astype(np.float32)
    found = network.apply(network.init(jax.random.key(0)), jnp.asarray(h))
    expected = np.tile(h[:, -1].sum(axis=0), (2, 1))
    np.testing.assert_allclose(found, expected, 1e-5)
    assert config.num_weights(3, TWO) == 6 == network.num_weights


WRONG = {
    "narrow": r"shape \[S, 2\] for the loss softmax, got \[S, 3\]",
    "failing": "got TypeError: .*test_own_server.py",
    "dropping": "must be without dropout, for the server answers",
    "printing": "must not call Python while it runs, got debug_",
    "nothing": "must name an object of the module",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_models_are_refused_in_one_line(name: str) -> None:
    config = ServerModel(width=3, build=f"{__name__}:{name}")
    with pytest.raises(ScenarioError, match=WRONG[name]) as error:
        config.num_weights(3, TWO)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("problem.server.build must ")


def test_a_loss_that_is_no_number_at_the_start_is_refused() -> None:
    wrong = {"width": 3, "build": f"{__name__}:not_a_number"}
    with pytest.raises(
        ScenarioError, match=r"problem\.server\.build must give a finite loss"
    ):
        prepared(SCENARIO, {"problem": {"server": wrong}})


def test_it_takes_the_place_of_layers() -> None:
    for other in ({"hidden": (3,)}, {"combine": "sum"}):
        with pytest.raises(ValueError, match="no combine and no hidden with build"):
            ServerModel.model_validate(OWN | other)
    written = ServerModel.model_validate(OWN).model_dump(mode="json")
    assert ServerModel.model_validate(written).build == OWN["build"]


def test_messages_and_weights_are_counted_from_the_model() -> None:
    own, plain = (
        prepared(SCENARIO, {"problem": {"server": server}})
        for server in (OWN, {"width": 3, "hidden": [6]})
    )
    assert own.shape == plain.shape
    assert own.timeline.workload == plain.timeline.workload


@pytest.mark.long
def test_a_program_hands_one_over() -> None:
    study = simulator.simulate(SCENARIO, server=own_models.server)
    named = {
        **SCENARIO,
        "problem": {**SCENARIO["problem"], "server": OWN},
    }
    found, expected = (
        each.table("evaluations")["test_loss"]
        for each in (study, simulator.simulate(named))
    )
    np.testing.assert_array_equal(found, expected)
    without = {**SCENARIO["problem"], "model": {"kind": "linear"}}
    del without["server"]
    with pytest.raises(UserError, match=r"problem\.server is missing"):
        simulator.simulate({**SCENARIO, "problem": without}, server=own_models.server)
