"""Networks for CIFAR-10."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....problem.data.base import Dataset
from ....problem.data.images import image_shape
from ....problem.data.outputs import OutputForm
from ....problem.models.parts import Model, ModelCounts
from .net import Norm
from .networks import Name, tally

if TYPE_CHECKING:
    from .network import CifarNetwork


class CifarNet(Model):
    """One of nine networks for CIFAR-10, listed in `networks`.

    Batch normalisation mixes the samples of a batch, so that no sample's own gradient
    exists to be clipped; group normalisation does not, and keeps nothing between
    batches. It is the default for that reason, though the paper's networks have the
    other.

    Source: A(DP)2SGD, Tables 1 and 2.
    """

    kind: Literal["cifar_net"] = "cifar_net"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    name: Name = "resnet18"
    """Name of the network."""
    norm: Norm = "group"
    """Whether layers are normalised by batches or by groups of channels."""
    groups: Annotated[int, Field(ge=1)] = 16
    """Largest number of groups of channels in `norm: group`; fewer where it does not
    divide the channels, or would leave groups of less than four."""
    width: Annotated[float, Field(gt=0)] = 1.0
    """Factor of the numbers of channels, which are rounded to multiples of four."""
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    @property
    def normalises_batches(self) -> bool:
        return self.norm == "batch"

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return self._counts(num_features, num_outputs).num_weights

    def counts(self, data: Dataset, form: OutputForm) -> ModelCounts:
        return self._counts(data.x_train.shape[1], form.num_outputs)

    def _counts(self, num_features: int, num_outputs: int) -> ModelCounts:
        shape = image_shape(num_features, self.image)
        found = tally(self.name, shape, num_outputs, self.width, self.norm)
        total = found.num_parameters + found.num_statistics
        return ModelCounts(total, found.num_statistics)

    def make(self, num_outputs: int, num_features: int, family: str) -> "CifarNetwork":
        from .network import CifarNetwork

        image = image_shape(num_features, self.image)
        norm, groups, width = self.norm, self.groups, self.width
        model = CifarNetwork(self.name, image, num_outputs, norm, groups, width)
        _ = model.tally  # refuses images that are too small
        return model
