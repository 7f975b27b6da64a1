"""The keyed Gaussian noise: its generator, its law, its independence."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import scipy.stats

from stalesim.simulator.privacy.noise import normals, threefry, words_of

FLOAT = jnp.dtype("float32")


def test_the_generator_is_threefry() -> None:
    key = words_of(jax.random.key(7))
    counters = jnp.arange(1000, dtype=jnp.uint32)
    mine = jnp.concatenate(threefry(key, (counters[:500], counters[500:])))
    theirs = jax.extend.random.threefry_2x32(
        jax.random.key_data(jax.random.key(7)), counters
    )
    assert (mine == theirs).all()


def test_the_noise_is_standard_normal() -> None:
    z = np.asarray(normals(words_of(jax.random.key(0)), jnp.arange(20_000), 10, FLOAT))
    # 200,000 numbers; Kolmogorov-Smirnov at 1e-6 is 2.73 / sqrt(n), moments at five
    # standard errors: 1, sqrt(2), sqrt(96) over sqrt(n).
    n = z.size
    distance = scipy.stats.kstest(z.ravel(), "norm").statistic
    assert distance < 2.73 / np.sqrt(n)
    assert abs(z.mean()) < 5 / np.sqrt(n)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / n)
    assert abs((z**4).mean() - 3) < 5 * np.sqrt(96 / n)
    assert 4 < np.abs(z).max() < 7


def test_columns_rows_and_keys_are_uncorrelated() -> None:
    rows = jnp.arange(5_000)
    one = np.asarray(normals(words_of(jax.random.key(0)), rows, 6, FLOAT))
    other = np.asarray(normals(words_of(jax.random.key(1)), rows, 6, FLOAT))
    both = np.concatenate([one, other, np.roll(one, 1, axis=0)], axis=1)
    correlation = np.corrcoef(both.T) - np.eye(18)
    # 153 pairs: five standard errors of 1 / sqrt(n).
    assert np.abs(correlation).max() < 5 / np.sqrt(5_000)
    squares = np.corrcoef((both**2).T) - np.eye(18)
    assert np.abs(squares).max() < 5 * 1.5 / np.sqrt(5_000)


def test_a_row_alone_has_the_noise_that_it_has_among_others() -> None:
    key = words_of(jax.random.key(3))
    everything = normals(key, jnp.arange(50), 7, FLOAT)
    some = normals(key, jnp.array([[49, 3], [3, 0]]), 7, FLOAT)
    np.testing.assert_array_equal(some, everything[jnp.array([[49, 3], [3, 0]])])
