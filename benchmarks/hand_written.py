"""What a careful user writes without the simulator: a heap of events and NumPy."""

import heapq

import numpy as np


def asynchronous_sgd(
    x: np.ndarray,
    y: np.ndarray,
    num_clients: int,
    num_commits: int,
    batch: int,
    step_size: float,
    seed: int,
) -> np.ndarray:
    """Asynchronous multinomial logistic regression; weights are `[10, P]`."""
    rng = np.random.default_rng(seed)
    shards = np.array_split(rng.permutation(len(x)), num_clients)
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
