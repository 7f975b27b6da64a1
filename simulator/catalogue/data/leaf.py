"""LEAF's sets: FEMNIST by its writers, Shakespeare's plays by their speaking roles.

JSON files in folders `train` and `test`, rows by their users: `{"users": [...],
"num_samples": [...], "user_data": {USER: {"x": [...], "y": [...]}}}`; `num_samples` and
`hierarchies` are not read.

Source: Caldas et al., LEAF: A Benchmark for Federated Settings (2018), and its code,
github.com/TalwalkarLab/leaf, models/utils/model_utils.py.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int, Shaped, UInt8
from pydantic import Field

from ...files.reading import files
from ...files.reading.published import Published, PublishedFile
from ...parts.base import tag
from ...parts.errors import DataError, ScenarioError
from ...problem.data import base
from ...problem.data.base import Dataset, pixels
from ...problem.data.base import Field as Input
from ...problem.data.groups import grouping
from ...problem.data.parts import Data, Scale, TokenRows
from ...problem.data.split import finished

TRAIN, TEST = "train", "test"
NOWHERE_ELSE = re.compile(r"(?!)")
"""Matches no name: files of all sets have the same names; only folders differ."""


LeafRows = tuple[Shaped[np.ndarray, "N ..."], Int[np.ndarray, " N"], list[str]]
"""Rows of some users: features as the set encodes them, labels from 0, and the user of
each row."""


class Leaf(Data, ABC):
    """Base of LEAF's sets. Rows belong to users: `user`, for the partition `natural`.

    LEAF's scripts draw users and rows and divide them by their options, so that there
    are no official files: the set is called by its name, `folder`, and the number of
    users with training rows. `test_fraction` has no effect.
    """

    folders: ClassVar[tuple[str, ...]]
    """Plain names of folders that contain `train` and `test`, at any depth."""
    holds: ClassVar[str]
    """Content of a user's rows, for messages."""
    users: Annotated[int, Field(ge=1)] | None = None
    """Number of users, the first ones in the order of the files' names and of the users
    in them; test rows are theirs, or all where the test rows are of other users. By
    default all."""

    @staticmethod
    @abstractmethod
    def encoded(x: list[object], y: list[object]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the features and the labels of one user's rows, as arrays.

        Raises:
            ValueError: They do not fit the set.
        """

    @abstractmethod
    def finish(self, name: str, train: LeafRows, test: LeafRows) -> Dataset:
        """Returns the data set of encoded rows."""

    def make(self) -> Dataset:
        paths, kind = self.located_files(), tag(type(self))
        if not (_number(paths, TRAIN) and _number(paths, TEST)):
            raise DataError(
                f"{kind} must lie in {files.data_folder() / kind} as {TRAIN}/*.json "
                f"and {TEST}/*.json (the data folder is chosen by {files.FOLDER}), "
                f"got {_number(paths, TRAIN)} and {_number(paths, TEST)} files; see "
                "stalesim data list"
            )
        train, test = self.halves(paths)
        num_users = len({*train[2]})
        return self.finish(f"{kind} (folder, {num_users:,} users)", train, test)

    def halves(self, paths: list[Path]) -> tuple[LeafRows, LeafRows]:
        """Returns training and test rows of the requested users.

        Raises:
            DataError: A file is damaged or holds something else.
            ScenarioError: There are fewer users.
        """
        num_train = _number(paths, TRAIN)
        train = self._rows(paths[:num_train], self.users)
        users = set(train[2])
        if self.users is not None and len(users) < self.users:
            raise ScenarioError(
                f"problem.data.users must be at most the {len(users)} of "
                f"{paths[0].parent}, got {self.users}; lower it"
            )
        x, y, of_rows = self._rows(paths[num_train:])
        theirs = np.array([user in users for user in of_rows])
        if theirs.any():
            x, y = x[theirs], y[theirs]
        return train, (x, y, of_rows)

    def located_files(self) -> list[Path]:
        found = [
            path
            for path in files.candidates(self.folders, NOWHERE_ELSE)
            if path.suffix == ".json"
            and path.parent.name in (TRAIN, TEST)
            and files.folder_of(path, self.folders)
        ]
        of_one = [path for path in found if path.parents[1] == found[0].parents[1]]
        return sorted(of_one, key=lambda path: (path.parent.name != TRAIN, path))

    def _rows(self, paths: list[Path], most: int | None = None) -> LeafRows:
        """Returns the rows of some files, of the first users that have any."""
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for path in paths:
            # Further files are not even read: those of a whole set have gigabytes.
            for user, given in _users(path) if len(found) != most else ():
                if len(found) == most:
                    break
                if user in found:
                    raise DataError(
                        f"{path} must hold each user once, and none of another file, "
                        f"got {user!r} again; remove one of them"
                    )
                try:
                    x, y = given["x"], given["y"]
                    found |= {user: self.encoded(x, y)} if x or y else {}
                    fits = len(x) == len(y)
                except (LookupError, TypeError, ValueError, OverflowError):
                    fits = False
                if not fits:
                    raise DataError(
                        f"{path} must hold lists x and y of {self.holds}, got others "
                        f"for the user {user!r}; make it again by LEAF's scripts"
                    )
        if not found:
            raise DataError(
                f"{paths[0]} must hold users with rows, got none; make it again"
            )
        users = [user for user, (_, y) in found.items() for _ in y]
        x, y = (np.concatenate(parts) for parts in zip(*found.values(), strict=True))
        return x, y, users


def whole(y: list[object], num_classes: int) -> Int[np.ndarray, " n"]:
    """Returns labels as an array.

    Raises:
        ValueError: They are no list of integers below the number of classes.
    """
    labels = np.asarray(y)
    are_whole = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not are_whole or labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(y)
    return labels


def recorded(folder: str, origin: str, licence: str) -> Published:
    """Returns the known facts of a set of LEAF: none is officially published."""
    return Published(
        origin=f"github.com/TalwalkarLab/leaf, data/{folder} (Caldas et al., 2018), "
        f"from {origin}",
        licence=licence,
        files=(PublishedFile(f"{TRAIN}/*.json"), PublishedFile(f"{TEST}/*.json")),
        by_hand=f"run preprocess.sh in data/{folder} of github.com/TalwalkarLab/leaf, "
        f"which makes data/{TRAIN} and data/{TEST}",
    )


def _number(paths: list[Path], half: str) -> int:
    return sum(path.parent.name == half for path in paths)


def _users(path: Path) -> Iterator[tuple[str, dict[str, list[object]]]]:
    try:
        content = json.loads(files.read(path))
        users, of_users = content["users"], content["user_data"]
        found = [(str(user), of_users[user]) for user in users]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} must be a JSON file with users and user_data, got: {error}; make "
            "it again by LEAF's scripts"
        ) from error
    yield from found


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

    Users are roles of plays. Each character of a role's lines is a label once, and 80
    spaces precede the first of a line. A row has one label, so that `transformer`
    learns the character that follows its last. Characters are numbered as in LEAF.

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
            fields=(Input("", (LENGTH,), whole=True),),
            groupings=(grouping("user", train[2]),),
        )._replace(next_token=True)


def _numbers(texts: list[str]) -> UInt8[np.ndarray, " n"]:
    # Ascii, since a full set has 340 million characters; it refuses others.
    codes = np.frombuffer("".join(texts).encode("ascii"), np.uint8)
    numbers = NUMBER[codes]
    if (numbers == len(CHARACTERS)).any():
        raise ValueError(texts)
    return numbers
