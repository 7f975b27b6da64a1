"""Changes of images in PSGD and A(DP)2SGD against slow NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.decentralised.methods import augmented
from stalesim.simulator.engine.simulation import key_of
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.parts.errors import UserError
from tests.reference import gossip_twin as twin
from tests.reference.gossip_support import (
    MOMENTUM,
    K,
    events_of,
    gossip,
    method_of,
    noisy,
    plan_of,
    ran,
)
from tests.reference.layers_twin import Network
from tests.support import everything

SIDE, CROP, HIDDEN, CLASSES = 8, 2, 5, 10
IMAGES: dict[str, Any] = {
    "problem": {"model": {"kind": "dense", "hidden": [HIDDEN], "activation": "tanh"}},
    "algorithm": {"augmentation": {"crop": CROP}},
}


def test_noise_is_not_changed_by_changes_of_images() -> None:
    """Both are drawn from one key of the run, by keys that never meet."""
    norms = [
        ran([plan_of(IMAGES, noisy(1.0), change)])[0].infos["noise_norm"]
        for change in ({}, {"algorithm": {"augmentation": None}})
    ]
    np.testing.assert_array_equal(*norms)


def changed(
    x: np.ndarray, corners: np.ndarray, mirrored: np.ndarray, crop: int
) -> np.ndarray:
    """Crops and mirrors images of three dimensions one by one."""
    found = []
    for image, (top, left), mirror in zip(x, corners, mirrored, strict=True):
        depth, height, width = image.shape
        wide = np.zeros((depth, height + 2 * crop, width + 2 * crop))
        wide[:, crop : crop + height, crop : crop + width] = image
        cut = wide[:, top : top + height, left : left + width]
        found.append(cut[:, :, ::-1] if mirror else cut)
    return np.array(found)


def draws(key: Any, num: int, crop: int) -> tuple[np.ndarray, np.ndarray]:
    of_place, of_side = jax.random.split(key)
    corners = jax.random.randint(of_place, (num, 2), 0, 2 * crop + 1)
    mirrored = jax.random.bernoulli(of_side, shape=(num, 1, 1, 1))
    return np.asarray(corners), np.asarray(mirrored).ravel()


def test_images_are_cropped_and_mirrored() -> None:
    image, num, crop = (6, 4, 3), 900, 1
    height, width, depth = image
    x = np.random.default_rng(5).normal(size=(num, depth, height, width))
    key = jax.random.key(7)
    with jax.enable_x64(True):
        found = augmented(
            key, jnp.asarray(x.reshape(num, -1)), image=image, crop=crop, flip=True
        )
        corners, mirrored = draws(key, num, crop)
    expected = changed(x, corners, mirrored, crop)
    np.testing.assert_array_equal(found, expected.reshape(num, -1))
    # Nine places with 100 images each: a binomial of deviation 9.4, within five.
    counts = np.bincount(3 * corners[:, 0] + corners[:, 1], minlength=9)
    assert np.abs(counts - 100).max() < 47
    assert abs(mirrored.sum() - 450) < 75  # deviation 15


def test_without_flip_or_crop_the_other_is_left() -> None:
    x = np.arange(24.0).reshape(2, 12)
    key = jax.random.key(1)
    plain = augmented(key, jnp.asarray(x), image=(3, 4, 1), crop=0, flip=False)
    np.testing.assert_array_equal(plain, x)
    mirrored = np.asarray(
        augmented(key, jnp.asarray(x), image=(3, 4, 1), crop=0, flip=True)
    )
    rows = x.reshape(2, 3, 4)
    for one, row in zip(mirrored.reshape(2, 3, 4), rows, strict=True):
        assert (one == row).all() or (one == row[:, ::-1]).all()


def test_rows_that_are_no_images_are_refused_in_one_line() -> None:
    data = {"kind": "synthetic_logistic", "num_samples": 150, "num_features": 21}
    model = {"kind": "dense", "hidden": [3]}
    with pytest.raises(UserError, match="must be a square image, grey or of three"):
        plan_of(
            {"problem": {"data": None}},
            {"problem": {"data": data, "model": model}},
            {"algorithm": {"augmentation": {}}},
        )


def test_changed_images_and_momentum_agree_with_the_twin() -> None:
    """The twin gets rows that were changed for each job, each row once."""
    plan = plan_of(IMAGES, MOMENTUM, gossip(), {"stop": {"commits": 60}})
    rows, _, _ = everything(plan.timeline)
    steps = np.flatnonzero(rows.kind == Kind.COMMIT)
    samples, root = plan.sampler.attach(rows)[:, 0], key_of(plan.run.seed)
    x, y = np.asarray(plan.problem.x), np.asarray(plan.problem.y)
    seen = []
    with jax.enable_x64(True):
        for row in steps:
            key = jax.random.fold_in(root, K + rows.worker[row, 0])
            key = jax.random.fold_in(key, rows.job[row, 0])
            images = x[samples[row]].reshape(-1, 1, SIDE, SIDE)
            seen.append(changed(images, *draws(key, len(images), CROP), CROP))
        labels = y[samples[steps].ravel()]
        batches = np.zeros_like(samples)
        batches[steps] = np.arange(labels.size).reshape(steps.size, -1)
        events = events_of(plan, batches)
        start = np.asarray(plan.problem.start(root), np.float64)
    own = np.concatenate(seen).reshape(labels.size, -1)
    network = Network((SIDE**2, HIDDEN, CLASSES), float(plan.problem.l2))
    method = method_of(plan)._replace(
        gradient=lambda w, _, ids: network.gradient(w, own[ids], labels[ids])
    )
    expected = twin.gossip(network.laid_out(start), K, events, method)
    (found,) = ran([plan])
    assert np.abs(expected.models[-1] - expected.models[0]).max() > 0.01
    model = network.laid_out(found.model.ravel())
    np.testing.assert_allclose(model, expected.theta[-1], 1e-8, 1e-11)
