"""Log-mel features of speech at 8 kHz, frame by frame.

The papers do not say how their features are computed; every number here is assumed
(those of HTK and Kaldi, where they have one).
"""

import numpy as np
from jaxtyping import Float32, Float64, Shaped

RATE_HZ = 8_000
WINDOW = 200
"""Samples of a frame: 25 ms (assumed)."""
HOP = 80
"""Samples from one frame to the next: 10 ms (assumed)."""
POINTS = 256
"""Length of the Fourier transform of a frame, zeros after its samples (assumed)."""
BANDS = 40
"""Number of triangular bands (A(DP)²SGD, section 5: 40 log-mel features)."""
LOWEST_HZ, HIGHEST_HZ = 20.0, RATE_HZ / 2
"""Ends of the first and the last band (assumed)."""
EMPHASIS = 0.97
"""Part of the sample before that is subtracted from each (assumed)."""
FLOOR = 1e-10
"""Least energy whose logarithm is taken, of samples in [-1, 1] (assumed)."""


def num_frames(num_samples: int) -> int:
    """Returns the number of whole frames of a recording; the rest is left out."""
    return max(0, (num_samples - WINDOW) // HOP + 1)


def log_mel(samples: Shaped[np.ndarray, " n"]) -> Float32[np.ndarray, "T 40"]:
    """Returns the logarithm of each frame's energy in each mel band.

    Args:
        samples: Recording, in [-1, 1].
    """
    if not num_frames(samples.size):
        return np.empty((0, BANDS), np.float32)
    before = np.concatenate([samples[:1], samples[:-1]])
    emphasised = samples - EMPHASIS * before
    frames = np.lib.stride_tricks.sliding_window_view(emphasised, WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hamming(WINDOW), POINTS)) ** 2
    energy = power @ bands().T
    return np.log(np.maximum(energy, FLOOR)).astype(np.float32)


def bands() -> Float64[np.ndarray, "40 K"]:
    """Returns the weights of the transform's frequencies in each triangular band.

    Corners of the triangles are equally far apart in mel = 2595 log10(1 + Hz / 700).

    Source: Young et al., The HTK Book (2006), section 5.4.
    """
    low, high = (2595 * np.log10(1 + hz / 700) for hz in (LOWEST_HZ, HIGHEST_HZ))
    corners = 700 * (10 ** (np.linspace(low, high, BANDS + 2) / 2595) - 1)
    frequency = np.fft.rfftfreq(POINTS, 1 / RATE_HZ)
    left, middle, right = (corners[i : i + BANDS, None] for i in range(3))
    rising = (frequency - left) / (middle - left)
    falling = (right - frequency) / (right - middle)
    return np.maximum(0, np.minimum(rising, falling))
