"""The mechanisms: laws in 1, 10 and 7,850 dimensions, and clipping."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from stalesim.simulator.privacy import mechanisms
from stalesim.simulator.privacy.mechanisms import Noised


class Law(NamedTuple):
    """What the noise of a mechanism follows in a dimension d, by stats."""

    norm: Callable[[int], Any]
    """In l2, but that of Laplace in l1."""
    second_moment: Callable[[int], float]
    coordinate: Any = None


LAWS = {
    mechanisms.laplace: Law(stats.gamma, lambda d: 2 * d, stats.laplace()),
    mechanisms.spherical_laplace: Law(stats.gamma, lambda d: d * (d + 1)),
    mechanisms.radial_exponential: Law(lambda _: stats.expon(), lambda _: 2),
    mechanisms.gaussian: Law(stats.chi, lambda d: d, stats.norm()),
}
NOISES = (*LAWS,)
SPHERICAL = NOISES[1:]
DRAWS = {1: 20_000, 10: 20_000, 7_850: 2_000}
SCALE = 0.25
Noise = Callable[..., Noised]

every = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.__name__)
spherical = pytest.mark.parametrize("noise", SPHERICAL, ids=lambda n: n.__name__)
dimensions = pytest.mark.parametrize("dim", DRAWS)


@functools.cache
def _sample(noise: Noise, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise over its scale, under jit and vmap, and its norm."""
    keys = jax.random.split(jax.random.key(5), DRAWS[dim])
    one = functools.partial(noise, gradient=jnp.zeros(dim), **_scale(noise, SCALE))
    drawn = jax.jit(jax.vmap(lambda key: one(key)))(keys)
    return np.asarray(drawn[0]) / SCALE, np.asarray(drawn[1]) / SCALE


def _scale(noise: Noise, value: float) -> dict[str, jax.Array]:
    name = "std" if noise is mechanisms.gaussian else "scale"
    return {name: jnp.asarray(value)}


def _follows(values: np.ndarray, law: Any) -> None:
    # Kolmogorov-Smirnov with false alarms at 1e-6: sqrt(ln(2e6) / 2) = 2.69 over the
    # root of the number of draws. float32 adds 1e-6 of the value, 1e-4 of the spread.
    statistic = stats.kstest(values, law.cdf, method="asymp").statistic
    assert statistic < 2.7 / np.sqrt(values.size)


@every
@dimensions
def test_norms_and_coordinates_follow_their_laws(noise: Noise, dim: int) -> None:
    (z, norm), law = _sample(noise, dim), LAWS[noise]
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), norm, rtol=1e-5)
    in_l1 = np.abs(z.astype(np.float64)).sum(axis=1)
    _follows(in_l1 if noise is mechanisms.laplace else norm, law.norm(dim))
    squares = norm.astype(np.float64) ** 2
    error = squares.std() / np.sqrt(squares.size)
    expected = law.second_moment(dim)  # of the specification
    assert abs(squares.mean() - expected) < 5 * error  # five standard errors
    picked = np.unique(np.linspace(0, dim - 1, 10).astype(int))
    # Both spherical laws are Laplace's on a line.
    coordinate = stats.laplace() if dim == 1 and not law.coordinate else law.coordinate
    for i in picked:
        if coordinate is not None:
            _follows(z[:, i], coordinate)
        assert abs(np.sign(z[:, i]).mean()) < 5 / np.sqrt(len(z))
    if dim > 1:
        correlation = np.corrcoef(z[:, picked].T) - np.eye(picked.size)
        # 45 pairs, five standard errors. Coordinates of a spherical law share a radius
        # r, which widens the variance by E r^4 / (E r^2)^2 <= 24 / 4.
        assert np.abs(correlation).max() < 5 * np.sqrt(6 / len(z))


@pytest.mark.parametrize("noise", [mechanisms.laplace, mechanisms.gaussian])
@pytest.mark.parametrize("dim", [10, 7_850])
def test_independent_coordinates_are_independent(noise: Noise, dim: int) -> None:
    z = _sample(noise, dim)[0]
    picked = np.unique(np.linspace(0, dim - 1, 10).astype(int))
    sizes = np.corrcoef(np.abs(z[:, picked]).T) - np.eye(picked.size)
    assert np.abs(sizes).max() < 5 / np.sqrt(len(z))
    # neighbours within a draw, over all coordinates
    serial = np.corrcoef(np.abs(z[:, 1:]).ravel(), np.abs(z[:, :-1]).ravel())[0, 1]
    assert abs(serial) < 5 / np.sqrt(z[:, 1:].size)


@spherical
@pytest.mark.parametrize("dim", [10, 7_850])
def test_the_direction_is_uniform_and_apart_from_the_norm(
    noise: Noise, dim: int
) -> None:
    z, norm = _sample(noise, dim)
    unit = z.astype(np.float64) / norm[:, None]
    rng = np.random.default_rng(1)
    for probe in (np.eye(1, dim)[0], np.ones(dim), rng.normal(size=dim)):
        along = unit @ (probe / np.linalg.norm(probe))
        # (1 + u) / 2 of a uniform direction is Beta((d - 1) / 2, (d - 1) / 2)
        half = (dim - 1) / 2
        _follows((1 + along) / 2, stats.beta(half, half))
        # five standard errors of a correlation of independent numbers
        assert abs(np.corrcoef(along, norm)[0, 1]) < 5 / np.sqrt(len(z))
        assert abs(np.corrcoef(along**2, norm)[0, 1]) < 5 / np.sqrt(len(z))
    # Rayleigh's test: n d |mean direction|^2 is chi squared with d degrees of freedom
    rayleigh = len(z) * dim * float(np.sum(unit.mean(axis=0) ** 2))
    assert 1e-6 < stats.chi2.sf(rayleigh, dim) < 1 - 1e-6


def test_the_spherical_law_keeps_its_loss_within_epsilon() -> None:
    # and the exponential radius does not: M-01, readings A and B
    for noise, private in zip(SPHERICAL[:2], (True, False), strict=True):
        z = _sample(noise, 10)[0].astype(np.float64)
        shift = np.eye(1, 10)[0]
        near, far = np.linalg.norm(z, axis=1), np.linalg.norm(z + shift, axis=1)
        loss = far - near  # log density ratio at sensitivity = scale, so epsilon = 1
        if not private:
            loss = loss + 9 * np.log(far / near)
        # 1 - e^(1 - loss) on the losses above 1: delta at epsilon 1
        delta = np.maximum(0, 1 - np.exp(1 - loss)).mean()
        if private:
            assert delta < 1e-6  # rounding
        else:
            # the specification measured 0.76; standard error below 0.5 / sqrt(n)
            assert abs(delta - 0.76) < 5 * 0.5 / np.sqrt(len(z)) + 0.005


@every
@pytest.mark.parametrize("dim", [1, 258])
def test_a_draw_is_the_same_alone_in_a_batch_and_in_a_loop(
    noise: Noise, dim: int
) -> None:
    one = jax.jit(noise)
    keys = jax.random.split(jax.random.key(9), 3)
    gradients = jnp.linspace(-1, 1, 3 * dim).reshape(3, dim)
    scales = jnp.arange(3.0)
    batched = one(keys, gradients, scales)
    mapped = jax.jit(jax.vmap(noise))(keys, gradients, scales)
    alone = [one(keys[i], gradients[i], scales[i])[0] for i in range(3)]

    def step(i: jax.Array, rows: jax.Array) -> jax.Array:
        return rows.at[i].set(noise(keys[i], gradients[i], scales[i])[0])

    looped = jax.lax.fori_loop(0, 3, step, jnp.zeros((3, dim)))
    # the draws are the same; compilers may round a product and a sum together
    for other in (mapped[0], jnp.stack(alone), looped):
        np.testing.assert_allclose(other, batched[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mapped[1], batched[1], rtol=1e-5)


@every
@dimensions
def test_a_scale_of_zero_adds_exactly_nothing(noise: Noise, dim: int) -> None:
    gradient = jax.random.normal(jax.random.key(1), (dim,))
    noised = jax.jit(noise)(jax.random.key(2), gradient, jnp.asarray(0.0))
    np.testing.assert_array_equal(noised[0], gradient)
    assert noised[1] == 0


@every
def test_noise_is_added_to_the_gradient(noise: Noise) -> None:
    key, gradient = jax.random.key(3), jnp.arange(7.0)
    alone = jax.jit(noise)(key, jnp.zeros(7), jnp.asarray(2.0))
    both = jax.jit(noise)(key, gradient, jnp.asarray(2.0))
    np.testing.assert_allclose(both[0], gradient + alone[0], rtol=1e-6)
    assert both[1] == alone[1]


@every
def test_keys_differ_and_ranks_are_never_promoted(noise: Noise) -> None:
    with jax.numpy_rank_promotion("raise"):
        keys = jax.random.split(jax.random.key(0), (2, 3))
        drawn = jax.jit(noise)(keys, jnp.zeros((2, 3, 5)), jnp.asarray(1.0))
    assert drawn[0].shape == (2, 3, 5)
    assert drawn[1].shape == (2, 3)
    assert len(np.unique(np.asarray(drawn[1]))) == 6


@every
def test_double_precision_is_kept(noise: Noise) -> None:
    with jax.enable_x64(True):
        key, zeros, run = jax.random.key(0), jnp.zeros(100), jax.jit(noise)
        drawn = run(key, zeros, jnp.asarray(1.0))
        assert drawn[0].dtype == jnp.float64
        low = run(key, zeros.astype(jnp.float32), jnp.asarray(1.0))[0]
        assert low.dtype == jnp.float32
        np.testing.assert_allclose(low, drawn[0], rtol=1e-4, atol=1e-5)


def test_clipping_scales_down_to_the_bound_and_never_up() -> None:
    gradients = jnp.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [30.0, 40.0]])
    found = mechanisms.clip(gradients, jnp.asarray(1.0))
    np.testing.assert_allclose(
        found[0], [[0.6, 0.8], [0.3, 0.4], [0, 0], [0.6, 0.8]], rtol=1e-6
    )
    np.testing.assert_array_equal(found[0][1:3], gradients[1:3])
    np.testing.assert_array_equal(found[1], [True, False, False, True])
    one = mechanisms.clip(jnp.array([3.0, 4.0]), jnp.asarray(2.5))
    np.testing.assert_allclose(one[0], [1.5, 2], rtol=1e-6)
    each = mechanisms.clip(jnp.array([[3.0, 4.0]] * 2), jnp.array([2.5, 10]))
    np.testing.assert_allclose(each[0], [[1.5, 2], [3, 4]], rtol=1e-6)


@pytest.mark.parametrize("bound", [np.inf, 5.0])
def test_a_bound_that_is_not_exceeded_changes_no_bit(bound: float) -> None:
    gradient = jax.random.normal(jax.random.key(4), (9,))
    gradient = gradient / jnp.linalg.norm(gradient) * 4.99
    for run in (mechanisms.clip, jax.jit(mechanisms.clip)):
        found = run(gradient, jnp.asarray(bound))
        np.testing.assert_array_equal(found[0], gradient)
        assert not found[1]


def test_a_bound_of_zero_leaves_nothing() -> None:
    with jax.debug_nans(True):
        found = mechanisms.clip(jnp.array([[1.0, 2.0], [0.0, 0.0]]), jnp.asarray(0.0))
    np.testing.assert_array_equal(found[0], jnp.zeros((2, 2)))
    np.testing.assert_array_equal(found[1], [True, False])


def _by_hand(
    gradients: np.ndarray, bound: float, valid: np.ndarray
) -> tuple[np.ndarray, float]:
    """A slow readable twin."""
    total, clipped = np.zeros(gradients.shape[1:]), 0
    for gradient, counts in zip(gradients, valid, strict=True):
        if counts:
            size = np.sqrt((gradient**2).sum())
            total += gradient / max(1, size / bound)
            clipped += size > bound
    return total / valid.sum(), clipped / valid.sum()


@pytest.mark.parametrize("shape", [(12, 5), (12, 3, 4), (12,)])
def test_per_sample_clipping_agrees_with_its_twin(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    gradients = rng.normal(size=shape) * rng.uniform(
        0, 2, (12,) + (1,) * len(shape[1:])
    )
    valid = np.arange(12) % 3 > 0
    expected, fraction = _by_hand(gradients, 1.5, valid)
    gradients[~valid] = np.nan
    found = jax.jit(mechanisms.clip_samples)(
        jnp.asarray(gradients, jnp.float32), jnp.asarray(1.5), jnp.asarray(valid)
    )
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
    assert found[1] == pytest.approx(fraction, rel=1e-6)


def test_per_sample_clipping_has_the_sensitivity_of_one_sample() -> None:
    # the worst replacement: from -bound to bound along one axis, far beyond the bound
    gradients = jnp.zeros((4, 3)).at[0, 0].set(100.0)
    other = gradients.at[0, 0].set(-100.0)
    valid, bound = jnp.ones(4, bool), jnp.asarray(0.5)
    first = mechanisms.clip_samples(gradients, bound, valid)
    second = mechanisms.clip_samples(other, bound, valid)
    assert jnp.linalg.norm(first[0] - second[0]) == 2 * 0.5 / 4
    assert first[1] == 0.25
    # clipping the mean instead moves by twice the bound, whatever the batch: M-03
    whole = [mechanisms.clip(g.mean(axis=0), bound)[0] for g in (gradients, other)]
    assert jnp.linalg.norm(whole[0] - whole[1]) == 2 * 0.5


def test_per_sample_clipping_of_nothing_is_zero() -> None:
    found = mechanisms.clip_samples(
        jnp.full((3, 2), jnp.nan), jnp.asarray(1.0), jnp.zeros(3, bool)
    )
    np.testing.assert_array_equal(found[0], [0, 0])
    assert found[1] == 0


def test_per_sample_clipping_maps_over_clients() -> None:
    gradients = jax.random.normal(jax.random.key(7), (3, 8, 5))
    valid = jnp.arange(8)[None] < jnp.array([[8], [4], [1]])
    run = jax.jit(jax.vmap(mechanisms.clip_samples))
    found = run(gradients, jnp.array([1.0, 2, 9]), valid)
    assert found[0].shape == (3, 5)
    np.testing.assert_allclose(found[0][2], gradients[2, 0], rtol=1e-6)
