"""How stale each client's work is, and the embeddings it uses: mean, maximum, bins."""

from typing import Any

import numpy as np

from simulator.engine.drive import Record
from simulator.timeline import NO_SAMPLE, NO_WORKER, Kind
from simulator.trace import Words

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
    """Count, mean, maximum and histogram of a staleness, per client."""

    def __init__(self, num_clients: int) -> None:
        self.count = np.zeros(num_clients)
        self.total = np.zeros(num_clients)
        self.largest = np.zeros(num_clients, np.int64)
        self.bins = np.zeros((num_clients, NUM_BINS), np.int64)

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

    def tally(self, client: np.ndarray, age: np.ndarray) -> None:
        """Adds ages to the histograms."""
        index = np.searchsorted(EDGES, age, side="right") - 1
        np.add.at(self.bins, (client, np.minimum(index, NUM_BINS - 1)), 1)

    def add(self, client: np.ndarray, age: np.ndarray) -> None:
        """Adds ages to everything."""
        np.add.at(self.count, client, 1)
        np.add.at(self.total, client, age)
        np.maximum.at(self.largest, client, age)
        self.tally(client, age)


class Staleness:
    """The ages of a run's contributions and embeddings.

    Args:
        num_clients: who contribute.
        num_parties: whose embeddings are used, whoever takes part in rows.

    Attributes:
        contributions: commits between a client's read and its contribution.
        embeddings: commits since the upload of what is used; None where nothing is.
    """

    def __init__(self, num_clients: int, num_parties: int) -> None:
        self.contributions = Ages(num_clients)
        self.embeddings: Ages | None = None
        self._num_parties = num_parties

    def state(self) -> dict[str, Any]:
        """Returns what the rest of a run adds to."""
        ages = {"contributions": self.contributions, "embeddings": self.embeddings}
        return {name: one.state() for name, one in ages.items() if one is not None}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self.contributions.restore(state["contributions"])
        if "embeddings" in state:
            self.embeddings = Ages(self._num_parties)
            self.embeddings.restore(state["embeddings"])

    def add(self, record: Record) -> None:
        """Adds the ages of a record's commits."""
        rows = record.rows
        commits = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
        if EMBEDDING + "mean" in record.infos:
            self._add_embeddings(record.infos, commits)
        row, column = np.nonzero((rows.worker != NO_WORKER) & commits[:, None])
        age = rows.version[row] - rows.read_version[row, column]
        self.contributions.add(rows.worker[row, column], age)

    def _add_embeddings(
        self, infos: dict[str, np.ndarray], commits: np.ndarray
    ) -> None:
        ages = self.embeddings = self.embeddings or Ages(self._num_parties)
        count = infos[EMBEDDING + "count"][commits].astype(np.float64)
        ages.count += count.sum(axis=0)
        ages.total += (infos[EMBEDDING + "mean"][commits] * count).sum(axis=0)
        largest = infos[EMBEDDING + "max"][commits].max(axis=0, initial=0)
        ages.largest = np.maximum(ages.largest, largest)
        sample = infos[EMBEDDING + "sample"][commits]
        row, client = np.nonzero(sample != NO_SAMPLE)
        ages.tally(client, sample[row, client])

    def histograms(self, run: int) -> list[dict[str, Any]]:
        """Returns the table of a run's bins, one piece per quantity."""
        found = {"contribution": self.contributions, "embedding": self.embeddings}
        pieces = []
        for quantity, ages in found.items():
            if ages is None:
                continue
            client, index = np.nonzero(ages.bins)
            pieces.append(
                {
                    "run": np.full(client.size, run, np.int32),
                    "client": client.astype(np.int32),
                    "quantity": Words(np.zeros(client.size, np.int32), (quantity,)),
                    "low": EDGES[index],
                    "high": EDGES[index + 1],
                    "count": ages.bins[client, index],
                }
            )
        return pieces
