"""Recordings of spoken digits in an archive, as features of their frames."""

import io
import re
import wave
from pathlib import Path

import numpy as np

from .....files.reading.archive import members
from .....files.reading.cache import Arrays
from .....parts.errors import DataError
from .spectrum import RATE_HZ, log_mel

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
