"""FEMNIST: characters by their writers, from LEAF's files."""

from typing import ClassVar, Literal

import numpy as np

from ....files.reading.published import Published
from ....problem.data import names
from ....problem.data.base import Dataset
from ....problem.data.groups import grouping
from ....problem.data.parts import Scale
from ....problem.data.split import finished
from .format import Leaf, LeafRows, recorded, whole

SIDE, NUM_CLASSES = 28, 62


class LeafFemnist(Leaf):
    """FEMNIST as LEAF's scripts make it: 28x28 pixels, 62 classes, users are writers.

    Pixels are from 0 to 1, and paper is 1. Classes are digits, capitals from 10 on,
    and small letters from 36 on.
    """

    kind: Literal["leaf_femnist"] = "leaf_femnist"
    published: ClassVar[Published | None] = recorded(
        "femnist",
        "NIST Special Database 19",
        "none stated by LEAF; NIST's data are public domain in the United States",
    )
    folders: ClassVar[tuple[str, ...]] = ("leaffemnist", "femnist")
    holds: ClassVar[str] = "images of 784 numbers from 0 to 1 and classes from 0 to 61"
    scale: Scale = "unit"

    @staticmethod
    def encoded(x: list[object], y: list[object]) -> tuple[np.ndarray, np.ndarray]:
        images = np.array(x, np.float32)
        inside = (images >= 0) & (images <= 1)
        if images.shape != (len(x), SIDE * SIDE) or not inside.all():
            raise ValueError(x)
        return images, whole(y, NUM_CLASSES)

    def finish(self, name: str, train: LeafRows, test: LeafRows) -> Dataset:
        return finished(
            self,
            name,
            train[:2],
            test[:2],
            num_classes=NUM_CLASSES,
            columns=names.pixels(SIDE, SIDE),
            largest=1.0,
            groupings=(grouping("user", train[2]),),
        )
