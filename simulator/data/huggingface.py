"""A data set of Hugging Face's hub, from a folder that it was saved in."""

from typing import Literal

from ..config.base import SavedSetPath
from ..config.errors import DataError
from ..storage import arrow, files
from .tables import TableSet, Tabular

TRAIN, TEST = "train", "test"
"""Parts of a saved set that are read; others, such as `validation`, are left alone."""


class HuggingFace(Tabular):
    """A data set that Hugging Face's `datasets` saved by `save_to_disk`.

    Nothing is downloaded, and the library is not needed. Of a set that is divided the
    parts `train` and `test` are read; without a part `test`, rows are set aside.
    """

    kind: Literal["huggingface"] = "huggingface"
    path: SavedSetPath
    """Folder of the saved set."""

    def tables(self) -> TableSet:
        """Reads the parts of the set.

        Raises:
            DataError: The folder does not exist, holds no saved set, or is damaged.
        """
        folder = files.located(self.path, "problem.data.path", is_folder=True)
        parts = arrow.splits(folder)
        whole = parts.get("") or parts.get(TRAIN)
        if whole is None:
            raise DataError(
                f"{folder} must have a part {TRAIN!r}, got {', '.join(parts)}; let "
                "problem.data.path name the folder of one of them"
            )
        test = parts.get(TEST)
        return TableSet(folder.name, arrow.saved(whole), test and arrow.saved(test))
