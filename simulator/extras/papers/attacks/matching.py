"""Inversion of the convolutional network's gradient: a search for an image that has it.

Plain descent from noise, as in Deep Leakage from Gradients, finds nothing here: maxima
and ReLUs make the distance jump (7 to 12 dB after 500 steps of Adam). Four things lead
to the image (means of ten of MNIST: 48 dB at initial weights, 56 after 2,000 steps):

1.  The gradient of the last biases is the loss's slope in each logit. Its only negative
    number names the class; with a known class the search does not need the loss, whose
    gradient nearly vanishes on samples that the model has learned.
2.  The search begins in a smooth network and sharpens it (`relaxation`).
3.  Total variation, which fades.
4.  L-BFGS within the bounds of a pixel, where the dark background is.

Source: Zhu, Liu and Han, Deep Leakage from Gradients (2019); Zhao, Mopuri and Bilen,
iDLG (2020), for the class; Geiping, Bauermeister, Dröge and Moeller, Inverting
Gradients (2020), for total variation and restarts.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from .relaxation import Parts, distance, parts_of, smooth_distance, variation

if TYPE_CHECKING:
    from ....catalogue.models.cnn.network import CnnNetwork

NO_LABEL = 2**31 - 1
"""Distance of a message that is zero and so contains no information."""
START = 0.1
"""Value of all pixels at first; about the mean of handwritten digits."""
ENOUGH = 1e-3
"""Distance at which no further course is tried."""
STEPS, LAST_STEPS = 150, 400
"""Evaluations in the smooth network at each sharpness, and in the network itself."""
LAST_VARIATION = 1e-4
"""Weight of total variation in the network itself."""


Course = tuple[tuple[float, ...], tuple[float, float], float]
"""One way from the even grey to an image: sharpness of the smooth networks, one after
the other; weight of total variation in the first of them, and in the last; and weight
of the first convolution's gradient, that of the other layers being 1. It adds missing
information, and many poor minima."""
COURSES: tuple[Course, ...] = (
    ((1, 3, 10, 30), (0.3, 0.03), 0.3),
    ((1, 3, 10, 30), (0.1, 0.01), 0.1),
    ((3, 10, 30, 90), (0.3, 0.03), 0.3),
)
"""Courses that are tried, in this order."""


def invert(
    model: "CnnNetwork",
    weights: Float[np.ndarray, " P"],
    message: Float[np.ndarray, " P"],
    *,
    use_first: bool = True,
    l2: float = 0.0,
    courses: tuple[Course, ...] = COURSES,
) -> tuple[Float[np.ndarray, " F"], int, float]:
    """Returns the image and the class of the one sample whose gradient this is.

    Args:
        model: Client's network, whose form the server has.
        weights: Weights of the gradient; the server has them too.
        message: Gradient of softmax cross-entropy, or of any other loss of the logits
            (the class is right only for those that pull one logit up), times any
            positive number: clipping does not matter.
        use_first: Whether the first convolution's gradient counts. Where only that one
            is noised the others are the sample's own, and enough (M-14).
        l2: Coefficient of the regulariser in the message, which spares biases.
        courses: Courses to try until one ends within `ENOUGH`; the nearest is kept.

    Returns:
        The image, plane by plane, in [0, 1], NaN where the message is zero; the class
        that the message names; and the distance to the message in the network itself,
        in which all layers weigh 1, and the first convolution 0 where it is not used.

    Raises:
        ValueError: The weights or message are not as long as the model's, or not
            finite, or there is no course.
    """
    if not courses:
        raise ValueError("courses must have at least one, got none; leave them out")
    weights, message = _checked(model, weights, message)
    message = message - l2 * weights * model.regularised()
    with jax.enable_x64(True):
        slopes = np.asarray(parts_of(model, jnp.asarray(message)).bias)
    size = float(np.linalg.norm(slopes))
    if size == 0:
        nothing = np.full(math.prod(model.image), np.nan)
        return nothing, NO_LABEL, float("nan")
    flat = jnp.asarray(weights, jnp.float32)
    targets = parts_of(model, jnp.asarray(message / size, jnp.float32))
    best, nearest = np.empty(0), np.inf
    for course in courses:
        image = _follow(model, flat, targets, course, use_first=use_first)
        without_variation = (float(use_first), 0.0)
        far = float(_hard(model, flat, targets, without_variation, image)[0])
        if far < nearest or not best.size:
            best, nearest = image, far
        if far < ENOUGH:
            break
    return best, int(np.argmin(slopes)), nearest


def _follow(
    model: "CnnNetwork",
    flat: Float[Array, " P"],
    targets: Parts,
    course: Course,
    *,
    use_first: bool,
) -> Float[np.ndarray, " F"]:
    steps, variations, first = course
    parts = parts_of(model, flat)
    image = np.full(math.prod(model.image), START)
    fading = np.geomspace(*variations, num=len(steps))
    for sharpness, smoothness in zip(steps, fading, strict=True):
        numbers = (first if use_first else 0.0, float(smoothness), float(sharpness))
        smooth = partial(_smooth, model, parts, targets, numbers)
        image = _descend(smooth, image, STEPS)
    # The first convolution has shown the way; it would keep the image from the end.
    hard = partial(_hard, model, flat, targets, (0.0, LAST_VARIATION))
    return _descend(hard, image, LAST_STEPS).astype(np.float32)


def _descend(
    function: Callable[[Array], tuple[Array, Array]],
    image: Float[np.ndarray, " F"],
    steps: int,
) -> Float[np.ndarray, " F"]:
    def with_slope(at: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = function(jnp.asarray(at, jnp.float32))
        return float(value), np.asarray(slope, np.float64)

    # Its matrices are so small that threads of BLAS only wait for each other: 26
    # milliseconds a step on two busy cores, and 1 without them.
    with threadpool_limits(1, "blas"):
        found = minimize(
            with_slope,
            image,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * image.size,
            options={
                "maxiter": steps,
                "maxfun": steps,
                "maxcor": 30,
                "ftol": 1e-9,
                "gtol": 1e-8,
            },
        )
    return found.x


def _layers(first: float | Array) -> Float[Array, "3"]:
    one = jnp.ones((), jnp.float32)
    return jnp.stack([jnp.asarray(first, jnp.float32), one, one])


@partial(jax.jit, static_argnames="model")
def _smooth(
    model: "CnnNetwork",
    parts: Parts,
    targets: Parts,
    numbers: tuple[float, float, float],
    image: Float[Array, " F"],
) -> tuple[Float[Array, ""], Float[Array, " F"]]:
    """Returns what is minimised in the smooth network, and its gradient."""
    first, smoothness, sharpness = numbers

    def objective(at: Float[Array, " F"]) -> Float[Array, ""]:
        far = smooth_distance(
            model,
            parts,
            targets,
            at,
            _layers(first),
            jnp.asarray(sharpness, jnp.float32),
        )
        return far + smoothness * variation(model, at)

    return jax.value_and_grad(objective)(image)


@partial(jax.jit, static_argnames="model")
def _hard(
    model: "CnnNetwork",
    flat: Float[Array, " P"],
    targets: Parts,
    numbers: tuple[float, float],
    image: Float[Array, " F"],
) -> tuple[Float[Array, ""], Float[Array, " F"]]:
    first, smoothness = numbers

    def objective(at: Float[Array, " F"]) -> Float[Array, ""]:
        far = distance(model, flat, targets, at, _layers(first))
        return far + smoothness * variation(model, at)

    return jax.value_and_grad(objective)(image)


def _checked(
    model: "CnnNetwork", weights: np.ndarray, message: np.ndarray
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    arrays = []
    for name, value in (("weights", weights), ("message", message)):
        array = np.asarray(value, np.float64)
        if array.shape != (model.num_weights,) or not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be {model.num_weights} finite numbers, as many as the "
                f"model has, got the shape {array.shape}; was it another model's?"
            )
        arrays.append(array)
    return arrays[0], arrays[1]
