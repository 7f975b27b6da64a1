"""Layers of parties and servers in plain NumPy, their gradients by hand.

Parameters are one flat vector, as a class says. `vjp` is the gradient of <d_output,
outputs> in them. A model's `noise` is added to what its last layer gives, inside the
activation; that of a chain is a draw for each layer.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np


class Model(Protocol):
    """A model: outputs [S, .] of rows [S, .], and gradients in theta and rows."""

    size: int

    def forward(
        self, theta: np.ndarray, x: np.ndarray, noise: Any = None
    ) -> np.ndarray: ...

    def vjp(
        self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray, noise: Any = None
    ) -> tuple[np.ndarray, np.ndarray]: ...


class Linear:
    """x @ W, or where asked for x @ W + b; theta is W [d, p], row by row, then b."""

    def __init__(self, num_features: int, num_outputs: int = 1, *, bias: bool = False):
        self.shape, self.bias = (num_features, num_outputs), bias
        self.size = num_features * num_outputs + bias * num_outputs

    def parts(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d, p = self.shape
        b = theta[d * p :] if self.bias else np.zeros(p)
        return theta[: d * p].reshape(d, p), b

    def forward(
        self, theta: np.ndarray, x: np.ndarray, noise: Any = None
    ) -> np.ndarray:
        W, b = self.parts(theta)
        return x @ W + b[None] + (0.0 if noise is None else noise)

    def vjp(
        self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray, noise: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        W, _ = self.parts(theta)
        d_bias = d_output.sum(axis=0) if self.bias else np.zeros(0)
        return np.concatenate([(x.T @ d_output).ravel(), d_bias]), d_output @ W.T


class Layer(Linear):
    """act(x @ W + b) with "tanh" or "relu", and relu'(0) = 0."""

    def __init__(self, num_features: int, num_hidden: int, activation: str):
        super().__init__(num_features, num_hidden, bias=True)
        self.activation = activation

    def forward(
        self, theta: np.ndarray, x: np.ndarray, noise: Any = None
    ) -> np.ndarray:
        z = super().forward(theta, x, noise)
        return np.tanh(z) if self.activation == "tanh" else np.maximum(z, 0.0)

    def vjp(
        self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray, noise: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        out = self.forward(theta, x, noise)
        slope = 1.0 - out**2 if self.activation == "tanh" else (out > 0.0) * 1.0
        return super().vjp(theta, x, d_output * slope)


class Chain:
    """One model behind the other; theta is theirs, end to end."""

    def __init__(self, *models: Model):
        self.models = models
        self.size = sum(model.size for model in models)

    def passed(self, theta: np.ndarray, x: np.ndarray, noise: Any) -> list[tuple]:
        """What each model gets: its theta, rows and noise; and the outputs."""
        at, found = 0, []
        for k, model in enumerate(self.models):
            own = theta[at : at + model.size], x, None if noise is None else noise[k]
            found.append(own)
            at, x = at + model.size, model.forward(*own)
        return [*found, (x,)]

    def forward(
        self, theta: np.ndarray, x: np.ndarray, noise: Any = None
    ) -> np.ndarray:
        return self.passed(theta, x, noise)[-1][0]

    def vjp(
        self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray, noise: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        gradients = []
        passed = self.passed(theta, x, noise)[:-1]
        for model, (own, rows, draw) in reversed(
            [*zip(self.models, passed, strict=True)]
        ):
            gradient, d_output = model.vjp(own, rows, d_output, draw)
            gradients.insert(0, gradient)
        return np.concatenate(gradients), d_output


def mlp(
    num_features: int, num_hidden: int, activation: str, num_outputs: int = 1
) -> Chain:
    """act(x @ W + b) @ w, no bias at the end."""
    hidden = Layer(num_features, num_hidden, activation)
    return Chain(hidden, Linear(num_hidden, num_outputs))


class Network(NamedTuple):
    """A dense network of tanh layers into softmax.

    Attributes:
        sizes: Of its inputs, its hidden layers and its outputs.
        l2: Of matrices.
    """

    sizes: Sequence[int]
    l2: float

    @property
    def chain(self) -> Chain:
        *hidden, (last, outputs) = pairwise(self.sizes)
        layers = [Layer(inputs, units, "tanh") for inputs, units in hidden]
        return Chain(*layers, Linear(last, outputs, bias=True))

    def laid_out(self, flat: np.ndarray) -> np.ndarray:
        """Lays matrices [outputs, inputs] with their biases out as here."""
        at, found = 0, []
        for inputs, outputs in pairwise(self.sizes):
            matrix = flat[at : at + inputs * outputs].reshape(outputs, inputs)
            at += inputs * outputs
            found += [matrix.T.ravel(), flat[at : at + outputs]]
            at += outputs
        return np.concatenate(found)

    def by_layer(self, numbers: Sequence[float]) -> np.ndarray:
        """A number of each layer, of each of its parameters."""
        return np.repeat(numbers, [(d + 1) * h for d, h in pairwise(self.sizes)])

    def penalty(self, theta: np.ndarray) -> np.ndarray:
        """l2 theta, but for biases."""
        parts = [np.r_[np.ones(d * h), np.zeros(h)] for d, h in pairwise(self.sizes)]
        return self.l2 * theta * np.concatenate(parts)

    def loss(self, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        logits = self.chain.forward(theta, x)
        own = logits[np.arange(len(y)), y]
        data = (np.logaddexp.reduce(logits, axis=1) - own).mean()
        return float(data + theta @ self.penalty(theta) / 2)

    def gradient(self, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        logits = self.chain.forward(theta, x)
        slope = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
        slope[np.arange(len(y)), y] -= 1
        return self.chain.vjp(theta, x, slope / len(y))[0] + self.penalty(theta)
