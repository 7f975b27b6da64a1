"""Similarity of a recovered image and the true one.

All functions take the client's image, in [0, 1], and a recovered one of the same shape,
planes first if there are several. Other shapes are a ValueError.
"""

import numpy as np
from jaxtyping import Float

SPREAD = 1.5
"""Standard deviation of the Gaussian window, pixels."""
WIDE, NARROW = 11, 7
"""Sides of the window, pixels: the paper's, and that for small images."""
SMALL = 2 * WIDE
"""Pixels; an image with a shorter side takes the narrow window."""
STABILISERS = (0.01**2, 0.03**2)
"""Constants of luminance and of contrast."""


def compare(
    true: Float[np.ndarray, "*d H W"], found: Float[np.ndarray, "*d H W"]
) -> dict[str, float]:
    """Returns all measures by name; NaN where nothing was recovered.

    That are the peak signal-to-noise ratio of the image as it was recovered, dB, the
    same with the brightness and contrast that fit best, structural similarity, in [-1,
    1], and the correlation of pixels, without sign, in [0, 1].

    Raises:
        ValueError: The shapes differ, or a side is shorter than the window.
    """
    return {
        "psnr": psnr(true, found),
        "psnr_aligned": psnr(true, aligned(true, found)),
        "ssim": ssim(true, found),
        "correlation": correlation(true, found),
    }


def psnr(true: Float[np.ndarray, "..."], found: Float[np.ndarray, "..."]) -> float:
    """Returns the peak signal-to-noise ratio, dB; infinite for equal images."""
    true, found = _checked(true, found)
    with np.errstate(divide="ignore", over="ignore"):
        return float(-10 * np.log10(np.mean((true - found) ** 2)))


def aligned(
    true: Float[np.ndarray, "..."], found: Float[np.ndarray, "..."]
) -> Float[np.ndarray, "..."]:
    """Returns `a * found + b` with the numbers that make it nearest to the truth.

    A ratio is the exact image without noise, but has any scale and sign with it, though
    an eye may still see the image. An attacker without the truth cannot choose them:
    this measures the information in the image, the raw measure the attacker's gain. The
    result is never farther from the truth than an even grey, like a constant image.
    """
    true, found = _checked(true, found)
    if not np.isfinite(found).all():
        return np.full(found.shape, np.nan)
    varied, size = _centred(found)
    slope = np.vdot(varied, true) / max(size, np.finfo(float).tiny)
    return true.mean() + slope * varied


def correlation(
    true: Float[np.ndarray, "..."], found: Float[np.ndarray, "..."]
) -> float:
    """Returns the absolute value of Pearson's correlation of pixels.

    NaN where one image is constant or not finite.
    """
    true, found = _checked(true, found)
    if not np.isfinite(found).all():
        return float("nan")
    (first, first_size), (second, second_size) = _centred(true), _centred(found)
    if first_size == 0 or second_size == 0:
        return float("nan")
    ratio = np.vdot(first, second) / np.sqrt(first_size * second_size)
    return float(min(abs(ratio), 1.0))


def ssim(
    true: Float[np.ndarray, "*d H W"], found: Float[np.ndarray, "*d H W"]
) -> float:
    """Returns the mean structural similarity, over windows inside the image.

    The window is a Gaussian of 11 x 11 pixels, or of 7 x 7 where a side of the image
    has fewer than 22; its standard deviation is 1.5 pixels in both. Planes are compared
    one by one and averaged.

    Raises:
        ValueError: The shapes differ, or a side has fewer than 7 pixels.

    Source: Wang, Bovik, Sheikh and Simoncelli, Image Quality Assessment: From Error
    Visibility to Structural Similarity (2004), equations 13 to 16.
    """
    true, found = _checked(true, found)
    shortest = min(true.shape[-2:])
    if shortest < NARROW:
        raise ValueError(
            f"sides of an image must be >= {NARROW} pixels for its structural "
            f"similarity, got {true.shape}; leave the measure out"
        )
    window = _window(NARROW if shortest < SMALL else WIDE)
    first, second = _blurred(true, window), _blurred(found, window)
    first_square = _blurred(true**2, window) - first**2
    second_square = _blurred(found**2, window) - second**2
    product = _blurred(true * found, window) - first * second
    light, contrast = STABILISERS
    similarity = (2 * first * second + light) * (2 * product + contrast)
    similarity /= first**2 + second**2 + light
    similarity /= first_square + second_square + contrast
    return float(similarity.mean())


def _window(side: int) -> Float[np.ndarray, " side"]:
    offsets = np.arange(side) - (side - 1) / 2
    weights = np.exp(-0.5 * (offsets / SPREAD) ** 2)
    return weights / weights.sum()


def _blurred(
    image: Float[np.ndarray, "*d H W"], window: Float[np.ndarray, " side"]
) -> Float[np.ndarray, "*d h w"]:
    for axis in (-1, -2):
        views = np.lib.stride_tricks.sliding_window_view(image, window.size, axis)
        image = views @ window
    return image


def _centred(image: Float[np.ndarray, "..."]) -> tuple[np.ndarray, float]:
    if np.ptp(image) == 0:  # the mean may be rounded
        return np.zeros_like(image), 0.0
    centred = image - image.mean()
    return centred, float(np.vdot(centred, centred))


def _checked(true: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    true, found = np.asarray(true, np.float64), np.asarray(found, np.float64)
    if true.shape != found.shape:
        raise ValueError(
            f"found must have the shape {true.shape} of the true image, got "
            f"{found.shape}"
        )
    return true, found
