"""The three readings of AUDP's noise: their moments, and what privacy they give.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
    Privacy for Edge Intelligence, equation 6; M-01 in evidence/pages/decisions.md.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import integrate, special

Law = Literal["spherical_laplace", "radial_exponential", "laplace"]
"""Readings A, B and C of equation 6 (M-01)."""
LAWS: tuple[Law, ...] = ("spherical_laplace", "radial_exponential", "laplace")

_QUANTILES = 1000
"""Quantiles of the norm and of the direction in the integral of `delta`."""
_LOSSES = 2**16
"""Half the points on which the loss of all coordinates is held."""


class Moments(NamedTuple):
    """Moments of the norm of a noise vector.

    Attributes:
        mean: E |eta|, in the gradient's units.
        second: E |eta|^2, in the square of those units.
    """

    mean: float
    second: float


def moments(law: Law, dimension: int, scale: float = 1.0) -> Moments:
    """Computes the mean norm of a noise vector and its mean squared norm.

    A: d and d (d + 1), B: 1 and 2, C: an integral and 2 d, in powers of the scale.

    Args:
        law: A has the density exp(-|eta| / scale); B a uniform direction and an
            exponential norm; C independent Laplace coordinates.
        dimension: Dimension d, numbers that get noise.
        scale: Scale lambda = Delta S / epsilon.

    Source: MAPA, equation 6 and section 4; M-01, M-02.
    """
    d = dimension
    if law == "spherical_laplace":
        return Moments(d * scale, d * (d + 1) * scale**2)
    if law == "radial_exponential":
        return Moments(scale, 2 * scale**2)
    return Moments(_mean_norm_laplace(d) * scale, 2 * d * scale**2)


def delta(
    law: Law, dimension: int, epsilon: float, claimed: float | None = None
) -> float:
    """Computes delta at epsilon of noise whose scale is Delta S over a claimed epsilon.

    delta = E max(0, 1 - exp(epsilon - loss)) for the loss ln h(eta) / h(eta + shift).
    A is zero from the claimed epsilon on, C only from sqrt(d) times it; B nowhere if
    d >= 2.

    Args:
        law: Law as in `moments`.
        dimension: d.
        epsilon: >= 0, at which delta is asked.
        claimed: > 0; by default `epsilon`. The shift has norm Delta S, and for C is
            spread evenly over the coordinates.

    Returns:
        Within 1e-5.

    Source: MAPA, Definition 1 and Theorem 1; M-01.
    """
    shift = epsilon if claimed is None else claimed
    if law == "laplace":
        return _delta_of_coordinates(dimension, epsilon, shift)
    if shift <= epsilon and (law == "spherical_laplace" or dimension == 1):
        return 0.0
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    # Both laws have a uniform direction and a norm of Gamma(shape); the density of the
    # vector is norm^(shape - d) exp(-norm). In high dimension B keeps something only
    # where the norm is large, so that tail gets more points: probability middle^4.
    shape = dimension if law == "spherical_laplace" else 1
    near = special.gammainccinv(shape, middle**4)[:, None]
    weight = 4 * middle**3
    far = np.sqrt(near**2 + shift**2 + 2 * shift * near * _cosines(dimension, middle))
    loss = far - near + (dimension - shape) * np.log(far / near)
    return float(weight @ np.maximum(0, -np.expm1(epsilon - loss)).mean(1) / _QUANTILES)


def _cosines(
    dimension: int, quantiles: Float[np.ndarray, " Q"]
) -> Float[np.ndarray, " Q"]:
    """Quantiles of a coordinate of a uniform direction."""
    if dimension == 1:
        return np.where(quantiles < 0.5, -1.0, 1.0)
    half = (dimension - 1) / 2
    return 2 * special.betaincinv(half, half, quantiles) - 1


def _mean_norm_laplace(dimension: int) -> float:
    """Mean of sqrt(sum z_i^2) over Laplace z_i, from the transform of z^2.

    E sqrt(S) is the integral of (1 - E exp(-v^2 S)) / v^2 over v > 0, by sqrt(pi); for
    one coordinate E exp(-v^2 z^2) = sqrt(pi) / (2 v) erfcx(1 / (2 v)).
    """
    root = math.sqrt(2 * dimension)

    def integrand(x: float) -> float:
        v = x / root
        one = math.sqrt(math.pi) / (2 * v) * special.erfcx(1 / (2 * v))
        return -math.expm1(dimension * math.log(one)) / x**2

    least = 1e-4  # below, the integrand is 1 to 1e-8 and cancels
    total = least + math.fsum(
        integrate.quad(integrand, *ends)[0] for ends in ((least, 1), (1, math.inf))
    )
    return root / math.sqrt(math.pi) * total


def _delta_of_coordinates(dimension: int, epsilon: float, shift: float) -> float:
    """Delta of C: the loss of all coordinates is a sum of independent ones."""
    own = shift / math.sqrt(dimension)
    if dimension * own <= epsilon * (1 + 1e-12):
        return 0.0
    half = max(_LOSSES // dimension, 1)
    # A coordinate's loss |z + own| - |z| is own with probability 1/2, -own with
    # exp(-own) / 2, and between has density exp((loss - own) / 2) / 4; its mass is
    # shared linearly between the two neighbours on a grid, which keeps the mean.
    width = own / half
    loss = np.arange(-half, half + 1) * width
    # Integral of exp(y / 2) max(0, 1 - |y| / width) over y > 0 and over y < 0.
    rise = 2 * (math.expm1(width / 2) / (width / 2) - 1)
    fall = 2 * (1 + math.expm1(-width / 2) / (width / 2))
    density = np.exp((loss - own) / 2) / 4
    mass = density * (rise + fall)
    mass[0] = density[0] * rise + math.exp(-own) / 2
    mass[-1] = density[-1] * fall + 0.5
    count = 2 * half * dimension + 1
    length = 2 ** math.ceil(math.log2(count))
    total = np.fft.irfft(np.fft.rfft(mass, length) ** dimension, length)[:count]
    losses = (np.arange(count) - half * dimension) * width
    kept = losses > epsilon
    return float(-(total[kept] * np.expm1(epsilon - losses[kept])).sum())
