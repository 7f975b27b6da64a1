"""A readable twin of `cifar_net.network.Layers`, in NumPy."""

import numpy as np

from stalesim.simulator.extras.papers.cifar_net.net import Net

EPSILON = 1e-5


class Twin(Net):
    """Takes the flat vector's numbers as it needs them; images are `[C, H, W, S]`.

    Attributes:
        at: numbers taken so far.
        counts: numbers that each normalised channel has in the batch.
    """

    def __init__(self, flat, norm, num_groups=None, smooth=False):
        self.flat = np.asarray(flat, np.float64)
        self.at = 0
        self.counts = []
        self._norm = norm
        self._num_groups = num_groups
        self._smooth = smooth

    def take(self, *shape):
        size = int(np.prod(shape))
        self.at += size
        return self.flat[self.at - size : self.at].reshape(shape)

    def channels(self, x):
        return len(x)

    def conv(self, x, channels, kernel, stride=1, groups=1, *, bias=False):
        own = len(x) // groups
        kernels = self.take(channels, own, kernel, kernel)
        edge = kernel // 2
        padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        rows, columns = (-(-side // stride) for side in x.shape[1:3])
        out = np.zeros((channels, rows, columns, x.shape[3]))
        per_group = channels // groups
        for group, a, b in np.ndindex(groups, kernel, kernel):
            seen = padded[
                group * own : (group + 1) * own,
                a : a + x.shape[1] : stride,
                b : b + x.shape[2] : stride,
            ]
            outputs = slice(group * per_group, (group + 1) * per_group)
            out[outputs] += np.tensordot(kernels[outputs, :, a, b], seen, axes=1)
        if bias:
            out += self.take(channels).reshape(-1, 1, 1, 1)
        return out

    def norm(self, x):
        scale, shift = (self.take(len(x)).reshape(-1, 1, 1, 1) for _ in range(2))
        self.counts.append(x[0].size)
        if self._norm == "batch":
            parts, axes = x, (1, 2, 3)
        else:
            parts = x.reshape(self._num_groups(len(x)), -1, *x.shape[1:])
            axes = (1, 2, 3)
        mean = parts.mean(axis=axes, keepdims=True)
        variance = parts.var(axis=axes, keepdims=True)
        normal = (parts - mean) / np.sqrt(variance + EPSILON)
        return normal.reshape(x.shape) * scale + shift

    def relu(self, x):
        return np.logaddexp(x, 0) if self._smooth else np.maximum(x, 0)

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x))

    def max_pool(self, x, size, stride, padding=0):
        edge = (padding, padding)
        padded = np.pad(x, ((0, 0), edge, edge, (0, 0)), constant_values=-np.inf)
        seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
        return seen[:, ::stride, ::stride].max(axis=(-2, -1))

    def mean(self, x):
        return x.mean(axis=(1, 2), keepdims=True)

    def dense(self, x, outputs):
        matrix = self.take(outputs, x[..., 0].size)
        sums = matrix @ x.reshape(matrix.shape[1], -1)
        return (sums + self.take(outputs)[:, None])[:, None, None]

    def add(self, x, y):
        return x + y

    def multiply(self, x, factors):
        return x * factors

    def join(self, parts):
        return np.concatenate(parts)

    def split(self, x, channels):
        return x[:channels], x[channels:]

    def shuffle(self, x, groups):
        size = len(x) // groups
        return x[[g * size + c for c in range(size) for g in range(groups)]]
