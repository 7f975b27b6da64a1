"""Momentum and changes of images in PSGD and A(DP)2SGD against slow NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.decentralised.part import Augmentation, Psgd
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.learning.augmenting import augmented
from stalesim.simulator.simulation import Prepared, key_of
from stalesim.simulator.timeline import Kind
from tests.reference import gossip_twin as twin
from tests.reference.gossip_support import (
    BATCH,
    GRAPHS,
    NEAR,
    ROUNDS,
    WORLDS,
    K,
    flat,
    gossip,
    gradient_of,
    method,
    method_of,
    noisy,
    plan_of,
    ran,
    reads_before,
    rounds_of,
    twin_of,
    world_of,
)
from tests.support import everything

MU = 0.6
MOMENTUM = {"algorithm": {"optimizer": {"kind": "momentum", "decay": MU}}}
SIDE, CROP, HIDDEN, CLASSES = 8, 2, 5, 10
IMAGES: dict[str, Any] = {
    "problem": {"model": {"kind": "dense", "hidden": [HIDDEN], "activation": "tanh"}},
    "algorithm": {"augmentation": {"crop": CROP}},
}


@pytest.mark.parametrize("order", ["average_then_step", "during"])
@pytest.mark.parametrize("kind", ["psgd", "adp2sgd"])
def test_momentum_in_pairs_agrees_with_the_twin(order: str, kind: str) -> None:
    protocol = gossip(order=order, **GRAPHS["bipartite"])
    noise = noisy(1.0) if kind == "adp2sgd" else method("psgd")
    plan = plan_of(WORLDS["idle"], protocol, noise, MOMENTUM)
    rows, expected = twin_of(plan)
    (found,) = ran([plan])
    models = expected.models[-1].copy()
    last = int(np.flatnonzero(rows.kind == Kind.COMMIT)[-1])
    for row in range(last + 1, rows.time.size):
        pair = rows.worker[row].tolist()
        twin.merge(models, expected.ages[-1].copy(), pair, by_age=False)
    np.testing.assert_allclose(flat(found.state.models), models, *NEAR)
    assert np.square(models).sum() > 0.01


@pytest.mark.parametrize("mode", ["stepwise", "compiled"])
def test_momentum_in_rounds_agrees_with_the_twin(mode: str) -> None:
    plan = plan_of(gossip(average="all"), noisy(1.0), MOMENTUM, ROUNDS)
    _, rounds = rounds_of(plan)
    expected = twin.sync(world_of(plan)[0], rounds, *method_of(plan), momentum=MU)
    (found,) = ran([plan], mode)
    np.testing.assert_allclose(flat(found.state.models), expected.models[-1], *NEAR)


def test_adam_in_rounds_is_adam() -> None:
    """Kingma and Ba (2015), Algorithm 1, by every worker, and then the mean."""
    options = {"kind": "adam", "decay": 0.8, "second_decay": 0.9, "small": 1e-3}
    adam = {"algorithm": {"optimizer": options, "step_size": 0.01}}
    plan = plan_of(
        gossip(average="all"), adam, {"stop": {"commits": None, "rounds": 5}}
    )
    _, rounds = rounds_of(plan)
    gradient = gradient_of(plan)
    w, _ = world_of(plan)
    first, second = np.zeros((2, K, w.size))
    for r, work in enumerate(rounds, start=1):
        g = np.array([gradient(w, k, batch) for k, (batch, _) in enumerate(work)])
        first, second = 0.8 * first + 0.2 * g, 0.9 * second + 0.1 * g**2
        root = np.sqrt(second / (1 - 0.9**r))
        w = (w - 0.01 * (first / (1 - 0.8**r)) / (root + 1e-3)).mean(axis=0)
    (found,) = ran([plan])
    np.testing.assert_allclose(np.asarray(found.model).ravel(), w, *NEAR)
    assert found.state.moments.count.tolist() == [5] * K


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


def test_entries_that_are_not_given_are_not_written() -> None:
    plain, given = (
        Psgd(step_size=1, batch=2),
        {"kind": "psgd", "step_size": 1, "batch": 2},
    )
    assert not {"optimizer", "augmentation"} & set(plain.model_dump())
    chosen = Psgd.model_validate(
        given | {"optimizer": {"kind": "momentum"}, "augmentation": {"crop": 3}}
    )
    assert Psgd.model_validate(chosen.model_dump()) == chosen
    assert chosen.augmentation == Augmentation(crop=3, flip=True)


def network_gradient(x: np.ndarray, y: np.ndarray, l2: float) -> twin.Gradient:
    """Gradient of a network of one hidden layer of tanh, by hand; ids are rows."""

    def gradient(w: np.ndarray, worker: int, batch: np.ndarray) -> np.ndarray:
        ends = np.cumsum([HIDDEN * SIDE**2, HIDDEN, CLASSES * HIDDEN])
        first, bias, second, last = np.split(w, ends)
        first, second = first.reshape(HIDDEN, -1), second.reshape(CLASSES, HIDDEN)
        hidden = np.tanh(x[batch] @ first.T + bias)
        odds = np.exp(hidden @ second.T + last)
        error = odds / odds.sum(axis=1, keepdims=True)
        error[np.arange(len(batch)), y[batch]] -= 1
        error /= len(batch)
        back = (error @ second) * (1 - hidden**2)
        parts = (
            back.T @ x[batch] + l2 * first,
            back.sum(axis=0),
            error.T @ hidden + l2 * second,
            error.sum(axis=0),
        )
        return np.concatenate([part.ravel() for part in parts])

    return gradient


def played(plan: Prepared) -> twin.Trace:
    """Plays a run through the twin on rows that were changed for each job."""
    rows, jobs, _ = everything(plan.timeline)
    samples = plan.sampler.attach(rows)
    x, y = np.asarray(plan.problem.x), np.asarray(plan.problem.y)
    readers = reads_before(rows, jobs, during=False)
    events: list[twin.Event] = []
    seen, labels = [], []
    root = key_of(plan.run.seed)
    for row in range(rows.time.size):
        now: list[twin.Event] = [("read", worker) for worker in readers.get(row, [])]
        events += now
        first, second = rows.worker[row].tolist()
        if rows.kind[row] != Kind.COMMIT:
            events.append(("average", first, second))
            continue
        key = jax.random.fold_in(root, K + first)
        key = jax.random.fold_in(key, int(rows.job[row, 0]))
        ids = samples[row, 0]
        images = x[ids].reshape(-1, 1, SIDE, SIDE)
        new = changed(images, *draws(key, ids.size, CROP), CROP)
        batch = len(labels) * BATCH + np.arange(BATCH)
        seen.append(new.reshape(ids.size, -1))
        labels.append(y[ids])
        events.append(("update", first, batch, None))
    gradient = network_gradient(
        np.concatenate(seen), np.concatenate(labels), float(plan.problem.l2)
    )
    start = np.asarray(plan.problem.start(root), np.float64)
    _, eta, sigma, on = method_of(plan)
    return twin.gossip(start, K, events, gradient, eta, sigma, on, momentum=MU)


def test_changed_images_and_momentum_agree_with_the_twin() -> None:
    plan = plan_of(IMAGES, MOMENTUM, gossip(), {"stop": {"commits": 60}})
    with jax.enable_x64(True):
        expected = played(plan)
    (found,) = ran([plan])
    moved = np.abs(expected.models[-1] - expected.models[0]).max()
    assert moved > 0.01
    np.testing.assert_allclose(
        np.asarray(found.model).ravel(), expected.theta[-1], 1e-8, 1e-11
    )
