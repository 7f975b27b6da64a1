"""A careful user's program without the simulator: a heap of events and NumPy."""

import heapq
from collections.abc import Iterator

import numpy as np


def asynchronous_sgd(
    x: np.ndarray,
    y: np.ndarray,
    num_clients: int,
    num_commits: int,
    batch: int,
    step_size: float,
    seed: int,
    block: int = 1,
) -> np.ndarray:
    """Asynchronous multinomial logistic regression; weights are `[10, P]`.

    Delays and batches are drawn one by one, or as many as a block at once.
    """
    rng = np.random.default_rng(seed)
    shards = np.array_split(rng.permutation(len(x)), num_clients)
    if block > 1:
        return _in_blocks(x, y, shards, num_commits, batch, step_size, rng, block)
    one_hot = np.eye(10, dtype=np.float32)[:, y]
    weights = np.zeros((10, x.shape[1]), np.float32)
    copies = [weights] * num_clients
    heap = [(rng.exponential(), m) for m in range(num_clients)]
    heapq.heapify(heap)
    for _ in range(num_commits):
        now, m = heap[0]
        shard = shards[m]
        ids = shard[rng.integers(0, len(shard), batch)]
        rows = x[ids]
        logits = copies[m] @ rows.T
        logits -= logits.max(axis=0)
        p = np.exp(logits)
        p /= p.sum(axis=0)
        p -= one_hot[:, ids]
        weights = weights - (step_size / batch) * (p @ rows)
        copies[m] = weights
        heapq.heapreplace(heap, (now + rng.exponential(), m))
    return weights


def _in_blocks(
    x: np.ndarray,
    y: np.ndarray,
    shards: list[np.ndarray],
    num_commits: int,
    batch: int,
    step_size: float,
    rng: np.random.Generator,
    block: int,
) -> np.ndarray:
    def batches(shard: np.ndarray) -> Iterator[np.ndarray]:
        while True:
            yield from shard[rng.integers(0, len(shard), (block, batch))]

    def delays() -> Iterator[float]:
        while True:
            yield from rng.exponential(size=block).tolist()

    one_hot = np.eye(10, dtype=np.float32)[:, y]
    weights = np.zeros((10, x.shape[1]), np.float32)
    copies = [weights] * len(shards)
    ids_of, delay = [batches(shard) for shard in shards], delays()
    scale = np.float32(step_size / batch)
    heap = [(next(delay), m) for m in range(len(shards))]
    heapq.heapify(heap)
    for _ in range(num_commits):
        now, m = heap[0]
        ids = next(ids_of[m])
        rows = x[ids]
        p = copies[m] @ rows.T
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p -= one_hot[:, ids]
        p *= scale
        weights = weights - p @ rows
        copies[m] = weights
        heapq.heapreplace(heap, (now + next(delay), m))
    return weights


def vafl(
    blocks: list[np.ndarray],
    y: np.ndarray,
    num_commits: int,
    batch: int,
    step_size: float,
    l2: float,
    seed: int,
) -> np.ndarray:
    """Asynchronous VAFL with upload of the batch; returns the bias."""
    rng = np.random.default_rng(seed)
    parties, n = len(blocks), len(y)
    one_hot = np.eye(10, dtype=np.float32)[:, y]
    weights = [np.zeros((10, block.shape[1]), np.float32) for block in blocks]
    table = np.zeros((parties, n, 10), np.float32)
    stamp = np.full((parties, n), -1)
    bias = np.zeros((10, 1), np.float32)
    heap = [(rng.exponential(), m) for m in range(parties)]
    heapq.heapify(heap)
    for k in range(num_commits):
        now, m = heap[0]
        ids = rng.choice(n, batch, replace=False)
        rows = blocks[m][ids]
        table[m, ids] = rows @ weights[m].T
        stamp[m, ids] = k
        ages = k - stamp[:, ids]
        ages.mean(), ages.max()
        p = table[:, ids].sum(axis=0).T + bias
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p -= one_hot[:, ids]
        p /= batch
        weights[m] -= step_size * (p @ rows + l2 * weights[m])
        bias -= step_size * p.sum(axis=1, keepdims=True)
        heapq.heapreplace(heap, (now + rng.exponential(), m))
    return bias


def fedbcd(
    x: list[np.ndarray],
    y: np.ndarray,
    num_rounds: int,
    local_steps: int,
    batch: int,
    step_size: float,
    l2: float,
    seed: int,
) -> list[np.ndarray]:
    """FedBCD-p of linear parties with the logistic loss; FedSGD with one local step."""
    rng = np.random.default_rng(seed)
    weights = [np.zeros(own.shape[1], np.float32) for own in x]
    step_size, l2 = np.float32(step_size), np.float32(l2)
    for _ in range(num_rounds):
        ids = rng.integers(0, len(y), batch)
        rows = [own[ids] for own in x]
        labels = y[ids].astype(np.float32)
        outputs = [own @ w for own, w in zip(rows, weights, strict=True)]
        total = sum(outputs)
        for k, own in enumerate(rows):
            others, w = total - outputs[k], weights[k]
            for _ in range(local_steps):
                residual = 1 / (1 + np.exp(-(own @ w + others))) - labels
                w = w - step_size * (residual @ own / np.float32(batch) + l2 * w)
            weights[k] = w
    return weights
