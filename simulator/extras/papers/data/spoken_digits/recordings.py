"""Recordings of spoken digits in an archive, as features of their frames."""

import io
import re
import wave
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, Shaped

from .....files.reading.archive import Arrays, members
from .....parts.errors import DataError

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


NAME = re.compile(r"(?:^|/)(\d)_([a-zA-Z]+)_(\d+)\.wav$")
"""Names are DIGIT_SPEAKER_INDEX.wav."""
FORMAT = (1, 2, RATE_HZ)
"""Channels, bytes of a sample, and samples a second."""
FULL_SCALE = 2.0**15


def parse(path: Path) -> Arrays:
    """Returns all recordings of an archive, in the order of speaker, digit and index.

    Returns:
        `features` `[T, 40]`, log-mel features of all frames, laid end to end; of each
        of the `U` recordings `lengths` (frames), `digits`, `indices` and `speakers`.

    Raises:
        DataError: The archive is damaged, holds no recording, or one of another format.
    """
    found: dict[tuple[str, int, int], bytes] = {}
    for name, content in members(path):
        if match := NAME.search(name):
            key = match[2].lower(), int(match[1]), int(match[3])
            if key in found:
                raise DataError(
                    f"{path} must hold every recording once, got {name} twice; remove "
                    "one"
                )
            found[key] = content
    if not found:
        raise DataError(
            f"{path} must hold recordings DIGIT_SPEAKER_INDEX.wav, got none; download "
            "it again"
        )
    spoken = [log_mel(_samples(path, key, found[key])) for key in sorted(found)]
    return {
        "features": np.concatenate(spoken),
        "lengths": np.array([len(frames) for frames in spoken], np.int32),
        "digits": np.array([digit for _, digit, _ in sorted(found)], np.int32),
        "indices": np.array([index for _, _, index in sorted(found)], np.int32),
        "speakers": np.array([speaker for speaker, _, _ in sorted(found)]),
    }


def _samples(path: Path, key: tuple[str, int, int], content: bytes) -> np.ndarray:
    speaker, digit, index = key
    name = f"{digit}_{speaker}_{index}.wav"
    try:
        with wave.open(io.BytesIO(content)) as file:
            form = tuple(file.getparams())[:3]
            samples = file.readframes(file.getnframes())
            expected = 2 * file.getnframes()
    except (wave.Error, EOFError) as error:
        raise DataError(
            f"{name} in {path} must be a wav file, got: {error or 'its end'}; "
            "download the archive again"
        ) from error
    if form != FORMAT:
        raise DataError(
            f"{name} in {path} must have 1 channel of 2 bytes at {RATE_HZ} Hz, got "
            f"{form[0]} of {form[1]} at {form[2]}; convert it, or download the archive "
            "again"
        )
    if len(samples) != expected:
        raise DataError(
            f"{name} in {path} must have {expected} bytes of samples, got "
            f"{len(samples)}; download the archive again"
        )
    return np.frombuffer(samples, "<i2") / FULL_SCALE
