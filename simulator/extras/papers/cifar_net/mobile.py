"""Networks for mobile devices: MobileNet, MobileNetV2, EfficientNet-B0, ShuffleNetV2.

Their 3 x 3 convolutions are depthwise: each channel has a kernel of its own.
"""

from .net import (
    Net,
    T,
    Widen,
    classified,
    conv_norm,
    conv_norm_relu,
    excited,
)

MOBILENET = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each block."""

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


def mobilenet(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Thirteen pairs of a depthwise and a 1 x 1 convolution.

    Source: Howard et al., MobileNets (2017), Table 1; strides for 32 x 32 pixels.
    """
    x = conv_norm_relu(net, x, wide(32), 3)
    for channels, stride in MOBILENET:
        inputs = net.channels(x)
        x = conv_norm_relu(net, x, inputs, 3, stride, inputs)
        x = conv_norm_relu(net, x, wide(channels), 1)
    return classified(net, x, num_outputs)


def mobilenet_v2(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Seventeen inverted residuals and a 1 x 1 convolution.

    Source: Sandler, Howard, Zhu, Zhmoginov and Chen, MobileNetV2 (2018), Table 2;
    strides for 32 x 32 pixels. Of blocks that keep the size, even those that change the
    number of channels have a shortcut, through a convolution (public code).
    """
    x = conv_norm_relu(net, x, wide(32), 3)
    for expansion, channels, num_blocks, first in MOBILENET_V2:
        for stride in (first, *(1,) * (num_blocks - 1)):
            out = _inverted(net, x, wide(channels), expansion, stride)
            x = net.add(out, _shortcut(net, x, wide(channels))) if stride == 1 else out
    x = conv_norm_relu(net, x, wide(1280), 1)
    return classified(net, x, num_outputs)


def efficientnet_b0(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Sixteen inverted residuals with squeeze and excitation.

    The public code of 2019, whose size stands in Table 2 of A(DP)2SGD, is simpler than
    the paper: all kernels 3 x 3, ReLU, excitation after the projection, no last
    convolution, and strides that leave one pixel of 32 x 32. Its blocks of stride 2 add
    their output before the excitation to that after it.

    Source: Tan and Le, EfficientNet (2019), Table 1.
    """
    x = conv_norm_relu(net, x, wide(32), 3)
    for expansion, channels, num_blocks, first in EFFICIENTNET_B0:
        for stride in (first, *(1,) * (num_blocks - 1)):
            out = _inverted(net, x, wide(channels), expansion, stride)
            short = _shortcut(net, x, wide(channels)) if stride == 1 else out
            x = net.add(excited(net, out), short)
    return classified(net, x, num_outputs)


def _inverted(net: Net[T], x: T, channels: int, expansion: int, stride: int) -> T:
    inner = expansion * net.channels(x)
    out = conv_norm_relu(net, x, inner, 1)
    out = conv_norm_relu(net, out, inner, 3, stride, inner)
    return conv_norm(net, out, channels, 1)


def _shortcut(net: Net[T], x: T, channels: int) -> T:
    return x if net.channels(x) == channels else conv_norm(net, x, channels, 1)


def shufflenet_v2(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Sixteen blocks, thirteen of which pass on half of the channels untouched.

    Source: Ma, Zhang, Zheng and Sun, ShuffleNet V2 (2018), Table 5, width 1; strides
    for 32 x 32 pixels.
    """
    x = conv_norm_relu(net, x, wide(24), 3)
    for channels, num_blocks in SHUFFLENET_V2:
        half = wide(channels) // 2
        x = _halving(net, x, half)
        for _ in range(num_blocks):
            kept, out = net.split(x, half)
            out = _three(net, out, half, 1)
            x = net.shuffle(net.join([kept, out]), 2)
    x = conv_norm_relu(net, x, wide(1024), 1)
    return classified(net, x, num_outputs)


def _halving(net: Net[T], x: T, channels: int) -> T:
    inputs = net.channels(x)
    left = conv_norm(net, x, inputs, 3, 2, inputs)
    left = conv_norm_relu(net, left, channels, 1)
    return net.shuffle(net.join([left, _three(net, x, channels, 2)]), 2)


def _three(net: Net[T], x: T, channels: int, stride: int) -> T:
    out = conv_norm_relu(net, x, channels, 1)
    out = conv_norm(net, out, channels, 3, stride, channels)
    return conv_norm_relu(net, out, channels, 1)
