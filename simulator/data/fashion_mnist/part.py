"""Fashion-MNIST from idx files, or its stand-in."""

from pathlib import Path
from typing import ClassVar, Literal

from ...storage.published import Published
from .. import idx
from ..base import Dataset
from ..parts import Data, Scale
from .record import PUBLISHED
from .standin import fashion_mnist_standin

FILES = idx.file_set("fashion_mnist")


class FashionMnist(Data):
    """Fashion-MNIST from idx files, else its stand-in."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    source: Literal["auto", "idx", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""

    def make(self) -> Dataset:
        """Returns Fashion-MNIST from idx files, or its stand-in."""
        found = FILES.complete(self.source)
        if not found.form:
            return fashion_mnist_standin(self)
        return idx.load(self, FILES.called(found), found.paths)

    def located_files(self) -> list[Path]:
        """Returns the idx files that are read."""
        return FILES.paths(self.source)
