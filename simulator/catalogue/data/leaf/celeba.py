"""CelebA: faces by the celebrity, from LEAF's files and the images that they name."""

import io
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import UInt8
from pydantic import Field

from ....files.reading import files
from ....files.reading.pictures import DAMAGED
from ....files.reading.published import Published
from ....parts.errors import DataError
from ....problem.data import names
from ....problem.data.base import Dataset
from ....problem.data.groups import grouping
from ....problem.data.parts import Scale
from ....problem.data.split import finished
from .format import TRAIN, Leaf, LeafRows, recorded, whole

IMAGES = Path("raw") / "img_align_celeba"
"""Where the images lie, next to `train` and `test`."""


class LeafCeleba(Leaf):
    """CelebA as LEAF's scripts make it: faces that smile (1) or do not (0).

    Users are celebrities. LEAF's files name images, which are read from
    `raw/img_align_celeba` next to `train` and `test` and resized as LEAF does by the
    present Pillow, bicubically.
    """

    kind: Literal["leaf_celeba"] = "leaf_celeba"
    published: ClassVar[Published | None] = recorded(
        "celeba",
        "CelebA (Liu, Luo, Wang and Tang, 2015), aligned and cropped",
        "non-commercial research only",
    )
    folders: ClassVar[tuple[str, ...]] = ("leafceleba", "celeba")
    holds: ClassVar[str] = "names of images, such as 000001.jpg, and 0 or 1"
    scale: Scale = "unit"
    side: Annotated[int, Field(ge=1, le=178)] = 84
    """Pixels of an image's side."""

    @staticmethod
    def encoded(x: list[Any], y: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        if any(Path(name).name != name for name in x):
            raise ValueError(x)
        # LEAF writes 0.0 and 1.0.
        return np.array(x, object), whole([int(v) if v in (0, 1) else v for v in y], 2)

    def located_files(self) -> list[Path]:
        paths = super().located_files()
        if not self.complete(paths):
            return paths
        folder, halves = paths[0].parents[1] / IMAGES, self.halves(paths)
        named = {name for rows in halves for name in rows.x}
        return paths + [p for p in map(folder.joinpath, sorted(named)) if p.is_file()]

    def finish(self, name: str, train: LeafRows, test: LeafRows) -> Dataset:
        folder = super().located_files()[0].parents[1] / IMAGES
        return finished(
            self,
            name,
            (self._pixels(folder, train), train.y),
            (self._pixels(folder, test), test.y),
            num_classes=2,
            columns=names.pixels(self.side, self.side, names.RGB),
            largest=255.0,
            groupings=(grouping("user", train.users),),
        )

    def _pixels(self, folder: Path, rows: LeafRows) -> UInt8[np.ndarray, "N P"]:
        """Returns images as planes, red, green and blue, row by row."""
        found = np.empty((len(rows.x), 3, self.side, self.side), np.uint8)
        for image, name in zip(found, rows.x, strict=True):
            image[:] = _image(folder / name, self.side)
        return found.reshape(len(found), -1)


def _image(path: Path, side: int) -> UInt8[np.ndarray, "3 s s"]:
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        raise DataError(
            f"{path} must be an image that {TRAIN} or test names, got no file; unpack "
            f"img_align_celeba.zip into {path.parents[1]}"
        )
    try:
        with Image.open(io.BytesIO(files.read(path)), formats=("JPEG", "PNG")) as face:
            resized = face.resize((side, side), Image.Resampling.BICUBIC)
            return np.asarray(resized.convert("RGB"), np.uint8).transpose(2, 0, 1)
    except (UnidentifiedImageError, Image.DecompressionBombError, *DAMAGED) as error:
        says = " ".join(str(error).split())
        raise DataError(
            f"{path} must be a whole JPEG file, got: {says}; unpack it again"
        ) from error
