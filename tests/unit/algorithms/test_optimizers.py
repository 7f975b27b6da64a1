"""Optimisers by optax's names: optax itself as witness, and arrays."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from stalesim.simulator.engine.optimizers import part
from stalesim.simulator.engine.optimizers.arrays import ModelArrays
from stalesim.simulator.engine.optimizers.part import Optax
from stalesim.simulator.engine.optimizers.rule import (
    OptaxRule,
    of_workers,
    rule_of,
    table,
    written,
)
from stalesim.simulator.files.timeline import NO_WORKER
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.models.flat import split
from tests.runs import execute, prepared
from tests.support import SGD

ROOT = Path(__file__).parents[3]
SHAPES = ((3, 5), (3,), (4, 3), (4,))
ARRAYS = ModelArrays(SHAPES)
ALL = {"kind": "muon", "matrices": "all"}
SIZE = 34
RATE = 0.02


def rule(kind: str, **options: Any) -> OptaxRule:
    given = {"kind": kind, "learning_rate": RATE, **options}
    found = rule_of(Optax.model_validate(given))
    assert isinstance(found, OptaxRule)
    return found


def gradients(count: int = 6) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, SIZE))


def moved_by(
    made: OptaxRule, steps: np.ndarray, arrays: ModelArrays = ARRAYS
) -> np.ndarray:
    """Takes some steps in one compiled loop, as kernels do."""

    @jax.jit
    def run(made: OptaxRule, steps: jax.Array) -> jax.Array:
        start = jnp.linspace(-1, 1, SIZE, dtype=steps.dtype)
        state = made.init(start, arrays)

        def once(t: jax.Array, now: Any) -> Any:
            weights, state = now
            way, state = made.update(steps[t], state, weights, t, arrays)
            return weights - way, state

        return jax.lax.fori_loop(0, len(steps), once, (start, state))[0]

    return np.asarray(run(made, jnp.asarray(steps)))


def by_optax(made: Any, steps: np.ndarray) -> np.ndarray:
    """Takes the same steps by optax alone, on a tree of arrays."""
    tree = split(jnp.linspace(-1, 1, SIZE), SHAPES)
    state = made.init(tree)
    for step in steps:
        change, state = made.update(split(jnp.asarray(step), SHAPES), state, tree)
        tree = optax.apply_updates(tree, change)
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def as_outputs_by_inputs(tree: Any) -> Any:
    """Tells optax's Muon how matrices stand here."""
    numbers = optax.contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=0)
    return jax.tree.map(lambda leaf: numbers if leaf.ndim == 2 else None, tree)


@pytest.mark.parametrize("kind", part.optimisers())
def test_every_name_makes_optaxs_steps_on_a_tree(kind: str) -> None:
    """So those that take the flat vector as it is do look at numbers one by one."""
    steps = gradients()
    with jax.enable_x64(True):
        turned = {"muon_weight_dimension_numbers": as_outputs_by_inputs}
        options = turned if kind == "muon" else {}
        expected = by_optax(part.optimisers()[kind](RATE, **options), steps)
        found = moved_by(rule(**ALL) if kind == "muon" else rule(kind), steps)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(found - np.linspace(-1, 1, SIZE)).max() > 1e-6


@pytest.mark.parametrize(
    ("b2", "told"), [(0.99, [1.0, 2.1, 1.0]), (0.999, [3.2, 6.5, 1.6])]
)
def test_early_steps_of_fadas_are_as_long_as_its_page_says(
    b2: float, told: list[float]
) -> None:
    """In learning rates, at commits 1, 10 and 500 of a gradient that stays the same."""
    no_bias = {"bias_correction_mu": False, "bias_correction_nu": False}
    made, one = rule("amsgrad", b2=b2, **no_bias), jnp.ones(1)

    def step(state: Any, t: jax.Array) -> Any:
        way, state = made.update(one, state, one, t, None)
        return state, way[0] / RATE

    _, found = jax.lax.scan(step, made.init(one, None), jnp.arange(500))
    np.testing.assert_allclose(found[jnp.array([0, 9, 499])], told, atol=0.05)
    page = (ROOT / "docs/families/buffers.md").read_text("utf-8")
    assert "1.0 eta at the first commit, 2.1 at the tenth and 1.0 from the" in page
    assert "with 0.999 they are 3.2, 6.5 and 1.6" in page


def test_muon_takes_the_matrices_of_flax_as_they_are() -> None:
    """They are [inputs, outputs], as optax has them."""
    of_flax = ModelArrays(SHAPES, SimpleNamespace(inputs_first=True))
    steps = gradients()
    with jax.enable_x64(True):
        expected = by_optax(optax.contrib.muon(RATE), steps)
        found = moved_by(rule(**ALL), steps, of_flax)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", part.BY_ARRAY)
def test_those_that_look_at_arrays_are_not_the_same_on_a_vector(kind: str) -> None:
    """Else they would need no shapes; factors of matrices begin at 128 rows."""
    shapes = ((128, 130), (130,)) if kind == "adafactor" else SHAPES
    made = part.optimisers()[kind](RATE)
    size = sum(int(np.prod(shape)) for shape in shapes)
    draw = np.random.default_rng(1)
    start, step = jnp.asarray(draw.random(size)), jnp.asarray(draw.random(size))
    ends = []
    for weights, gradient in (
        (start, step),
        (tuple(split(start, shapes)), tuple(split(step, shapes))),
    ):
        _, state = made.update(gradient, made.init(weights), weights)
        change, _ = made.update(jax.tree.map(jnp.cos, gradient), state, weights)
        leaves = jax.tree.leaves(change)
        ends.append(np.concatenate([np.asarray(leaf).ravel() for leaf in leaves]))
    assert np.abs(ends[0] - ends[1]).max() > 1e-6


@pytest.mark.parametrize("name", part.schedules())
def test_schedules_are_those_of_optax(name: str) -> None:
    usual = {"value": 0.1, "init_value": 0.1, "end_value": 0.01, "peak_value": 0.2}
    usual |= {"power": 2, "decay_rate": 0.9, "warmup_steps": 2, "decay_steps": 5}
    usual |= {"transition_steps": 4}
    function = part.schedules()[name]
    options = {
        option: usual[option]
        for option, default in part.options_of(function).items()
        if default is inspect.Parameter.empty
    }
    made = rule("sgd", learning_rate={"schedule": name, **options})
    for count in (0, 1, 4, 50):
        found = made.scaled(jnp.asarray(2.0), jnp.int32(count))
        np.testing.assert_allclose(found, 2 * function(**options)(count), rtol=1e-6)
    steps = gradients(2)
    first, second = (float(made.scaled(jnp.asarray(1.0), jnp.int32(t))) for t in (0, 1))
    expected = np.linspace(-1, 1, SIZE) - first * steps[0] - second * steps[1]
    np.testing.assert_allclose(moved_by(made, steps), expected, rtol=1e-4, atol=1e-6)


def test_a_gradient_is_clipped_before_the_optimiser() -> None:
    steps = gradients(3)
    with jax.enable_x64(True):
        whole = optax.chain(optax.clip_by_global_norm(2.0), optax.adamw(RATE, b1=0.5))
        expected = by_optax(whole, steps)
        found = moved_by(rule("adamw", clip_norm=2.0, b1=0.5), steps)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def newton_schulz(matrix: np.ndarray) -> np.ndarray:
    """Source: Jordan et al., Muon (2024): five steps of the quintic iteration."""
    x = matrix / (np.linalg.norm(matrix) + 1e-8)
    x = x if x.shape[0] <= x.shape[1] else x.T
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x if matrix.shape[0] <= matrix.shape[1] else x.T


def test_muon_turns_matrices_and_leaves_vectors_to_adamw() -> None:
    """The first step: the momentum is along the gradient, whose length plays no part.

    Rows are outputs: a matrix's step is max(1, rows / columns) ** 0.5 as long.
    """
    (step,) = gradients(1)
    with jax.enable_x64(True):
        made = rule(**ALL, nesterov=False)
        start = np.linspace(-1, 1, SIZE)
        moved = (start - moved_by(made, step[None])) / RATE
        for moves, way, shape in zip(
            *(split(jnp.asarray(vector), SHAPES) for vector in (moved, step)),
            SHAPES,
            strict=True,
        ):
            if len(shape) == 1:  # the first step of Adam is the sign
                np.testing.assert_allclose(moves, np.sign(way), rtol=1e-6)
                continue
            factor = np.sqrt(max(1.0, shape[0] / shape[1]))
            expected = factor * newton_schulz(np.asarray(way))
            np.testing.assert_allclose(moves, expected, rtol=1e-6)


def test_matrices_need_their_shapes() -> None:
    with pytest.raises(ScenarioError, match="with `shapes`, got 'muon'; ta"):
        rule("muon").init(jnp.zeros(SIZE), None)
    with pytest.raises(ScenarioError, match="with `shapes`"):
        rule("lamb").init(jnp.zeros(SIZE), ModelArrays(((2, 3),)))
    rule(**ALL).init(jnp.zeros((2, 17)), None)  # a matrix is one array
    rule("adamw").init(jnp.zeros(SIZE), None)


def test_a_table_gives_and_takes_rows_and_no_padding() -> None:
    start = {"mean": jnp.arange(3.0), "count": jnp.int32(7)}
    whole = table(start, 4)
    rows = of_workers(whole, jnp.array([2, NO_WORKER, 0]))
    np.testing.assert_array_equal(rows["count"], [7, 0, 7])
    new = {"mean": jnp.ones((3, 3)), "count": jnp.int32([1, 2, 3])}
    after = written(whole, jnp.array([2, NO_WORKER, 0]), new)
    np.testing.assert_array_equal(after["count"], [3, 7, 1, 7])
    np.testing.assert_array_equal(after["mean"][1], start["mean"])


COSINE = {"schedule": "cosine_decay_schedule", "init_value": 0.1, "decay_steps": 150}


def test_the_learning_rate_is_reported_as_the_step_size() -> None:
    named = {"step_size": None, "optimizer": {"kind": "sgd", "learning_rate": COSINE}}
    memory, _ = execute([prepared(SGD, {"algorithm": named})])
    count = np.minimum(np.arange(200), 150)
    expected = 0.05 * (1 + np.cos(np.pi * count / 150))
    np.testing.assert_allclose(
        memory.column("commits", "step_size"), expected, rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize(
    "family",
    [{}, {"protocol": {"kind": "rounds"}, "algorithm": {"kind": "fed_sgd"}}],
)
def test_a_party_may_have_a_direction_for_its_step_size(family: dict[str, Any]) -> None:
    batch = {"algorithm": {"batch": 17}}
    direction = {"step_size": 0.05, "optimizer": {"kind": "momentum", "decay": 0.8}}
    named = {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.8}
    ends = [
        execute([prepared(family, batch, {"algorithm": chosen})])[0]
        for chosen in (direction, {"step_size": None, "optimizer": named})
    ]
    losses = [memory.column("commits", "loss") for memory in ends]
    np.testing.assert_allclose(*losses, rtol=1e-4)
