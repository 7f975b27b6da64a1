"""ModelNet40: forty classes of objects, each seen from twelve sides."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...config.base import LocatedError
from ...storage import files
from ...storage.cache import cached_of
from ...storage.published import Published
from ..base import Dataset
from ..parts import Data, Scale
from ..split import finished
from .record import PUBLISHED
from .renderings import (
    HALVES,
    ROOT,
    classes,
    find,
    objects,
    read_all,
)
from .standin import (
    SIDE,
    columns,
    modelnet40_standin,
    of_views,
)


class ModelNet40(Data):
    """ModelNet40, 9,843 and 2,468 objects in 12 views, else its stand-in.

    The views are the images, `view1` to `view12`, one after the other in a row. The
    partition `views` gives whole images to parties.
    """

    kind: Literal["modelnet40"] = "modelnet40"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    source: Literal["auto", "png", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""
    side: Annotated[int, Field(ge=4, le=224)] = SIDE
    """Height and width to which images are reduced, pixels; those of the files have
    224, those of the stand-in 32."""

    @model_validator(mode="after")
    def _divides(self) -> "ModelNet40":
        if self.source == "standin" and SIDE % self.side:
            raise LocatedError(
                f"side must divide the stand-in's {SIDE} pixels, got {self.side}; take "
                "16",
                ("side",),
            )
        return self

    def make(self) -> Dataset:
        """Returns objects of 40 classes, 12 grey images each, pixels 0 to 255.

        The files are CLASS/{train,test}/NAME.obj.shaded_v001.png to v012 in the folder
        modelnet40_images_new_12x. Classes are numbered in the order of their names.

        Raises:
            DataError: Files are demanded and missing, or damaged.
            ScenarioError: The limit is too high, or the stand-in has no such images.

        Source: Wu et al., 3D ShapeNets (2015); Su, Maji, Kalogerakis and
            Learned-Miller, Multi-view convolutional neural networks (2015).
        """
        root = None if self.source == "standin" else find()
        if root is None and self.source == "png":
            names = [f"{ROOT}/CLASS/{half}" for half in HALVES]
            raise files.missing("modelnet40", names, "png", f"; {PUBLISHED.by_hand}")
        if root is None:
            return modelnet40_standin(self, self.side)

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
        """Returns the files that are read, every image."""
        root = None if self.source == "standin" else find()
        if root is None:
            return []
        return [
            path
            for folder in classes(root)
            for half in HALVES
            for views in objects(folder / half)
            for path in views
        ]
