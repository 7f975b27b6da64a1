"""The nine networks, as functions of abstract layers, and the arrays of each.

Strides are those for 32 x 32 pixels.
"""

from functools import lru_cache, partial
from typing import Literal, Protocol

from ....parts.errors import ScenarioError
from .net import Counter, Net, Norm, T, Widen, widened

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
RESNET = ((64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2))
"""Channels, number of blocks, and stride of the first, of ResNet-18 and SENet-18."""
RESNEXT = ((128, 3, 1), (256, 3, 2), (512, 3, 2))
"""The same of ResNeXt-29, whose blocks put out twice the channels."""
CARDINALITY = 2
VGG19 = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""Channels, and how many convolutions, before each of the five pools."""
INCEPTIONS = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Table 1 of GoogLeNet, without its two columns for the images' sizes; a pool separates
the groups."""
MOBILENET = ((64, 1, 1), (128, 2, 2), (256, 2, 2), (512, 6, 2), (1024, 2, 2))
"""Channels, number of blocks, and stride of the first."""
MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, number of blocks, and stride of the first."""
EFFICIENTNET_B0 = (
    (1, 16, 1, 2),
    (6, 24, 2, 1),
    (6, 40, 2, 2),
    (6, 80, 3, 2),
    (6, 112, 3, 1),
    (6, 192, 4, 2),
    (6, 320, 1, 2),
)
"""As for MobileNetV2."""
SHUFFLENET_V2 = ((116, 3), (232, 7), (464, 3))
"""Channels, and number of blocks after the one that halves height and width."""


def _strides(first: int, num_blocks: int) -> tuple[int, ...]:
    return (first, *(1,) * (num_blocks - 1))


def resnet18(net: Net[T], x: T, wide: Widen) -> T:
    """Four stages of two blocks of two convolutions.

    Source: He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition (2016),
    Table 1; the stem is one 3 x 3 convolution, without pool.
    """
    x = net.conv_norm_relu(x, wide(64), 3)
    for channels, num_blocks, first in RESNET:
        for stride in _strides(first, num_blocks):
            out = net.conv_norm_relu(x, wide(channels), 3, stride)
            out = net.conv_norm(out, wide(channels), 3)
            x = net.relu(net.add(out, _shortcut(net, x, wide(channels), stride)))
    return x


def senet18(net: Net[T], x: T, wide: Widen) -> T:
    """ResNet-18 of pre-activation blocks, with squeeze and excitation.

    Blocks of pre-activation, without normalisation after the last, are the public
    code's choice, and give the size in Table 2 of A(DP)2SGD.

    Source: Hu, Shen, Albanie, Sun and Wu, Squeeze-and-Excitation Networks (2018); He,
    Zhang, Ren and Sun, Identity Mappings in Deep Residual Networks (2016), Figure 4 e.
    """
    x = net.conv_norm_relu(x, wide(64), 3)
    for channels, num_blocks, first in RESNET:
        for stride in _strides(first, num_blocks):
            x = _preactivated(net, x, wide(channels), stride)
    return x


def _preactivated(net: Net[T], x: T, channels: int, stride: int) -> T:
    active = net.relu(net.norm(x))
    if stride != 1 or net.channels(x) != channels:
        x = net.conv(active, channels, 1, stride)
    out = net.relu(net.norm(net.conv(active, channels, 3, stride)))
    return net.add(net.excited(net.conv(out, channels, 3)), x)


def resnext29(net: Net[T], x: T, wide: Widen) -> T:
    """Three stages of three blocks whose middle convolution is in two groups.

    Source: Xie, Girshick, Dollar, Tu and He, Aggregated Residual Transformations for
    Deep Neural Networks (2017), section 5.3; the form 2 x 64d and the stem of 1 x 1 are
    the public code's.
    """
    x = net.conv_norm_relu(x, wide(64), 1)
    for channels, num_blocks, first in RESNEXT:
        inner = wide(channels)
        for stride in _strides(first, num_blocks):
            out = net.conv_norm_relu(x, inner, 1)
            out = net.conv_norm_relu(out, inner, 3, stride, CARDINALITY)
            out = net.conv_norm(out, 2 * inner, 1)
            x = net.relu(net.add(out, _shortcut(net, x, 2 * inner, stride)))
    return x


def _shortcut(net: Net[T], x: T, channels: int, stride: int = 1) -> T:
    if stride == 1 and net.channels(x) == channels:
        return x
    return net.conv_norm(x, channels, 1, stride)


def vgg19(net: Net[T], x: T, wide: Widen) -> T:
    """Sixteen convolutions in five stages; of the dense layers only the last is left.

    Source: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale
    Image Recognition (2015), Table 1, column E; the normalisation is the public code's.
    """
    for channels, num_layers in VGG19:
        for _ in range(num_layers):
            x = net.conv_norm_relu(x, wide(channels), 3, bias=True)
        x = net.max_pool(x, 2, 2)
    return x


def googlenet(net: Net[T], x: T, wide: Widen) -> T:
    """Nine inceptions after one convolution, without the auxiliary outputs.

    Source: Szegedy et al., Going Deeper with Convolutions (2015), Table 1; the stem and
    two 3 x 3 kernels instead of one of 5 x 5 are the public code's.
    """
    x = net.conv_norm_relu(x, wide(192), 3, bias=True)
    for stage, inceptions in enumerate(INCEPTIONS):
        if stage:
            x = net.max_pool(x, 3, 2, 1)
        for channels in inceptions:
            x = _inception(net, x, tuple(map(wide, channels)))
    return x


def _inception(net: Net[T], x: T, channels: tuple[int, ...]) -> T:
    layer = partial(net.conv_norm_relu, bias=True)
    one, before_three, three, before_five, five, pooled = channels
    first = layer(x, one, 1)
    second = layer(layer(x, before_three, 1), three, 3)
    third = layer(layer(layer(x, before_five, 1), five, 3), five, 3)
    fourth = layer(net.max_pool(x, 3, 1, 1), pooled, 1)
    return net.join([first, second, third, fourth])


def mobilenet(net: Net[T], x: T, wide: Widen) -> T:
    """Thirteen pairs of a depthwise 3 x 3 and a 1 x 1 convolution.

    Source: Howard et al., MobileNets (2017), Table 1.
    """
    x = net.conv_norm_relu(x, wide(32), 3)
    for channels, num_blocks, first in MOBILENET:
        for stride in _strides(first, num_blocks):
            inputs = net.channels(x)
            x = net.conv_norm_relu(x, inputs, 3, stride, inputs)
            x = net.conv_norm_relu(x, wide(channels), 1)
    return x


def mobilenet_v2(net: Net[T], x: T, wide: Widen) -> T:
    """Seventeen inverted residuals and a 1 x 1 convolution.

    Source: Sandler, Howard, Zhu, Zhmoginov and Chen, MobileNetV2 (2018), Table 2. Of
    blocks that keep the size, even those that change the number of channels have a
    shortcut, through a convolution (public code).
    """
    x = net.conv_norm_relu(x, wide(32), 3)
    for expansion, channels, num_blocks, first in MOBILENET_V2:
        for stride in _strides(first, num_blocks):
            out = _inverted(net, x, wide(channels), expansion, stride)
            x = net.add(out, _shortcut(net, x, wide(channels))) if stride == 1 else out
    return net.conv_norm_relu(x, wide(1280), 1)


def efficientnet_b0(net: Net[T], x: T, wide: Widen) -> T:
    """Sixteen inverted residuals with squeeze and excitation.

    The public code of 2019, whose size is in Table 2 of A(DP)2SGD, is simpler than the
    paper: all kernels 3 x 3, ReLU, excitation after the projection, no last
    convolution, and strides that leave one pixel of 32 x 32. Its blocks of stride 2 add
    their output before the excitation to that after it.

    Source: Tan and Le, EfficientNet (2019), Table 1.
    """
    x = net.conv_norm_relu(x, wide(32), 3)
    for expansion, channels, num_blocks, first in EFFICIENTNET_B0:
        for stride in _strides(first, num_blocks):
            out = _inverted(net, x, wide(channels), expansion, stride)
            short = _shortcut(net, x, wide(channels)) if stride == 1 else out
            x = net.add(net.excited(out), short)
    return x


def _inverted(net: Net[T], x: T, channels: int, expansion: int, stride: int) -> T:
    inner = expansion * net.channels(x)
    out = net.conv_norm_relu(x, inner, 1)
    out = net.conv_norm_relu(out, inner, 3, stride, inner)
    return net.conv_norm(out, channels, 1)


def shufflenet_v2(net: Net[T], x: T, wide: Widen) -> T:
    """Sixteen blocks, thirteen of which pass on half of the channels untouched.

    Source: Ma, Zhang, Zheng and Sun, ShuffleNet V2 (2018), Table 5, width 1.
    """
    x = net.conv_norm_relu(x, wide(24), 3)
    for channels, num_blocks in SHUFFLENET_V2:
        half, inputs = wide(channels) // 2, net.channels(x)
        left = net.conv_norm(x, inputs, 3, 2, inputs)
        left = net.conv_norm_relu(left, half, 1)
        x = net.shuffle(net.join([left, _three(net, x, half, 2)]), 2)
        for _ in range(num_blocks):
            kept, out = net.split(x, half)
            x = net.shuffle(net.join([kept, _three(net, out, half, 1)]), 2)
    return net.conv_norm_relu(x, wide(1024), 1)


def _three(net: Net[T], x: T, channels: int, stride: int) -> T:
    out = net.conv_norm_relu(x, channels, 1)
    out = net.conv_norm(out, channels, 3, stride, channels)
    return net.conv_norm_relu(out, channels, 1)


class NetworkMaker(Protocol):
    """A function of layers, of images, and of a paper's channels to a scenario's."""

    def __call__(self, net: Net[T], x: T, wide: Widen) -> T: ...


NETWORKS: dict[Name, NetworkMaker] = {
    "resnet18": resnet18,
    "vgg19": vgg19,
    "mobilenet": mobilenet,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "shufflenet_v2": shufflenet_v2,
    "senet18": senet18,
    "googlenet": googlenet,
    "resnext29": resnext29,
}
"""Networks, whose outputs are linear in the channels' means of their results."""
LEAST = {"vgg19": 2 ** len(VGG19)}
"""Height and width of the smallest images, of networks whose pools halve them."""


def apply(name: Name, net: Net[T], x: T, num_outputs: int, width: float) -> T:
    """Applies a network's layers to images, which the layers count or compute."""
    x = NETWORKS[name](net, x, partial(widened, width=width))
    return net.dense(net.mean(x), num_outputs)


@lru_cache(maxsize=64)
def tally(
    name: Name, image: tuple[int, int, int], num_outputs: int, width: float, norm: Norm
) -> Counter:
    """Returns the arrays of a network.

    Raises:
        ScenarioError: The images are too small.
    """
    height, breadth, depth = image
    least = LEAST.get(name, 1)
    if min(height, breadth) < least:
        raise ScenarioError(
            f"images must be at least {least} x {least} pixels for {name}, whose pools "
            f"halve them, got {height} x {breadth}; choose another problem.model.name"
        )
    counter = Counter(norm)
    apply(name, counter, (depth, height, breadth), num_outputs, width)
    return counter
