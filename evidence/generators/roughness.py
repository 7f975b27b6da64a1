"""Measures the roughness of a perturbed ReLU embedding, for Theorem 5 of VAFL."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

LAYERS = 3
"""Depth of the measured network."""


class Roughness(NamedTuple):
    """Measures of one perturbed embedding.

    Attributes:
        ratio: largest change of the gradient over the change of all parameters.
        bias_ratios: the same within the biases of one layer, for l = 1..L.
        weight_norms: ||w_l|| for l = 1..L.
        input_norms: E||u_{l-1}|| for l = 1..L.
    """

    ratio: float
    bias_ratios: tuple[float, ...]
    weight_norms: tuple[float, ...]
    input_norms: tuple[float, ...]


class _Network(NamedTuple):
    weights: Float[np.ndarray, "L d d"]
    biases: Float[np.ndarray, "L d"]


def measure(
    c: float,
    hidden_c: float,
    *,
    width: int = 4,
    num_probes: int = 8,
    num_draws: int = 20_000,
    seed: int = 0,
) -> Roughness:
    """Measures gradient changes of a three-layer ReLU embedding smoothed by noise.

    Weights and the input have norm 1, and biases put the median unit at its kink, where
    the gradient changes most. One random component of the embedding is measured. The
    last layer's Gaussian is integrated exactly; the hidden uniform noise, of equation
    11b, by Monte Carlo with the same draws at both ends of every change.

    Args:
        c: standard deviation of the last layer's noise, > 0.
        hidden_c: standard deviation of the other layers' noise, > 0.
        width: width of every layer.
        num_probes: directions of change, in all parameters and in the biases of each
            layer; each a quarter of the smaller noise long.
        num_draws: draws of the hidden noise.
        seed: seed of the network, the directions and the noise, so that measurements
            of different noise levels are paired.

    Source: VAFL, equations 10, 11 and 13.
    """
    generator = np.random.default_rng(seed)
    weights = generator.standard_normal((LAYERS, width, width))
    weights /= np.linalg.norm(weights, 2, axis=(1, 2))[:, None, None]
    x = generator.standard_normal(width)
    x /= np.linalg.norm(x)
    readout = generator.standard_normal(width)
    readout /= np.linalg.norm(readout)
    steps = [
        _Network(generator.standard_normal((LAYERS, width, width)), b)
        for b in generator.standard_normal((num_probes, LAYERS, width))
    ]
    noise = generator.uniform(-1, 1, (LAYERS - 1, num_draws, width))
    noise *= math.sqrt(3) * hidden_c
    centre = _at_kinks(weights, x, noise)
    base = _gradient(centre, x, readout, c, noise)
    length = min(c, hidden_c) / 4

    def change(step: _Network) -> _Network:
        by = length / _norm(step)
        moved = _Network(*(a + by * b for a, b in zip(centre, step, strict=True)))
        there = _gradient(moved, x, readout, c, noise)
        return _Network(*((a - b) / length for a, b in zip(there, base, strict=True)))

    everywhere = [change(step) for step in steps]
    one_bias = [
        [
            change(_Network(np.zeros_like(weights), step.biases * only[:, None]))
            for step in steps
        ]
        for only in np.eye(LAYERS)
    ]
    return Roughness(
        ratio=max(_norm(found) for found in sum(one_bias, everywhere)),
        bias_ratios=tuple(
            max(float(np.linalg.norm(found.biases[layer])) for found in changes)
            for layer, changes in enumerate(one_bias)
        ),
        weight_norms=tuple(np.linalg.norm(weights, 2, axis=(1, 2)).tolist()),
        input_norms=tuple(
            float(np.linalg.norm(u, axis=-1).mean())
            for u in _forward(centre, x, noise)[0]
        ),
    )


def _at_kinks(
    weights: Float[np.ndarray, "L d d"],
    x: Float[np.ndarray, " d"],
    noise: Float[np.ndarray, "H n d"],
) -> _Network:
    network = _Network(weights, np.zeros(weights.shape[:2]))
    for layer in range(LAYERS):
        inputs, _, _ = _forward(network, x, noise)
        middle = np.median(inputs[layer] @ weights[layer].T, axis=0)
        network.biases[layer] = -middle
    return network


def _forward(
    network: _Network, x: Float[np.ndarray, " d"], noise: Float[np.ndarray, "H n d"]
) -> tuple[
    list[Float[np.ndarray, "n d"]],
    list[Bool[np.ndarray, "n d"]],
    Float[np.ndarray, "n d"],
]:
    """Returns every layer's input, which hidden units are active, the last argument."""
    inputs, active = [np.broadcast_to(x, noise.shape[1:])], []
    for layer in range(LAYERS - 1):
        v = inputs[-1] @ network.weights[layer].T + network.biases[layer] + noise[layer]
        active.append(v > 0)
        inputs.append(np.maximum(v, 0))
    last = inputs[-1] @ network.weights[-1].T + network.biases[-1]
    return inputs, active, last


def _gradient(
    network: _Network,
    x: Float[np.ndarray, " d"],
    readout: Float[np.ndarray, " d"],
    c: float,
    noise: Float[np.ndarray, "H n d"],
) -> _Network:
    """Returns the mean gradient of the read-out in all weights and biases."""
    inputs, active, last = _forward(network, x, noise)
    weights, biases = np.empty_like(network.weights), np.empty_like(network.biases)
    down = readout * special.ndtr(last / c)  # E[ReLU'(v + Z)], Z Gaussian
    for layer in reversed(range(LAYERS)):
        weights[layer] = down.T @ inputs[layer] / len(down)
        biases[layer] = down.mean(axis=0)
        if layer:
            down = (down @ network.weights[layer]) * active[layer - 1]
    return _Network(weights, biases)


def _norm(network: _Network) -> float:
    return math.sqrt(sum(float((part**2).sum()) for part in network))
