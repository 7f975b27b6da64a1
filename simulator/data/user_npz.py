"""The user's own arrays, in an npz file."""

from pathlib import Path
from typing import Literal

from ..config.base import FilePath
from ..config.errors import DataError
from ..storage import archive, files
from . import arrays as of_user
from .base import Dataset
from .parts import Data


class Npz(Data):
    """The user's own arrays: `x` `[N, ...]`, `y` `[N, ...]`, perhaps `x_test`, ...

    Arrays `x/NAME` in place of `x` are several inputs of a model of one's own. An array
    `group` or `group/NAME` says what each row belongs to: for the partition `natural`.
    """

    kind: Literal["npz"] = "npz"
    path: FilePath
    """File with the rows."""

    def make(self) -> Dataset:
        """Returns the user's arrays `x`, `y` and, if present, `x_test`, `y_test`.

        Raises:
            DataError: The file does not exist, or its arrays are missing, of other
                shapes, or not finite.
            ScenarioError: The limit or the test fraction is too high.
        """
        path = files.located(self.path, "problem.data.path")
        return of_user.dataset(self, path.stem, path, _arrays(path))


def _arrays(path: Path) -> of_user.Arrays:
    """Returns the arrays of an npz file."""
    content = files.read(path)
    try:
        return archive.arrays(content)
    except ValueError as error:
        raise DataError(
            f"{path} must be an npz file of plain arrays, got: {error}; save it by "
            "numpy.savez"
        ) from error
