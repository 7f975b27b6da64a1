"""Networks of one flat vector: against explicit loops in NumPy, and what they weigh.

Their gradients are compared with differences in `tests/property/test_gradients.py`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.models.cnn.network import CnnNetwork
from stalesim.simulator.catalogue.models.cnn.part import Cnn
from stalesim.simulator.catalogue.models.lstm.part import Lstm
from stalesim.simulator.catalogue.models.transformer.part import Transformer
from stalesim.simulator.engine.client_work import Work, clipped, noised
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.data.images import image_shape
from stalesim.simulator.problem.horizontal import build
from stalesim.simulator.problem.models import flat
from stalesim.simulator.problem.models.dense.part import Dense
from stalesim.simulator.problem.models.parts import Shapes
from tests.quick import once

RGB = Cnn(channels=(3, 4), kernel=3, image=(13, 12, 3))
CASES: dict[str, tuple[Any, int, int]] = {
    "cnn": (RGB, 468, 5),
    "cnn of the paper": (Cnn(), 256, 10),
    "dense": (Dense(hidden=(3,)), 7, 4),
    "dense of two layers": (Dense(hidden=(5, 4)), 7, 4),
    "dense, tanh": (Dense(hidden=(2, 6, 3), activation="tanh"), 7, 4),
    "lstm": (Lstm(layers=1, cells=2, projection=3, frames=4), 12, 5),
    "lstm of layers": (Lstm(layers=3, cells=2, projection=4, frames=4), 12, 5),
    "transformer": (Transformer(layers=1, heads=1, width=4), 5, 7),
    "heads": (Transformer(layers=2, heads=2, width=6, expansion=2), 5, 7),
    "untied": (Transformer(layers=3, heads=4, width=8, expansion=1, tied=False), 5, 7),
}
"""Options of a network, columns of a row, and outputs."""


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def network(name: str) -> Any:
    config, columns, outputs = CASES[name]
    return config.make(outputs, columns, "horizontal")


def drawn(name: str, num_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns weights of a network, and rows, of tokens where it takes them."""
    config, columns, outputs = CASES[name]
    rng, count = np.random.default_rng(seed), network(name).num_weights
    scale = {"cnn": 0.2, "transformer": 0.7}.get(config.kind, 1.0)
    weights, shape = scale * rng.normal(size=count), (num_rows, columns)
    tokens = config.takes_tokens
    x = rng.integers(0, outputs, shape) if tokens else rng.normal(size=shape)
    return weights, x.astype(float)


class Taken:
    """Takes arrays from a flat vector, and must end with it."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def __call__(self, *shape: int) -> np.ndarray:
        size = math.prod(shape)
        taken, self.weights = self.weights[:size], self.weights[size:]
        return taken.reshape(shape)

    def layer(self, *shape: int) -> tuple[np.ndarray, np.ndarray]:
        return self(*shape), self(shape[0])


def slow_pool(image: np.ndarray, kernels: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Convolution, ReLU, pool of one image `[C, H, W]`, in the order of their names."""
    size = kernels.shape[-1]
    rows, columns = image.shape[1] - size + 1, image.shape[2] - size + 1
    hidden = np.zeros((len(bias), rows, columns))
    for c, i, j in np.ndindex(*hidden.shape):
        total = bias[c]
        for d, a, b in np.ndindex(*kernels.shape[1:]):
            total += kernels[c, d, a, b] * image[d, i + a, j + b]
        hidden[c, i, j] = max(total, 0.0)
    out = np.zeros((len(bias), rows // 2, columns // 2))
    for c, i, j in np.ndindex(*out.shape):
        out[c, i, j] = hidden[c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max()
    return out


def slow_cnn(
    config: Cnn, take: Taken, x: np.ndarray, num_outputs: int
) -> Iterator[np.ndarray]:
    height, width, depth = image_shape(x.shape[1], config.image)
    (first, second), size = config.channels, config.kernel
    one = take.layer(first, depth, size, size)
    two = take.layer(second, first, size, size)
    dense = None
    for row in x:
        image = slow_pool(row.reshape(depth, height, width), *one)
        inputs = slow_pool(image, *two).reshape(-1)
        dense = dense or take.layer(num_outputs, inputs.size)
        yield dense[0] @ inputs + dense[1]


def slow_dense(
    config: Dense, take: Taken, x: np.ndarray, num_outputs: int
) -> Iterator[np.ndarray]:
    widths = x.shape[1], *config.hidden, num_outputs
    *hidden, (matrix, bias) = [take.layer(out, inp) for inp, out in pairwise(widths)]
    for row in x:
        for inner, shift in hidden:
            sums = inner @ row + shift
            row = np.tanh(sums) if config.activation == "tanh" else sums * (sums > 0)
        yield matrix @ row + bias


def one_way(
    w_i: np.ndarray, w_h: np.ndarray, b: np.ndarray, x: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """One direction of a layer on the frames of one row, by PyTorch's equations."""
    cells = w_h.shape[1]
    h, c, outputs = np.zeros(cells), np.zeros(cells), []
    for frame in x:
        i, f, g, o = (w_i @ frame + w_h @ h + b).reshape(4, cells)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        outputs.append(h)
    return outputs


def both_ways(arrays: Sequence[np.ndarray], x: list[np.ndarray]) -> list[np.ndarray]:
    w_i, w_h, b = arrays[0], arrays[1], arrays[2] + arrays[3]
    ahead = one_way(w_i[0], w_h[0], b[0], x)
    back = one_way(w_i[1], w_h[1], b[1], x[::-1])[::-1]
    return [np.concatenate(two) for two in zip(ahead, back, strict=True)]


def slow_lstm(
    config: Lstm, take: Taken, x: np.ndarray, num_outputs: int
) -> Iterator[np.ndarray]:
    layers, width, gates = [], x.shape[1] // config.frames, 4 * config.cells
    for _ in range(config.layers):
        shapes = (2, gates, width), (2, gates, config.cells), (2, gates), (2, gates)
        layers.append([take(*shape) for shape in shapes])
        width = 2 * config.cells
    projection = take.layer(config.projection, width)
    dense = take.layer(num_outputs, config.projection)
    for row in x:
        hidden = list(row.reshape(config.frames, -1))
        for arrays in layers:
            hidden = both_ways(arrays, hidden)
        for frame in hidden:
            yield dense[0] @ (projection[0] @ frame + projection[1]) + dense[1]


def slow_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return gain * (x - x.mean()) / math.sqrt(x.var() + 1e-5)


def slow_gelu(x: np.ndarray) -> np.ndarray:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def slow_attention(
    x: list[np.ndarray], matrices: list[np.ndarray], heads: int
) -> list[np.ndarray]:
    """Returns what each token gets, head by head and token by token."""
    w_q, w_k, w_v, w_o = matrices
    size, outputs = len(x[0]) // heads, []
    for now, token in enumerate(x):
        joined = []
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            query, earlier = w_q[rows] @ token, x[: now + 1]
            score = [math.exp(query @ (w_k[rows] @ e) / size**0.5) for e in earlier]
            taken = [s * (w_v[rows] @ e) for s, e in zip(score, earlier, strict=True)]
            joined.append(sum(taken) / sum(score))
        outputs.append(w_o @ np.concatenate(joined))
    return outputs


def slow_transformer(
    config: Transformer, take: Taken, x: np.ndarray, num_outputs: int
) -> Iterator[np.ndarray]:
    width, hidden = config.width, config.expansion * config.width
    embedding, positions = take(num_outputs, width), take(x.shape[1], width)
    layers = [
        (
            take(width),
            [take(width, width) for _ in range(4)],
            take(width),
            take(hidden, width),
            take(width, hidden),
        )
        for _ in range(config.layers)
    ]
    last = take(width)
    out = embedding if config.tied else take(num_outputs, width)
    for row in x.astype(int):
        tokens = [embedding[t] + p for t, p in zip(row, positions, strict=True)]
        for first, matrices, second, enter, leave in layers:
            inputs = [slow_norm(one, first) for one in tokens]
            taken = slow_attention(inputs, matrices, config.heads)
            tokens = [one + more for one, more in zip(tokens, taken, strict=True)]
            tokens = [
                one + leave @ slow_gelu(enter @ slow_norm(one, second))
                for one in tokens
            ]
        for one in tokens:
            yield out @ slow_norm(one, last)


SLOW: dict[str, Any] = {
    "cnn": slow_cnn,
    "dense": slow_dense,
    "lstm": slow_lstm,
    "transformer": slow_transformer,
}


def slow_logits(name: str, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    config, _, outputs = CASES[name]
    take = Taken(weights)
    columns = list(SLOW[config.kind](config, take, x, outputs))
    assert not take.weights.size
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_explicit_loops(name: str) -> None:
    weights, x = drawn(name, 2)
    logits = once(network(name).apply, jnp.asarray(weights), jnp.asarray(x))
    np.testing.assert_allclose(logits, slow_logits(name, weights, x), atol=1e-11)


@pytest.mark.parametrize("name", ["cnn", "dense, tanh", "lstm", "transformer"])
def test_many_models_at_once_and_many_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows block by block, and gradients through the blocks."""
    model, several = network(name), [drawn(name, 7, seed)[0] for seed in range(3)]
    x = drawn(name, 7)[1]
    each = np.stack([slow_logits(name, weights, x) for weights in several])
    slopes = np.random.default_rng(1).normal(size=each.shape[1:])

    def total(weights: jax.Array) -> tuple[jax.Array, Any]:
        logits, statistics = model.train(weights, jnp.asarray(x))
        return jnp.sum(slopes * logits), (logits, statistics)

    pulled = jax.grad(total, has_aux=True)
    one, _ = once(pulled, jnp.asarray(several[0]))
    monkeypatch.setattr(flat, "BLOCK", 3)
    gradients, (logits, statistics) = once(jax.vmap(pulled), jnp.asarray(several))
    np.testing.assert_allclose(logits, each, atol=1e-11)
    np.testing.assert_allclose(gradients[0], one, atol=1e-11)
    assert (statistics.shape, model.num_statistics) == ((3, 0), 0)
    np.testing.assert_array_equal(model.features(x), x)


FIRST = {
    "cnn": 3 * (3 * 9 + 1),
    "cnn of the paper": 260,
    "dense": 3 * 8,
    "dense of two layers": 5 * 8,
    "dense, tanh": 2 * 8,
    "lstm": 2 * 4 * 2 * (3 + 2 + 2),
    "lstm of layers": 2 * 4 * 2 * (3 + 2 + 2),
    "transformer": (7 + 5) * 4,
    "heads": (7 + 5) * 6,
    "untied": (7 + 5) * 8,
}
"""Numbers of the first layer, which noise may be limited to."""


@pytest.mark.parametrize("name", CASES)
def test_the_plain_count_is_the_number_of_weights(name: str) -> None:
    config, columns, outputs = CASES[name]
    model = network(name)
    start = jax.eval_shape(model.init, jax.random.key(0))
    mask, at = model.regularised(), 0
    assert start.shape == mask.shape == (config.num_weights(columns, outputs),)
    assert model.num_noised == FIRST[name]
    for shape in model.shapes:
        count = math.prod(shape)
        is_matrix = len(shape) > (1 + (shape[0] == 2 and config.kind == "lstm"))
        assert (mask[at : at + count] == is_matrix).all()
        at += count


@pytest.mark.parametrize(
    ("config", "columns", "outputs", "count"),
    [
        (Cnn(), 784, 10, 4380),
        # Section 5.7 of the specification: 784-128-64-10 with ReLU.
        (Dense(), 784, 10, 785 * 128 + 129 * 64 + 65 * 10),
        # The 164.62 MB of Table 2 of A(DP)2SGD.
        (Lstm(), 21 * 260, 32_000, 43_154_944),
        # 12 width^2 + 2 width a layer; tokens, positions and the last gains.
        (Transformer(), 64, 65, 65 * 64 + 64 * 64 + 2 * (12 * 64**2 + 128) + 64),
        (
            Transformer(tied=False),
            64,
            65,
            2 * 65 * 64 + 64 * 64 + 2 * (12 * 64**2 + 128) + 64,
        ),
        (
            Transformer(layers=4, width=128),
            64,
            65,
            129 * 128 + 4 * (12 * 128**2 + 256) + 128,
        ),
        # One logit of two classes has a matrix of its own.
        (
            Transformer(layers=1),
            64,
            1,
            2 * 64 + 64 * 64 + 12 * 64**2 + 128 + 64 + 64,
        ),
    ],
)
def test_known_networks_weigh_what_they_do(
    config: Any, columns: int, outputs: int, count: int
) -> None:
    assert config.num_weights(columns, outputs) == count
    assert config.make(outputs, columns, "horizontal").num_weights == count
    assert Dense().activation == "relu"


@pytest.mark.parametrize(
    ("config", "columns", "fans"),
    [
        (Cnn(), 784, (25, 25, 250, 250, 160, 160)),
        (Dense(hidden=(128, 64)), 64, (64, 64, 128, 128, 64, 64)),
        (Lstm(layers=2, cells=4, projection=5, frames=4), 12, [4] * 8 + [8, 8, 5, 5]),
    ],
)
def test_weights_start_within_their_limits(
    config: Any, columns: int, fans: Sequence[int]
) -> None:
    model = config.make(10, columns, "horizontal")
    weights = model.init(jax.random.key(0))
    ends = np.cumsum([math.prod(shape) for shape in model.shapes])
    for part, inputs in zip(np.split(weights, ends[:-1]), fans, strict=True):
        scaled = np.abs(part) * np.sqrt(inputs)
        assert 0.5 < scaled.max() <= 1 + 1e-6
        if part.size > 1000:  # the deviation of such a mean is below a hundredth
            assert scaled.mean() == pytest.approx(0.5, abs=0.05)
    with jax.enable_x64(False):
        single = model.init(jax.random.key(0))
    assert single.tolist() == weights.tolist()
    assert (model.init(jax.random.key(1)) != weights).mean() > 0.99


def test_a_transformer_starts_with_normal_matrices_and_gains_of_one() -> None:
    model = Transformer(layers=2, width=32, heads=2).make(65, 64, "horizontal")
    start = np.asarray(model.init(jax.random.key(0)))
    ends = np.cumsum([math.prod(shape) for shape in model.shapes])[:-1]
    of_layer = [0, 0.02, 0.02, 0.02, 0.01, 0, 0.02, 0.01]
    for part, deviation in zip(
        np.split(start, ends), [0.02, 0.02, *of_layer * 2, 0], strict=True
    ):
        if deviation == 0:
            assert (part == 1).all()
        else:
            # 1,024 numbers or more: the deviation is known to 2.2 %.
            np.testing.assert_allclose(part.std(), deviation, rtol=0.1)
            assert abs(part.mean()) < 4 * deviation / math.sqrt(part.size)


def test_only_matrices_are_regularised() -> None:
    (weights, x), model = (
        drawn("dense of two layers", 6),
        network("dense of two layers"),
    )
    y = np.arange(6) % 4
    options: Any = {"reduction": "mean", "dtype": "float64"}
    data = Dataset("test", x, y, x, y, 4, ())
    problem = build(data, model, 2, loss="softmax", l2=0.5, **options)

    def gradients(weights: jax.Array) -> tuple[jax.Array, ...]:
        everyone = problem.x, problem.y, jnp.ones(6, bool)
        whole = jax.grad(problem.objective)(weights)
        batch = jax.grad(problem.batch_loss)(weights, *everyone)
        return whole, batch, problem.penalised(weights)

    whole, batch, penalty = once(gradients, jnp.asarray(weights))
    expected = 0.5 * np.where(model.regularised(), weights, 0)
    np.testing.assert_allclose(penalty, expected, 1e-15)
    np.testing.assert_allclose(whole, batch + expected, atol=1e-14)


def test_only_the_first_convolution_lies_in_the_noised_prefix() -> None:
    model: CnnNetwork = network("cnn")
    weights = jnp.zeros(model.num_weights).at[: model.num_noised].set(1)
    parts = flat.split(weights, model.shapes)
    assert [float(part.mean()) for part in parts] == [1, 1, 0, 0, 0, 0]


def test_only_what_is_noised_is_clipped() -> None:
    """M-14: the norm is of the beginning, and the rest is sent as it is."""
    message = jnp.array([3.0, 4.0, 100.0])
    work = Work(jnp.zeros(()), message, message, {})
    sent = clipped(work, jnp.array(1.0), 2).message
    np.testing.assert_allclose(sent, [0.6, 0.8, 100], rtol=1e-6)
    after = noised(work, "gaussian", jax.random.key(0), jnp.array(1.0), 2).message
    assert (after[:2] != message[:2]).all()
    assert after[2] == 100


def test_curvature_can_be_estimated() -> None:
    (flat_weights, x), model = drawn("cnn", 2), network("cnn")
    weights, rng = jnp.asarray(flat_weights), np.random.default_rng(1)
    slope, direction = rng.normal(size=(5, 2)), rng.normal(size=weights.shape)

    @jax.jit
    def gradient(weights: jax.Array) -> jax.Array:
        def value(w: jax.Array) -> jax.Array:
            return jnp.sum(slope * jnp.tanh(model.apply(w, jnp.asarray(x))))

        return jax.grad(value)(weights)

    h = 1e-6
    rise = gradient(weights + h * direction) - gradient(weights - h * direction)
    along = once(lambda d: jax.jvp(gradient, (weights,), (d,))[1], direction)
    np.testing.assert_allclose(along, rise / (2 * h), rtol=1e-4, atol=1e-5)


def test_rows_that_do_not_count_have_no_gradient() -> None:
    (weights, x), model = drawn("cnn", 4), network("cnn")
    slope = np.random.default_rng(1).normal(size=(5, 3))

    @jax.jit
    def gradient(x: jax.Array) -> jax.Array:
        def value(w: jax.Array) -> jax.Array:
            return jnp.sum(slope * model.apply(w, x)[:, :3])

        return jax.grad(value)(jnp.asarray(weights))

    kept = gradient(x)
    for row, counts in ((3, False), (2, True)):
        other = x.copy()
        other[row] = 0
        assert (np.abs(kept - gradient(other)).max() > 1e-3) == counts


def test_a_later_token_changes_no_earlier_logits() -> None:
    weights, tokens = drawn("heads", 1)
    apply = jax.jit(network("heads").apply)
    before = np.asarray(apply(weights, tokens))
    for place in range(5):
        changed = tokens.copy()
        changed[0, place] = (changed[0, place] + 1) % 7
        after = np.asarray(apply(weights, changed))
        np.testing.assert_array_equal(after[:, :place], before[:, :place])
        assert np.any(after != before, axis=0)[place:].all()


def test_logits_after_the_last_token_alone() -> None:
    """Also in blocks of rows, where there are more than one block holds."""
    model = network("heads")
    weights, x = map(jnp.asarray, drawn("heads", flat.BLOCK + 3))
    every = np.asarray(model.apply(weights, x)).reshape(7, -1, 5)
    last = replace(model, last=True).apply(weights, x)
    np.testing.assert_allclose(last, every[:, :, -1], rtol=1e-12)


def test_gradients_of_split_are_those_of_slices_without_their_padding() -> None:
    shapes = ((2, 3), (3,), (2, 2, 2))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=17))

    def slices(w: jax.Array, shapes: Shapes) -> list[jax.Array]:
        cut = (w[:6], w[6:9], w[9:])
        return [part.reshape(shape) for part, shape in zip(cut, shapes, strict=True)]

    def total(arrays: list[jax.Array]) -> jax.Array:
        matrix, row, cube = arrays
        return jnp.sum(jnp.sin(matrix) * row[None]) + jnp.sum(cube**3) * matrix[0, 0]

    ways = [lambda w, f=f: total(f(w, shapes)) for f in (flat.split, slices)]
    one, other = (once(jax.hessian(way), weights) for way in ways)
    np.testing.assert_allclose(one, other, atol=1e-14)
    programs = [str(jax.make_jaxpr(jax.grad(way))(weights)) for way in ways]
    assert programs[1].count(" pad[") - programs[0].count(" pad[") == len(shapes)


def test_the_shape_of_images_is_inferred_or_given() -> None:
    assert image_shape(784) == (28, 28, 1)
    assert image_shape(256) == (16, 16, 1)
    assert image_shape(3072) == (32, 32, 3)
    assert image_shape(600, (20, 30)) == (20, 30, 1)
    assert image_shape(1200, (20, 30, 2)) == (20, 30, 2)


@pytest.mark.parametrize(
    ("num_features", "image", "message"),
    [
        (30, None, "got 30 columns; set problem.model.image"),
        (0, None, "got 0 columns"),
        (784, (28, 27), r"784, got \(28, 27\) with 756"),
        (784, (784,), r"must be \(height, width\)"),
        (784, (28, -28, -1), "each >= 1"),
    ],
)
def test_images_of_no_shape_are_refused(
    num_features: int, image: tuple[int, ...] | None, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        image_shape(num_features, image)


def test_columns_that_do_not_fit() -> None:
    assert Cnn().sizes((16, 17, 1)) == ((10, 12, 13), (10, 2, 2), (10, 1, 1))
    with pytest.raises(ScenarioError, match=r"at least 16 x 16 .* got 15 x 28"):
        Cnn(image=(15, 28, 1)).num_weights(15 * 28, 10)
    with pytest.raises(ScenarioError, match=r"must divide the 64 columns .* got 21"):
        Lstm().make(10, 64, "horizontal")
