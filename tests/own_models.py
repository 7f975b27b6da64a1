"""Models and losses as a user writes them, for tests: our own once more, and others."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from stalesim.simulator.catalogue.models.cnn.part import Cnn
from stalesim.simulator.parts.metrics import Metric, Takes
from stalesim.simulator.problem.models.convolution import convolve, pool
from stalesim.simulator.problem.models.flat import drawn, glorot, split


def linear(num_outputs: int, num_features: int) -> Any:
    """The linear model, whose rows may be images."""

    def init(key: Array) -> dict[str, Array]:
        del key
        matrix = jnp.zeros((num_outputs, num_features))
        return {"bias": jnp.zeros(num_outputs), "matrix": matrix}

    def apply(weights: dict[str, Array], x: Array) -> Array:
        rows = x.reshape(len(x), -1)
        return rows @ weights["matrix"].T + weights["bias"][None]

    return init, apply


def centred(num_outputs: int, num_features: int) -> Any:
    """The linear model of rows from which the mean of the batch is taken."""
    init, apply = linear(num_outputs, num_features)
    return init, lambda weights, x: apply(weights, x - x.mean(axis=0)[None])


def party(num_outputs: int, num_features: int) -> Any:
    """The linear model of a party, without biases."""

    def init(key: Array) -> Array:
        del key
        return jnp.zeros((num_outputs, num_features))

    return init, lambda weights, x: x @ weights.T


def server(num_outputs: int, shape: tuple[int, ...]) -> Any:
    """The server's network with 6 hidden units, over vectors laid end to end."""
    of_arrays = ((6, math.prod(shape)), (6,), (num_outputs, 6), (num_outputs,))

    def init(key: Array) -> list[Array]:
        return split(drawn(key, of_arrays, glorot(of_arrays)), of_arrays)

    def apply(weights: list[Array], sent: Array) -> Array:
        first, shift, last, bias = weights
        assert sent.shape[1:] == shape
        rows = sent.reshape(len(sent), -1)
        return jax.nn.relu(rows @ first.T + shift[None]) @ last.T + bias[None]

    return init, apply


def cnn(num_outputs: int) -> Any:
    """The convolutional network for 28 x 28 pixels, from the same numbers."""
    of_arrays = Cnn().shapes((28, 28, 1), num_outputs)

    def init(key: Array) -> list[Array]:
        fans = [math.prod(shape[1:]) for shape in of_arrays[::2] for _ in range(2)]
        flat = drawn(key, of_arrays, [1 / math.sqrt(fan) for fan in fans])
        ends = [sum(map(math.prod, of_arrays[: i + 1])) for i in range(len(of_arrays))]
        return [
            part.reshape(shape)
            for part, shape in zip(jnp.split(flat, ends[:-1]), of_arrays, strict=True)
        ]

    def apply(weights: list[Array], x: Array) -> Array:
        first, shift_1, second, shift_2, dense, bias = weights
        hidden = x.reshape(len(x), -1).T.reshape(1, 28, 28, len(x))
        for kernels, shift in ((first, shift_1), (second, shift_2)):
            pooled = pool(convolve(hidden, kernels))
            hidden = jax.nn.relu(pooled + shift[:, None, None, None])
        return (dense @ hidden.reshape(dense.shape[1], -1) + bias[:, None]).T

    return init, apply


def mixed(num_outputs: int, shape: dict[str, tuple[int, ...]]) -> Any:
    """A model of three inputs: an image, tokens and a number."""
    pixels = math.prod(shape["image"])

    def init(key: Array) -> dict[str, Array]:
        one, two, three = jax.random.split(key, 3)
        return {
            "table": jax.random.normal(one, (50, 4)),
            "image": 0.1 * jax.random.normal(two, (pixels, num_outputs)),
            "rest": jax.random.normal(three, (5, num_outputs)),
        }

    def apply(weights: dict[str, Array], x: dict[str, Array]) -> Array:
        words = weights["table"][x["tokens"]].mean(axis=1)
        rest = jnp.concatenate([words, x["dose"][:, None]], axis=1)
        image = x["image"].reshape(len(rest), -1)
        return image @ weights["image"] + rest @ weights["rest"]

    return init, apply


def tokens(num_outputs: int) -> Any:
    """The logits of the next token, of this one and the one before."""

    def init(key: Array) -> Array:
        return 0.3 * jax.random.normal(key, (2, num_outputs, num_outputs))

    def apply(weights: Array, x: Array) -> Array:
        before = jnp.concatenate([x[:, :1], x[:, :-1]], axis=1)
        return weights[0][x] + weights[1][before]

    return init, apply


class Noisy(eqx.Module):
    """An Equinox module with dropout."""

    first: eqx.nn.Linear
    last: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, num_outputs: int, num_features: int, *, key: Array) -> None:
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(num_features, 8, key=one)
        self.last = eqx.nn.Linear(8, num_outputs, key=two)
        self.dropout = eqx.nn.Dropout(0.5)

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return self.last(self.dropout(jax.nn.relu(self.first(x.reshape(-1))), key=key))


def cross_entropy(outputs: Array, targets: Array) -> Array:
    """The loss softmax."""
    right = jnp.take_along_axis(outputs, targets[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(outputs, axis=1) - right


def energy(outputs: Array, targets: Array) -> Array:
    """A loss of single rows, whatever their outputs are."""
    del targets
    return (outputs.reshape(len(outputs), -1) ** 2).sum(axis=1)


def largest_error(outputs: Array, targets: Array) -> Array:
    """A metric of numbers."""
    return jnp.abs(outputs - targets).max()


STALESIM = {
    "metrics": (
        Metric(
            "largest_error",
            "tests.own_models:largest_error",
            meaning="largest distance from a target, test rows",
            unit="mm",
            takes=Takes.OUTPUTS,
        ),
    )
}
