"""LSTM layers: in both directions of time, and forwards to the last frame."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

Carried = tuple[Float[Array, "*d S H"], Float[Array, "*d S H"]]
"""Outputs and cells after a frame."""


def both_ways(
    x: Float[Array, "L S I"],
    of_inputs: Float[Array, "2 G I"],
    of_outputs: Float[Array, "2 G H"],
    bias_inputs: Float[Array, "2 G"],
    bias_outputs: Float[Array, "2 G"],
) -> Float[Array, "L S H2"]:
    """Applies an LSTM layer forwards and another backwards in time.

    Args:
        x: Inputs of each frame and sample.
        of_inputs: Weights from a frame's inputs to the four gates of all cells: input,
            forget, cell, output.
        of_outputs: Weights from the layer's outputs for the previous frame.
        bias_inputs: Biases of the gates.
        bias_outputs: Biases that are added to these; PyTorch has both.

    Returns:
        Outputs of the forward direction, then those of the backward one, of each frame.
    """
    bias = (bias_inputs + bias_outputs)[None, :, None, :]
    gates = jnp.einsum("lsi,dgi->ldsg", x, of_inputs) + bias
    # One loop for both directions: the second one begins with the last frame.
    gates = jnp.stack([gates[:, 0], gates[::-1, 1]], axis=1)
    start = jnp.zeros((2, x.shape[1], of_outputs.shape[2]), gates.dtype)

    def step(carried: Carried, own: Array) -> tuple[Carried, Array]:
        output, cell = carried
        summed = own + jnp.einsum("dsh,dgh->dsg", output, of_outputs)
        output, cell = _cells(summed, cell)
        return (output, cell), output

    _, outputs = lax.scan(step, (start, start), gates)
    return jnp.concatenate([outputs[:, 0], outputs[::-1, 1]], axis=-1)


def last_of(
    x: Float[Array, "L S I"],
    of_inputs: Float[Array, "G I"],
    of_outputs: Float[Array, "G H"],
    bias_inputs: Float[Array, " G"],
    bias_outputs: Float[Array, " G"],
) -> Float[Array, "S H"]:
    """Applies an LSTM layer forwards in time; returns its outputs for the last frame.

    Args:
        x: Inputs of each frame and sample.
        of_inputs: Weights from a frame's inputs to the gates, as in `both_ways`.
        of_outputs: Weights from the layer's outputs for the previous frame.
        bias_inputs: Biases of the gates.
        bias_outputs: Biases that are added to these.
    """
    bias = (bias_inputs + bias_outputs)[None, None, :]
    gates = jnp.einsum("lsi,gi->lsg", x, of_inputs) + bias
    start = jnp.zeros((x.shape[1], of_outputs.shape[1]), gates.dtype)

    def step(carried: Carried, own: Array) -> tuple[Carried, None]:
        output, cell = carried
        return _cells(own + output @ of_outputs.T, cell), None

    (output, _), _ = lax.scan(step, (start, start), gates)
    return output


def _cells(
    gates: Float[Array, "*d S G"], cell: Float[Array, "*d S H"]
) -> tuple[Float[Array, "*d S H"], Float[Array, "*d S H"]]:
    """Returns outputs and cells after a frame: input, forget, cell and output gate."""
    enter, forget, candidate, leave = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(forget) * cell
    cell += jax.nn.sigmoid(enter) * jnp.tanh(candidate)
    return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell
