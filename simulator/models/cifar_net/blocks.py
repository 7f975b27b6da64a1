"""Blocks of several networks."""

from .net import Net, T


def conv_norm(
    net: Net[T],
    x: T,
    channels: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    *,
    bias: bool = False,
) -> T:
    """Convolves and normalises."""
    return net.norm(net.conv(x, channels, kernel, stride, groups, bias=bias))


def conv_norm_relu(
    net: Net[T],
    x: T,
    channels: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    *,
    bias: bool = False,
) -> T:
    """Convolves, normalises and rectifies."""
    return net.relu(conv_norm(net, x, channels, kernel, stride, groups, bias=bias))


def excited(net: Net[T], x: T) -> T:
    """Weighs channels by factors that two small layers compute of their means.

    The hidden layer has a sixteenth of the channels, at least one.

    Source: Hu, Shen, Albanie, Sun and Wu, Squeeze-and-Excitation Networks (2018),
    section 3.
    """
    channels = net.channels(x)
    hidden = net.relu(net.conv(net.mean(x), max(1, channels // 16), 1, bias=True))
    return net.multiply(x, net.sigmoid(net.conv(hidden, channels, 1, bias=True)))


def classified(net: Net[T], x: T, outputs: int) -> T:
    """Returns the outputs, linear in the channels' means."""
    return net.dense(net.mean(x), outputs)
