"""SWB300, or other speech, from an npz file of frames."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float32, Int, Shaped

from .....catalogue.data.arrays import missing
from .....catalogue.data.own_arrays import npz
from .....files.reading import archive, files, table
from .....files.reading.published import Published, PublishedFile
from .....parts.errors import DataError
from .....problem.data.base import Dataset
from .....problem.data.parts import FileData, FileSet
from .utterances import WIDTH, FrameData, Utterances, dataset

FILE = "speech.npz"
ARRAYS = ("features", "targets", "lengths")
FOLDERS = ("speech", "swb300")
"""Plain names of folders in which a file may have any name, and of files anywhere."""
NAME = re.compile("speech|swb", re.IGNORECASE)
PUBLISHED = Published(
    origin="Switchboard-1 Release 2 (LDC97S62), 300 hours of speech",
    licence="LDC user agreement: bought, not to be shared",
    files=(PublishedFile(FILE),),
    by_hand="a licence is sold at catalog.ldc.upenn.edu/LDC97S62; make the features of "
    "frames by a toolkit and save them as `data: {kind: speech}` reads them",
)


def identify(path: Path) -> str:
    """Returns the official name of a file, "" for a stranger."""
    named = files.plain(path.stem) in FOLDERS
    ours = path.suffix == ".npz" and (named or files.folder_of(path, FOLDERS))
    return FILE if ours else ""


class Speech(FrameData, FileData):
    """SWB300, frames of speech with their states.

    A row is a piece of an utterance: the 260 features of each of its frames, one frame
    after the other, and a class for every frame. A split keeps utterances whole.
    """

    kind: Literal["speech"] = "speech"
    files: ClassVar[FileSet] = FileSet(
        "speech", (FILE,), PUBLISHED, FOLDERS, NAME, identify
    )

    def make(self) -> Dataset:
        """Returns pieces of utterances with a state for every frame.

        The file is `speech.npz` or `swb300.npz` in the data folder, or any npz file in
        a folder of such a name. It holds these arrays, of all utterances laid end to
        end:

        - `features` `[T, 260]`, real: of each frame 40 FMLLR, the i-vector's 100, and
          40 log-mel features with their first and second differences;
        - `targets` `[T]`, whole numbers: the HMM state of each frame, from 0; the
          largest determines their number;
        - `lengths` `[U]`, whole numbers: frames of each utterance, together T;
        - optionally `test_features`, `test_targets` and `test_lengths`, of other
          utterances. Without them, `test_fraction` of the utterances are for testing.

        Utterances are cut into pieces of `frames` frames that do not overlap. The
        rest at an utterance's end is dropped: of n frames, n mod `frames`.

        Source: A(DP)²SGD, section 5 (SWB300); speech in evidence/pages/decisions.md.
        """
        path = self.files.complete()[FILE]
        arrays = npz(path)
        train = _utterances(path, arrays, "", self.frames)
        test = None
        if any(f"test_{name}" in arrays for name in ARRAYS):
            test = _utterances(path, arrays, "test_", self.frames)
        parts = (train,) if test is None else (train, test)
        num_states = 1 + max(int(part.targets.max()) for part in parts)
        num_frames = sum(part.targets.size for part in parts)
        if not 2 <= num_states <= num_frames:
            raise DataError(
                f"targets of {path} must number two states or more from 0 without "
                f"gaps, got {num_states - 1} as the largest of {num_frames} frames; "
                "number them by numpy.unique(targets, return_inverse=True)[1]"
            )
        return dataset(self, path.stem, train, test, num_states)


def _utterances(
    path: Path, arrays: archive.Arrays, prefix: str, frames: int
) -> Utterances:
    for name in ARRAYS:
        if prefix + name not in arrays:
            raise missing(path, prefix + name, arrays)
    features, targets, lengths = (arrays[prefix + name] for name in ARRAYS)
    names = [prefix + name for name in ARRAYS]
    fits = features.shape == (len(targets) if targets.ndim else 0, WIDTH)
    if not fits or targets.ndim != 1 or not targets.size:
        raise DataError(
            f"{names[0]} and {names[1]} of {path} must have the shapes [T, {WIDTH}] "
            f"and [T], neither empty, got {features.shape} and {targets.shape}; "
            "reshape them"
        )
    spoken = Utterances(
        _finite(path, names[0], features),
        _whole(path, names[1], targets, 0),
        _whole(path, names[2], lengths, 1),
    )
    if lengths.ndim != 1 or sum(lengths.tolist()) != len(targets):
        total = sum(lengths.tolist()) if lengths.ndim == 1 else lengths.shape
        raise DataError(
            f"{names[2]} of {path} must be a list that adds up to the {len(targets)} "
            f"frames of {names[0]}, got {total}; count the frames of each utterance"
        )
    if lengths.max() < frames:
        raise DataError(
            f"{names[2]} of {path} must have an utterance of {frames} frames, got at "
            f"most {lengths.max()}; lower problem.data.frames"
        )
    return spoken


def _finite(
    path: Path, name: str, features: Shaped[np.ndarray, "T F"]
) -> Float32[np.ndarray, "T F"]:
    """Returns features as float32; refuses others than finite numbers."""
    if features.dtype.kind not in "iuf":
        raise DataError(
            f"{name} of {path} must hold real numbers, got {features.dtype}; convert it"
        )
    bad = np.argwhere(~table.representable(features))
    if bad.size:
        frame, column = bad[0]
        raise DataError(
            f"{name} of {path} must be finite, got {features[frame, column]} at frame "
            f"{frame}, column {column}; fill it, or remove its utterance"
        )
    return features.astype(np.float32, copy=False)


def _whole(
    path: Path, name: str, values: Shaped[np.ndarray, "*n"], least: int
) -> Int[np.ndarray, "*n"]:
    """Returns numbers as int32; refuses others than whole numbers from `least`."""
    fits = values.dtype.kind in "iu" and bool(
        np.all((values >= least) & (values < 2**31 - 1))
    )
    if not fits:
        shown = f"of type {values.dtype}"
        if values.dtype.kind in "iu":
            shown = f"from {values.min()} to {values.max()}"
        raise DataError(
            f"{name} of {path} must hold whole numbers from {least}, got some "
            f"{shown}; correct them"
        )
    return values.astype(np.int32)
