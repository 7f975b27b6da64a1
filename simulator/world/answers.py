"""Training's answers to an adaptive world: plain numbers, as questions are ordered.

An adaptive part names the `QUESTIONS` that it needs. Its world is simulated up to the
question, the rows so far are executed, and it continues. All answers of a run are kept,
so that the world can be simulated again without training.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from ..files.timeline import NO_COMMIT, Jobs
from ..parts.base import Part
from ..parts.errors import ScenarioError

if TYPE_CHECKING:
    from ..engine.algorithm import Algorithm

OF_CLIENTS = ("losses", "norms")
QUESTIONS = (*OF_CLIENTS, "metrics")
"""Questions of a world: losses and norms of clients' last contributions, and the last
evaluation."""


class Asking(Part):
    """A part that may need training."""

    asks: ClassVar[tuple[str, ...]] = ()
    """The quantities that it needs, of `QUESTIONS`."""

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        """Metrics that it needs of the evaluations."""
        return ()

    def check_algorithm(self, algorithm: "Algorithm") -> None:
        """Refuses algorithms without these quantities, by a `LocatedError`."""


class Answers:
    """A world's data on its clients at a question.

    Attributes:
        losses: Mean loss of each client's samples in its last job that was executed, at
            the model that it had read; of several local steps the mean over all of
            them, each at the model before it. NaN before the first, or where no part
            needs it.
        norms: Norm of its message as the server gets it, after any attack, likewise.
        metrics: The last evaluation, by metric, of several workers their mean.
        seconds: Virtual seconds from read to arrival of each client's last job that was
            applied; NaN before the first.
        staleness: Of that job, commits.
    """

    def __init__(self, num_clients: int) -> None:
        self.losses, self.norms, self.seconds, self.staleness = np.full(
            (4, num_clients), np.nan
        )
        self.metrics: dict[str, float] = {}

    def take(self, jobs: Jobs) -> None:
        """Takes up jobs that have ended, in their order."""
        mine = (jobs.commit != NO_COMMIT) & (jobs.refresh == 0)
        client = jobs.client[mine]
        self.seconds[client] = (jobs.arrived_time - jobs.read_time)[mine]
        self.staleness[client] = (jobs.commit - 1 - jobs.read_version)[mine]


Columns = tuple[np.ndarray, ...]
"""Clients, and the quantities of each."""


class AnswerLog:
    """All answers of a run, as long as it lasts.

    Args:
        asks: The quantities that it needs, of `QUESTIONS`.
        why: The part that needs them, in a few words.
        of: Digest of the numerics that answer.
    """

    def __init__(self, asks: tuple[str, ...], why: str, of: str) -> None:
        self.asks, self.why, self.of = asks, why, of
        self.clear()

    def clear(self) -> None:
        """Forgets everything: the run begins."""
        self._given: list[tuple[Columns, dict[str, float]]] = []
        self._open: list[Columns] = []
        self._metrics: dict[str, float] = {}

    def add(
        self,
        clients: Int[np.ndarray, " N"],
        values: Mapping[str, Float[np.ndarray, " N"]],
        metrics: dict[str, float],
    ) -> None:
        """Takes up executed contributions, in their order, and the last evaluation."""
        columns = (np.asarray(values[name], float) for name in self._columns)
        self._open.append((clients, *columns))
        if "metrics" in self.asks:
            self._metrics = metrics or self._metrics

    def answer(self) -> None:
        """Answers the next question from the rows since the one before."""
        self._given.append((self._joined(self._open), self._metrics))
        self._open = []

    def tell(self, number: int, answers: Answers) -> None:
        """Passes the answers to a question to a world.

        Args:
            number: Number of the question, from 0.
            answers: Those to the questions before it; they are changed.

        Raises:
            ScenarioError: No numerics are executed that could answer.
        """
        if number >= len(self._given):
            raise self.refused()
        (clients, *columns), answers.metrics = self._given[number]
        for name, values in zip(self._columns, columns, strict=True):
            getattr(answers, name)[clients] = values  # the last of a client counts

    def refused(self) -> ScenarioError:
        """Returns the error of a world that is played without its numerics."""
        return ScenarioError(
            f"timing must be simulated together with training: {self.why} needs "
            f"{' and '.join(self.asks)}; use stalesim run, whose recorded timeline "
            "can be replayed"
        )

    def state(self) -> dict[str, Any]:
        """Returns everything: arrays, numbers and words."""
        given = [columns for columns, _ in self._given]
        return {
            "ends": np.cumsum([each[0].size for each in given], dtype=np.int64),
            "given": [*self._joined(given)],
            "open": [*self._joined(self._open)],
            "metrics": np.array([[*found.values()] for _, found in self._given]),
            "last": self._metrics,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self._open, self._metrics = [tuple(state["open"])], state["last"]
        parts = (np.split(column, state["ends"])[:-1] for column in state["given"])
        values = (
            dict(zip(self._metrics, row, strict=True)) for row in state["metrics"]
        )
        self._given = list(zip(zip(*parts, strict=True), values, strict=True))

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(name for name in OF_CLIENTS if name in self.asks)

    def _joined(self, parts: list[Columns]) -> Columns:
        nothing = (np.zeros(0, np.int32), *(np.zeros(0) for _ in self._columns))
        return tuple(map(np.concatenate, zip(nothing, *parts, strict=True)))
