"""ModelNet40: forty classes of objects, each seen from twelve sides."""

import io
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import UInt8
from pydantic import Field

from ....files.reading import files
from ....files.reading.archive import Arrays, cached_of
from ....files.reading.pictures import DAMAGED
from ....files.reading.published import Published, PublishedFile, missing
from ....parts.errors import DataError
from ....problem.data.base import Dataset
from ....problem.data.parts import Data, Scale
from ....problem.data.split import finished

ROOT = "modelnet40_images_new_12x"
FOLDERS = ("modelnet40imagesnew12x", "modelnet40")
HALVES = ("train", "test")
VIEWS = 12
NAME = re.compile(r"^(?P<stem>.+)\.obj\.shaded_v(?P<view>\d{3})\.png$")
PUBLISHED = Published(
    origin="modelnet.cs.princeton.edu (Wu et al., 2015), rendered from 12 sides by "
    "Su et al. (2018)",
    licence="for research, as the authors of its models allow",
    files=(  # of 148,000, the first
        PublishedFile(
            "modelnet40_images_new_12x/airplane/train/airplane_0001.obj.shaded_v001.png"
        ),
    ),
    by_hand="download modelnet40_images_new_12x, which the authors of MVCNN publish "
    "(supermoe.cs.umass.edu/shape_recog), and unpack it in the data folder",
)


class ModelNet40(Data):
    """ModelNet40, 9,843 and 2,468 objects in 12 views.

    The views are the images, `view1` to `view12`, one after the other in a row. The
    partition `views` gives whole images to parties.
    """

    kind: Literal["modelnet40"] = "modelnet40"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    side: Annotated[int, Field(ge=4, le=224)] = 32
    """Height and width to which images are reduced, pixels; those of the files have
    224."""

    def make(self) -> Dataset:
        """Returns objects of 40 classes, 12 grey images each, pixels 0 to 255.

        The files are CLASS/{train,test}/NAME.obj.shaded_v001.png to v012 in the folder
        modelnet40_images_new_12x. Classes are numbered in the order of their names.

        Source: Wu et al., 3D ShapeNets (2015); Su, Maji, Kalogerakis and
            Learned-Miller, Multi-view convolutional neural networks (2015).
        """
        root, pixels = _find(), self.side**2
        if root is None:
            absent = [f"{ROOT}/CLASS/{half}" for half in HALVES]
            raise missing("modelnet40", PUBLISHED, absent)
        arrays = cached_of(
            f"modelnet40-{self.side}-1",
            self.located_files(),
            lambda: _read(root, self.side),
        )
        return finished(
            self,
            "modelnet40",
            (arrays["x_train"], arrays["y_train"]),
            (arrays["x_test"], arrays["y_test"]),
            num_classes=len(_classes(root)),
            columns=_columns(self.side),
            views=tuple(f"view{1 + n // pixels}" for n in range(VIEWS * pixels)),
            largest=255.0,
        )

    def located_files(self) -> list[Path]:
        root = _find()
        if root is None:
            return []
        return [
            path
            for folder in _classes(root)
            for half in HALVES
            for views in _objects(folder / half)
            for path in views
        ]


def _columns(side: int) -> tuple[str, ...]:
    return tuple(
        f"view{view}_row{row}_column{column}"
        for view in range(1, VIEWS + 1)
        for row in range(side)
        for column in range(side)
    )


def _find() -> Path | None:
    """Returns the folder of the classes: below the data folder, of a known name."""
    data = files.data_folder()
    if not data.is_dir():
        return None
    # Not all files of all sets: there are 148,000 here.
    near = [path for path in sorted(data.iterdir()) if path.is_dir()]
    near += [inner for path in near for inner in sorted(path.iterdir())]
    for path in near:
        if path.is_dir() and files.plain(path.name) in FOLDERS and _classes(path):
            return path
    return None


def _classes(root: Path) -> list[Path]:
    return [
        path
        for path in sorted(root.iterdir())
        if all((path / half).is_dir() for half in HALVES)
    ]


def _objects(folder: Path) -> list[list[Path]]:
    found: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = NAME.match(path.name)
        if match:
            found.setdefault(match["stem"], {})[int(match["view"])] = path
    for stem, views in found.items():
        absent = [view for view in range(1, VIEWS + 1) if view not in views]
        if absent:
            raise DataError(
                f"{folder} must have {VIEWS} views of {stem}, got none of number "
                f"{absent[0]}; unpack {ROOT} again"
            )
    return [[views[view] for view in range(1, VIEWS + 1)] for views in found.values()]


def _read(root: Path, side: int) -> Arrays:
    found: Arrays = {}
    for half in HALVES:
        of_class = [_objects(folder / half) for folder in _classes(root)]
        rows = [
            np.concatenate([_image(path, side) for path in views])
            for each in of_class
            for views in each
        ]
        if not rows:
            raise DataError(
                f"{root} must hold renderings named CLASS/{half}/"
                f"NAME.obj.shaded_v001.png, got none; unpack {ROOT} there"
            )
        labels = np.repeat(
            np.arange(len(of_class), dtype=np.int32), [*map(len, of_class)]
        )
        found |= {f"x_{half}": np.stack(rows), f"y_{half}": labels}
    return found


def _image(path: Path, side: int) -> UInt8[np.ndarray, " P"]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(files.read(path)), formats=("PNG",)) as opened:
            width, height = opened.size
            if width != height or width < side:
                raise DataError(
                    f"{path} must be a square of at least {side} x {side} pixels, got "
                    f"{width} x {height}; lower problem.data.side"
                )
            grey = opened.convert("L").resize((side, side), Image.Resampling.BOX)
            return np.asarray(grey, np.uint8).reshape(-1)
    except (UnidentifiedImageError, Image.DecompressionBombError, *DAMAGED) as error:
        raise DataError(
            f"{path} must be a whole PNG file, got: {error}; unpack it again"
        ) from error
