"""MAPA and a convolutional network as a careful user writes them: NumPy in a loop."""

import math

import numpy as np

KERNEL = 5
Layers = list[np.ndarray]


def mapa(
    x: np.ndarray,
    y: np.ndarray,
    num_clients: int,
    num_commits: int,
    epsilon: float,
    seed: int,
) -> np.ndarray:
    """MAPA on binary logistic regression, cyclic, with radial exponential noise."""
    rng = np.random.default_rng(seed)
    shards = np.array_split(rng.permutation(len(x)), num_clients)
    b, theta, sigma, smooth, gap = 12, 0.5, 30.0, 10.0, 50.0
    longest = num_clients + 1
    sensitivity = 2 * sigma / (b * math.sqrt(1 - math.sqrt(1 - 1e-3)))
    weights = np.zeros(x.shape[1], np.float32)
    copies = [(weights, sensitivity)] * num_clients
    left = 0
    for t in range(num_commits):
        if left <= 0:
            if t:
                sensitivity *= theta
            total = sigma**2 / b + 2 * (sensitivity / epsilon) ** 2
            divisor = max(8 * total / (longest * (b * sensitivity * theta) ** 2), 1.0)
            left = max(1, math.ceil(4 * divisor**2 * smooth * longest**2 * gap / total))
            step_size = 1 / (2 * divisor * smooth * longest)
        client = t % num_clients
        read, scale = copies[client]
        shard = shards[client]
        ids = shard[rng.integers(0, len(shard), b)]
        rows = x[ids]
        residual = 1 / (1 + np.exp(-(rows @ read))) - y[ids]
        gradient = residual @ rows / b + 1e-4 * read
        length = math.sqrt(gradient @ gradient)
        gradient /= max(1.0, length / (b * scale / 2))
        noise = rng.standard_normal(gradient.size, np.float32)
        radius = rng.exponential(scale / epsilon)
        noise *= radius / math.sqrt(noise @ noise)
        weights = weights - np.float32(step_size) * (gradient + noise)
        copies[client] = (weights, sensitivity)
        left -= 1
    return weights


def cnn(x: np.ndarray, y: np.ndarray, num_commits: int, seed: int) -> Layers:
    """Plain SGD on the five-layer network for 28 x 28 pixels, by unfolding."""
    rng = np.random.default_rng(seed)

    def uniform(fan_in: int, *shape: int) -> np.ndarray:
        return rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape).astype(np.float32)

    layers = [
        *(uniform(25, 10, 25), uniform(25, 10)),
        *(uniform(250, 10, 250), uniform(250, 10)),
        *(uniform(160, 10, 160), uniform(160, 10)),
    ]
    for _ in range(num_commits):
        ids = rng.integers(0, len(x), 12)
        gradients = _gradients(layers, x[ids], y[ids])
        layers = [
            a - np.float32(0.01) * g for a, g in zip(layers, gradients, strict=True)
        ]
    return layers


def _gradients(layers: Layers, x: np.ndarray, y: np.ndarray) -> Layers:
    first, bias_1, second, bias_2, dense, bias = layers
    samples = len(x)
    columns_1 = _unfold(x.reshape(1, samples, 28, 28))
    z_1 = (first @ columns_1 + bias_1[:, None]).reshape(10, samples, 24, 24)
    top_1 = _pool(z_1)
    hidden = np.maximum(top_1, 0)
    columns_2 = _unfold(hidden)
    z_2 = (second @ columns_2 + bias_2[:, None]).reshape(10, samples, 8, 8)
    top_2 = _pool(z_2)
    features = np.maximum(top_2, 0).transpose(0, 2, 3, 1).reshape(160, samples)
    logits = dense @ features + bias[:, None]
    p = np.exp(logits - logits.max(0))
    p /= p.sum(0)
    p[y, np.arange(samples)] -= 1
    p /= samples
    back = (dense.T @ p).reshape(10, 4, 4, samples).transpose(0, 3, 1, 2)
    to_z_2 = _unpool(z_2, top_2, back * (top_2 > 0)).reshape(10, -1)
    to_hidden = _fold(second.T @ to_z_2, hidden.shape) * (top_1 > 0)
    to_z_1 = _unpool(z_1, top_1, to_hidden).reshape(10, -1)
    return [
        *(to_z_1 @ columns_1.T, to_z_1.sum(1)),
        *(to_z_2 @ columns_2.T, to_z_2.sum(1)),
        *(p @ features.T, p.sum(1)),
    ]


def _unfold(images: np.ndarray) -> np.ndarray:
    channels, samples, height, width = images.shape
    rows, columns = height - KERNEL + 1, width - KERNEL + 1
    out = np.empty((channels, KERNEL, KERNEL, samples, rows, columns), images.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            out[:, i, j] = images[:, :, i : i + rows, j : j + columns]
    return out.reshape(channels * KERNEL**2, -1)


def _fold(columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    channels, samples, height, width = shape
    rows, across = height - KERNEL + 1, width - KERNEL + 1
    parts = columns.reshape(channels, KERNEL, KERNEL, samples, rows, across)
    out = np.zeros(shape, columns.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            out[:, :, i : i + rows, j : j + across] += parts[:, i, j]
    return out


def _pool(z: np.ndarray) -> np.ndarray:
    upper = np.maximum(z[:, :, 0::2, 0::2], z[:, :, 0::2, 1::2])
    return np.maximum(upper, np.maximum(z[:, :, 1::2, 0::2], z[:, :, 1::2, 1::2]))


def _unpool(z: np.ndarray, top: np.ndarray, back: np.ndarray) -> np.ndarray:
    out = np.empty_like(z)
    for i in (0, 1):
        for j in (0, 1):
            np.multiply(z[:, :, i::2, j::2] == top, back, out=out[:, :, i::2, j::2])
    return out
