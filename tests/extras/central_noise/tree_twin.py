"""DP-FTRL in slow NumPy: an explicit tree of noised partial sums, and its account.

Written from Kairouz et al. (2021), arXiv 2103.00039: every node of a complete binary
tree over the steps has the sum of its leaves and noise of its own; the sum of the first
t leaves is read from the fewest nodes that cover them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference import server_twin as twin

Span = tuple[int, int]
"""First and last leaf of a node, from 1."""


def cover(t: int) -> list[Span]:
    """Returns the fewest nodes that cover leaves 1 to t, the largest first."""
    found, done = [], 0
    while done < t:
        size = 1
        while done % (2 * size) == 0 and done + 2 * size <= t:
            size *= 2
        found.append((done + 1, done + size))
        done += size
    return found


class Tree:
    """A tree of sums.

    Args:
        noise: Noise of a node by its last leaf, of those that a cover has.
    """

    def __init__(self, noise: Callable[[int], np.ndarray]) -> None:
        self._noise, self._leaves = noise, []
        self._drawn: dict[Span, np.ndarray] = {}

    def add(self, leaf: np.ndarray) -> None:
        self._leaves.append(leaf)

    def prefix(self) -> np.ndarray:
        """Returns the noised sum of all leaves."""
        total = 0.0
        for first, last in cover(len(self._leaves)):
            if (first, last) not in self._drawn:
                self._drawn[first, last] = self._noise(last)
            exact = sum(self._leaves[first - 1 : last])
            total = total + exact + self._drawn[first, last]
        return np.asarray(total)


def tree_mean(
    scale: float, normals: Callable[[int], np.ndarray]
) -> Callable[..., twin.Stage]:
    """Returns a stage whose directions add up to the noised sums, by contributions.

    Args:
        scale: Noise of a node.
        normals: Of a commit, from 0.
    """

    def stage_of(commits: int, **_: Any) -> twin.Stage:
        trees: list[Tree] = []
        before: Any = 0.0

        def stage(server: twin.Server, jobs: list[twin.Job]) -> None:
            nonlocal before
            start = server.commits - server.commits % commits
            if server.commits == start:
                trees.append(Tree(lambda last: scale * normals(start + last - 1)))
                before = 0.0
            total = sum(
                (job.weight * job.message for job in jobs), 0 * server.models[0]
            )
            trees[-1].add(total)
            now = trees[-1].prefix()
            server.direction = (now - before) / max(len(jobs), 1)
            before = now

        return stage

    return stage_of


def squares(messages: list[tuple[int, int]], client: int, commits: int) -> int:
    """Returns the sum over nodes of the squares of a client's messages in each.

    All of a tree's nodes that some prefix has, also those after the last message.

    Args:
        messages: Client and commit, from 1, of each message.
        client: The client.
        commits: Of a tree.
    """
    seen = {span for t in range(1, commits + 1) for span in cover(t)}
    mine = [commit for sender, commit in messages if sender == client]
    trees: dict[int, list[int]] = {}
    for commit in mine:
        tree, leaf = divmod(commit - 1, commits)
        trees.setdefault(tree, []).append(leaf + 1)
    return sum(
        sum(first <= leaf <= last for leaf in leaves) ** 2
        for leaves in trees.values()
        for first, last in seen
    )
