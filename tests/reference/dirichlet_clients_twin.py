"""Hsu, Qi and Brown's partition as they tell it: client by client, row by row."""

import numpy as np

from stalesim.simulator.partitions.parts import ORDER, PROPORTIONS, draws


def partition(y: np.ndarray, clients: int, alpha: float, seed: int) -> list[list[int]]:
    """Returns the rows of each client, ascending."""
    order = draws(seed, ORDER).permutation(len(y)).tolist()
    classes = sorted(set(y.tolist()))
    waiting = {k: [row for row in order if y[row] == k] for k in classes}
    p = {k: len(waiting[k]) / len(y) for k in classes}
    prior = [alpha * p[k] for k in classes]
    draw, shares = draws(seed, PROPORTIONS), []
    for client in range(clients):
        size = len(y) // clients + (1 if client < len(y) % clients else 0)
        q = dict(zip(classes, draw.dirichlet(prior), strict=True))
        rows = []
        for uniform in draw.random(size):
            chance = {k: q[k] for k in classes if waiting[k]}
            if not sum(chance.values()) > 0:
                chance = {k: p[k] for k in chance}
            place = uniform * sum(chance.values())
            taken = max(k for k, each in chance.items() if each > 0)
            for k, each in chance.items():
                place -= each
                if place < 0:
                    taken = k
                    break
            rows.append(waiting[taken].pop(0))
        shares.append(sorted(rows))
    return shares
