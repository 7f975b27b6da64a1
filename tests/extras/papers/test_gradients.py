"""Gradients of the papers' layers and networks, against finite differences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.extras.papers.cifar_net import layers
from stalesim.simulator.extras.papers.view_cnn.network import ViewCnnNetwork
from stalesim.simulator.extras.papers.view_cnn.part import ViewCnn
from stalesim.simulator.problem.vertical import added
from tests.property.gradient_cases import Case, Draw
from tests.property.test_gradients import MORE, check


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def padded(draw: Draw) -> Case:
    form, kernel = draw.one_of("patches", "native"), draw.one_of(1, 3)
    stride, groups = draw.one_of(1, 2), draw.one_of(1, 2, 5)
    each, depthwise = draw.one_of(1, 2), draw.one_of(True, False)
    inputs = groups if depthwise else groups * each
    images = draw.normal(inputs, draw.width(6), draw.width(6), draw.rows())
    outputs = groups if depthwise else groups * draw.one_of(1, 2)
    kernels = draw.normal(outputs, inputs // groups, kernel, kernel)

    def convolved(x: Any, k: Any) -> Any:
        return layers.convolve(x, k, stride, groups, form)

    return Case(convolved, (images, kernels), 2)


def group_norm(draw: Draw) -> Case:
    groups = draw.one_of(1, 2)
    channels = groups * draw.one_of(2, 5)
    images = draw.normal(channels, draw.width(5), draw.width(5) + 1, draw.rows())
    arrays = images, draw.normal(channels), draw.normal(channels)
    return Case(lambda x, a, b: layers.group_norm(x, a, b, groups), arrays, 3)


def batch_norm(draw: Draw) -> Case:
    channels = draw.width()
    images = draw.normal(channels, draw.width(5), draw.width(5) + 1, draw.rows())

    def normalised(x: Any, scale: Any, shift: Any) -> Any:
        return layers.batch_norm(x, scale, shift, *layers.moments(x))

    arrays = images, draw.normal(channels), draw.normal(channels)
    return Case(normalised, arrays, 3)


def squeezed(draw: Draw) -> Case:
    """Channels shuffled, split, joined, and multiplied by what their means say."""
    channels = 2 * draw.width(4)
    images = draw.normal(channels, draw.width(4), draw.width(4), draw.rows())

    def both(x: Any, y: Any) -> Any:
        x = layers.shuffle(x, 2)
        x = jnp.concatenate(
            [x[channels // 2 :], y[: channels // 2] * x[: channels // 2]]
        )
        return x * jax.nn.sigmoid(x.mean(axis=(1, 2), keepdims=True))

    return Case(both, (images, draw.normal(*images.shape)), 2)


def overlapping_pools(draw: Draw) -> Case:
    images = draw.normal(
        draw.width(), draw.width(6) + 2, draw.width(6) + 2, draw.rows()
    )
    return Case(lambda x: layers.max_pool(x, 3, 2, 1), (images,), 1)


def view_cnn(draw: Draw) -> Case:
    """Networks of several parties, and the head that adds their outputs up."""
    channels, kernel = (draw.width(), draw.width()), draw.one_of(1, 2, 3)
    config = ViewCnn(channels=channels, kernel=kernel, dense=draw.width())
    model = ViewCnnNetwork(config, (5, 6, 1), draw.width())
    count = draw.one_of(1, 2, 4)
    x = draw.normal(count, draw.rows(), 30)

    def logits(weights: Any, bias: Any, x: Any) -> Any:
        return added(bias, jax.vmap(model.apply)(weights, x))

    weights = 0.4 * draw.normal(count, sum(map(np.prod, model.shapes)))
    return Case(logits, (weights, draw.normal(model.num_outputs), x), 3)


KINDS = (padded, group_norm, batch_norm, squeezed, overlapping_pools, view_cnn)


@pytest.mark.parametrize("kind", KINDS)
def test_four_rows_and_widths_of_five(kind: Any) -> None:
    check(kind, 0)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 1 + MORE))
def test_sizes_that_are_drawn(number: int) -> None:
    for kind in KINDS:
        check(kind, number)
