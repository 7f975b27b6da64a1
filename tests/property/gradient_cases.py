"""What is differentiated in runs, as functions of arrays, in sizes that are drawn."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stalesim.simulator.catalogue.models.cnn.network import CnnNetwork, DeepCnnNetwork
from stalesim.simulator.catalogue.models.cnn.part import Cnn, DeepCnn
from stalesim.simulator.catalogue.models.lstm.network import (
    LstmNetwork,
    PartyLstm,
    both_ways,
)
from stalesim.simulator.catalogue.models.lstm.part import Lstm
from stalesim.simulator.catalogue.models.mlp.network import MlpNetwork
from stalesim.simulator.catalogue.models.transformer.network import TransformerNetwork
from stalesim.simulator.catalogue.models.transformer.part import Transformer
from stalesim.simulator.problem import losses
from stalesim.simulator.problem.models.convolution import convolve, pool
from stalesim.simulator.problem.models.dense.network import DenseNetwork
from stalesim.simulator.problem.models.linear.network import (
    LinearClassifier,
    LinearEmbedding,
)
from stalesim.simulator.problem.models.party import PartyNetwork
from stalesim.simulator.problem.models.server.network import ServerNetwork
from stalesim.simulator.problem.models.server.part import ServerModel
from stalesim.simulator.problem.vertical import TransferProblem, VerticalProblem, added


class Case(NamedTuple):
    """A function and where its gradient is looked at.

    Attributes:
        function: of all arrays; its numbers are added up with random weights.
        at: the arrays.
        of: how many of them, from the first on, the gradient is by.
    """

    function: Callable[..., Any]
    at: tuple[np.ndarray, ...]
    of: int


class Draw:
    """Sizes and numbers of a case.

    Case 0 has four rows and widths of five wherever a size is drawn: what jaxlib 0.8
    to 0.10 compile wrongly where LLVM merges stores (evidence/pages/speed.md).
    """

    def __init__(self, number: int, kind: str) -> None:
        self._fixed = number == 0
        self._rng = np.random.default_rng([number, *kind.encode()])

    def rows(self) -> int:
        return 4 if self._fixed else int(self._rng.integers(1, 10))

    def width(self, most: int = 9) -> int:
        return 5 if self._fixed else int(self._rng.integers(1, most + 1))

    def one_of(self, *values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def normal(self, *shape: int) -> np.ndarray:
        return self._rng.normal(size=shape)

    def weights(self, count: int) -> np.ndarray:
        return 0.4 * self._rng.normal(size=count)

    def labels(self, count: int, classes: int) -> np.ndarray:
        return self._rng.integers(0, max(classes, 2), count)


def linear(draw: Draw) -> Case:
    model = LinearClassifier(draw.width(), draw.width() - 1)
    shape = (model.num_outputs, model.num_features + 1)
    return Case(
        model.apply, (draw.normal(*shape), draw.normal(draw.rows(), shape[1])), 2
    )


def dense(draw: Draw) -> Case:
    sizes = tuple(draw.width() for _ in range(draw.one_of(3, 4)))
    model = DenseNetwork(sizes, draw.one_of("relu", "tanh"))
    count = sum((a + 1) * b for a, b in pairwise(sizes))
    return Case(
        model.apply, (draw.weights(count), draw.normal(draw.rows(), sizes[0])), 2
    )


def lstm_layer(draw: Draw) -> Case:
    rows, inputs, cells, frames = (
        draw.rows(), draw.one_of(1, 3, 6), draw.width(17), draw.one_of(2, 4, 6)
    )  # fmt: skip
    shapes = ((2, 4 * cells, inputs), (2, 4 * cells, cells), (2, 4 * cells))
    arrays = [draw.normal(frames, rows, inputs)]
    arrays += [0.4 * draw.normal(*shape) for shape in (*shapes, shapes[-1])]
    return Case(both_ways, tuple(arrays), 5)


def lstm(draw: Draw) -> Case:
    frames, width = draw.one_of(2, 4), draw.width()
    config = Lstm(
        layers=draw.one_of(1, 2), cells=draw.width(), projection=draw.width(),
        frames=frames,
    )  # fmt: skip
    model = LstmNetwork(config, draw.width(), frames * width)
    x = draw.normal(draw.rows(), frames * width)
    return Case(model.apply, (draw.weights(model.num_weights), x), 2)


def language(draw: Draw) -> Case:
    heads, length, tokens = draw.one_of(1, 2, 3), draw.one_of(1, 3, 4), draw.width()
    config = Transformer(
        layers=draw.one_of(1, 2), heads=heads, width=heads * draw.one_of(1, 2, 4),
        expansion=draw.one_of(1, 2), tied=bool(draw.one_of(0, 1)),
    )  # fmt: skip
    model = TransformerNetwork(config, tokens, length)
    x = draw.labels(draw.rows() * length, tokens).reshape(-1, length).astype(float)
    return Case(
        lambda w: model.apply(w, jnp.asarray(x)), (draw.weights(model.num_weights),), 1
    )


def cnn(draw: Draw) -> Case:
    kernel = draw.one_of(1, 2, 3)
    height, width = (
        2 * (kernel + 1) + kernel - 1 + draw.one_of(0, 1) for _ in range(2)
    )
    image = (height, width, draw.one_of(1, 2))
    config = Cnn(channels=(draw.width(), draw.width()), kernel=kernel)
    model = CnnNetwork(config, image, draw.width())
    x = draw.normal(draw.rows(), math.prod(image))
    return Case(model.apply, (draw.weights(model.num_weights), x), 2)


def parties_of(draw: Draw) -> Any:
    features, outputs = draw.width(), draw.width()
    kind = draw.one_of("linear", "mlp", "units")
    if kind == "linear":
        return LinearEmbedding(outputs, features), (outputs, features), features
    hidden = outputs if kind == "units" else draw.width()
    activation = draw.one_of("relu", "tanh")
    model = MlpNetwork(outputs, features, hidden, activation, linear=kind == "mlp")
    return model, (sum(map(np.prod, model.shapes)),), features


def parties(draw: Draw) -> Case:
    """Models of several parties, and the head that adds their outputs up."""
    model, shape, features = parties_of(draw)
    count = draw.one_of(1, 2, 4)
    x = draw.normal(count, draw.rows(), features)

    def logits(weights: Any, bias: Any, x: Any) -> Any:
        h = jax.vmap(model.apply)(weights, x)
        return added(bias, h)

    weights = 0.4 * draw.normal(count, *shape)
    return Case(logits, (weights, draw.normal(model.num_outputs), x), 3)


def transfer(draw: Draw) -> Case:
    """Prototype, alignment and label loss of two parties of one architecture."""
    outputs, features = draw.width(), draw.width()
    model = MlpNetwork(outputs, features, outputs, "tanh", linear=False)
    rows = draw.rows() + 1
    x = draw.normal(2, rows, features)
    y = draw.labels(rows, 2)
    common = np.arange(rows - 1)
    size = sum(map(np.prod, model.shapes))

    def objective(weights: Any, x: Any) -> Any:
        vertical = VerticalProblem(
            x, jnp.asarray(y), x, jnp.asarray(y), jnp.asarray(0.3), jnp.asarray(0.0),
            model, "taylor", "mean", (features,) * 2,
        )  # fmt: skip
        problem = TransferProblem.of(vertical, jnp.asarray(common), 0.7)
        return problem.objective((weights, None))

    return Case(objective, (0.4 * draw.normal(2, size), x), 2)


def loss(draw: Draw) -> Case:
    kind = draw.one_of("softmax", "sigmoid", "hinge", "taylor")
    classes = draw.width() if kind in ("softmax", "hinge") else 1
    rows, models = draw.rows(), draw.one_of(1, 3)
    y = jnp.asarray(draw.labels(rows, classes))
    present = jnp.arange(rows) < max(rows - 1, 1)
    reduction = draw.one_of("mean", "sum")

    def value(logits: Any) -> Any:
        each = jax.vmap(lambda z: losses.per_sample(kind, z, y))(logits)
        return losses.reduce(reduction, each, present)

    return Case(value, (2 * draw.normal(models, classes, rows),), 1)


def unpadded(draw: Draw) -> Case:
    form = draw.one_of("patches", "native")
    kernel = draw.one_of(1, 2, 3)
    images = draw.normal(
        draw.width(5), kernel + 3, kernel + draw.one_of(0, 2), draw.rows()
    )
    kernels = draw.normal(draw.width(5), images.shape[0], kernel, kernel)
    return Case(lambda x, k: convolve(x, k, form), (images, kernels), 2)


def pools(draw: Draw) -> Case:
    images = draw.normal(
        draw.width(), draw.width(6) + 2, draw.width(6) + 2, draw.rows()
    )
    return Case(lambda x: pool(x), (images,), 1)


def deep_cnn(draw: Draw) -> Case:
    channels = tuple(draw.width(4) for _ in range(draw.one_of(1, 2, 3, 4)))
    height, width, depth = draw.one_of(4, 5), draw.one_of(4, 6), draw.one_of(1, 2)
    config = DeepCnn(channels=channels, kernel=draw.one_of(1, 3))
    model = DeepCnnNetwork(config, (height, width, depth), draw.width())
    x = draw.normal(draw.rows(), height * width * depth)
    return Case(model.apply, (draw.weights(sum(map(np.prod, model.shapes))), x), 2)


def party_lstm(draw: Draw) -> Case:
    frames = draw.one_of(2, 4)
    config = Lstm(layers=draw.one_of(1, 2), cells=draw.width(), frames=frames)
    columns = frames * draw.width()
    model = PartyLstm(config, draw.width(), columns)
    x = draw.normal(draw.rows(), columns)
    return Case(model.apply, (draw.weights(sum(map(np.prod, model.shapes))), x), 2)


def deep_parties(draw: Draw) -> Case:
    """Networks of parties with views and noise in all layers, and the server's."""
    views, width, features = draw.one_of(1, 2), draw.width(), draw.width()
    network = DenseNetwork((features, draw.width(), width), draw.one_of("relu", "tanh"))
    party = PartyNetwork(network, width, views, draw.one_of("relu", "tanh"))
    hidden = tuple(draw.width() for _ in range(draw.one_of(0, 1)))
    combine = draw.one_of("sum", "weighted_sum", "concat")
    config = ServerModel(width=width, views=views, combine=combine, hidden=hidden)
    server = ServerNetwork(config, draw.one_of(1, 3), draw.width())
    rows, count = draw.rows(), server.num_parties
    noise = [draw.normal(count, *shape, rows) for shape in party.hidden_shapes]
    last = draw.normal(count, party.num_outputs, rows)
    x = draw.normal(count, rows, views * features)

    def logits(weights: Any, theta: Any, x: Any, last: Any, *noise: Any) -> Any:
        h = jax.vmap(party.apply)(weights, x, noise, last)
        return server.apply(theta, h)

    size = sum(map(np.prod, network.shapes))
    weights = 0.4 * draw.normal(count, size)
    theta = draw.weights(sum(map(np.prod, server.shapes)))
    return Case(logits, (weights, theta, x, last, *noise), 4)


KINDS: dict[str, Callable[[Draw], Case]] = {
    kind.__name__: kind
    for kind in (
        linear, dense, lstm_layer, lstm, language, cnn, parties, transfer, loss,
        unpadded, pools, deep_cnn, party_lstm,
        deep_parties,
    )
}  # fmt: skip
