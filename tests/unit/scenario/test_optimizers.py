"""Optimisers in a scenario: what is written, what is refused, what is one program."""

from typing import Any

import pytest

from stalesim.simulator.engine.optimizers.part import Direction, LocalOptax, Optax
from stalesim.simulator.studies.planning import structure
from tests.support import SGD, scenario

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
