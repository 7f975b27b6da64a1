"""LEAF's sets: FEMNIST by its writers, Shakespeare's plays by their speaking roles."""

from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import UInt8

from ....files.reading.published import Published
from ....problem.data import base
from ....problem.data.base import Dataset, Field, pixels
from ....problem.data.groups import grouping
from ....problem.data.parts import Scale, TokenRows
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
            columns=pixels(SIDE, SIDE),
            largest=1.0,
            groupings=(grouping("user", train[2]),),
        )


CHARACTERS = (
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
)
"""LEAF's 80 characters, numbered in this order."""
NUMBER = np.array([CHARACTERS.find(chr(code)) % 81 for code in range(128)], np.uint8)
"""Number of each character of ASCII, 80 of those that LEAF does not have."""
LENGTH = 80


class LeafShakespeare(TokenRows, Leaf):
    """Shakespeare as LEAF's scripts make it: 80 characters, and the next one.

    Users are roles of plays. Each character of a role's lines is a label once, and
    before the first of a line stand 80 spaces. A row has one label, so that
    `transformer` learns what follows its last character. Characters are numbered as
    LEAF does.

    Where LEAF divides a role's rows at random, test rows overlap training rows.
    """

    kind: Literal["leaf_shakespeare"] = "leaf_shakespeare"
    tokens: ClassVar[str] = "characters"
    published: ClassVar[Published | None] = recorded(
        "shakespeare", "Project Gutenberg's complete works", "public domain"
    )
    folders: ClassVar[tuple[str, ...]] = ("leafshakespeare", "shakespeare")
    holds: ClassVar[str] = "texts of 80 of LEAF's 80 characters and the one after each"

    @staticmethod
    def encoded(x: list[Any], y: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        if {*map(len, x)} != {LENGTH} or {*map(len, y)} != {1}:
            raise ValueError(x)
        return _numbers(x).reshape(-1, LENGTH), _numbers(y)

    def finish(self, name: str, train: LeafRows, test: LeafRows) -> Dataset:
        return finished(
            self,
            name,
            train[:2],
            test[:2],
            num_classes=len(CHARACTERS),
            columns=base.counted("token", LENGTH),
            fields=(Field("", (LENGTH,), whole=True),),
            groupings=(grouping("user", train[2]),),
        )._replace(next_token=True)


def _numbers(texts: list[str]) -> UInt8[np.ndarray, " n"]:
    """Returns the numbers of the characters of some texts."""
    # Ascii, since a full set has 340 million characters; it refuses others.
    codes = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    numbers = NUMBER[codes]
    if (numbers == len(CHARACTERS)).any():
        raise ValueError(texts)
    return numbers
