"""The user's own arrays: of an npz file, or of a function."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ...files import inputs
from ...files.reading import archive, files
from ...parts import functions
from ...parts.base import FilePath
from ...parts.errors import DataError, ScenarioError
from ...parts.functions import FunctionName
from ...parts.own_code import Content
from ...problem.data.base import Dataset
from ...problem.data.parts import Data
from . import arrays

KEY = "problem.data.build"
_made: dict[tuple[str, int], Content] = {}
"""What functions have made, by name and seed, until that is confirmed."""


class Npz(Data):
    """The user's own arrays: `x` `[N, ...]`, `y` `[N, ...]`, optionally `x_test`, ...

    Arrays `x/NAME` in place of `x` are several inputs of a custom model. An array
    `group` or `group/NAME` contains the group of each row, for the partition `natural`.
    """

    kind: Literal["npz"] = "npz"
    path: FilePath
    """File with the rows."""

    def make(self) -> Dataset:
        path = files.located(self.path, "problem.data.path")
        return arrays.dataset(self, path.stem, path, npz(path))


def npz(path: Path) -> archive.Arrays:
    """Returns the arrays of an npz file.

    Raises:
        DataError: It cannot be read, or is no such file.
    """
    content = files.read(path)
    try:
        return archive.arrays(content)
    except ValueError as error:
        raise DataError(
            f"{path} must be an npz file of plain arrays, got: {error}; save it by "
            "numpy.savez"
        ) from error


class Generated(Data):
    """Arrays of a custom function, called with `split_seed`.

    It returns a mapping with `x`, `y` and optionally `x_test`, `y_test` and `group`, as
    for `npz`. With `split_seed: replicate` every replicate has its own task.
    """

    kind: Literal["python"] = "python"
    build: FunctionName
    """The function, as `module:function`. It must depend on its argument alone."""
    computed: ClassVar[bool] = True

    def make(self) -> Dataset:
        given = self._called()
        name = self.build.partition(":")[2].partition("@")[0]
        data = arrays.dataset(self, name, self._place, given)
        if inputs.are_held():  # and are confirmed next
            _made[self.build, self.split] = _computed(given, self._place)
        return data

    def made(self) -> Content:
        last = _made.pop((self.build, self.split), None)
        return last or _computed(self._called(), self._place)

    @property
    def _place(self) -> str:
        return f"{self.build}({self.split})"

    def _called(self) -> dict[str, np.ndarray]:
        function = functions.resolve(self.build, KEY)

        def call() -> dict[str, np.ndarray]:
            given = function(self.split)
            if not isinstance(given, Mapping):
                raise ScenarioError(
                    f"{KEY} must return arrays by name, got {type(given).__name__} "
                    f'from {self.build!r}; return {{"x": ..., "y": ...}}'
                )
            return arrays.by_name(given)

        return functions.calling(self.build, KEY, call)


def _computed(given: Mapping[str, np.ndarray], place: str) -> Content:
    digest = hashlib.sha256()
    for name, array in sorted(given.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    size = sum(array.nbytes for array in given.values())
    return Content(
        f"what {place} returns by its argument alone", digest.hexdigest(), size
    )
