"""The transformer against explicit loops, its causality, and what it weighs."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.models import flat, flat_network
from stalesim.simulator.models.parts import Shapes
from stalesim.simulator.models.transformer.network import (
    TransformerNetwork,
    transformer,
)
from stalesim.simulator.models.transformer.part import Transformer

TOKENS, LENGTH = 7, 5
SIZES = [(1, 1, 4, 4, True), (2, 2, 6, 2, True), (3, 4, 8, 1, False)]
"""Layers, heads, width, expansion, and whether the logits are tied."""


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def network(
    layers: int = 2, heads: int = 2, width: int = 6, expansion: int = 2,
    tied: bool = True,
) -> TransformerNetwork:  # fmt: skip
    config = Transformer(
        layers=layers, heads=heads, width=width, expansion=expansion, tied=tied
    )
    return transformer(config, TOKENS, LENGTH, "horizontal")


def drawn(model: TransformerNetwork, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = 0.7 * rng.normal(size=model.num_weights)
    return weights, rng.integers(0, TOKENS, (num_rows, LENGTH))


def slow_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return gain * (x - x.mean()) / math.sqrt(x.var() + 1e-5)


def slow_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def slow_attention(
    x: list[np.ndarray], w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray,
    w_o: np.ndarray, heads: int,
) -> list[np.ndarray]:  # fmt: skip
    """Returns what each token gets, head by head and token by token."""
    size = len(x[0]) // heads
    outputs = []
    for now in range(len(x)):
        joined = []
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            query = w_q[rows] @ x[now]
            scores = [
                math.exp(query @ (w_k[rows] @ x[then]) / math.sqrt(size))
                for then in range(now + 1)
            ]
            joined.append(
                sum(
                    score / sum(scores) * (w_v[rows] @ x[then])
                    for then, score in enumerate(scores)
                )
            )
        outputs.append(w_o @ np.concatenate(joined))
    return outputs


def slow_logits(
    model: TransformerNetwork, weights: np.ndarray, tokens: np.ndarray
) -> np.ndarray:
    at, config = 0, model.config
    width, hidden = config.width, config.expansion * config.width

    def take(*shape: int) -> np.ndarray:
        nonlocal at
        at += math.prod(shape)
        return weights[at - math.prod(shape) : at].reshape(shape)

    embedding, positions = take(TOKENS, width), take(LENGTH, width)
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
    out = embedding if config.tied else take(TOKENS, width)
    assert at == weights.size
    columns = []
    for row in tokens:
        x = [embedding[t] + p for t, p in zip(row, positions, strict=True)]
        for first, matrices, second, enter, leave in layers:
            inputs = [slow_norm(one, first) for one in x]
            taken = slow_attention(inputs, *matrices, config.heads)
            x = [one + more for one, more in zip(x, taken, strict=True)]
            for place, one in enumerate(x):
                units = [slow_gelu(unit) for unit in enter @ slow_norm(one, second)]
                x[place] = one + leave @ np.array(units)
        columns += [out @ slow_norm(one, last) for one in x]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("sizes", SIZES)
def test_logits_are_those_of_explicit_loops(
    sizes: tuple[int, int, int, int, bool],
) -> None:
    model = network(*sizes)
    weights, tokens = drawn(model, 3)
    logits = jax.jit(model.apply)(jnp.asarray(weights), jnp.asarray(tokens, float))
    expected = slow_logits(model, weights, tokens)
    np.testing.assert_allclose(logits, expected, atol=1e-11)


@pytest.mark.parametrize("tied", [True, False])
def test_gradient_is_that_of_finite_differences(tied: bool) -> None:
    model = network(tied=tied)
    weights, tokens = drawn(model, 2)
    slopes = np.random.default_rng(1).normal(size=(TOKENS, 2 * LENGTH))

    def total(weights: jax.Array) -> jax.Array:
        return jnp.sum(slopes * model.apply(weights, jnp.asarray(tokens, float)))

    gradient = jax.jit(jax.grad(total))(jnp.asarray(weights))
    ends = np.cumsum([math.prod(shape) for shape in model.shapes])
    # The first and the last coordinate of every array.
    for place in (*(ends - 1).tolist(), *(ends[:-1]).tolist(), 0):
        step = np.zeros(weights.size)
        step[place] = 1e-6
        ahead, behind = (
            np.sum(slopes * slow_logits(model, weights + s, tokens))
            for s in (step, -step)
        )
        expected = (ahead - behind) / 2e-6
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-5, atol=1e-7)


def test_a_later_token_changes_no_earlier_logits() -> None:
    model = network()
    weights, tokens = drawn(model, 1)
    apply = jax.jit(model.apply)
    before = np.asarray(apply(jnp.asarray(weights), jnp.asarray(tokens, float)))
    for place in range(LENGTH):
        changed = tokens.copy()
        changed[0, place] = (changed[0, place] + 1) % TOKENS
        after = np.asarray(apply(jnp.asarray(weights), jnp.asarray(changed, float)))
        np.testing.assert_array_equal(after[:, :place], before[:, :place])
        different = np.any(after != before, axis=0)
        assert different[place:].all()


def test_many_models_at_once_and_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(1)
    _, tokens = drawn(model, 7)
    weights = np.random.default_rng(2).normal(size=(3, model.num_weights))
    each = [slow_logits(model, w, tokens) for w in weights]
    monkeypatch.setattr(flat_network, "BLOCK", 3)
    every = jax.jit(jax.vmap(model.train, (0, None)))
    logits, statistics = every(jnp.asarray(weights), jnp.asarray(tokens, float))
    np.testing.assert_allclose(logits, np.stack(each), atol=1e-11)
    assert (statistics.shape, model.num_statistics) == ((3, 0), 0)


def test_gradients_of_split_are_those_of_slices_without_their_padding() -> None:
    shapes = ((2, 3), (3,), (2, 2, 2))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=17))

    def slices(w: jax.Array, shapes: Shapes) -> list[jax.Array]:
        cut = (w[:6], w[6:9], w[9:])
        return [part.reshape(shape) for part, shape in zip(cut, shapes, strict=True)]

    def total(arrays: list[jax.Array]) -> jax.Array:
        matrix, row, cube = arrays
        return jnp.sum(jnp.sin(matrix) * row[None]) + jnp.sum(cube**3) * matrix[0, 0]

    one, other = (
        jax.jit(jax.hessian(lambda w, f=f: total(f(w, shapes))))(weights)
        for f in (flat.split, slices)
    )
    np.testing.assert_allclose(one, other, atol=1e-14)
    gradients = (
        jax.grad(lambda w, f=f: total(f(w, shapes))) for f in (flat.split, slices)
    )
    pads = [str(jax.make_jaxpr(way)(weights)).count(" pad[") for way in gradients]
    assert pads[1] - pads[0] == len(shapes)


@pytest.mark.parametrize(
    ("options", "tokens", "count"),
    [
        # 12 width^2 + 2 width a layer; tokens, positions and the last gains.
        ({}, 65, 65 * 64 + 64 * 64 + 2 * (12 * 64**2 + 128) + 64),
        ({"tied": False}, 65, 2 * 65 * 64 + 64 * 64 + 2 * (12 * 64**2 + 128) + 64),
        ({"layers": 4, "width": 128}, 65, 129 * 128 + 4 * (12 * 128**2 + 256) + 128),
        # One logit of two classes has a matrix of its own.
        ({"layers": 1}, 1, 2 * 64 + 64 * 64 + 12 * 64**2 + 128 + 64 + 64),
    ],
)
def test_weighs_what_its_arrays_do(options: dict, tokens: int, count: int) -> None:
    config = Transformer(**options)
    assert config.num_weights(64, tokens) == count
    assert transformer(config, tokens, 64, "horizontal").num_weights == count


def test_start_and_what_is_regularised() -> None:
    model = transformer(Transformer(layers=2, width=32, heads=2), 65, 64, "horizontal")
    start = np.asarray(model.init(jax.random.key(0)))
    assert start.shape == (model.num_weights,) == model.regularised().shape
    assert model.num_noised == (65 + 64) * 32
    ends = np.cumsum([math.prod(shape) for shape in model.shapes])[:-1]
    kept = np.split(model.regularised(), ends)
    of_layer = [0, 0.02, 0.02, 0.02, 0.01, 0, 0.02, 0.01]
    for part, regularised, deviation in zip(
        np.split(start, ends), kept, [0.02, 0.02, *of_layer * 2, 0], strict=True
    ):
        if deviation == 0:
            assert (part == 1).all()
            assert not regularised.any()
        else:
            # 1,024 numbers or more: the deviation is known to 2.2 %.
            np.testing.assert_allclose(part.std(), deviation, rtol=0.1)
            assert abs(part.mean()) < 4 * deviation / math.sqrt(part.size)
            assert regularised.all()


def test_logits_after_the_last_token_alone() -> None:
    """Also in blocks of rows, where there are more than one block holds."""
    model = network()
    weights, x = (jnp.asarray(a, float) for a in drawn(model, flat_network.BLOCK + 3))
    every = np.asarray(model.apply(weights, x)).reshape(TOKENS, -1, LENGTH)
    last = replace(model, last=True).apply(weights, x)
    np.testing.assert_allclose(last, every[:, :, -1], rtol=1e-12)
