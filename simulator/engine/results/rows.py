"""Tables from rows and jobs: commits, probes, jobs, incidents and staleness."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Int, PyTree

from ...files.study import Categorical, Writer
from ...files.study.jobs import incident_columns, job_columns, traffic
from ...files.study.writing import Columns
from ...files.timeline import (
    KINDS,
    NO_COMMIT,
    NO_SAMPLE,
    NO_WORKER,
    Chunk,
    Incidents,
    Jobs,
    Rows,
    effects,
    staleness,
)
from ...parts.stop import Stop
from ...timelines.base import RunTimeline
from ...world.protocol_abilities import CountsMessages
from ..row_stream import Record

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

    There is a histogram of the start of the run, and one of the time after it.
    """

    def __init__(self, num_clients: int) -> None:
        self.count = np.zeros(num_clients)
        self.total = np.zeros(num_clients)
        self.largest = np.zeros(num_clients, np.int64)
        self.bins = np.zeros((2, num_clients, NUM_BINS), np.int64)

    def state(self) -> dict[str, np.ndarray]:
        """Returns the totals to which the rest of a run adds."""
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
    then the staleness of some clients is unknown.

    Args:
        num_clients: who contribute.
        num_parties: whose embeddings are used, whoever takes part in rows.
        at_once: as of `timeline.staleness`.
        gathers: Whether contributions gather for a commit. Then only the jobs show
            which commit has applied them; else the rows do, sooner.

    Attributes:
        contributions: commits between a client's read and the commit that applied it.
        embeddings: commits since the upload of the used ones; None without any.
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

    def state(self) -> dict[str, PyTree]:
        """Returns the totals to which the rest of a run adds."""
        ages = {"contributions": self.contributions, "embeddings": self.embeddings}
        known = {name: one.state() for name, one in ages.items() if one is not None}
        return {"silent": self._silent, **known}

    def restore(self, state: dict[str, PyTree]) -> None:
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
        """Returns the first of some rows, or commits, that is not of the start."""
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

    def histograms(self, run: int) -> list[Columns]:
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


class CommitTable:
    """Writes the table of a run's rows, with the diagnostics of each.

    A COMMIT has the number and the staleness of its contributions. For those that had
    gathered before, only the jobs show which commit has applied them, and these come
    with the end of a chunk: rows wait for that as soon as anything has gathered. A
    record may end in the middle of a later chunk, whose rows wait for its own end.

    Args:
        run: Number of the run in its study.
        writer: Writer of the study's tables; None to write nothing.
        at_once: As of `timeline.staleness`.
    """

    def __init__(self, run: int, writer: Writer | None, at_once: int = 1) -> None:
        self._run, self._writer, self._at_once = run, writer, at_once
        self._gathers = False
        self._rows: list[dict[str, np.ndarray]] = []
        self._commits, self._ages = np.zeros((2, 0), np.int64)
        self._last = 0  # commit that is written

    def state(self) -> dict[str, PyTree]:
        """Returns the totals to which the rest of a run adds."""
        return {
            "gathers": self._gathers,
            "rows": self._rows,
            "applied": [self._commits, self._ages],
            "last": self._last,
        }

    def restore(self, state: dict[str, PyTree]) -> None:
        """Takes up what `state` has returned."""
        self._gathers, self._rows = state["gathers"], state["rows"]
        self._commits, self._ages = state["applied"]
        self._last = state["last"]

    def add(self, record: Record) -> None:
        """Takes up the rows of a record."""
        if self._writer is None:
            return
        effect = effects(record.rows.kind)
        gathers = effect.contributes & ~effect.commits
        self._gathers = self._gathers or bool(gathers.any())
        self._rows.append(_columns(self._run, record, self._at_once))
        if not self._gathers:
            self.write()

    def apply(self, jobs: Jobs) -> None:
        """Takes up the jobs of a chunk, some of which were applied.

        Its last job may be one of the next chunk's first row.
        """
        if self._writer is None:
            return
        own = (jobs.commit != NO_COMMIT) & (jobs.refresh == 0)
        own &= jobs.commit > self._last
        commit = jobs.commit[own]
        age = staleness(commit - 1, jobs.read_version[own], self._at_once)
        self._commits = np.concatenate([self._commits, commit])
        self._ages = np.concatenate([self._ages, age])

    def write(self, rows: Rows | None = None) -> None:
        """Writes rows that have waited.

        Args:
            rows: Rows of the chunk whose jobs have just come; None if all have.
        """
        waiting, self._rows = self._rows, []
        last = NO_COMMIT if rows is None else _commits(rows).max(initial=0)
        for columns in waiting:
            due = int(np.searchsorted(columns["commit"], last, "right"))
            if due:
                self._write({name: values[:due] for name, values in columns.items()})
            if due < columns["commit"].size:
                rest = {name: values[due:] for name, values in columns.items()}
                self._rows.append(rest)

    def _write(self, columns: dict[str, np.ndarray]) -> None:
        if self._gathers:
            self._summarise(columns)
        kind = Categorical(columns["kind"], KINDS)
        assert self._writer is not None
        self._writer.append("commits", columns | {"kind": kind})
        self._last = int(columns["commit"].max())
        later = self._commits > self._last
        self._commits, self._ages = self._commits[later], self._ages[later]

    def _summarise(self, columns: dict[str, np.ndarray]) -> None:
        """Puts into each COMMIT what all of its contributions come to."""
        made = effects(columns["kind"]).commits
        commit = columns["commit"][made]
        mine = np.isin(self._commits, commit)
        place, ages = np.searchsorted(commit, self._commits[mine]), self._ages[mine]
        count = np.bincount(place, minlength=commit.size)
        total = np.bincount(place, ages, minlength=commit.size)
        largest = np.zeros(commit.size, np.int64)
        np.maximum.at(largest, place, ages)
        columns["num_contributions"][made] = count
        columns["staleness_mean"][made] = total / np.maximum(count, 1)
        columns["staleness_max"][made] = largest


def _commits(rows: Rows) -> Int[np.ndarray, " T"]:
    return rows.version + effects(rows.kind).commits


def _columns(run: int, record: Record, at_once: int) -> dict[str, np.ndarray]:
    rows, infos = record.rows, record.infos
    present = rows.worker != NO_WORKER
    effect = effects(rows.kind)
    present[effect.first_sender > 0, 1:] = False  # the one that it serves
    count = present.sum(axis=1)
    alone = (count == 1) | effect.pairs | effect.one_way
    age = staleness(rows.version[:, None], rows.read_version, at_once)
    age = np.where(present, age, 0)
    mean = age.sum(axis=1) / np.maximum(count, 1)
    columns = {
        "run": np.full(rows.time.size, run, np.int32),
        "commit": _commits(rows),
        "time": rows.time,
        "kind": rows.kind,
        "round": rows.round,
        "num_contributions": np.where(effect.contributes, count, 0).astype(np.int32),
        "client": np.where(
            alone, np.where(effect.one_way, rows.node, rows.worker[:, 0]), NO_WORKER
        ),
        "staleness_mean": mean.astype(np.float32),
        "staleness_max": age.max(axis=1).astype(np.int32),
    }
    for name, values in infos.items():
        if "/" not in name:
            columns[name] = values.astype(np.float32)
    if "workers/noise_std" in infos:
        held = infos["workers/noise_std"].shape[1]
        mask = present[:, :held]
        mean = np.where(mask, infos["workers/noise_std"], 0).sum(axis=1) / count
        columns["noise_std"] = mean.astype(np.float32)
    return columns


def probes(run: int, record: Record) -> Iterator[dict[str, np.ndarray]]:
    """Yields the table of the saved values of a record's rows, row after row."""
    for row, samples, values in record.probes:
        workers = record.rows.worker[row]
        present = workers != NO_WORKER
        count = int(present.sum())
        own = np.broadcast_to(samples, (workers.size, samples.shape[-1]))[present]
        columns = {
            "run": np.full(count, run, np.int32),
            "commit": np.full(count, record.rows.version[row] + 1),
            "time": np.full(count, record.rows.time[row]),
            "client": workers[present],
            "job": record.rows.job[row][present],
            "samples": own,
        }
        for name, value in values.items():
            columns[name] = value[present].reshape(count, -1).astype(np.float32)
        yield columns


CHUNK = 65_536
"""Rows per chunk of a timeline that is simulated again."""


class JobTables:
    """Writes the tables of jobs and of incidents, and counts the jobs of each client.

    Args:
        run: number of the run in its study.
        played: the run's timeline.
        writer: of the study's tables; None to count alone.
        apply: hears the jobs.

    Attributes:
        started: jobs of each client.
        sent: of them, that sent their message.
    """

    def __init__(
        self,
        run: int,
        played: RunTimeline,
        writer: Writer | None,
        apply: Callable[[Jobs], None],
    ) -> None:
        self._run, self._played, self._writer, self._apply = run, played, writer, apply
        self.started = np.zeros(played.num_clients, np.int64)
        self.sent = np.zeros(played.num_clients, np.int64)
        self._per_job = np.ones((played.num_clients, 2), np.int64)
        if isinstance(played.protocol, CountsMessages):
            self._per_job = played.protocol.messages_per_job(played.num_clients)
        self._jobs = self._incidents = 0  # written so far

    def state(self) -> dict[str, PyTree]:
        """Returns the totals to which the rest of a run adds."""
        written = [self._jobs, self._incidents]
        return {"started": self.started, "sent": self.sent, "written": written}

    def restore(self, state: dict[str, PyTree]) -> None:
        """Takes up what `state` has returned."""
        self.started, self.sent = state["started"], state["sent"]
        self._jobs, self._incidents = state["written"]

    def add(self, chunk: Chunk) -> None:
        """Writes the jobs and incidents of a chunk."""
        self._add_jobs(chunk.jobs)
        self._add_incidents(chunk.incidents)

    def replay(self, stop: Stop) -> None:
        """Writes the jobs of a run that ended before its timeline did.

        Only the world has the jobs of that instant, so it is simulated again up to
        there.
        """
        skip, known = self._jobs, self._incidents
        for chunk in replace(self._played, stop=stop).chunks(CHUNK):
            size = chunk.jobs.client.size
            left = min(skip, size)
            skip -= left
            self._add_jobs(Jobs(*(column[left:] for column in chunk.jobs)))
            old = min(known, chunk.incidents.time.size)
            known -= old
            self._add_incidents(Incidents(*(c[old:] for c in chunk.incidents)))

    def _add_jobs(self, jobs: Jobs) -> None:
        self._jobs += jobs.client.size
        np.add.at(self.started, jobs.client, 1)
        np.add.at(self.sent, jobs.client[~np.isnan(jobs.sent_time)], 1)
        self._apply(jobs)
        if self._writer is None:
            return
        workload = self._played.workload
        sizes = workload.upload_bytes, workload.download_bytes
        by_round = self._played.protocol.traits.batch_per_round
        counts = traffic(jobs, self._per_job, *sizes, by_round=by_round)
        given = self._played.job_steps
        self._writer.append("jobs", job_columns(self._run, jobs, counts, *sizes, given))

    def _add_incidents(self, incidents: Incidents) -> None:
        self._incidents += incidents.time.size
        if self._writer is not None:
            self._writer.append("incidents", incident_columns(self._run, incidents))
