"""FedBCD on ciphertexts against the same steps in the clear."""

import numpy as np
import pytest

from stalesim.simulator.privacy.encryption import Ckks
from tests.oracles import encrypted_fedbcd as encrypted
from tests.oracles.encrypted_fedbcd import ERROR, encrypted_fedbcd
from tests.reference import fedbcd_twin as twin
from tests.reference.layers_twin import Linear

Q, STEP, L2 = 4, 0.1, 0.01
WIDTHS = (3, 5, 2)
needs_tenseal = pytest.mark.usefixtures("library")


@pytest.fixture
def library():
    return pytest.importorskip("tenseal")


def drawn(scale: float = 1.0):
    rng = np.random.default_rng(7)
    x = [scale * rng.normal(size=(60, width)) for width in WIDTHS]
    y = rng.integers(0, 2, 60)
    start = [rng.normal(size=width) for width in WIDTHS]
    batches = [rng.choice(60, 16, replace=False) for _ in range(5)]
    return x, y, start, batches


@needs_tenseal
@pytest.mark.parametrize(
    ("loss", "name"), [("taylor", "taylor2"), ("sigmoid", "logistic")]
)
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_model_is_that_of_the_steps_in_the_clear(loss, name, scale) -> None:
    x, y, start, batches = drawn(scale)
    step = STEP / scale**2  # below the inverse of the smoothness
    found = encrypted_fedbcd(
        x, y, start, batches, local_steps=Q, step_size=step, loss=loss, l2=L2
    )
    models = [Linear(width) for width in WIDTHS]
    problem = twin.Problem(models, x, 2.0 * y - 1, name, L2)
    steps = [step] * len(batches)
    wanted = twin.fedbcd(problem, start, batches, steps, twin.Local(Q))
    largest = max(np.abs(own).max() for own in x)
    bound = len(batches) * Q * step * ERROR * largest
    for own, other in zip(found.weights, wanted[-1], strict=True):
        assert np.abs(own - other).max() <= bound
        assert np.abs(own - other).max() > 0  # it is not computed in the clear


@needs_tenseal
def test_messages_weigh_what_the_cost_model_says() -> None:
    x, y, start, batches = drawn()
    options = {"local_steps": 1, "step_size": STEP}
    taylor = encrypted_fedbcd(x, y, start, batches, **options)
    sums = encrypted_fedbcd(x, y, start, batches, loss="sigmoid", **options)
    wanted = 2 * len(batches) * Ckks().bytes_of(16)
    assert taylor.upload_bytes == pytest.approx(wanted, rel=0.01)
    assert sums.download_bytes == pytest.approx(wanted, rel=0.01)
    # A product is rescaled: it has one modulus of three less, of 60 + 40 + 40 bits.
    assert taylor.download_bytes == pytest.approx(wanted * 100 / 140, rel=0.02)


@needs_tenseal
def test_who_has_the_labels_cannot_decrypt() -> None:
    keys = encrypted.make_keys()
    message = encrypted._encrypt(keys, np.ones(3))
    received = encrypted.tenseal().ckks_vector_from(keys.public, message)
    with pytest.raises(ValueError, match="secret_key"):
        received.decrypt()
