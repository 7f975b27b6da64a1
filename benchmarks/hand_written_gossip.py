"""AD-PSGD on a ring as a careful user writes it: a heap of events and NumPy."""

import heapq
from itertools import pairwise

import numpy as np


def ad_psgd(
    x: np.ndarray,
    y: np.ndarray,
    num_workers: int,
    num_commits: int,
    hidden: tuple[int, ...],
    batch: int,
    step_size: float,
    seed: int,
) -> np.ndarray:
    """Fully connected layers with ReLU; every worker averages, then steps."""
    rng = np.random.default_rng(seed)
    shards = np.array_split(rng.permutation(len(x)), num_workers)
    one_hot = np.eye(10, dtype=np.float32)[:, y]
    sizes = (x.shape[1], *hidden, 10)
    shapes = [s for a, b in pairwise(sizes) for s in ((b, a), (b, 1))]
    ends = np.cumsum([a * b for a, b in shapes])
    start = (rng.random(ends[-1], np.float32) - 0.5) / 14
    models = np.tile(start, (num_workers, 1))
    read = models.copy()
    gradient = np.zeros_like(start)

    def parts(flat: np.ndarray) -> list[np.ndarray]:
        cut = np.split(flat, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(cut, shapes, strict=True)]

    slopes = parts(gradient)
    heap = [(rng.exponential(), k) for k in range(num_workers)]
    heapq.heapify(heap)
    for _ in range(num_commits):
        now, k = heap[0]
        shard = shards[k]
        ids = shard[rng.integers(0, len(shard), batch)]
        layers = parts(read[k])
        inputs = [x[ids].T]
        for matrix, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
            inputs.append(np.maximum(matrix @ inputs[-1] + bias, 0))
        p = layers[-2] @ inputs[-1] + layers[-1]
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p -= one_hot[:, ids]
        p /= batch
        for layer in range(len(inputs) - 1, -1, -1):
            np.matmul(p, inputs[layer].T, out=slopes[2 * layer])
            np.sum(p, axis=1, keepdims=True, out=slopes[2 * layer + 1])
            if layer:
                p = (layers[2 * layer].T @ p) * (inputs[layer] > 0)
        other = (k + (1 if rng.random() < 0.5 else -1)) % num_workers
        mean = (models[k] + models[other]) * 0.5
        models[other] = mean
        models[k] = mean - step_size * gradient
        read[k] = models[k]
        heapq.heapreplace(heap, (now + rng.exponential(), k))
    return models.mean(axis=0)
