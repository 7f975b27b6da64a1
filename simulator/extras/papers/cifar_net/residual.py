"""Networks with shortcuts: ResNet-18, SENet-18 and ResNeXt-29."""

from .net import (
    Net,
    T,
    Widen,
    classified,
    conv_norm,
    conv_norm_relu,
    excited,
)

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels of a stage's two blocks, and the stride of the first."""

CARDINALITY = 2
BOTTLENECK = 64


def resnet18(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Four stages of two blocks of two convolutions.

    Source: He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition (2016),
    Table 1; the stem is one 3 x 3 convolution, without pool.
    """
    x = conv_norm_relu(net, x, wide(64), 3)
    for channels, first in STAGES:
        for stride in (first, 1):
            x = _basic(net, x, wide(channels), stride)
    return classified(net, x, num_outputs)


def _basic(net: Net[T], x: T, channels: int, stride: int) -> T:
    out = conv_norm_relu(net, x, channels, 3, stride)
    out = conv_norm(net, out, channels, 3)
    if stride != 1 or net.channels(x) != channels:
        x = conv_norm(net, x, channels, 1, stride)
    return net.relu(net.add(out, x))


def senet18(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """ResNet-18 of pre-activation blocks, with squeeze and excitation.

    Blocks of pre-activation, without normalisation after the last, are the public
    code's choice, and give the size in Table 2 of A(DP)2SGD.

    Source: Hu, Shen, Albanie, Sun and Wu, Squeeze-and-Excitation Networks (2018); He,
    Zhang, Ren and Sun, Identity Mappings in Deep Residual Networks (2016), Figure 4 e.
    """
    x = conv_norm_relu(net, x, wide(64), 3)
    for channels, first in STAGES:
        for stride in (first, 1):
            x = _preactivated(net, x, wide(channels), stride)
    return classified(net, x, num_outputs)


def _preactivated(net: Net[T], x: T, channels: int, stride: int) -> T:
    active = net.relu(net.norm(x))
    if stride != 1 or net.channels(x) != channels:
        x = net.conv(active, channels, 1, stride)
    out = net.relu(net.norm(net.conv(active, channels, 3, stride)))
    out = net.conv(out, channels, 3)
    return net.add(excited(net, out), x)


def resnext29(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Three stages of three blocks whose middle convolution is in two groups.

    Source: Xie, Girshick, Dollar, Tu and He, Aggregated Residual Transformations for
    Deep Neural Networks (2017), section 5.3; the form 2 x 64d and the stem of 1 x 1 are
    the public code's.
    """
    x = conv_norm_relu(net, x, wide(64), 1)
    for stage in range(3):
        channels = wide(CARDINALITY * BOTTLENECK * 2**stage)
        for stride in (2 if stage else 1, 1, 1):
            x = _aggregated(net, x, channels, stride)
    return classified(net, x, num_outputs)


def _aggregated(net: Net[T], x: T, channels: int, stride: int) -> T:
    out = conv_norm_relu(net, x, channels, 1)
    out = conv_norm_relu(net, out, channels, 3, stride, CARDINALITY)
    out = conv_norm(net, out, 2 * channels, 1)
    if stride != 1 or net.channels(x) != 2 * channels:
        x = conv_norm(net, x, 2 * channels, 1, stride)
    return net.relu(net.add(out, x))
