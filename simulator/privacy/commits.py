"""What a client's messages cost where the noise is on the sum of a commit.

A client of which a commit has m messages, each clipped to S, moves the sum by at most m
S. Noise of z S is then that of ratio z / m, which costs exactly as m^2 commits with one
of its messages each: by Gaussian differential privacy, Renyi divergences and privacy
loss distributions alike, which compose Gaussians by the sum of 1 / ratio^2. So messages
are counted, and the j-th of a client in a commit counts 2 j - 1.
"""

import numpy as np
from jaxtyping import Int


class CommitCosts:
    """Counts the messages of commits, in the order of commits.

    Args:
        num_clients: K.
    """

    def __init__(self, num_clients: int) -> None:
        self._commit = np.full(num_clients, -1, np.int64)  # last one of each client
        self._there = np.zeros(num_clients, np.int64)  # its messages in that commit

    def state(self) -> dict[str, Int[np.ndarray, " K"]]:
        """Returns the state so far, for `restore`."""
        return {"commit": self._commit, "there": self._there}

    def restore(self, state: dict[str, Int[np.ndarray, " K"]]) -> None:
        """Takes up what `state` has returned."""
        self._commit, self._there = state["commit"], state["there"]

    def add(
        self, client: Int[np.ndarray, " J"], commit: Int[np.ndarray, " J"]
    ) -> Int[np.ndarray, " J"]:
        """Returns what each message counts: 2 j - 1 of its client's j-th in a commit.

        Args:
            client: Sender of each message, from 0.
            commit: Commit that has applied it; none is before one of an earlier call.
        """
        order = np.lexsort((commit, client))
        c, k = client[order].astype(np.int64), commit[order].astype(np.int64)
        place = np.arange(c.size)
        new = (np.diff(c, prepend=-1) != 0) | (np.diff(k, prepend=-1) != 0)
        first = np.maximum.accumulate(np.where(new, place, 0))
        earlier = np.where(self._commit[c] == k, self._there[c], 0)
        number = place - first + 1 + earlier
        last = np.diff(c, append=-1) != 0
        self._commit[c[last]], self._there[c[last]] = k[last], number[last]
        counts = np.empty_like(number)
        counts[order] = 2 * number - 1
        return counts
