"""Losses, targets and rows of any shape, against NumPy; and what is refused."""

import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.parts.functions import UserFunction
from stalesim.simulator.problem import horizontal, losses, own_functions
from stalesim.simulator.problem.data import outputs
from stalesim.simulator.problem.data.base import Dataset, Field
from stalesim.simulator.problem.data.outputs import OutputForm
from stalesim.simulator.problem.models.python.network import OwnNetwork, python_network
from stalesim.simulator.problem.models.python.part import Python

N = 9
ENTRY = "problem.model.build"
DRAW = np.random.default_rng(4)
THREE = OutputForm("softmax", 3)
ROW = (Field("", (4,)),)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def data(y: np.ndarray, num_classes: int = 0) -> Dataset:
    x = DRAW.normal(size=(N, 4)).astype(np.float32)
    none = "" if num_classes else "y of mine must hold whole numbers"
    return Dataset("mine", x, y, x, y, num_classes, (), no_classes=none)


def test_squared_is_the_mean_squared_distance_of_a_row() -> None:
    y, z = DRAW.normal(size=(N, 2, 3)), DRAW.normal(size=(N, 2, 3))
    found = losses.per_sample("squared", jnp.asarray(z.reshape(N, 6).T), jnp.asarray(y))
    np.testing.assert_allclose(found, ((y - z) ** 2).mean(axis=(1, 2)), rtol=1e-14)


def test_binary_is_the_mean_log_likelihood_of_a_row() -> None:
    y, z = DRAW.integers(0, 2, (N, 5)), DRAW.normal(size=(N, 5))
    p = 1 / (1 + np.exp(-z))
    expected = -np.where(y == 1, np.log(p), np.log(1 - p)).mean(axis=1)
    found = losses.per_sample("binary", jnp.asarray(z.T), jnp.asarray(y))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_outputs_turn_into_rows_for_functions_of_the_user() -> None:
    z = DRAW.normal(size=(3, N))
    for positions, expected in (
        ((), z.T),
        ((3,), z.T.reshape(3, 3, 3)),
    ):
        own = losses.OwnLoss("m:f", lambda outputs, targets: outputs, positions)
        np.testing.assert_array_equal(losses.rows_first(own, jnp.asarray(z)), expected)
    np.testing.assert_array_equal(
        losses.rows_first("sigmoid", jnp.asarray(z[:1])), z[0]
    )


@pytest.mark.parametrize(
    ("loss", "y", "classes", "form"),
    [
        ("auto", np.arange(N) % 2, 2, ("sigmoid", 1, (), ())),
        ("auto", np.arange(N) % 3, 3, ("softmax", 3, (), ())),
        ("hinge", np.arange(N) % 2, 2, ("hinge", 1, (), ())),
        ("softmax", np.ones((N, 7), int), 5, ("softmax", 5, (7,), (7,))),
        ("squared", np.ones(N), 0, ("squared", 1, (), ())),
        ("squared", np.ones((N, 2, 3)), 0, ("squared", 6, (), (2, 3))),
        ("binary", np.ones((N, 5), int), 2, ("binary", 5, (), (5,))),
        ("mine:loss", np.ones((N, 5)), 0, ("mine:loss", 5, (), (5,))),
        ("mine:loss", np.arange(N) % 3, 3, ("mine:loss", 3, (), ())),
    ],
)
def test_the_outputs_that_a_loss_takes(
    loss: str, y: np.ndarray, classes: int, form: tuple
) -> None:
    found = outputs.form(SimpleNamespace(loss=loss), data(y, classes))
    assert found == OutputForm(*form)


def test_losses_refuse_targets_that_are_not_theirs() -> None:
    numbers = data(np.linspace(0, 1, N).astype(np.float32))
    for loss in ("auto", "softmax", "hinge"):
        with pytest.raises(DataError, match="whole numbers"):
            outputs.loss(SimpleNamespace(loss=loss), numbers)
    with pytest.raises(DataError, match="must hold zeros and ones for"):
        outputs.loss(SimpleNamespace(loss="binary"), numbers)


def test_shapes_of_outputs_that_fit() -> None:
    assert THREE.fits((3,))
    assert not THREE.fits((4,))
    one = OutputForm("sigmoid", 1)
    assert one.fits(())
    assert one.fits((1,))
    assert not one.fits((2,))
    words = OutputForm("softmax", 5, (7,), (7,))
    assert words.fits((7, 5))
    assert words.fits((7, 9))
    assert not words.fits((7, 4))
    assert not words.fits((6, 5))
    assert OutputForm("squared", 1, (), (1,)).fits(())


def test_rows_get_their_shapes_and_types_back() -> None:
    fields = (Field("image", (2, 3)), Field("tokens", (5,), whole=True), Field("d", ()))
    seen: dict[str, Any] = {}

    def init(key: Any) -> Any:
        del key
        return jnp.zeros(3)

    def apply(weights: Any, x: Any) -> Any:
        seen.update({name: (a.shape[1:], str(a.dtype)) for name, a in x.items()})
        return weights[None] + x["d"][:, None]

    network = built((init, apply), rows=fields)
    x = np.arange(24.0).reshape(2, 12)
    found = network.apply(jnp.zeros(3), jnp.asarray(x, jnp.float32))
    np.testing.assert_array_equal(found, np.tile(x[:, 11], (3, 1)))
    assert seen == {
        "image": ((2, 3), "float64"),
        "tokens": ((5,), "int32"),
        "d": ((), "float64"),
    }


def built(
    model: Any, form: OutputForm = THREE, rows: tuple[Field, ...] = ROW
) -> OwnNetwork:
    """Returns the network of a model, named like one of a scenario."""
    module: Any = SimpleNamespace(model=model, __name__="own_here")
    sys.modules["own_here"] = module
    python_network.cache_clear()
    return python_network(UserFunction("own_here:model", ENTRY), form, rows)


def test_the_gradient_is_laid_out_like_the_weights() -> None:
    shapes = {"b": (3,), "a": [(3, 4), ()]}

    def init(key: Any) -> Any:
        keys = jax.random.split(key, 3)
        a = [jax.random.normal(keys[0], (3, 4)), jax.random.normal(keys[1], ())]
        return {"b": jax.random.normal(keys[2], (3,)), "a": a}

    def apply(weights: Any, x: Any) -> Any:
        return weights["a"][1] * (x @ weights["a"][0].T) + weights["b"][None]

    network = built((init, apply))
    assert network.num_weights == 16 == network.num_noised
    assert shapes.keys() == init(jax.random.key(0)).keys()
    flat = network.init(jax.random.key(5)).astype(float)
    tree = init(jax.random.key(5))
    with jax.enable_x64(False):
        tree = init(jax.random.key(5))
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(tree)]
    np.testing.assert_array_equal(
        flat, np.concatenate([leaf.ravel() for leaf in leaves])
    )
    assert network.regularised().tolist() == [True] * 12 + [False] * 4
    x = jnp.asarray(DRAW.normal(size=(6, 4)))
    slope = jax.grad(lambda w: (network.apply(w, x) ** 2).sum())(flat)
    step = 1e-6 * np.eye(16)
    for number in range(16):
        two = [
            (network.apply(flat + sign * step[number], x) ** 2).sum()
            for sign in (1, -1)
        ]
        np.testing.assert_allclose(slope[number], (two[0] - two[1]) / 2e-6, rtol=1e-5)


def test_a_model_may_compute_in_half_precision() -> None:
    """Weights and their gradients stay in single precision."""

    def apply(weights: Any, x: Any) -> Any:
        short = x.astype("bfloat16"), weights.T.astype("bfloat16")
        return jnp.dot(*short).astype(x.dtype)

    with jax.enable_x64(False):
        network = built((lambda key: jax.random.normal(key, (3, 4)), apply))
        weights = network.init(jax.random.key(0))
        x = jnp.asarray(DRAW.normal(size=(6, 4)), jnp.float32)
        back = jnp.asarray(DRAW.normal(size=(3, 6)), jnp.float32)
        found, pull = jax.vjp(lambda w: network.apply(w, x), weights)
        (slope,) = pull(back)
    assert found.dtype == slope.dtype == weights.dtype == jnp.float32
    exact = weights.reshape(3, 4) @ x.T
    # Two factors are rounded to 8 bits, and the sum: by 2**-9 each, of terms below 10.
    np.testing.assert_allclose(found, exact, atol=3 * 40 * 2**-9)
    np.testing.assert_allclose(slope, (back @ x).ravel(), atol=3 * 60 * 2**-9)
    assert jnp.abs(found - exact).max() > 1e-4


def test_many_rows_are_measured_in_blocks() -> None:
    pair = (lambda key: jnp.ones((3, 4)), lambda w, x: x @ w.T)
    network = built(pair)
    x = jnp.asarray(DRAW.normal(size=(2100, 4)))
    np.testing.assert_allclose(
        network.apply(jnp.ones(12), x), np.ones((3, 4)) @ np.asarray(x).T, rtol=1e-12
    )


def start(key: Any) -> Any:
    del key
    return jnp.zeros((3, 4))


def logits(weights: Any, x: Any) -> Any:
    return x @ weights.T


KEPT: list[Any] = []


def counting(weights: Any, x: Any) -> Any:
    KEPT.append(0)
    return len(KEPT) * (x @ weights.T)


def leaking(weights: Any, x: Any) -> Any:
    KEPT.append(x @ weights.T)
    return x @ weights.T


def printing(weights: Any, x: Any) -> Any:
    jax.debug.print("{}", weights.sum())
    return x @ weights.T


def calling_back(weights: Any, x: Any) -> Any:
    like = jax.ShapeDtypeStruct((len(x), 3), x.dtype)
    return jax.pure_callback(lambda w, x: x @ w.T, like, weights, x)


WRONG: dict[str, tuple[Any, str]] = {
    "shape": (
        (start, lambda w, x: x),
        r"shape \[S, 3\] for the loss softmax, got \[S, 4\]",
    ),
    "one row": ((start, lambda w, x: (x @ w.T)[0]), r"\[S, 3\] .*, got \[3\]"),
    "two arrays": ((start, lambda w, x: (x @ w.T, x)), "one array .* got 2 arrays"),
    "type": ((start, lambda w, x: (x @ w.T).astype("float16")), "float32, got float16"),
    "whole outputs": (
        (start, lambda w, x: (x @ w.T).astype(int)),
        "float32, got int32",
    ),
    "counts": (
        (lambda key: jnp.zeros((3, 4), int), logits),
        "float32, got int32 at its",
    ),
    "half": ((lambda key: jnp.zeros((3, 4), "bfloat16"), logits), "got bfloat16"),
    "words": ((lambda key: {"a": "b"}, logits), r"got str at \['a'\]"),
    "nothing": ((lambda key: {}, lambda w, x: x[:, :3]), "weights to learn, got none"),
    "NaN": ((lambda key: jnp.full((3, 4), jnp.nan), logits), "finite weights, got NaN"),
    "chance": (
        (lambda key: jnp.asarray(np.random.random((3, 4)), "float32"), logits),  # noqa: NPY002
        "same weights whenever it gets the same key",
    ),
    "counter": ((start, counting), "depend on its arguments alone"),
    "leak": ((start, leaking), "keep nothing outside its arguments"),
    "print": ((start, printing), "must not call Python .* got debug_"),
    "callback": ((start, calling_back), "must not call Python .* got pure_callback"),
    "error": (
        (start, lambda w, x: x @ w),
        "got TypeError: dot_general .*test_own_forms",
    ),
    "no model": (7, "pair of functions init and apply, .*got builtins.int"),
    "asks": (lambda width: None, "asks for num_outputs, .* one that asks for 'width'"),
    "fails": (lambda: 1 / 0, "ZeroDivisionError: division by zero .test_own_forms"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long) if n == "leak" else n for n in WRONG],
)
def test_wrong_models_are_refused_in_one_line(name: str) -> None:
    model, says = WRONG[name]
    with pytest.raises(ScenarioError, match=says) as error:
        built(model)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("problem.model.build must ")


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(ScenarioError, match="there is no module 'nowhere'"):
        python_network(UserFunction("nowhere:build", ENTRY), THREE, ROW)
    built((start, logits))
    with pytest.raises(ScenarioError, match="did you mean 'model'"):
        python_network(UserFunction("own_here:modle", ENTRY), THREE, ROW)
    with pytest.raises(ScenarioError, match="which it does not have"):
        python_network(UserFunction("memory:model@0", ENTRY), THREE, ROW)


@pytest.mark.long
def test_a_party_draws_nothing_and_keeps_nothing() -> None:
    with pytest.raises(ScenarioError, match="without dropout at a party"):
        Python(build="tests.own_models:Noisy").make(2, 5, "vertical")


def problem(loss: Any, y: np.ndarray) -> tuple[Any, Any]:
    """Returns the configuration and the parts of a problem with a loss of one's own."""
    module: Any = SimpleNamespace(loss=loss, __name__="own_loss")
    sys.modules["own_loss"] = module
    form = OutputForm("own_loss:loss", 3, (), y.shape[1:])
    network = built((start, logits), form)
    config = SimpleNamespace(
        loss="own_loss:loss",
        model=SimpleNamespace(kind="python", build="own_here:model"),
        partition=SimpleNamespace(family="horizontal"),
        server=None,
        own_functions=[UserFunction("own_loss:loss", "problem.loss")],
    )
    made = horizontal.build(
        data(y),
        network,
        2,
        loss=losses.of_form(form, as_given=True),
        reduction="mean",
        l2=0.0,
        dtype="float32",
    )
    return config, made


def counted(z: Any, y: Any) -> Any:
    KEPT.append(0)
    return len(KEPT) * (z - y.sum()).sum(axis=1)


def told_aloud(z: Any, y: Any) -> Any:
    jax.debug.print("{}", z.sum())
    return (z - y.sum()).sum(axis=1)


WRONG_LOSSES: dict[str, tuple[Any, str]] = {
    "mean": (lambda z, y: jnp.mean(z), r"a number of each row, .*\[7\] .* got \[\]"),
    "columns": (lambda z, y: z, r"got \[7, 3\]"),
    "NaN": (lambda z, y: jnp.log(z[:, 0] - 1), "finite loss at the start, got nan"),
    "no array": (lambda z, y: 1.0, "number of each row, .* got float"),
    "error": (lambda z, y: z @ y, "TypeError: .*test_own_forms"),
    "half": (
        lambda z, y: z[:, 0].astype("float16"),
        "numbers of the type of the run, float32, got float16",
    ),
    "root": (
        lambda z, y: jnp.sqrt((z**2).sum(axis=1)),
        "finite gradient at the start, got NaN",
    ),
    "counter": (counted, "must depend on its arguments alone"),
    "print": (told_aloud, "must not call Python while it runs, got debug_"),
    "no function": (3, "must name a function .* which is int"),
}


@pytest.mark.parametrize("name", WRONG_LOSSES)
def test_wrong_losses_are_refused_in_one_line(name: str) -> None:
    loss, says = WRONG_LOSSES[name]
    y = np.ones((N, 2), np.float32)
    with pytest.raises(ScenarioError, match=says) as error:
        own_functions.check(*problem(loss, y), ())
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("problem.loss must ")
