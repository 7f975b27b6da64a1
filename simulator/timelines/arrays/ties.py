"""The order of events, those of one instant as an event loop has them.

An event loop takes events of one instant in the order in which they were put into its
queue, that is in the order of the events that put them there: their parents. So events
are in the order of their own times, then of their parents' times, then of those before
them, and so on; the first ones are in the order in which they were started.
"""

import numpy as np
from jaxtyping import Bool, Int, Shaped


def in_order(
    time: Shaped[np.ndarray, " n"],
    client: Int[np.ndarray, " n"],
    before: Int[np.ndarray, " K"],
) -> Int[np.ndarray, " n"]:
    """Returns the places of events, in the order in which an event loop takes them.

    Args:
        time: Times of the events, one client's after another's. The parent of each is
            the one before it of its client, which is no later.
        client: Their clients.
        before: Order of each client's last event before these, all different.
    """
    order = np.argsort(time)
    sorted_time = time[order]
    if not (sorted_time[1:] == sorted_time[:-1]).any():
        return order
    n = time.size
    # Earlier events stand behind the others here, and come before all of them.
    first = np.flatnonzero(np.concatenate([[True], client[1:] != client[:-1]]))
    ancestor = np.arange(-1, n + first.size - 1)
    ancestor[first] = ancestor[n:] = np.arange(n, n + first.size)
    rank = np.empty(n + first.size, np.int64)
    rank[n + np.argsort(before[client[first]])] = np.arange(first.size)
    tied, rank[order] = order, first.size + _starts(sorted_time)
    while True:
        tied = tied[_shared(rank[tied])]
        if not tied.size:
            order = np.empty(n, np.int64)
            order[rank[:n] - first.size] = np.arange(n)
            return order
        # Twice as many generations are compared in each pass.
        key = rank[tied] * rank.size + rank[ancestor[tied]]
        by = np.argsort(key)
        tied, key = tied[by], key[by]
        # The place of a rank's first event, and places among those of the same rank.
        old = rank[tied]
        rank[tied] = old + _starts(key) - _starts(old)
        ancestor = ancestor[ancestor]


def _starts(values: Shaped[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Returns, in a sorted array, the place of the first of each value's like."""
    place = np.arange(values.size)
    place[1:][values[1:] == values[:-1]] = 0
    return np.maximum.accumulate(place)


def _shared(values: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Says, in a sorted array, which values stand there more than once."""
    same = values[1:] == values[:-1]
    return np.concatenate([same, [False]]) | np.concatenate([[False], same])
