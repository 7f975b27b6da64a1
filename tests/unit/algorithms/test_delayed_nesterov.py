"""Delayed Nesterov: its limits by optax and by hand, and its options."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.decentralised.part import Psgd
from stalesim.simulator.catalogue.algorithms.federated.part import Sgd
from stalesim.simulator.engine.optimizers.part import DelayedNesterov
from stalesim.simulator.engine.optimizers.rule import DelayedNesterovRule, rule_of

DECAY = 0.8


def rule(**options: Any) -> DelayedNesterovRule:
    config = DelayedNesterov(kind="delayed_nesterov", decay=DECAY, **options)
    found = rule_of(config)
    assert isinstance(found, DelayedNesterovRule)
    return found


def ways(made: DelayedNesterovRule, gradients: np.ndarray) -> np.ndarray:
    """Returns the directions of updates, one after the other."""
    x = jnp.zeros(gradients.shape[1])
    state, found = made.init(x, None), []
    for count, gradient in enumerate(gradients):
        way, state = made.update(
            jnp.asarray(gradient), state, x, jnp.int32(count), None
        )
        found.append(way)
    return np.array(found)


def drawn(updates: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((updates, 4))


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.25])
def test_a_period_is_one_step_of_nesterov_by_the_mean(spread: float) -> None:
    """Whatever the spread is in the first; later, only old momentum is spread."""
    gradients = drawn(12)
    found = ways(rule(period=4, spread=spread), gradients).reshape(3, 4, 4).sum(axis=1)
    m = np.zeros(4)
    for period, way in enumerate(found):
        mean = gradients[4 * period : 4 * period + 4].mean(axis=0)
        old, m = m, DECAY * m + mean
        momentum = 3 * spread * old + (1 - 3 * spread) * m
        np.testing.assert_allclose(way, mean + DECAY * momentum, rtol=1e-5)


def test_clients_read_where_the_momentum_leads() -> None:
    made, plain = rule(period=1, look_ahead=True), rule(period=1)
    x, gradient = jnp.ones(4), jnp.arange(4.0)
    _, state = made.update(gradient, made.init(x, None), x, jnp.int32(0), None)
    step = jnp.float32(0.5)
    wanted = np.ones(4) - 0.5 * DECAY * np.arange(4)
    np.testing.assert_allclose(made.ahead(x, state, step), wanted, rtol=1e-6)
    np.testing.assert_array_equal(plain.ahead(x, state, step), x)


def test_a_spread_beyond_its_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spread must be at most 1 / period, 0\.25"):
        rule(period=4, spread=0.3)


def test_it_is_written_and_read_again_and_stands_with_a_step_size() -> None:
    given = {"kind": "delayed_nesterov", "period": 3, "look_ahead": True}
    tree = {"step_size": 0.7, "batch": 1, "optimizer": given}
    written = Sgd.model_validate(tree).model_dump()
    assert written["step_size"] == 0.7
    again = Sgd.model_validate(written)
    assert isinstance(again.optimizer, DelayedNesterov)
    assert again.model_dump() == written
    for wrong, message in (
        ({"kind": "delayed"}, "delayed_nesterov without learning_rate"),
        (given | {"learning_rate": 1}, "learning_rate"),
    ):
        with pytest.raises(ValueError, match=message):
            Sgd.model_validate(tree | {"optimizer": wrong})
    with pytest.raises(ValueError, match="'momentum', 'adam', 'yogi'"):
        Psgd.model_validate(tree)
