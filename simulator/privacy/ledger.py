"""Counts every client's messages by each evaluation, and computes their cost.

A release is a message that was *sent*, applied or not: a lossy link, a rejection or a
crash after sending lowers nothing, and sending the same message again adds nothing.
Jobs come when they end, later than evaluations that they precede; so costs are known
when a run is over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from ..parts.errors import ScenarioError, UserError
from .budgets import releases_within
from .parts import accountant as accountant_of
from .parts import make
from .releases import Calibrated, Guarantee, Release


class CommitCosts:
    """Counts the messages of commits, in the order of commits.

    A sum with m messages of a client counts as m^2. The sums are those of the commits,
    or the nodes of binary trees over them: the model after t commits of a tree has the
    nodes that are the binary digits of t, so an odd node is never seen by itself.

    Args:
        num_clients: K.
        tree: Commits of a tree; 1 for sums of single commits.
    """

    def __init__(self, num_clients: int, tree: int = 1) -> None:
        self._tree = tree
        # Of each level and client: the last node, and messages in it.
        self._node = np.full((tree.bit_length(), num_clients), -1, np.int64)
        self._there = np.zeros_like(self._node)

    def state(self) -> dict[str, Int[np.ndarray, "L K"]]:
        """Returns the state so far, for `restore`."""
        return {"node": self._node, "there": self._there}

    def restore(self, state: dict[str, Int[np.ndarray, "L K"]]) -> None:
        """Takes up what `state` has returned."""
        self._node, self._there = state["node"], state["there"]

    def add(
        self, client: Int[np.ndarray, " J"], commit: Int[np.ndarray, " J"]
    ) -> Int[np.ndarray, " J"]:
        """Returns the count of each message, until the end of its tree.

        Of each node with it, that is 2 j - 1 for its client's j-th message there.

        Args:
            client: Sender of each message, from 0.
            commit: Commit that has applied it, from 1; none is before one of an earlier
                call.
        """
        counts = np.zeros(client.size, np.int64)
        place = (commit.astype(np.int64) - 1) % self._tree
        for level, (last, there) in enumerate(
            zip(self._node, self._there, strict=True)
        ):
            number = place >> level
            seen = (number % 2 == 0) & ((number + 1) << level <= self._tree)
            node = commit[seen] - place[seen] + (number[seen] << level)
            counts[seen] += _squares(last, there, client[seen], node)
        return counts


class Ledger:
    """The messages of one run's clients, and their accountants.

    Args:
        guarantees: Release of one message of each client.
        accountants: Names of the accountants.
        delta: Failure probability, in [0, 1).
        cohort: Clients of each round, drawn by the server, for accountants of such.

    Raises:
        UserError: an accountant cannot account for a release.
    """

    def __init__(
        self,
        guarantees: Sequence[Guarantee],
        accountants: Sequence[str],
        delta: float,
        cohort: int = 0,
    ) -> None:
        self._cohort = min(cohort, len(guarantees))
        self.guarantees = tuple(guarantees)
        self.accountants, self.delta = tuple(accountants), delta
        check(self.guarantees, self.accountants)
        self._times: list[float] = []
        self._added: list[Int[np.ndarray, " K"]] = []
        self._client = np.zeros(0, np.int64)
        self._sent = np.zeros(0)
        self._costs = CommitCosts(
            len(self.guarantees), max((g.by_commit for g in self.guarantees), default=0)
        )

    def state(self) -> dict[str, Any]:
        """Returns the state so far, for `restore`."""
        return {
            "times": self._times,
            "added": self._added,
            "client": self._client,
            "sent": self._sent,
            "costs": self._costs.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self._times, self._added = state["times"], state["added"]
        self._client, self._sent = state["client"], state["sent"]
        self._costs.restore(state["costs"])

    def evaluate(self, time: float) -> None:
        """Notes an evaluation, at no earlier a time than the last one."""
        self._times.append(time)
        self._added.append(np.zeros(len(self.guarantees), np.int64))

    def send(
        self, client: Int[np.ndarray, " J"], sent_time: Float[np.ndarray, " J"]
    ) -> None:
        """Notes messages.

        Args:
            client: Sender of each message, from 0; once for each that it counts as.
            sent_time: Virtual seconds; NaN for messages that were never sent.
        """
        sent = ~np.isnan(sent_time)
        client = np.concatenate([self._client, client[sent]])
        time = np.concatenate([self._sent, sent_time[sent]])
        # Before the last evaluation there will be no other.
        known = time <= self._times[-1] if self._times else np.zeros(time.size, bool)
        self._count(client[known], time[known])
        self._client, self._sent = client[~known], time[~known]

    def counts(self) -> Int[np.ndarray, "E K"]:
        """Returns the messages sent by each evaluation.

        The last evaluation counts all of the run, also messages after it.
        """
        if not self._times:
            return np.zeros((0, len(self.guarantees)), np.int64)
        self._count(self._client, self._sent)
        self._client, self._sent = self._client[:0], self._sent[:0]
        return np.cumsum(self._added, axis=0)

    def entries(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields columns of an entry for each client and accountant, by evaluation.

        `time` in virtual seconds; `client` from 0; `releases`, messages sent so far;
        `epsilon` with the ledger's delta, inf where nothing protects; `accountant`, the
        index of its name; `formal`, whether release and composition are proved.
        """
        counts = self.counts()
        K, A = len(self.guarantees), len(self.accountants)
        formal = np.array(
            [
                [g.formal and _composes(name, g.release) for name in self.accountants]
                for g in self.guarantees
            ]
        ).reshape(K, A)
        epsilons = self._epsilons(counts)
        client = np.repeat(np.arange(K, dtype=np.int32), A)
        accountant = np.tile(np.arange(A, dtype=np.int32), K)
        for row, time in enumerate(self._times):
            yield {
                "time": np.full(K * A, time),
                "client": client,
                "releases": np.repeat(counts[row], A),
                "epsilon": epsilons[row].reshape(-1),
                "accountant": accountant,
                "formal": formal.reshape(-1),
            }

    def apply(
        self,
        client: Int[np.ndarray, " J"],
        commit: Int[np.ndarray, " J"],
        applied_time: Float[np.ndarray, " J"],
    ) -> None:
        """Notes messages that are in commits, on whose sums the noise is."""
        times = self._costs.add(client, commit)
        self.send(np.repeat(client, times), np.repeat(applied_time, times))

    def _count(
        self, client: Int[np.ndarray, " J"], time: Float[np.ndarray, " J"]
    ) -> None:
        if not client.size:
            return
        row = np.searchsorted(np.array(self._times), time, side="left")
        row = np.minimum(row, len(self._times) - 1)
        for at in np.unique(row):
            np.add.at(self._added[at], client[row == at], 1)

    def _epsilons(self, counts: Int[np.ndarray, "E K"]) -> Float[np.ndarray, "E K A"]:
        found = np.zeros((*counts.shape, len(self.accountants)))
        same: dict[Release, list[int]] = {}
        for client, guarantee in enumerate(self.guarantees):
            same.setdefault(guarantee.release, []).append(client)
        for release, clients in same.items():
            for number, name in enumerate(self.accountants):
                own, one = counts[:, clients], cast("Any", release)
                if accountant_of(name).counts_all:
                    own = np.broadcast_to(counts.sum(axis=1, keepdims=True), own.shape)
                    ratio = release.sampling_ratio / len(self.guarantees)
                    one = replace(one, sampling_ratio=ratio)
                if accountant_of(name).condition:
                    rounds = -(-counts.sum(axis=1, keepdims=True) // self._cohort)
                    own = np.broadcast_to(rounds, own.shape)
                    one = replace(one, sampling_ratio=self._cohort / counts.shape[1])
                known, place = np.unique(own, return_inverse=True)
                values = [epsilon(one, int(n), name, self.delta) for n in known]
                found[:, clients, number] = np.array(values)[place.reshape(own.shape)]
        return found


def check(guarantees: Sequence[Guarantee], accountants: Sequence[str]) -> None:
    """Refuses accountants that cannot account for the releases.

    Raises:
        UserError: saying which and why.
    """
    for release in {guarantee.release for guarantee in guarantees}:
        for name in accountants:
            make(name).release(0, release)
    kept = not all(guarantee.afresh for guarantee in guarantees)
    for name in accountants if kept else ():
        if accountant_of(name).condition:
            raise UserError(
                f"privacy.accountants must be without {name!r} where clients keep what "
                f"tells of earlier draws; take distinct batches and no stages with "
                f"memory, or remove it"
            )
    for name in accountants if any(g.by_commit for g in guarantees) else ():
        if accountant_of(name).counts_all:
            raise UserError(
                f"privacy.accountants must count a client's own messages where the "
                f"noise is the server's, got {name!r}; take rdp, gdp or pld"
            )


def limits(guarantees: Sequence[Guarantee], budget: Calibrated) -> tuple[int, ...]:
    """Returns the number of messages of each client within a budget.

    Raises:
        ScenarioError: a client may send none.
        UserError: the accountant cannot account for a release.
    """
    target, delta, accountant = budget.epsilon, budget.delta, budget.accountant
    assert target is not None
    assert delta is not None
    assert accountant is not None
    most = {
        release: releases_within(target, delta, release, make(accountant))
        for release in dict.fromkeys(g.release for g in guarantees)
    }
    found = tuple(most[guarantee.release] for guarantee in guarantees)
    if not all(found):
        client = found.index(0)
        one = epsilon(guarantees[client].release, 1, accountant, delta)
        raise ScenarioError(
            f"{budget.key} must allow one message of every client, got {target:g}, "
            f"but one of client {client + 1} costs epsilon {one:.4g} by {accountant}; "
            f"raise it, or add noise"
        )
    return found


@lru_cache(maxsize=2**18)
def epsilon(release: Release, count: int, accountant: str, delta: float) -> float:
    """Returns the epsilon of some equal releases; cached."""
    one = make(accountant)
    one.release(count, release)
    return one.epsilon(delta)


@lru_cache(maxsize=4096)
def _composes(accountant: str, release: Release) -> bool:
    one = make(accountant)
    one.release(1, release)
    return one.formal


def _squares(
    last: Int[np.ndarray, " K"],
    there: Int[np.ndarray, " K"],
    client: Int[np.ndarray, " J"],
    node: Int[np.ndarray, " J"],
) -> Int[np.ndarray, " J"]:
    """Returns 2 j - 1 for a client's j-th message in a node; notes its last nodes."""
    order = np.lexsort((node, client))
    c, k = client[order].astype(np.int64), node[order].astype(np.int64)
    place = np.arange(c.size)
    new = (np.diff(c, prepend=-1) != 0) | (np.diff(k, prepend=-1) != 0)
    first = np.maximum.accumulate(np.where(new, place, 0))
    earlier = np.where(last[c] == k, there[c], 0)
    number = place - first + 1 + earlier
    ends = np.diff(c, append=-1) != 0
    last[c[ends]], there[c[ends]] = k[ends], number[ends]
    counts = np.empty_like(number)
    counts[order] = 2 * number - 1
    return counts
