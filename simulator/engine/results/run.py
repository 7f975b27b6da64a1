"""One run's tables, and its account of privacy, written as its records come in."""

import numpy as np
from jaxtyping import PyTree

from ...files.study import Categorical, Writer
from ...files.timeline import NO_COMMIT, NO_WORKER, Jobs, StopReason, effects
from ...parts.metrics import Each, metric
from ...parts.stop import Stop
from ...privacy import gdp
from ...privacy.guarantees import described
from ...privacy.releases import FEATURES
from ...problem.capabilities import HasStages, StoresEmbeddings, noise_of
from ...timelines.base import Ending
from ...timelines.kept import row_columns
from ..row_stream import EvaluationPoint, Metrics, Record
from ..setup import RunSetup
from . import rows
from .rows import JobTables, Staleness


class PrivacyTables:
    """Accounts for the uploads of a run, by the row or by the job.

    Perturbed embeddings are accounted for as their rows are executed, by the noise and
    the weights of each; other messages by a ledger, as their jobs end.

    Attributes:
        releases: Uploads of each client so far; counted where they are perturbed.
    """

    def __init__(self, setup: RunSetup, writer: Writer) -> None:
        self._run, self._writer = setup.run.number, writer
        self._num_clients = setup.timeline.num_clients
        algorithm, privacy = setup.scenario.algorithm, setup.scenario.privacy
        stores = isinstance(algorithm, StoresEmbeddings)
        self._perturbation = algorithm.embedding_noise if stores else None
        self._guarantees, self._ledger = setup.guarantees, setup.ledger()
        self.releases = np.zeros(self._num_clients, np.int64)
        known, stated = noise_of(algorithm).calibrated, privacy and privacy.budget
        self._budget = stated or (known and known.epsilon)
        self._squares: np.ndarray | None = None  # mu^2 of each client
        if self._perturbation and self._perturbation.input_diameter:
            self._ratio = setup.upload_ratio
            self._squares = np.zeros(self._num_clients)

    def state(self) -> dict[str, PyTree]:
        """Returns the totals to which the rest of a run adds."""
        ledger = None if self._ledger is None else self._ledger.state()
        return {"releases": self.releases, "squares": self._squares, "ledger": ledger}

    def restore(self, state: dict[str, PyTree]) -> None:
        """Takes up what `state` has returned."""
        self.releases, self._squares = state["releases"], state["squares"]
        if self._ledger is not None:
            self._ledger.restore(state["ledger"])

    @property
    def perturbed(self) -> bool:
        """Whether the uploads are perturbed embeddings."""
        return self._perturbation is not None

    def add(self, record: Record) -> None:
        """Accounts for a record's uploads, up to each evaluation and after the last."""
        done = 0
        for upto, point, _ in record.evaluations:
            self.release(record, done, upto)
            done = upto
            self.evaluate(point.time)
        self.release(record, done, record.rows.version.size)

    def release(self, record: Record, first: int, last: int) -> None:
        """Accounts for every upload in some rows (equation 15 counts messages sent)."""
        if self._perturbation is None:
            return
        rows = record.rows.slice(first, last)
        worker, place = rows.worker, np.arange(rows.worker.shape[1])
        sends = place >= effects(rows.kind).first_sender[:, None]
        row, column = np.nonzero((worker != NO_WORKER) & sends)
        client = worker[row, column]
        np.add.at(self.releases, client, 1)
        if self._squares is None:
            return
        z = np.zeros(client.size)  # where there is no noise at all
        if "workers/noise_std" in record.infos:
            std = record.infos["workers/noise_std"][first:last][row, column]
            norms = record.infos["workers/weight_norm"][first:last][row, column]
            diameter = self._perturbation.input_diameter or 0.0
            sensitivity = norms.astype(np.float64) * diameter
            with np.errstate(divide="ignore", invalid="ignore"):
                z = std.astype(np.float64) / sensitivity
            z = np.where(sensitivity == 0, np.inf, z)
        rule = self._perturbation.accountant
        np.add.at(self._squares, client, gdp.increments(z, self._ratio, rule))

    def send(self, jobs: Jobs) -> None:
        """Accounts for messages of jobs: all that were sent, or those of commits."""
        if self._ledger is None:
            return
        if not self._guarantees[0].by_commit:
            self._ledger.send(jobs.client, jobs.sent_time)
            return
        applied = jobs.commit != NO_COMMIT
        columns = jobs.client, jobs.commit, jobs.applied_time
        self._ledger.apply(*(column[applied] for column in columns))

    def evaluate(self, time: float) -> None:
        """Writes the cost of uploads until an evaluation; a ledger does so later."""
        if self._ledger is not None:
            self._ledger.evaluate(time)
        if self._squares is None or self._perturbation is None:
            return
        clients, rule = self._num_clients, self._perturbation.accountant
        columns: dict[str, np.ndarray | Categorical] = {
            "run": np.full(clients, self._run, np.int32),
            "time": np.full(clients, time),
            "client": np.arange(clients, dtype=np.int32),
            "releases": self.releases.copy(),
            "mu": np.sqrt(self._squares),
            "accountant": Categorical(np.zeros(clients, np.int32), (rule,)),
            # Theorem 6 lets the weights, which its sensitivity uses, depend on the
            # data without accounting for it; so none of this is a proof.
            "formal": np.zeros(clients, bool),
            "protects": Categorical(np.zeros(clients, np.int32), (FEATURES,)),
        }
        self._writer.append("privacy", columns)

    def finish(self) -> None:
        """Writes the cost of the messages; jobs end later than they are evaluated."""
        ledger = self._ledger
        if ledger is None:
            return
        protects = [guarantee.protects for guarantee in self._guarantees]
        known = tuple(dict.fromkeys(protects))
        codes = np.array([known.index(each) for each in protects], np.int32)
        for entry in ledger.entries():
            size = entry["client"].size
            columns = {
                "run": np.full(size, self._run, np.int32),
                **entry,
                "delta": np.full(size, ledger.delta),
                "accountant": Categorical(entry["accountant"], ledger.accountants),
                "protects": Categorical(codes[entry["client"]], known),
            }
            self._writer.append("privacy", columns)

    def describe(self) -> dict[str, PyTree] | None:
        """Returns the noise and whether it is private, for the manifest."""
        if self._perturbation is not None:
            known = () if self._squares is None else (self._perturbation.accountant,)
            return {
                "mechanism": "Gaussian, on embeddings",
                "protects": FEATURES,
                "formal": False,
                "why": "the sensitivity is that of weights which the data have shaped",
                "delta": None,
                "accountants": [*known],
            }
        ledger = self._ledger
        if not self._guarantees:
            return None
        return {
            **described(self._guarantees),
            "budget": self._budget,
            "delta": ledger.delta if ledger else None,
            "accountants": list(ledger.accountants) if ledger else [],
        }


START = EvaluationPoint(0.0, 0, 0, 0)
"""Where a run is before its first row."""


class Results:
    """One run's tables, written as its records come in.

    Attributes:
        fraction: Part of the run's horizon that is done.
        commits: Commits up to the last evaluation that is done.
        stop: Why the run ended; None until it has.
        diverged_at: Commit at which it diverged; None if it did not.
    """

    def __init__(self, setup: RunSetup, writer: Writer) -> None:
        run, played, scenario = setup.run.number, setup.timeline, setup.scenario
        self._run, self._played, self._writer = run, played, writer
        self._num_features = setup.shares.num_features
        self._num_samples = setup.shares.num_samples
        self._labels, self._paired = setup.shares.labels, setup.shares.paired
        shape = played.num_clients, setup.run.seed
        method = scenario.algorithm
        self._roles = method.roles(*shape) if isinstance(method, HasStages) else ()
        self.fraction, self.commits = 0.0, 0
        self.stop: StopReason | None = None
        self.diverged_at: int | None = None
        self._last = START
        at_once = played.cadence.commits_at_once
        self._staleness = Staleness(
            played.num_clients,
            scenario.num_clients,
            at_once,
            gathers=played.protocol.gathers,
        )
        whole = writer if scenario.record == "everything" else None
        self._commits = rows.CommitTable(run, whole, at_once)
        perturbs = isinstance(method, StoresEmbeddings) and method.embedding_noise
        accounts = bool(perturbs or setup.guarantees)
        self._privacy = PrivacyTables(setup, writer) if accounts else None
        # No one can record it without the numerics.
        self._recorded = whole if played.answer_log is not None else None
        self._num_rows = self._contributions = 0
        self._ending = Ending(played.num_clients, played.least_clients)
        self._jobs = JobTables(run, played, whole, self._apply)
        self._parts = {
            "staleness": self._staleness,
            **({"privacy": self._privacy} if self._privacy else {}),
            "jobs": self._jobs,
            "commits": self._commits,
            "ending": self._ending,
        }

    def state(self) -> dict[str, PyTree]:
        """Returns the state for the rest of the run: arrays, numbers and words."""
        return {
            "stop": None if self.stop is None else self.stop.name,
            "diverged_at": self.diverged_at,
            "last": [*self._last],
            "num_rows": self._num_rows,
            "contributions": self._contributions,
            **{name: part.state() for name, part in self._parts.items()},
        }

    def restore(self, state: dict[str, PyTree]) -> None:
        """Takes up what `state` has returned."""
        self.stop = None if state["stop"] is None else StopReason[state["stop"]]
        self.diverged_at = state["diverged_at"]
        self._last = EvaluationPoint(*state["last"])
        self._num_rows = state["num_rows"]
        self._contributions = state["contributions"]
        for name, part in self._parts.items():
            part.restore(state[name])
        self.fraction = 1.0 if self.stop else self._progress(self._last)
        self.commits = self._last.commits

    def _apply(self, jobs: Jobs) -> None:
        if self._privacy is not None:
            self._privacy.send(jobs)
        self._commits.apply(jobs)
        self._staleness.apply(jobs)

    def pass_by(self, point: EvaluationPoint) -> None:
        """Takes note of an evaluation that is done; its record comes later."""
        self.fraction, self.commits = self._progress(point), point.commits

    def add(self, record: Record) -> None:
        """Writes one record."""
        if record.rows.time.size:
            self._commits.add(record)
            self._staleness.add(record)
        if self._recorded is not None:
            columns = row_columns(self._run, record.rows, self._num_rows)
            self._recorded.append("rows", columns)
        self._num_rows += record.rows.time.size
        contributes = effects(record.rows.kind).contributes
        taken = record.rows.worker[contributes] != NO_WORKER
        self._contributions += int(taken.sum())
        self._add_evaluations(record)
        for columns in rows.probes(self._run, record):
            self._writer.append("probes", columns)
        for chunk in record.chunks:
            self._jobs.add(chunk)
            self._commits.write(chunk.rows)
            self._ending.add(chunk)
        if record.stop is not None:
            self.stop = record.stop
            if record.stop is StopReason.DIVERGED:
                self.diverged_at = int(record.rows.version[-1]) + 1
            if record.early:
                self._end_early(record)
            self._commits.write()
        self.fraction = 1.0 if self.stop else self._progress(self._last)
        self.commits = self._last.commits

    def finish(self) -> dict[str, PyTree]:
        """Writes the tables of the whole run; returns its end for the manifest."""
        self._add_clients()
        for columns in self._staleness.histograms(self._run):
            self._writer.append("staleness", columns)
        if self._privacy is not None:
            self._privacy.finish()
        stop = self.stop or StopReason.INTERRUPTED
        return {
            "stop_reason": self._ending.words(stop),
            "stop": stop.name.lower(),
            "diverged_at_commit": self.diverged_at,
            "commits": self._last.commits,
            "contributions": self._last.contributions,
            "virtual_s": self._last.time,
            "commits_at_once": self._played.cadence.commits_at_once,
            **self._played.samples_noted,
            "privacy": self._privacy and self._privacy.describe(),
            **({"tariffs": self._played.tariffs} if self._played.tariffs else {}),
        }

    def _add_evaluations(self, record: Record) -> None:
        if self._privacy is not None:
            self._privacy.add(record)
        for _, point, metrics in record.evaluations:
            self._last = point
            self._add_evaluation(point, metrics)
        if record.located:
            self._last = self._last._replace(
                time=float(record.rows.time[-1]),
                commits=int(record.rows.version[-1]) + 1,
                contributions=self._contributions,
            )

    def _add_evaluation(self, point: EvaluationPoint, metrics: Metrics) -> None:
        known = {name: metric(name) for name in metrics}
        arrays = {name: value for name, value in metrics.items() if np.ndim(value)}
        labels = {n: v for n, v in arrays.items() if known[n].each is Each.LABEL}
        each = {n: v for n, v in arrays.items() if n not in labels}
        self._add_each("labels", "label", point, labels)
        self._add_each("workers", "client", point, each)
        workload = self._played.workload
        of_round = self._played.cadence.commits_per_round
        uploads, downloads = self._messages(point)
        columns = {
            "time": point.time,
            "commits": point.commits,
            "contributions": point.contributions,
            "epochs": point.contributions / workload.contributions_per_epoch,
            "upload_bytes": uploads * workload.upload_bytes,
            "download_bytes": downloads * workload.download_bytes,
            "rounds": point.commits / of_round if of_round else float("nan"),
            "messages": uploads * (workload.upload_bytes > 0)
            + downloads * (workload.download_bytes > 0),
            **{name: known[name].mean(value) for name, value in metrics.items()},
        }
        of_run = {"run": np.full(1, self._run, np.int32)}
        arrays = {name: np.array([value]) for name, value in columns.items()}
        self._writer.append("evaluations", of_run | arrays)

    def _add_each(
        self, table: str, what: str, point: EvaluationPoint, metrics: Metrics
    ) -> None:
        """Writes the metrics of an evaluation that each label or client has one of."""
        if not metrics:
            return
        size = len(next(iter(metrics.values())))
        columns = {
            "run": np.full(size, self._run, np.int32),
            "time": np.full(size, point.time),
            "commits": np.full(size, point.commits),
            what: np.arange(size, dtype=np.int32),
        }
        self._writer.append(table, columns | metrics)

    def _messages(self, point: EvaluationPoint) -> tuple[int, int]:
        """Returns how many messages were sent up and down until a point of the run."""
        # Between the turns of a round, its messages count in equal parts.
        uploads, downloads = self._played.cadence.messages
        return (
            int(uploads * point.contributions) + point.other_uploads,
            int(downloads * point.contributions),
        )

    def _end_early(self, record: Record) -> None:
        """Writes the jobs of a run that ended before its timeline did."""
        if record.located:
            self._jobs.replay(Stop(commits=self._last.commits or 1))
        elif self._last.time:
            self._jobs.replay(Stop(time=self._last.time))

    def _add_clients(self) -> None:
        clients = self._played.num_clients
        work, embeddings = self._staleness.contributions, self._staleness.embeddings
        sent = self._jobs.sent
        if self._privacy is not None and self._privacy.perturbed:
            sent = self._privacy.releases
        everyone = np.arange(clients, dtype=np.int32)
        called = {"client_label": Categorical(everyone, self._labels)}
        columns = {
            "run": np.full(clients, self._run, np.int32),
            "client": everyone,
            **(called if self._labels else {}),
            **self._played.names,
            **({"role": Categorical(everyone, self._roles)} if self._roles else {}),
            "num_features": np.array(self._num_features, np.int32),
            "num_samples": np.array(self._num_samples, np.int32),
            **self._paired,
            "num_jobs": self._jobs.started,
            "num_applied": work.count.astype(np.int64),
            "staleness_mean": work.mean(),
            "staleness_max": work.largest,
            "releases": sent,
        }
        if embeddings is not None:
            columns["embedding_staleness_mean"] = embeddings.mean()
            columns["embedding_staleness_max"] = embeddings.largest
        self._writer.append("clients", columns)

    def _progress(self, last: EvaluationPoint) -> float:
        stop, horizon = self._played.stop, self._played.horizon
        workload = self._played.workload
        fractions = (
            last.time / horizon if horizon else 0.0,
            last.commits / stop.commits if stop.commits else 0.0,
            last.commits / (stop.rounds * (self._played.cadence.commits_per_round or 1))
            if stop.rounds
            else 0.0,
            last.contributions / stop.contributions if stop.contributions else 0.0,
            last.contributions / (stop.epochs * workload.contributions_per_epoch)
            if stop.epochs
            else 0.0,
        )
        return min(1.0, max(fractions))
