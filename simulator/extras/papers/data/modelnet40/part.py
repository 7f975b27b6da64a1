"""ModelNet40: forty classes of objects, each seen from twelve sides."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .....data.base import Dataset
from .....data.parts import Data, Scale
from .....data.split import finished
from .....storage.cache import cached_of
from .....storage.published import Published, PublishedFile, missing
from .renderings import (
    HALVES,
    ROOT,
    VIEWS,
    classes,
    find,
    objects,
    read_all,
)

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

        Raises:
            DataError: Files are missing or damaged.
            ScenarioError: The limit is too high.

        Source: Wu et al., 3D ShapeNets (2015); Su, Maji, Kalogerakis and
            Learned-Miller, Multi-view convolutional neural networks (2015).
        """
        root = find()
        if root is None:
            absent = [f"{ROOT}/CLASS/{half}" for half in HALVES]
            raise missing("modelnet40", PUBLISHED, absent)
        arrays = cached_of(
            f"modelnet40-{self.side}-1",
            self.located_files(),
            lambda: read_all(root, self.side),
        )
        return finished(
            self,
            "modelnet40",
            (arrays["x_train"], arrays["y_train"]),
            (arrays["x_test"], arrays["y_test"]),
            num_classes=len(classes(root)),
            columns=columns(self.side),
            views=of_views(self.side),
            largest=255.0,
        )

    def located_files(self) -> list[Path]:
        root = find()
        if root is None:
            return []
        return [
            path
            for folder in classes(root)
            for half in HALVES
            for views in objects(folder / half)
            for path in views
        ]


def columns(side: int) -> tuple[str, ...]:
    """Returns the names of the pixels, view by view, row by row."""
    return tuple(
        f"view{view}_row{row}_column{column}"
        for view in range(1, VIEWS + 1)
        for row in range(side)
        for column in range(side)
    )


def of_views(side: int) -> tuple[str, ...]:
    """Returns the view of each pixel."""
    return tuple(f"view{1 + pixel // side**2}" for pixel in range(VIEWS * side**2))
