"""The network of a party's part of images: sizes, padding, and what it computes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.extras.papers.view_cnn.part import ViewCnn
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.studies import planned
from tests.support import scenario
from tests.unit.models.test_embeddings import applied, begun, parts_of, some

CNN = ViewCnn(channels=(3, 2), kernel=3, dense=7, image=(8, 6, 2))


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("outputs", [1, 10])
def test_the_plain_count_is_the_number_of_weights(outputs: int) -> None:
    network = CNN.make(outputs, 96, "vertical")
    weights = jax.eval_shape(lambda: network.init(jax.random.key(0), 96))
    assert weights.shape == (CNN.num_weights(96, outputs),)
    rows = jax.ShapeDtypeStruct((9, 96), "float64")
    assert jax.eval_shape(network.apply, weights, rows).shape == (outputs, 9)


def test_numbers_of_the_papers_network() -> None:
    half = ViewCnn(image=(28, 14, 1))
    # Two convolutions 64@3x3, and what is left of 28 x 14 pixels, 24 x 10.
    dense = 256 * (64 * 24 * 10 + 1)
    convolutions = 64 * (9 + 1) + 64 * (64 * 9 + 1)
    assert half.num_weights(392, 1) == convolutions + dense + 256


def test_layers_of_a_cnn_start_within_their_own_limits() -> None:
    network = CNN.make(2, 96, "vertical")
    weights = begun(network, 0, 96)
    parts = parts_of(weights, network.shapes)
    for part, inputs in zip(parts[:-1], (18, 18, 27, 27, 16, 16), strict=True):
        assert 0.3 < np.abs(part).max() * np.sqrt(inputs) <= 1
    assert (parts[-1] == 0).all()
    with jax.enable_x64(False):
        single = begun(network, 0, 96)
    assert single.tolist() == weights.tolist()


def test_a_cnn_is_xlas_convolutions() -> None:
    network = CNN.make(4, 96, "vertical")
    weights, x = some(CNN.num_weights(96, 4)), some(5, 96, seed=1)
    *convolutions, dense, bias, out = parts_of(weights, network.shapes)
    one, bias_1, two, bias_2 = map(jnp.asarray, convolutions)

    def layer(images: jax.Array, kernels: jax.Array, bias: jax.Array) -> jax.Array:
        found = lax.conv(images, kernels, (1, 1), "VALID")
        return jnp.maximum(found + bias[None, :, None, None], 0)

    def layers(x: jax.Array) -> jax.Array:
        return layer(layer(x.reshape(5, 2, 8, 6), one, bias_1), two, bias_2)

    images = np.asarray(jax.jit(layers)(x))
    assert images.shape == (5, 2, 4, 2)
    units = np.maximum(images.reshape(5, -1) @ dense.T + bias, 0)
    found = applied(network, weights, x)
    np.testing.assert_allclose(found, out @ units.T, rtol=1e-11)


@pytest.mark.parametrize(
    ("config", "columns", "says"),
    [
        (CNN, 95, r"image must have as many .*, 95, got \(8, 6, 2\) with 96"),
        (CNN.replaced(image=None), 30, "got 30 columns; set problem.model.image"),
        (
            CNN.replaced(image=(4, 24, 1)),
            96,
            "at least 5 x 5 pixels .* got 4 x 24; lower problem.model.kernel",
        ),
        (CNN.replaced(kernel=4), 96, "at least 7 x 7 pixels .* of 4 x 4, got 8 x 6"),
    ],
)
def test_images_of_a_wrong_size(config: ViewCnn, columns: int, says: str) -> None:
    for look in (
        lambda: config.make(1, columns, "vertical"),
        lambda: config.num_weights(columns, 1),
    ):
        with pytest.raises(ScenarioError, match=says) as caught:
            look()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("centralised", [False, True])
def test_a_network_of_strips_can_be_planned(*, centralised: bool) -> None:
    model = {"kind": "view_cnn", "channels": [2, 3], "kernel": 2, "dense": 4}
    changes: dict[str, Any] = {
        "problem": {
            "data": {"kind": "digits", "classes": "even_odd"},
            "partition": None,
            "model": model | {"image": [8, 4, 1]},
        }
    }
    strips = {"problem": {"partition": {"kind": "strips", "parties": 2}}}
    if centralised:
        changes["protocol"] = {"kind": "centralised"}
    (run,), (task,) = planned(scenario(changes, strips))
    assert task.mode == "compiled"
    of_party = run.scenario.problem.model.num_weights(32, 1)
    assert set_up(run).shape.num_weights == 2 * of_party
    # 17 samples, of two parties with parts of 8 x 4 pixels


def test_many_samples_are_as_few_by_few() -> None:
    """Blocks of samples, the last one padded, change nothing."""
    network = CNN.make(3, 96, "vertical")
    weights, x = some(CNN.num_weights(96, 3)), some(8 * 64 + 5, 96, seed=1)
    wanted = np.concatenate(
        [applied(network, weights, part) for part in (x[:99], x[99:])], 1
    )
    np.testing.assert_allclose(applied(network, weights, x), wanted, rtol=1e-12)
