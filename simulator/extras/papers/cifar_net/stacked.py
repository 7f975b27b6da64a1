"""Networks without shortcuts: VGG-19 and GoogLeNet."""

from .net import Net, T, Widen, classified, conv_norm_relu

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
"""Table 1 of GoogLeNet, without its two columns for the images' sizes; a pool stands
between the groups."""


def vgg19(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Sixteen convolutions in five stages; of the dense layers only the last is left.

    Source: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale
    Image Recognition (2015), Table 1, column E; the normalisation is the public code's.
    """
    for channels, num_layers in VGG19:
        for _ in range(num_layers):
            x = conv_norm_relu(net, x, wide(channels), 3, bias=True)
        x = net.max_pool(x, 2, 2)
    return classified(net, x, num_outputs)


def googlenet(net: Net[T], x: T, num_outputs: int, wide: Widen) -> T:
    """Nine inceptions after one convolution, without the auxiliary outputs.

    Source: Szegedy et al., Going Deeper with Convolutions (2015), Table 1; the stem and
    two 3 x 3 kernels instead of one of 5 x 5 are the public code's.
    """
    x = conv_norm_relu(net, x, wide(192), 3, bias=True)
    for stage, inceptions in enumerate(INCEPTIONS):
        if stage:
            x = net.max_pool(x, 3, 2, 1)
        for channels in inceptions:
            x = _inception(net, x, tuple(wide(each) for each in channels))
    return classified(net, x, num_outputs)


def _inception(net: Net[T], x: T, channels: tuple[int, ...]) -> T:
    one, before_three, three, before_five, five, pooled = channels
    first = conv_norm_relu(net, x, one, 1, bias=True)
    second = conv_norm_relu(net, x, before_three, 1, bias=True)
    second = conv_norm_relu(net, second, three, 3, bias=True)
    third = conv_norm_relu(net, x, before_five, 1, bias=True)
    third = conv_norm_relu(net, third, five, 3, bias=True)
    third = conv_norm_relu(net, third, five, 3, bias=True)
    fourth = conv_norm_relu(net, net.max_pool(x, 3, 1, 1), pooled, 1, bias=True)
    return net.join([first, second, third, fourth])
