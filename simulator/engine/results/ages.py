"""How stale each client's work is, and the embeddings it uses: mean, maximum, bins."""

from typing import Any

import numpy as np

from ...files.study import Categorical
from ...files.timeline import NO_COMMIT, NO_SAMPLE, NO_WORKER, Jobs, effects, staleness
from ..records import Record

FINE_BINS = 64
BINS_PER_OCTAVE = 8
NUM_BINS = FINE_BINS + 25 * BINS_PER_OCTAVE
"""Staleness below 64 is counted exactly, beyond in eighths of an octave."""


def bin_edges() -> np.ndarray:
    """Returns the lower edges of the staleness bins, and one beyond the last."""
    coarse = FINE_BINS * 2.0 ** (np.arange(NUM_BINS - FINE_BINS + 1) / BINS_PER_OCTAVE)
    return np.concatenate([np.arange(FINE_BINS), np.ceil(coarse).astype(np.int64)])


EDGES = bin_edges()
EMBEDDING = "clients/embedding_staleness_"
"""How the diagnostics begin that count the ages of embeddings, per client."""


class Ages:
    """Count, mean, maximum and histograms of a staleness, per client.

    There is a histogram of the start of the run, and one of what follows.
    """

    def __init__(self, num_clients: int) -> None:
        self.count = np.zeros(num_clients)
        self.total = np.zeros(num_clients)
        self.largest = np.zeros(num_clients, np.int64)
        self.bins = np.zeros((2, num_clients, NUM_BINS), np.int64)

    def state(self) -> dict[str, np.ndarray]:
        """Returns what the rest of a run adds to."""
        return dict(vars(self))

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Takes up what `state` has returned."""
        vars(self).update(state)

    def mean(self) -> np.ndarray:
        """Returns the mean of each client, NaN where there is nothing."""
        with np.errstate(invalid="ignore"):
            return np.where(self.count > 0, self.total / self.count, np.nan)

    def tally(self, client: np.ndarray, age: np.ndarray, start: np.ndarray) -> None:
        """Adds ages to the histograms, saying which are of the start."""
        index = np.minimum(np.searchsorted(EDGES, age, side="right") - 1, NUM_BINS - 1)
        place = (start * self.count.size + client) * NUM_BINS + index
        np.add.at(self.bins.reshape(-1), place, 1)

    def add(self, client: np.ndarray, age: np.ndarray, start: np.ndarray) -> None:
        """Adds ages to everything.

        Both arguments of `at` have one type: NumPy is thirty times as fast then.
        """
        client, age = client.astype(np.int64), age.astype(np.int64)
        np.add.at(self.count, client, 1.0)
        np.add.at(self.total, client, age.astype(np.float64))
        np.maximum.at(self.largest, client, age)
        self.tally(client, age, start)


class Staleness:
    """The ages of a run's contributions and embeddings.

    The start of the run lasts until every client has had a contribution applied: until
    then there are clients of whom it is not known how stale they are going to be.

    Args:
        num_clients: who contribute.
        num_parties: whose embeddings are used, whoever takes part in rows.
        at_once: as of `timeline.staleness`.
        gathers: Whether contributions gather for a commit. Which one has applied them
            only the jobs say; else the rows do, sooner.

    Attributes:
        contributions: commits between a client's read and the commit that applied it.
        embeddings: commits since the upload of what is used; None where nothing is.
    """

    def __init__(
        self,
        num_clients: int,
        num_parties: int,
        at_once: int = 1,
        *,
        gathers: bool = False,
    ) -> None:
        self._at_once, self._gathers = at_once, gathers
        self.contributions = Ages(num_clients)
        self.embeddings: Ages | None = None
        self._num_parties = num_parties
        self._silent = np.ones(num_clients, bool)  # without a contribution so far

    def state(self) -> dict[str, Any]:
        """Returns what the rest of a run adds to."""
        ages = {"contributions": self.contributions, "embeddings": self.embeddings}
        known = {name: one.state() for name, one in ages.items() if one is not None}
        return {"silent": self._silent, **known}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self._silent = state["silent"]
        self.contributions.restore(state["contributions"])
        if "embeddings" in state:
            self.embeddings = Ages(self._num_parties)
            self.embeddings.restore(state["embeddings"])

    def add(self, record: Record) -> None:
        """Adds the ages of a record's commits."""
        if self._gathers:
            return
        rows = record.rows
        commits = effects(rows.kind).contributes
        row, column = np.nonzero((rows.worker != NO_WORKER) & commits[:, None])
        client = rows.worker[row, column]
        start = np.arange(rows.version.size) < self._first_after_start(row, client)
        if EMBEDDING + "mean" in record.infos:
            self._add_embeddings(record.infos, commits, start[commits])
        read_version = rows.read_version[row, column]
        age = staleness(rows.version[row], read_version, self._at_once)
        self.contributions.add(client, age, start[row])

    def apply(self, jobs: Jobs) -> None:
        """Adds the ages of jobs that were applied, where contributions gather."""
        if not self._gathers:
            return
        own = np.flatnonzero((jobs.commit != NO_COMMIT) & (jobs.refresh == 0))
        own = own[np.argsort(jobs.commit[own], kind="stable")]
        client, commit = jobs.client[own], jobs.commit[own]
        start = commit < self._first_after_start(commit, client)
        age = staleness(commit - 1, jobs.read_version[own], self._at_once)
        self.contributions.add(client, age, start)

    def _first_after_start(self, row: np.ndarray, client: np.ndarray) -> float:
        """Returns the first of some rows, or commits, that is not of the start.

        Args:
            row: of each contribution, or its commit, ascending.
            client: that made it.
        """
        if not self._silent.any():
            return 0
        news = self._silent[client]
        _, first = np.unique(client[news], return_index=True)
        self._silent[client[news]] = False
        if self._silent.any():
            return np.inf
        return int(row[news][first].max()) + 1

    def _add_embeddings(
        self, infos: dict[str, np.ndarray], commits: np.ndarray, start: np.ndarray
    ) -> None:
        ages = self.embeddings = self.embeddings or Ages(self._num_parties)
        count = infos[EMBEDDING + "count"][commits].astype(np.float64)
        ages.count += count.sum(axis=0)
        ages.total += (infos[EMBEDDING + "mean"][commits] * count).sum(axis=0)
        largest = infos[EMBEDDING + "max"][commits].max(axis=0, initial=0)
        ages.largest = np.maximum(ages.largest, largest)
        sample = infos[EMBEDDING + "sample"][commits]
        row, client = np.nonzero(sample != NO_SAMPLE)
        ages.tally(client, sample[row, client], start[row])

    def histograms(self, run: int) -> list[dict[str, object]]:
        """Returns the table of a run's bins, one piece per quantity."""
        found = {"contribution": self.contributions, "embedding": self.embeddings}
        pieces = []
        for quantity, ages in found.items():
            if ages is None:
                continue
            start, client, index = np.nonzero(ages.bins)
            pieces.append(
                {
                    "run": np.full(client.size, run, np.int32),
                    "client": client.astype(np.int32),
                    "quantity": Categorical(
                        np.zeros(client.size, np.int32), (quantity,)
                    ),
                    "start": start.astype(bool),
                    "low": EDGES[index],
                    "high": EDGES[index + 1],
                    "count": ages.bins[start, client, index],
                }
            )
        return pieces
