"""Turns what an engine gives back of one run into the tables of the trace."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.engine.drive import Record
from simulator.engine.feed import Point
from simulator.privacy.gdp import Accountant
from simulator.privacy.ledger import Ledger
from simulator.privacy.of_runs import Guarantee, described
from simulator.protocols.played import Played
from simulator.scenario.algorithms import Perturbation
from simulator.scenario.stop import Stop
from simulator.timeline import (
    ADVANCING,
    NO_SAMPLE,
    NO_WORKER,
    Incident,
    Incidents,
    Jobs,
    Kind,
    Outcome,
    StopReason,
)
from simulator.trace import Words, Writer

FINE_BINS = 64
BINS_PER_OCTAVE = 8
NUM_BINS = FINE_BINS + 25 * BINS_PER_OCTAVE
"""Staleness below 64 is counted exactly, beyond in eighths of an octave."""


def bin_edges() -> np.ndarray:
    """Returns the lower edges of the staleness bins, and one beyond the last."""
    coarse = FINE_BINS * 2.0 ** (np.arange(NUM_BINS - FINE_BINS + 1) / BINS_PER_OCTAVE)
    return np.concatenate([np.arange(FINE_BINS), np.ceil(coarse).astype(np.int64)])


EDGES = bin_edges()
START = Point(0.0, 0, 0, 0)
"""Where a run is before its first row."""
OUTCOMES = tuple(outcome.name for outcome in Outcome)
KINDS = tuple(kind.name for kind in Kind)
INCIDENTS = tuple(incident.name for incident in Incident)


class Ages:
    """Count, mean, maximum and histogram of a staleness, per client."""

    def __init__(self, num_clients: int) -> None:
        self.count = np.zeros(num_clients)
        self.total = np.zeros(num_clients)
        self.largest = np.zeros(num_clients, np.int64)
        self.bins = np.zeros((num_clients, NUM_BINS), np.int64)

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


@dataclass
class Results:
    """One run's tables, written as its records come in.

    Attributes:
        run: number of the run in its study.
        played: the run's timeline.
        num_parties: clients of the vertical problem, whoever takes part in rows.
        num_features: columns of each client.
        num_samples: rows of each client.
        sampling_ratio: samples of an upload over all samples (privacy).
        perturbation: of the uploads, if any.
        writer: of the study's tables.
        guarantees: what one message of each client releases; none without noise.
        ledger: of the messages, where they are accounted for.
    """

    run: int
    played: Played
    num_parties: int
    num_features: tuple[int, ...]
    num_samples: tuple[int, ...]
    sampling_ratio: float
    perturbation: Perturbation | None
    writer: Writer
    guarantees: tuple[Guarantee, ...] = ()
    ledger: Ledger | None = None
    fraction: float = 0.0
    stop: StopReason | None = None
    diverged_at: int | None = None
    _last: Point = START
    _jobs_written: int = 0
    _incidents_written: int = 0
    _work: Ages = field(init=False)
    _embeddings: Ages | None = None
    _started: np.ndarray = field(init=False)
    _applied: np.ndarray = field(init=False)
    _sent: np.ndarray = field(init=False)
    _releases: np.ndarray = field(init=False)
    _accountant: Accountant | None = None

    def __post_init__(self) -> None:
        clients = self.played.num_clients
        self._work = Ages(clients)
        self._started = np.zeros(clients, np.int64)
        self._applied = np.zeros(clients, np.int64)
        self._sent = np.zeros(clients, np.int64)
        self._releases = np.zeros(clients, np.int64)
        if self.perturbation and self.perturbation.input_diameter:
            self._accountant = Accountant(
                clients, self.perturbation.accountant, self.sampling_ratio
            )

    def add(self, record: Record) -> None:
        """Writes one record."""
        if record.rows.time.size:
            self._add_commits(record)
            self._add_ages(record)
        self._add_evaluations(record)
        self._add_probes(record)
        for chunk in record.chunks:
            self._add_jobs(chunk.jobs)
            self._add_incidents(chunk.incidents)
        if record.stop is not None:
            self.stop = record.stop
            if record.stop is StopReason.DIVERGED:
                self.diverged_at = int(record.rows.version[-1]) + 1
            if record.early:
                self._replay_jobs(record)
        self.fraction = 1.0 if self.stop else self._progress()

    def finish(self) -> dict[str, Any]:
        """Writes the tables of the whole run; returns its end for the manifest."""
        self._add_clients()
        self._add_staleness()
        self._add_ledger()
        return {
            "stop_reason": self.stop.value
            if self.stop
            else StopReason.INTERRUPTED.value,
            "stop": (self.stop or StopReason.INTERRUPTED).name.lower(),
            "diverged_at_commit": self.diverged_at,
            "commits": self._last.commits,
            "contributions": self._last.contributions,
            "virtual_s": self._last.time,
            "privacy": self._describe_privacy(),
        }

    def _column(self, size: int) -> np.ndarray:
        return np.full(size, self.run, np.int32)

    def _add_commits(self, record: Record) -> None:
        rows, infos = record.rows, record.infos
        present = rows.worker != NO_WORKER
        refresh = rows.kind == Kind.REFRESH
        present[refresh, 1:] = False
        count = present.sum(axis=1)
        brings = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
        staleness = np.where(present, rows.version[:, None] - rows.read_version, 0)
        columns = {
            "run": self._column(rows.time.size),
            "commit": rows.version + np.isin(rows.kind, ADVANCING),
            "time": rows.time,
            "kind": Words(rows.kind, KINDS),
            "round": rows.round,
            "num_contributions": np.where(brings, count, 0).astype(np.int32),
            "client": rows.worker[:, 0],
            "staleness_mean": (staleness.sum(axis=1) / np.maximum(count, 1)).astype(
                np.float32
            ),
            "staleness_max": staleness.max(axis=1).astype(np.int32),
        }
        for name, values in infos.items():
            if "/" not in name:
                columns[name] = values.astype(np.float32)
        if "workers/noise_std" in infos:
            held = infos["workers/noise_std"].shape[1]
            mask = present[:, :held]
            mean = np.where(mask, infos["workers/noise_std"], 0).sum(axis=1) / count
            columns["noise_std"] = mean.astype(np.float32)
        self.writer.append("commits", columns)

    def _add_ages(self, record: Record) -> None:
        rows, infos = record.rows, record.infos
        commits = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
        if (name := "clients/embedding_staleness_mean") in infos:
            ages = self._embeddings = self._embeddings or Ages(self.num_parties)
            prefix = name.removesuffix("mean")
            count = infos[prefix + "count"][commits].astype(np.float64)
            ages.count += count.sum(axis=0)
            ages.total += (infos[name][commits] * count).sum(axis=0)
            largest = infos[prefix + "max"][commits].max(axis=0, initial=0)
            ages.largest = np.maximum(ages.largest, largest)
            sample = infos[prefix + "sample"][commits]
            row, client = np.nonzero(sample != NO_SAMPLE)
            ages.tally(client, sample[row, client])
        row, column = np.nonzero((rows.worker != NO_WORKER) & commits[:, None])
        client = rows.worker[row, column]
        self._work.add(client, rows.version[row] - rows.read_version[row, column])
        np.add.at(self._applied, client, 1)

    def _release(self, record: Record, first: int, last: int) -> None:
        """Accounts for every upload in some rows (equation 15 counts messages sent)."""
        worker = record.rows.worker[first:last].copy()
        refresh = record.rows.kind[first:last] == Kind.REFRESH
        worker[refresh, 0] = NO_WORKER
        row, column = np.nonzero(worker != NO_WORKER)
        client = worker[row, column]
        np.add.at(self._releases, client, 1)
        if self._accountant is None or self.perturbation is None:
            return
        z = np.zeros(client.size)  # where there is no noise at all
        if "workers/noise_std" in record.infos:
            std = record.infos["workers/noise_std"][first:last][row, column]
            norms = record.infos["workers/weight_norm"][first:last][row, column]
            diameter = self.perturbation.input_diameter or 0.0
            sensitivity = norms.astype(np.float64) * diameter
            with np.errstate(divide="ignore", invalid="ignore"):
                z = std.astype(np.float64) / sensitivity
            z = np.where(sensitivity == 0, np.inf, z)
        self._accountant.release(client, z)

    def _add_evaluations(self, record: Record) -> None:
        done = 0
        private = self.perturbation is not None
        for upto, point, metrics in record.evaluations:
            if private:
                self._release(record, done, upto)
                done = upto
                self._add_privacy(point.time)
            if self.ledger is not None:
                self.ledger.evaluate(point.time)
            self._last = point
            traffic = self.played.traffic
            uploads = point.contributions + point.refreshes
            columns = {
                "run": self._column(1),
                "time": np.array([point.time]),
                "commits": np.array([point.commits]),
                "contributions": np.array([point.contributions]),
                "epochs": np.array(
                    [point.contributions / traffic.contributions_per_epoch]
                ),
                "upload_bytes": np.array([uploads * traffic.upload_bytes]),
                "download_bytes": np.array(
                    [point.contributions * traffic.download_bytes]
                ),
            } | {name: np.array([value]) for name, value in metrics.items()}
            self.writer.append("evaluations", columns)
        if private:
            self._release(record, done, record.rows.version.size)
        if record.located:
            self._last = self._last._replace(
                time=float(record.rows.time[-1]),
                commits=int(record.rows.version[-1]) + 1,
                contributions=int(self._applied.sum()),
            )

    def _add_probes(self, record: Record) -> None:
        for row, samples, values in record.probes:
            workers = record.rows.worker[row]
            present = workers != NO_WORKER
            count = int(present.sum())
            own = np.broadcast_to(samples, (workers.size, samples.shape[-1]))[present]
            columns = {
                "run": self._column(count),
                "commit": np.full(count, record.rows.version[row] + 1),
                "time": np.full(count, record.rows.time[row]),
                "client": workers[present],
                "job": record.rows.job[row][present],
                "samples": own,
            }
            for name, value in values.items():
                columns[name] = value[present].reshape(count, -1).astype(np.float32)
            self.writer.append("probes", columns)

    def _add_privacy(self, time: float) -> None:
        if self._accountant is None:
            return
        clients = self.played.num_clients
        mu = np.array([self._accountant.level(client) for client in range(clients)])
        self.writer.append(
            "privacy",
            {
                "run": self._column(clients),
                "time": np.full(clients, time),
                "client": np.arange(clients, dtype=np.int32),
                "releases": self._releases.copy(),
                "mu": mu,
                "accountant": Words(
                    np.zeros(clients, np.int32), (self._accountant.form,)
                ),
                # Theorem 6 lets the weights, which its sensitivity uses, depend on the
                # data without accounting for it; so none of this is a proof.
                "formal": np.zeros(clients, bool),
            },
        )

    def _add_ledger(self) -> None:
        """Writes what the messages cost; jobs end later than they are evaluated."""
        ledger = self.ledger
        for entry in ledger.entries() if ledger else ():
            assert ledger is not None
            size = entry.client.size
            columns = {
                "run": self._column(size),
                "time": np.full(size, entry.time),
                "client": entry.client,
                "releases": entry.releases,
                "epsilon": entry.epsilon,
                "delta": np.full(size, ledger.delta),
                "accountant": Words(entry.accountant, ledger.accountants),
                "formal": entry.formal,
            }
            self.writer.append("privacy", columns)

    def _describe_privacy(self) -> dict[str, Any] | None:
        """Returns what noise there is and whether it is private, for the manifest."""
        if self.perturbation is not None:
            form = self._accountant.form if self._accountant else None
            return {
                "mechanism": "Gaussian, on embeddings",
                "formal": False,
                "why": "the sensitivity is that of weights which the data have shaped",
                "delta": None,
                "accountants": [form] if form else [],
            }
        ledger = self.ledger
        if not self.guarantees:
            return None
        return {
            **described(self.guarantees),
            "delta": ledger.delta if ledger else None,
            "accountants": list(ledger.accountants) if ledger else [],
        }

    def _add_jobs(self, jobs: Jobs) -> None:
        self._jobs_written += jobs.client.size
        np.add.at(self._started, jobs.client, 1)
        np.add.at(self._sent, jobs.client[~np.isnan(jobs.sent_time)], 1)
        if self.ledger is not None:
            self.ledger.send(jobs.client, jobs.sent_time)
        traffic = self.played.traffic
        fetched = (jobs.outcome != Outcome.IN_FLIGHT) & (jobs.refresh == 0)
        uploads = jobs.uploads * (traffic.upload_bytes > 0)
        downloads = fetched * (traffic.download_bytes > 0)
        self.writer.append(
            "jobs",
            {
                "run": self._column(jobs.client.size),
                "client": jobs.client,
                "job": jobs.job,
                "kind": Words(jobs.refresh, ("work", "refresh")),
                "read_time": jobs.read_time,
                "computed_time": jobs.computed_time,
                "sent_time": jobs.sent_time,
                "arrived_time": jobs.arrived_time,
                "applied_time": jobs.applied_time,
                "read_version": jobs.read_version,
                "commit": jobs.commit,
                "upload_bytes": uploads.astype(np.int64) * traffic.upload_bytes,
                "download_bytes": downloads * traffic.download_bytes,
                "upload_messages": uploads.astype(np.int32),
                "download_messages": downloads.astype(np.int32),
                "outcome": Words(jobs.outcome, OUTCOMES),
            },
        )

    def _add_incidents(self, incidents: Incidents) -> None:
        self._incidents_written += incidents.time.size
        if incidents.time.size:
            columns = {
                "run": self._column(incidents.time.size),
                "time": incidents.time,
                "client": incidents.client,
                "incident": Words(incidents.incident, INCIDENTS),
                "messages": incidents.messages,
            }
            self.writer.append("incidents", columns)

    def _replay_jobs(self, record: Record) -> None:
        """Writes the jobs of a run that ended before its timeline did.

        Only the world can say which jobs were under way then, so it is played once more
        up to that instant.
        """
        stop = Stop(commits=self._last.commits or 1)
        if not record.located:
            if not self._last.time:
                return
            stop = Stop(time=self._last.time)
        skip, known = self._jobs_written, self._incidents_written
        for chunk in replace(self.played, stop=stop).chunks(65_536):
            size = chunk.jobs.client.size
            left = min(skip, size)
            skip -= left
            self._add_jobs(Jobs(*(column[left:] for column in chunk.jobs)))
            old = min(known, chunk.incidents.time.size)
            known -= old
            self._add_incidents(Incidents(*(c[old:] for c in chunk.incidents)))

    def _add_clients(self) -> None:
        clients = self.played.num_clients
        columns = {
            "run": self._column(clients),
            "client": np.arange(clients, dtype=np.int32),
            "num_features": np.array(self.num_features, np.int32),
            "num_samples": np.array(self.num_samples, np.int32),
            "num_jobs": self._started,
            "num_applied": self._applied,
            "staleness_mean": self._work.mean(),
            "staleness_max": self._work.largest,
            "releases": self._releases if self.perturbation else self._sent,
        }
        if self._embeddings is not None:
            columns["embedding_staleness_mean"] = self._embeddings.mean()
            columns["embedding_staleness_max"] = self._embeddings.largest
        self.writer.append("clients", columns)

    def _add_staleness(self) -> None:
        found = {"contribution": self._work, "embedding": self._embeddings}
        for quantity, ages in found.items():
            if ages is None:
                continue
            client, index = np.nonzero(ages.bins)
            self.writer.append(
                "staleness",
                {
                    "run": self._column(client.size),
                    "client": client.astype(np.int32),
                    "quantity": Words(np.zeros(client.size, np.int32), (quantity,)),
                    "low": EDGES[index],
                    "high": EDGES[index + 1],
                    "count": ages.bins[client, index],
                },
            )

    def _progress(self) -> float:
        stop, last = self.played.stop, self._last
        traffic = self.played.traffic
        fractions = (
            last.time / stop.time if stop.time else 0.0,
            last.commits / stop.commits if stop.commits else 0.0,
            last.commits / stop.rounds if stop.rounds else 0.0,
            last.contributions / stop.contributions if stop.contributions else 0.0,
            last.contributions / (stop.epochs * traffic.contributions_per_epoch)
            if stop.epochs
            else 0.0,
        )
        return min(1.0, max(fractions))
