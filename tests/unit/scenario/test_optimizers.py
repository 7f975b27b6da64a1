"""Optimisers in a scenario: what is written, what is refused, what is one program."""

from typing import Any

import pytest

from stalesim.simulator.algorithms.optimizers.part import Direction, LocalOptax, Optax
from stalesim.simulator.config.messages import first_error
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.studies.planning import structure
from tests.support import SGD, VAFL, scenario

ADAMW: dict[str, Any] = {"kind": "adamw", "learning_rate": 0.01, "b1": 0.8}
COSINE = {"schedule": "cosine_decay_schedule", "init_value": 0.1, "decay_steps": 9}
MECHANISM = {"clip_bound": 1, "multiplier": 1}


def with_(**options: Any) -> dict[str, Any]:
    """Returns an algorithm by rows without a step size, and with some options."""
    return {"algorithm": {"step_size": None, **options}}


def test_a_rate_takes_the_place_of_the_step_size() -> None:
    algorithm = scenario(SGD, with_(optimizer=ADAMW)).algorithm
    assert algorithm.step_size == 1
    assert algorithm.optimizer == Optax(
        kind="adamw", learning_rate=0.01, parameters={"b1": 0.8}
    )
    written = algorithm.model_dump(mode="json")
    assert written["optimizer"] == ADAMW
    assert written["local_optimizer"] is None
    assert type(algorithm).model_validate(written) == algorithm


def test_a_client_s_rate_is_its_local_step_size() -> None:
    local = ADAMW | {"state": "kept", "learning_rate": COSINE}
    algorithm = scenario(SGD, with_(local_optimizer=local)).algorithm
    assert (algorithm.step_size, algorithm.local_step_size) == (1, 1)
    assert isinstance(algorithm.local_optimizer, LocalOptax)
    assert algorithm.model_dump(mode="json")["local_optimizer"] == local
    outer = scenario(SGD, {"algorithm": {"local_optimizer": ADAMW}}).algorithm
    assert outer.step_size == 0.3  # what the server makes of the clients' moves
    assert outer.local_optimizer.state == "anew"


def test_without_a_rate_it_is_a_direction_as_before() -> None:
    algorithm = scenario(SGD, {"algorithm": {"optimizer": {"kind": "adam"}}}).algorithm
    assert algorithm.optimizer == Direction(kind="adam")
    assert algorithm.model_dump(mode="json")["optimizer"] == {
        "kind": "adam",
        "decay": 0.9,
        "second_decay": 0.99,
        "small": 1e-3,
    }


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"learning_rate": 0.02}, True),
        ({"b1": 0.7}, False),
        ({"clip_norm": 2.0}, False),
        ({"learning_rate": COSINE}, False),
        ({"kind": "adam"}, False),
    ],
)
@pytest.mark.parametrize("entry", ["optimizer", "local_optimizer"])
def test_runs_of_one_program_differ_in_rates(
    entry: str, change: dict[str, Any], same: bool
) -> None:
    one, other = (
        structure(scenario(SGD, with_(**{entry: given})))
        for given in (ADAMW, ADAMW | change)
    )
    assert (one == other) is same


def test_norms_of_clipping_are_numbers_of_one_program() -> None:
    one, other = (
        structure(scenario(SGD, with_(optimizer=ADAMW | {"clip_norm": norm})))
        for norm in (1.0, 2.0)
    )
    assert one == other


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a step size besides": (
        {"algorithm": {"optimizer": ADAMW}},
        (
            "step_size must be left out with optimizer.learning_rate, which "
            "takes its place, got 0.3; remove one of them"
        ),
    ),
    "a local step size besides": (
        {"algorithm": {"local_step_size": 0.1, "local_optimizer": ADAMW}},
        (
            "local_step_size must be left out with local_optimizer.learning_rate,"
            " which takes its place, got 0.1; remove one of them"
        ),
    ),
    "no rate": (
        with_(optimizer={"kind": "adamw"}),
        (
            "optimizer.kind must be momentum, adam, yogi, adagrad, rmsprop, "
            "delayed_nesterov without learning_rate, got 'adamw'; add learning_rate "
            "for one of optax's"
        ),
    ),
    "no local rate": (
        with_(local_optimizer={"kind": "adam"}),
        (
            "local_optimizer.learning_rate is missing; add it: a number >= 0, or "
            "a schedule of optax, for example 0.001"
        ),
    ),
    "a flag": (
        with_(optimizer=ADAMW | {"learning_rate": True}),
        (
            "optimizer.learning_rate must be a number, got true; write 1 or 0 if "
            "that is meant"
        ),
    ),
    "a word": (
        with_(optimizer=ADAMW | {"b1": "big"}),
        (
            "optimizer.b1 must be a number, or true or false, got 'big'; write "
            "for example 0.9 or true"
        ),
    ),
    "a state": (
        with_(local_optimizer=ADAMW | {"state": "new"}),
        (
            "local_optimizer.state must be one of anew, kept, got 'new'; did you "
            "mean 'anew'?"
        ),
    ),
    "samples clipped one by one": (
        with_(local_optimizer=ADAMW, mechanism=MECHANISM),
        (
            "mechanism.clip must be contribution with local_optimizer, which "
            "makes a step of the samples' gradients together, got 'sample'; change it"
        ),
    ),
    "moves for gradients": (
        with_(local_optimizer=ADAMW, compensation={"strength": 1}),
        (
            "compensation must be left out with local_optimizer, whose moves are "
            "no gradients, got one; remove one of them"
        ),
    ),
    "a method with a step rule of its own": (
        {"algorithm": {"kind": "mapa", "epsilon": 1, "optimizer": ADAMW}},
        "optimizer is not a key of kind 'mapa'; remove it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_one_line(name: str) -> None:
    change, says = REFUSED[name]
    tree = merge(merge(VAFL, SGD), change)
    with pytest.raises(ValueError, match="validation error") as error:
        Scenario.model_validate(tree)
    mistake = first_error(error.value, tree, Scenario)
    assert mistake.message.startswith(f"algorithm.{says}")
    assert "\n" not in mistake.message
