"""Mechanisms: noise on a gradient and clipping before it, as JAX kernels.

Every law is drawn by inversion from keyed Threefry counters, one counter a coordinate,
so that a draw has a fixed cost, no rejection loop, and the same bits alone, in a batch
and under jit, vmap or a compiled loop. A key serves one draw: fold it first.

=====================  ===================================  ==========================
function               density of the noise z in p numbers  pure epsilon
=====================  ===================================  ==========================
laplace                exp(-|z|_1 / scale)                  l1 sensitivity / scale
spherical_laplace      exp(-|z|_2 / scale)                  l2 sensitivity / scale
radial_exponential     |z|_2^(1-p) exp(-|z|_2 / scale)      none, where p >= 2
gaussian               exp(-|z|_2^2 / (2 std^2))            none; see `accountants`
=====================  ===================================  ==========================

Each takes a key and a scale for each gradient. A scale is >= 0, in the gradient's
units; zero adds exactly nothing.

The laws are those of real numbers. Uniforms have 32 bits (24 in float32), so normal
coordinates end at 5.4 (float32) or 6.3 (float64) standard deviations; the loss of a
real deployment to rounding (Mironov, 2012) is not modelled.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from .noise import Words, threefry

COORDINATES, RADIUS, ODD = 0, 1, 2
"""Rows of counters: the purposes of a key's draws."""

_WIDTH, _CHUNKS = 512, 8
"""XLA splits a longer sum among CPU threads, which costs ten times the sum where the
cores are busy: 130 against 10 microseconds at 7,850 dimensions."""


Noised = tuple[Float[Array, "*c p"], Float[Array, "*c"]]
"""A gradient with noise, and the l2 norm of the noise."""


def laplace(
    key: Key[Array, "*c"],
    gradient: Float[Array, "*c p"],
    scale: Float[Array, "*#c"],
) -> Noised:
    """Adds independent Laplace noise to every coordinate.

    The scale is the l1 sensitivity over epsilon; with an l2 sensitivity as large it is
    only sqrt(p) epsilon-DP. One generator call and one logarithm a coordinate.

    Source: Dwork, McSherry, Nissim and Smith (2006), Proposition 1; M-01, reading C.
    """
    bits, _ = _bits(key, COORDINATES, gradient.shape[-1])
    magnitude = -jnp.log(_unit(bits & jnp.uint32(2**31 - 1), 31, gradient.dtype))
    signed = jnp.where(bits >> 31 == 1, -magnitude, magnitude)
    return _added(gradient, scale, signed)


def spherical_laplace(
    key: Key[Array, "*c"],
    gradient: Float[Array, "*c p"],
    scale: Float[Array, "*#c"],
) -> Noised:
    """Adds noise of density proportional to exp(-norm / scale), norm in l2.

    The scale is the l2 sensitivity over epsilon. The direction of the noise is uniform
    and its norm Gamma(shape p, scale). Drawn as a scale
    mixture of normals, exactly: scale * chi * g, where g holds p standard normal
    numbers and chi squared has p + 1 degrees of freedom. The latter is twice a sum of
    (p + 1) // 2 exponentials (two to a generator call and logarithm), plus a squared
    normal where p is even; no rejection. On CPU it takes
    2 microseconds at p = 785 and 10 at 7,850, where g takes 7 and 90;
    `jax.random.gamma`, exact by rejection, takes 4 to 11 at any p.

    Source: the density is from MAPA's Theorem 1 (M-01, reading A) and Chaudhuri,
    Monteleoni and Sarwate (2011), Algorithm 1; the mixture is from Gomez,
    Gomez-Villegas and Marin (1998) for the exponential power law with exponent 1/2.
    """
    num, dtype = gradient.shape[-1], gradient.dtype
    chi = jnp.sqrt(_chi_square(key, num + 1, dtype))
    return _added(gradient, scale, chi[..., None] * _normals(key, num, dtype))


def radial_exponential(
    key: Key[Array, "*c"],
    gradient: Float[Array, "*c p"],
    scale: Float[Array, "*#c"],
) -> Noised:
    """Adds noise of uniform direction and exponential l2 norm, whose mean is the scale.

    Not differentially private at any epsilon where p >= 2: its density is singular at
    the origin. It has the second moment 2 scale^2 of the paper in every dimension.

    Source: MAPA, section 4 and equation 8; M-01, reading B.
    """
    normals = _normals(key, gradient.shape[-1], gradient.dtype)
    length = jnp.maximum(_norm(normals), jnp.finfo(gradient.dtype).tiny)
    bits, _ = _bits(key, RADIUS, 1)
    radius = -jnp.log(_unit(bits[..., 0], 32, gradient.dtype))
    return _added(gradient, scale, (radius / length)[..., None] * normals)


def gaussian(
    key: Key[Array, "*c"],
    gradient: Float[Array, "*c p"],
    std: Float[Array, "*#c"],
) -> Noised:
    """Adds independent normal noise to every coordinate.

    Its standard deviation is the noise multiplier times the l2 sensitivity.

    Source: Dwork and Roth, The Algorithmic Foundations of Differential Privacy (2014),
    appendix A.
    """
    return _added(gradient, std, _normals(key, gradient.shape[-1], gradient.dtype))


def clip(
    gradient: Float[Array, "*c p"], bound: Float[Array, "*#c"]
) -> tuple[Float[Array, "*c p"], Bool[Array, "*c"]]:
    """Scales a whole gradient down to an l2 norm of at most `bound`.

    A gradient within the bound keeps its bits. On a batch mean this gives sensitivity
    2 bound, not the 2 bound / b of clipping each of b samples (M-03).

    Args:
        gradient: Mean over a batch, or anything else.
        bound: >= 0, in the gradient's units; inf never clips.

    Returns:
        The gradient, and whether its norm exceeded the bound.

    Source: MAPA, Algorithm 1, edge line 5; Abadi et al. (2016), Algorithm 1.
    """
    norm = _norm(gradient)
    limit = jnp.broadcast_to(bound, norm.shape).astype(gradient.dtype)
    factor, clipped = _factor(norm, limit)
    return gradient * factor[..., None], clipped


def clip_samples(
    gradients: Float[Array, "samples ..."],
    bound: Float[Array, ""],
    valid: Bool[Array, " samples"],
) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    """Scales each sample's gradient down to an l2 norm of at most `bound`, then means.

    Replacing one sample moves the mean by at most 2 bound / num_samples. Rows that are
    not valid count for nothing, whatever they hold (NaN included).

    Args:
        gradients: Gradient of each sample; the norm is over all axes but the first.
        bound: Most norm, >= 0, in the gradients' units; inf never clips.
        valid: Whether each row is a sample; the others are padding.

    Returns:
        The mean, and the clipped share of the valid samples, zero where there is none.

    Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1,
    with the number of samples for the lot size; M-03.
    """
    rows = gradients.reshape(gradients.shape[0], math.prod(gradients.shape[1:]))
    rows = jnp.where(valid[:, None], rows, jnp.zeros_like(rows))
    norm = _norm(rows)
    factor, clipped = _factor(norm, jnp.broadcast_to(bound, norm.shape))
    divisor = jnp.maximum(jnp.sum(valid), 1).astype(rows.dtype)
    mean = jnp.sum(rows * factor[:, None], axis=0) / divisor
    fraction = jnp.sum(clipped).astype(rows.dtype) / divisor
    return mean.reshape(gradients.shape[1:]), fraction


def _added(
    gradient: Float[Array, "*c p"],
    scale: Float[Array, "*#c"],
    unit: Float[Array, "*c p"],
) -> Noised:
    wide = jnp.broadcast_to(scale, gradient.shape[:-1]).astype(gradient.dtype)
    noise = wide[..., None] * unit
    return gradient + noise, _norm(noise)


def _factor(
    norm: Float[Array, "*c"], bound: Float[Array, "*c"]
) -> tuple[Float[Array, "*c"], Bool[Array, "*c"]]:
    clipped = norm > bound
    one = jnp.ones_like(norm)
    ratio = bound.astype(norm.dtype) / jnp.where(clipped, norm, one)
    return jnp.where(clipped, ratio, one), clipped


def _norm(vector: Float[Array, "*c p"]) -> Float[Array, "*c"]:
    return jnp.sqrt(jnp.sum(vector * vector, axis=-1))


def _bits(key: Key[Array, "*c"], row: int, num: int, start: int = 0) -> Words:
    data = jax.random.key_data(key)
    shape = (*key.shape, num)
    first, second = (jnp.broadcast_to(data[..., i, None], shape) for i in (0, 1))
    counter = jnp.arange(start, start + num, dtype=jnp.uint32)
    counter = jnp.broadcast_to(counter, shape)
    # One word a coordinate: packing both into one array triples the time on CPU.
    return threefry((first, second), (jnp.full_like(counter, row), counter))


def _unit(bits: Array, width: int, dtype: jnp.dtype) -> Float[Array, "..."]:
    """Maps integers of `width` bits into (0, 1]."""
    return (bits.astype(dtype) + 0.5) * 2.0**-width


def _normals(
    key: Key[Array, "*c"], num: int, dtype: jnp.dtype, row: int = COORDINATES
) -> Float[Array, "*c {num}"]:
    bits, _ = _bits(key, row, num)
    signed = jax.lax.bitcast_convert_type(bits, jnp.int32).astype(dtype)
    # The factor below 1 keeps the inverse finite where the integer rounds up to 2^31.
    inside = 1 - float(jnp.finfo(dtype).epsneg)
    return jax.lax.erf_inv((signed + 0.5) * (inside * 2.0**-31)) * 2**0.5


def _chi_square(
    key: Key[Array, "*c"], degrees: int, dtype: jnp.dtype
) -> Float[Array, "*c"]:
    exponentials = degrees // 2
    pairs = (exponentials + 1) // 2
    width = max(_WIDTH, pairs // _CHUNKS)
    total = jnp.zeros(key.shape, dtype)
    for start in range(0, pairs, width):
        num = min(width, pairs - start)
        first, second = _bits(key, RADIUS, num, start)
        first, second = _unit(first, 32, dtype), _unit(second, 32, dtype)
        if 2 * (start + num) > exponentials:  # the last one is not needed
            second = second.at[..., -1].set(1)
        total = total - 2 * jnp.sum(jnp.log(first * second), axis=-1)
    if degrees % 2:
        total = total + _normals(key, 1, dtype, ODD)[..., 0] ** 2
    return total
