"""The Free Spoken Digit Dataset, cut into pieces of frames, each with its digit."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from .....files.reading.archive import Arrays, cached_of
from .....files.reading.published import Published, PublishedFile
from .....parts.errors import DataError
from .....problem.data import base
from .....problem.data.base import Dataset
from .....problem.data.parts import FileData, FileSet
from ..speech.utterances import FrameData, Utterances, dataset, deltas
from .recordings import BANDS, parse

ARCHIVE = "recordings.zip"
NAME = re.compile(
    r"^(?:recordings|free-spoken-digit-dataset[\w.-]*)\.(?:zip|tar\.gz|tgz|tar)$"
)
FOLDERS = ("spokendigits", "fsdd", "freespokendigitdataset")
"""Plain names of folders that are preferred to others."""
FEATURES = (
    *base.counted("log_mel", BANDS),
    *base.counted("delta", BANDS),
    *base.counted("delta_delta", BANDS),
)
"""Features of a frame."""
NUM_CLASSES = 10
NUM_TEST = 5
"""Recordings 0 to 4 of each digit and speaker are for testing."""
PUBLISHED = Published(
    origin="github.com/Jakobovski/free-spoken-digit-dataset, version 1.0.10",
    licence="CC BY-SA 4.0",
    files=(
        # The folder of that version, zipped; of GitHub's own archive none is published.
        PublishedFile(ARCHIVE, "md5:99845cdc7b463021c013bbd014d991d8", 16_317_530),
    ),
    by_hand="download the zip of version 1.0.10 from "
    "github.com/Jakobovski/free-spoken-digit-dataset; no checksum of it is published",
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    return ARCHIVE if NAME.search(path.name) else ""


class SpokenDigits(FrameData, FileData):
    """Free Spoken Digit Dataset, frames of 3,000 recordings.

    A row is a piece of a recording: the 120 features of each of its frames, one frame
    after the other, and the digit as the class of every frame, as the model `lstm`
    expects them.
    """

    kind: Literal["spoken_digits"] = "spoken_digits"
    files: ClassVar[FileSet] = FileSet(
        "spoken_digits", (ARCHIVE,), PUBLISHED, FOLDERS, NAME, identify
    )

    def make(self) -> Dataset:
        """Returns pieces of recordings with the digit for every frame.

        Frames are of 25 ms, 10 ms apart, of speech at 8 kHz: the logarithms of the
        energies in 40 mel bands, and their first and second differences over five
        frames (`spectrum` has all numbers, which are assumed). Recordings 0 to 4 of
        each digit and speaker are the test set, the others the training set.

        Recordings are cut into pieces of `frames` frames that do not overlap. The rest
        at a recording's end is dropped: with 21 frames 83 of the 3,000 recordings,
        which are shorter than 0.225 s, and a quarter of all frames.

        Features take about 3 s and are cached (20 MB).

        Source: Jackson et al., Free Spoken Digit Dataset; the features: speech in
            evidence/pages/decisions.md.
        """
        paths = self.files.complete()
        path = paths[ARCHIVE]
        arrays = cached_of("spoken-digits-2", [path], lambda: parse(path))
        for_test = arrays["indices"] < NUM_TEST
        if for_test.all() or not for_test.any():
            raise DataError(
                f"{path} must hold recordings of the indices 0 to {NUM_TEST - 1} and "
                "higher ones, got only one of both; download it again"
            )
        return _cut(self, self.files.called(paths), arrays)


def _cut(config: SpokenDigits, name: str, arrays: Arrays) -> Dataset:
    static, lengths = arrays["features"], arrays["lengths"]
    slopes = deltas(static, lengths)
    features = np.concatenate([static, slopes, deltas(slopes, lengths)], axis=1)
    spoken = Utterances(features, np.repeat(arrays["digits"], lengths), lengths)
    for_test = arrays["indices"] < NUM_TEST
    return dataset(
        config,
        name,
        spoken.taken(~for_test),
        spoken.taken(for_test),
        NUM_CLASSES,
        FEATURES,
        arrays["speakers"][~for_test],
    )
