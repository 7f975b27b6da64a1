"""The networks by name."""

from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from ....config.errors import ScenarioError
from .counter import Counter, Tally
from .mobile import (
    efficientnet_b0,
    mobilenet,
    mobilenet_v2,
    shufflenet_v2,
)
from .net import Net, Norm, Widen, widened
from .residual import resnet18, resnext29, senet18
from .stacked import VGG19, googlenet, vgg19

Name = Literal[
    "resnet18",
    "vgg19",
    "mobilenet",
    "mobilenet_v2",
    "efficientnet_b0",
    "shufflenet_v2",
    "senet18",
    "googlenet",
    "resnext29",
]


@runtime_checkable
class Build(Protocol):
    """A network as a function of abstract layers."""

    def __call__(self, net: Net[Any], x: Any, num_outputs: int, wide: Widen) -> Any:
        """Applies the layers.

        Args:
            net: Layers, which count or compute.
            x: Images.
            num_outputs: Number of outputs for an image.
            wide: Function from the paper's number of channels to the scenario's.
        """
        ...


class Architecture(NamedTuple):
    """A network and the size of its smallest images.

    Attributes:
        build: Function that applies the layers.
        least: Height and width of the smallest images.
    """

    build: Build
    least: int = 1

    def apply(self, net: Net[Any], x: Any, num_outputs: int, width: float) -> Any:
        """Applies the layers; `width` is the factor of the numbers of channels."""
        return self.build(net, x, num_outputs, partial(widened, width=width))


ARCHITECTURES: dict[Name, Architecture] = {
    "resnet18": Architecture(resnet18),
    "vgg19": Architecture(vgg19, 2 ** len(VGG19)),
    "mobilenet": Architecture(mobilenet),
    "mobilenet_v2": Architecture(mobilenet_v2),
    "efficientnet_b0": Architecture(efficientnet_b0),
    "shufflenet_v2": Architecture(shufflenet_v2),
    "senet18": Architecture(senet18),
    "googlenet": Architecture(googlenet),
    "resnext29": Architecture(resnext29),
}


@lru_cache(maxsize=64)
def tally(
    name: Name, image: tuple[int, int, int], num_outputs: int, width: float, norm: Norm
) -> Tally:
    """Returns the arrays of a network.

    Args:
        name: Name of the network.
        image: Height, width and depth, pixels.
        num_outputs: Number of outputs for an image.
        width: Factor of the numbers of channels.
        norm: Normalisation of the channels.

    Raises:
        ScenarioError: The images are too small.
    """
    height, breadth, depth = image
    chosen = ARCHITECTURES[name]
    if min(height, breadth) < chosen.least:
        raise ScenarioError(
            f"images must be at least {chosen.least} x {chosen.least} pixels for "
            f"{name}, whose pools halve them, got {height} x {breadth}; choose another "
            "problem.model.name"
        )
    counter = Counter(norm)
    chosen.apply(counter, (depth, height, breadth), num_outputs, width)
    return counter.tally()
