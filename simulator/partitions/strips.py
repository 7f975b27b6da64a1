"""Upright strips of images, one for each party."""

from typing import ClassVar, Literal

import numpy as np

from ..config.base import NumClients
from ..config.errors import ScenarioError
from ..config.parts import Part
from ..data.base import Dataset
from ..data.images import image_shape
from .parts import Columns


class Strips(Part):
    """Every party holds an upright strip of every image, all of the same width."""

    kind: Literal["strips"] = "strips"
    family: ClassVar[str] = "vertical"
    parties: NumClients
    """Number of parties."""
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the whole images; by default square ones."""

    @property
    def num_clients(self) -> int:
        """Number of parties."""
        return self.parties

    def make(self, dataset: Dataset) -> Columns:
        """Returns the pixels of each party's strip, in the order of the image.

        Raises:
            ScenarioError: The columns are no images, or narrower than there are
                parties.

        Source: FedBCD, section 7 (MNIST-CNN).
        """
        num_columns = dataset.x_train.shape[1]
        height, width, depth = image_shape(
            num_columns, self.image, "problem.partition.image"
        )
        if width % self.parties:
            raise ScenarioError(
                f"problem.partition.parties must divide the images' width of {width} "
                f"pixels, got {self.parties}; take another number"
            )
        pixels = np.arange(num_columns).reshape(depth * height, self.parties, -1)
        return [pixels[:, party].reshape(-1) for party in range(self.parties)]
