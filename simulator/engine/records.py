"""What a runner gives back of a run: stretches of rows, evaluations and probes."""

from typing import Any, NamedTuple

import numpy as np

from ..files.timeline import Chunk, Rows, StopReason
from ..parts.metrics import metric
from .row_stream import EvaluationPoint

Metrics = dict[str, Any]
"""Numbers, or arrays of one for each worker, by metric."""


class Target(NamedTuple):
    """A metric and the value at which a run may stop."""

    metric: str
    value: float

    def reached(self, metrics: Metrics) -> bool:
        """Says whether an evaluation is at the target or beyond it, workers' mean."""
        record = metric(self.metric)
        found = float(record.mean(metrics[self.metric]))
        higher = record.higher_is_better
        return found >= self.value if higher else found <= self.value


class Probed(NamedTuple):
    """Numbers of one row.

    Attributes:
        row: Row of the record.
        samples: Sample ids of the row.
        values: Arrays by name, each with the axis of workers first.
    """

    row: int
    samples: np.ndarray
    values: dict[str, np.ndarray]


class Record(NamedTuple):
    """A stretch of one run, executed.

    Attributes:
        run: Place of the run among those that are executed together.
        rows: Rows that were executed.
        infos: Diagnostics of the rows.
        chunks: Chunks that ended, with their jobs and incidents; none where the
            run ended before its timeline.
        evaluations: rows of the record that came before, point, and metrics: numbers,
            or arrays of one for each worker.
        probes: Numbers that are to be saved, of chosen rows.
        stop: Reason of the run's end, on its last record.
        early: Whether it ended before its timeline did.
        located: Whether it ended with a row, not with an evaluation.
    """

    run: int
    rows: Rows
    infos: dict[str, np.ndarray]
    chunks: list[Chunk]
    evaluations: list[tuple[int, EvaluationPoint, Metrics]]
    probes: list[Probed]
    stop: StopReason | None
    early: bool
    located: bool
