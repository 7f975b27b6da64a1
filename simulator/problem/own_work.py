"""Work of clients that a function of the user's does, on the host. No JAX here.

It gets the weights read and the rows of the job, and returns a message: the sum of the
gradients of the job's local steps, or the distance moved over the step size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
from jaxtyping import Float, Int

from ..files.timeline import NO_SAMPLE
from ..parts import functions
from ..parts.functions import UserFunction
from .data.base import Dataset, shaped


class RowBatch(NamedTuple):
    """Some rows of the data.

    Attributes:
        ids: Their numbers, from 0.
        x: Features, in their original shapes; several inputs by name.
        y: Targets.
    """

    ids: Int[np.ndarray, " S"]
    x: Any
    y: np.ndarray


@dataclass(frozen=True)
class JobRows:
    """Rows of a job, batch by batch: one `RowBatch` for each of its local steps.

    Attributes:
        batches: The batches, in order; of a client with fewer rows they are shorter.
        step_size: Step size of the client's local steps.
        seed: Number of this run, client and job alone, below 2**32, for random draws.
    """

    batches: tuple[RowBatch, ...]
    step_size: float
    seed: int

    def __iter__(self) -> Iterator[RowBatch]:
        """Yields the batches."""
        return iter(self.batches)


JobMade = tuple[Float[np.ndarray, "..."], dict[str, float]]
"""The function's result for a job: a message of the shape and type of the weights, and
numbers by name, `loss` among them."""


class OwnWork:
    """A function that does the work of a run's jobs, and optionally one that measures.

    Args:
        work: Name of the function, `problem.work`.
        evaluate: Name of one of weights and test rows; None where the model is ours.
        data: Training and test data.
        steps: Most local steps of a job.
        seed: Seed of the run.

    Attributes:
        names: Names of the function's numbers besides the loss; none before a job.

    Raises:
        ScenarioError: There is no such function.
    """

    def __init__(
        self,
        work: UserFunction,
        evaluate: UserFunction | None,
        data: Dataset,
        steps: int,
        seed: int,
    ) -> None:
        self.names: tuple[str, ...] = ()
        self._named, self._measured_by, self._knows = work, evaluate, False
        self._data, self._steps, self._seed = data, steps, seed
        self._function = functions.resolve(*work)
        self._evaluate = evaluate and functions.resolve(*evaluate)
        test = np.arange(len(data.x_test))
        self._test = RowBatch(test, shaped(data.inputs, data.x_test), data.y_test)

    def make(
        self,
        weights: Float[np.ndarray, "..."],
        client: int,
        job: int,
        samples: Int[np.ndarray, " S"],
        step_size: float,
        *,
        at_start: bool,
    ) -> JobMade:
        """Returns the function's result for one job.

        Args:
            weights: The weights that the client has read.
            client: Number of the client, from 0.
            job: Number of its job, from 0.
            samples: Sample ids of the job's batches, padded with `NO_SAMPLE`.
            step_size: Step size of the local steps.
            at_start: Whether the weights are those at the start of the run.

        Raises:
            ScenarioError: What the function raises, as its cause; or it returns no
                message and loss, other info than before, or a message that is not
                finite though it did not diverge: the loss is finite, or the weights are
                those of the start.
        """
        if not np.isfinite(weights).all():  # the run has diverged, and ends by its loss
            return weights, dict.fromkeys((*self.names, "loss"), np.nan)
        named = self._named._replace(
            entry=f"{self._named.entry} (client={client}, job={job})"
        )
        drawn = np.random.SeedSequence((self._seed, client, job)).generate_state(1)
        batches = samples.reshape(self._steps, -1)
        taken = (batch[batch != NO_SAMPLE] for batch in batches)
        of_job = tuple(self._batch(batch) for batch in taken if batch.size)
        rows = JobRows(of_job, step_size, int(drawn[0]))
        found = functions.calling(
            *named, lambda: _made(self._function(weights, client, job, rows))
        )
        if found is None or "loss" not in found[1]:
            raise named.refused(
                f"must return a message and info, a mapping that has loss, got others "
                f"from {named}; return gradient, {{'loss': loss}}"
            )
        message, info = found
        if message.shape != weights.shape or message.dtype.kind != "f":
            raise named.refused(
                f"must return a message of floating numbers of the weights' shape "
                f"{list(weights.shape)}, got {list(message.shape)} {message.dtype} "
                f"from {named}; return the sum of gradients"
            )
        diverged = not np.isfinite(info["loss"])
        if (at_start and diverged) or not (diverged or np.isfinite(message).all()):
            what = "loss" if diverged else "message"
            raise named.refused(
                f"must return a finite {what}, got NaN or infinity from {named} for "
                f"finite weights; mend it, or scale the data"
            )
        names = tuple(name for name in info if name != "loss")
        if self._knows and {*names} != {*self.names}:
            raise named.refused(
                f"must return info of the same names for every job, got "
                f"{', '.join(names) or 'loss'} after {', '.join(self.names) or 'loss'} "
                f"from {named}; return all each time"
            )
        self.names, self._knows = names, True
        return message.astype(weights.dtype, copy=False), info

    @property
    def measures(self) -> bool:
        """Whether a function of the user's measures the model."""
        return self._evaluate is not None

    def evaluate(
        self, weights: Float[np.ndarray, "..."], metrics: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Returns the requested metrics of a model, among the function's results.

        Raises:
            ScenarioError: It fails, or does not return them.
        """
        named, evaluate = self._measured_by, self._evaluate
        assert named is not None and evaluate is not None  # noqa: PT018
        found = functions.calling(
            *named, lambda: _numbers(evaluate(weights, self._test))
        )
        missing = [name for name in metrics if name not in found]
        if missing:
            raise named.refused(
                f"must return the metrics of evaluate.metrics, {', '.join(metrics)}, "
                f"got {', '.join(found) or 'none'} from {named}; return {missing[0]}, "
                f"or leave it out there"
            )
        return {name: np.asarray(found[name]) for name in metrics}

    def _batch(self, ids: Int[np.ndarray, " S"]) -> RowBatch:
        data = self._data
        return RowBatch(ids, shaped(data.inputs, data.x_train[ids]), data.y_train[ids])


def _made(found: object) -> JobMade | None:
    """Returns what a function has returned as arrays and numbers; None of others."""
    if not isinstance(found, tuple) or len(found) != 2:
        return None
    message, info = found
    if not isinstance(info, Mapping):
        return None
    return np.asarray(message), _numbers(info)


def _numbers(found: Mapping[str, SupportsFloat]) -> dict[str, float]:
    return {str(name): float(value) for name, value in found.items()}
