"""What the messages of a run cost in privacy, and what the manifest says of it."""

from typing import Any

import numpy as np

from ...files.study import Categorical, Writer
from ...files.timeline import NO_COMMIT, NO_WORKER, Jobs, effects
from ...privacy import gdp
from ...privacy.guarantees import described
from ...privacy.releases import FEATURES
from ...problem.capabilities import StoresEmbeddings, noise_of
from ..records import Record
from ..setup import RunSetup


class PrivacyTables:
    """Accounts for the uploads of a run, by the row or by the job.

    Perturbed embeddings are accounted for as their rows are executed, by the noise and
    the weights of each; other messages by a ledger, as their jobs end.

    Args:
        setup: The facts of the run.
        writer: The writer of the study's tables.

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

    def state(self) -> dict[str, Any]:
        """Returns what the rest of a run adds to."""
        ledger = None if self._ledger is None else self._ledger.state()
        return {"releases": self.releases, "squares": self._squares, "ledger": ledger}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self.releases, self._squares = state["releases"], state["squares"]
        if self._ledger is not None:
            self._ledger.restore(state["ledger"])

    @property
    def perturbed(self) -> bool:
        """Whether the uploads are perturbed embeddings."""
        return self._perturbation is not None

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
        """Writes what the uploads until an evaluation cost; a ledger does so later."""
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
        """Writes what the messages cost; jobs end later than they are evaluated."""
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

    def describe(self) -> dict[str, Any] | None:
        """Returns what noise there is and whether it is private, for the manifest."""
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
