"""Bidirectional LSTM layers, of clients and of parties, in one flat vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from ....problem.models.flat import FlatNetwork, drawn
from ....problem.models.parts import Shapes, size
from .part import Lstm

OF_LAYER = 4
"""Number of arrays of an LSTM layer; projection and logits have as many together."""
Carried = tuple[Float[Array, "*d S H"], Float[Array, "*d S H"]]
"""Outputs and cells after a frame."""


@dataclass(frozen=True)
class LstmNetwork(FlatNetwork):
    """Bidirectional LSTM layers, a linear projection, and a linear layer; per frame.

    Attributes:
        config: Options: layers, cells, projection and frames of a row.
        num_outputs: Number of logits of a frame, `C`.
        num_features: Number of columns of a row, of all of its frames.

    Source: A(DP)²SGD, section 5 (SWB300); the cell is by Gers, Schmidhuber and Cummins,
    Learning to Forget (2000), without peepholes.
    """

    config: Lstm
    num_outputs: int
    num_features: int

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes(self.num_features, self.num_outputs)

    @property
    def hidden_matrices(self) -> tuple[bool, ...]:
        """Whether each array is the matrix of the projection, the only hidden one."""
        projection = len(self.shapes) - OF_LAYER
        return tuple(n == projection for n in range(len(self.shapes)))

    @property
    def num_noised(self) -> int:
        """Number of the first layer's weights and biases, of both directions."""
        return size(self.shapes[:OF_LAYER])

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws every layer uniformly within ±1/sqrt(n), PyTorch's default.

        n is the number of cells in an LSTM layer, of inputs in a linear one.
        """
        cells, last = self.config.cells, self.shapes[-OF_LAYER:]
        fans = [cells] * (OF_LAYER * self.config.layers)
        fans += [last[0][1], last[0][1], last[2][1], last[2][1]]
        return drawn(key, self.shapes, [1 / math.sqrt(fan) for fan in fans])

    def regularised(self) -> Bool[np.ndarray, " P"]:
        # Biases of both directions of a layer, or of a linear layer.
        bias = [len(shape) == 2 for shape in self.shapes[:-OF_LAYER]]
        bias += [len(shape) == 1 for shape in self.shapes[-OF_LAYER:]]
        sizes = [math.prod(shape) for shape in self.shapes]
        return np.repeat(np.logical_not(bias), sizes)

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "..."]] = (),
    ) -> Float[Array, "C SL"]:
        """Returns the logits of all frames of the first row, then of the second's, ...

        Rows have their features frame after frame.
        """
        assert not noise  # it says of no layer what it computes
        frames = x.reshape(x.shape[0], self.config.frames, -1)
        hidden = frames.swapaxes(0, 1)
        for start in range(0, len(parts) - OF_LAYER, OF_LAYER):
            own = parts[start : start + OF_LAYER]
            hidden = both_ways(hidden, *own)
        matrix, shift, dense, bias = parts[-OF_LAYER:]
        # Row by row, so that all frames of a row stand together.
        inputs = hidden.swapaxes(0, 1).reshape(-1, hidden.shape[-1])
        projected = inputs @ matrix.T + shift[None, :]
        return dense @ projected.T + bias[:, None]


class PartyLstm(LstmNetwork):
    """Bidirectional LSTM layers, and one forwards whose last outputs are sent.

    `num_outputs` are the cells of the last layer; cells are as in `LstmNetwork`.

    Source: VAFL, appendix G (MIMIC-III).
    """

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes_of_party(self.num_features, self.num_outputs)

    @property
    def hidden_matrices(self) -> tuple[bool, ...]:
        """Whether each array is a hidden matrix: none, since gates are stacks."""
        return (False,) * len(self.shapes)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of the outputs of each bidirectional layer for a sample."""
        each = (self.config.frames, 2 * self.config.cells)
        return (each,) * self.config.layers

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws every layer uniformly within ±1/sqrt(cells), PyTorch's default."""
        cells = [self.config.cells] * self.config.layers + [self.num_outputs]
        limits = [1 / math.sqrt(fan) for fan in cells for _ in range(OF_LAYER)]
        return drawn(key, self.shapes, limits)

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "L H2 S"]] = (),
    ) -> Float[Array, "C S"]:
        """Returns the last outputs for rows of features, frame after frame."""
        hidden = x.reshape(x.shape[0], self.config.frames, -1).swapaxes(0, 1)
        for layer in range(self.config.layers):
            hidden = both_ways(hidden, *parts[OF_LAYER * layer :][:OF_LAYER])
            if noise:
                hidden = hidden + noise[layer].swapaxes(1, 2)
        return last_of(hidden, *parts[-OF_LAYER:]).T


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
    """Applies an LSTM layer forwards; returns its outputs for the last frame."""
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
