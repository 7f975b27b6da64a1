"""The time that a study will take, measured on a short stretch of each kind of run."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from ..engine import device
from ..files.study import Writer
from ..parts.errors import ScenarioError, UserError
from .planning import Task, processes, structure

STRETCH_S = 2.0
"""Real seconds that a kind of run is looked at, once its program is compiled."""
MOST_KINDS = 4
"""Kinds of runs that are looked at; the others are taken to be like their mean."""
FEW, ROWS = 8, 64
"""Rows of a buffer meanwhile, so that the first ones end soon; few where they take so
long that what a buffer costs itself does not count."""
SLOW_S = 0.1
"""Real seconds of such a buffer of few rows."""


class TimeEstimate(NamedTuple):
    """Real seconds that a study will take, without its figures.

    Attributes:
        seconds: Of the whole study.
        processes: Number of processes at the same time.
        measured: Kinds of runs that were looked at.
        kinds: Number of kinds of runs, each of which needs a program of its own.
    """

    seconds: float
    processes: int
    measured: int
    kinds: int


class _Speed(NamedTuple):
    """Real seconds of one task: once for its program, and for what it executes."""

    first: float
    rest: float


class _EnoughError(Exception):
    """The stretch is long enough."""


class _TooFastError(Exception):
    """Buffers of few rows end too soon to be timed."""


class _Nowhere(Writer):
    """Forgets what it is given."""

    def append(self, table: str, columns: dict[str, Any]) -> None: ...


def estimate(tasks: list[Task], jobs: int) -> TimeEstimate | None:
    """Returns the time that executing tasks will take.

    Programs are compiled once by each process; tasks of a kind take as long as the
    one that is looked at.

    Args:
        tasks: Tasks of a study whose runs were checked.
        jobs: Number of processes, or 0 for one a core.

    Returns:
        None where no run gets far enough to be timed.
    """
    kinds: dict[tuple[str, str, int], list[Task]] = {}
    for task in tasks:
        kind = task.mode, structure(task.runs[0].scenario), len(task.runs)
        kinds.setdefault(kind, []).append(task)
    device.before_import()
    device.use_cache()
    looked_at = list(kinds.values())[:MOST_KINDS]
    speeds = [_measured(same[0]) for same in looked_at]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return None
    first = sum(speed.first for speed in known) / len(known)
    rest = sum(speed.rest for speed in known) / len(known)
    usual = _Speed(first, rest)
    number = min(processes(jobs), len(tasks))
    total, longest = 0.0, 0.0
    for index, same in enumerate(kinds.values()):
        speed = (speeds[index] if index < len(speeds) else None) or usual
        total += speed.first * min(number, len(same)) + speed.rest * len(same)
        longest = max(longest, speed.first + speed.rest)
    return TimeEstimate(max(total / number, longest), number, len(known), len(kinds))


def _measured(task: Task) -> _Speed | None:
    """Executes the beginning of a task; returns how long all of it will take."""
    try:
        return _stretch(task, FEW)
    except _TooFastError:
        return _stretch(task, ROWS)


def _stretch(task: Task, rows: int) -> _Speed | None:
    from ..engine import simulation
    from ..files import inputs

    moments: list[tuple[float, float]] = []
    opened = time.perf_counter()

    def progress(fraction: float, _: int) -> None:
        moments.append((time.perf_counter(), fraction))
        if len(moments) <= len(task.runs):
            return
        before, spent = (at - moments[0][0] for at, _ in moments[-2:])
        # Evaluations of one buffer are all counted at its end: that one took as long.
        if rows < ROWS and before < SLOW_S <= spent < before + SLOW_S:
            raise _TooFastError
        if spent > STRETCH_S:
            raise _EnoughError

    runs = tuple(_in_small_buffers(run, rows) for run in task.runs)
    with inputs.held(task.inputs):
        prepared = simulation.prepare_together(runs, task.batches)
        try:
            simulation.execute(prepared, task.mode, _Nowhere(Path(), ""), progress)
        except _EnoughError:
            return _extrapolated(opened, moments[len(task.runs) - 1 :])
        except ScenarioError:  # the whole run would fail by it
            raise
        except UserError:
            return None
    spent = time.perf_counter() - opened
    if not moments:
        return None
    first = min(spent, moments[0][0] - opened)
    return _Speed(first, spent - first)


def _extrapolated(opened: float, moments: list[tuple[float, float]]) -> _Speed | None:
    """Returns the time of a whole task from how far it was when."""
    (start, done), (now, further) = moments[0], moments[-1]
    if further <= done:
        return None
    rate = (further - done) / (now - start)
    return _Speed(start - opened, (1 - done) / rate)


def _in_small_buffers(run: Any, rows: int) -> Any:
    engine = run.scenario.engine
    small = engine.model_copy(update={"chunk": min(engine.chunk, rows)})
    return run._replace(scenario=run.scenario.model_copy(update={"engine": small}))
