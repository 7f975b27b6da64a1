"""Reads the log of a system of asynchronous reinforcement learning, a row per sample.

Columns, times in seconds from any origin:

- `sample`: a label, each once;
- `start_time`, `finish_time`: when its first and last token were generated;
- `tokens`: that were generated, > 0;
- `start_version`: of the weights that it began with, a whole number;
- `step`: number of the step that trained it, `step_end_time`: when that step ended;
- `step_start_time` (optional): when it began; else when the step before had ended and
  its last sample was finished;
- `train_version` (optional): of the weights that the step began with; else `step` - 1.
  It rises by as many as `start_version` counts in a step (steps of the optimiser);
- `prompt` (optional): a label that the samples of a group share, and no others;
- `machine` (optional): a label, where several generate, which load weights by
  themselves;
- `outcome` (optional): `trained` (the default), `dropped`, `aborted` or `under_way`.
  Only trained samples have a step; those under way may lack `finish_time` and `tokens`.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ....parts.errors import DataError
from ....timelines.logs import LogTable
from ..world.record import NO_STEP, SampleOutcome

NEEDED = (
    *("sample", "start_time", "finish_time", "tokens", "start_version"),
    *("step", "step_end_time"),
)
OPTIONAL = ("step_start_time", "train_version", "prompt", "machine", "outcome")
TIMES = ("start_time", "finish_time", "step_start_time", "step_end_time")
OUTCOMES = {
    fate.name.lower(): fate for fate in SampleOutcome if fate is not fate.MASKED
}
Columns = dict[str, Float[np.ndarray, " n"]]
GRID = 2.0**-20
"""Times are rounded to multiples of these seconds: sums of them are exact, so that
simultaneous events of the log are so in its replay."""


class SampleLog(NamedTuple):
    """The content of a log, checked; samples in the order of their starts.

    Times are seconds from the first start, on the grid; steps count from 1, versions in
    batches from that of the first step, 0; a sample may begin with an earlier one.

    Attributes:
        start: Times of starts.
        finish: Times of ends; NaN where there is none.
        tokens: Lengths; NaN where none is known.
        outcome: `SampleOutcome`.
        start_version: Version that it began with.
        step: Step that trained it; `NO_STEP` for none.
        group: Number of its group, in the order of their first starts.
        machine: Number of its machine, from 0.
        step_start: Times of the beginnings of steps.
        step_end: Times of their ends.
        optimizer_steps: Versions that a step counts for in the log.
        is_grouped: Whether the log has prompts.
        step_starts_known: Whether it has the beginnings of steps.
    """

    start: Float[np.ndarray, " n"]
    finish: Float[np.ndarray, " n"]
    tokens: Float[np.ndarray, " n"]
    outcome: Int[np.ndarray, " n"]
    start_version: Int[np.ndarray, " n"]
    step: Int[np.ndarray, " n"]
    group: Int[np.ndarray, " n"]
    machine: Int[np.ndarray, " n"]
    step_start: Float[np.ndarray, " steps"]
    step_end: Float[np.ndarray, " steps"]
    optimizer_steps: int
    is_grouped: bool
    step_starts_known: bool

    @property
    def end(self) -> float:
        """Time of the last event."""
        return float(np.nanmax(np.r_[self.finish, self.start, self.step_end]))


def read_samples(path: str | Path) -> SampleLog:
    """Reads a log of samples.

    Raises:
        DataError: one line with the file, the row, the fault and the remedy.
    """
    log = LogTable(Path(path))
    log.check_columns(NEEDED, OPTIONAL, "sample")
    columns = _numbers(log)
    outcome = _outcomes(log)
    _check_samples(log, columns, outcome)
    step = _step_numbers(log, columns, outcome)
    steps = _steps(log, columns, step)
    each = _versions_per_step(log, columns, steps["version"])
    group, machine = _labels(log, "prompt"), _labels(log, "machine")
    _check_versions(log, columns, machine, step, steps, each)
    version = columns["start_version"] - steps["version"][0]
    version = np.floor(version / each).astype(np.int64)
    began = columns["start_time"].min()
    start = columns["start_time"]
    if "prompt" not in log.frame:
        group = np.arange(start.size)
    order = _in_order(start, group)
    first = np.unique(group[order], return_index=True)[1]
    rank = np.argsort(np.argsort(first))

    def seconds(values: np.ndarray) -> np.ndarray:
        return np.round((values - began) / GRID) * GRID

    return SampleLog(
        seconds(start)[order],
        seconds(columns["finish_time"])[order],
        columns["tokens"][order],
        outcome[order],
        version[order],
        step[order],
        rank[group[order]],
        machine[order],
        seconds(steps["start"]),
        seconds(steps["end"]),
        each,
        "prompt" in log.frame,
        "step_start_time" in log.frame,
    )


def _in_order(start: np.ndarray, group: np.ndarray) -> Int[np.ndarray, " n"]:
    """Returns rows by their starts; at one instant those of a group stay together."""
    row = np.arange(start.size)
    by_start = np.lexsort((row, start))
    found, at = np.unique(group[by_start], return_index=True)
    first = np.empty(found.size)
    first[found] = at
    return np.lexsort((row, first[group], start))


def _numbers(log: LogTable) -> Columns:
    """Returns the columns of numbers; refuses others, and times in other units."""
    wanted = (*TIMES, "tokens", "start_version", "step", "train_version")
    found = {}
    for name in (name for name in wanted if name in log.frame):
        values = found[name] = log.numbers(name)
        unit = "seconds" if name in TIMES else name.replace("_", " ")
        wrong = (np.isnan(values) & log.frame[name].notna()) | np.isinf(values)
        what = f"must have a finite number ({unit}) as {name}"
        log.refuse(wrong, what, name, "correct or remove the row")
        if name in TIMES:
            log.refuse_units(values, name)
            continue
        whole = name != "tokens"
        wrong = (values < 0) | (whole & np.isfinite(values) & (values % 1 != 0))
        kind = "a whole number >= 0" if whole else "a number >= 0"
        log.refuse(wrong, f"must have {kind} as {name}", name, "correct it")
    return found


def _outcomes(log: LogTable) -> Int[np.ndarray, " n"]:
    if "outcome" not in log.frame:
        return np.full(len(log.frame), SampleOutcome.TRAINED)
    words = log.frame["outcome"].astype(str).str.lower()
    what = f"must have as outcome one of {', '.join(OUTCOMES)}"
    log.refuse(~words.isin(list(OUTCOMES)), what, "outcome", "correct it")
    return np.array([OUTCOMES[word] for word in words])


def _check_samples(log: LogTable, columns: Columns, outcome: np.ndarray) -> None:
    frame = log.frame
    log.refuse(frame["sample"].isna(), "must name a sample", "sample", "fill it in")
    twice = frame["sample"].duplicated()
    log.refuse(twice, "must have a sample once", "sample", "remove or rename it")
    for name in ("prompt", "machine"):
        if name in frame:
            log.refuse(frame[name].isna(), f"must name a {name}", name, "fill it in")
    start, finish, tokens = (
        columns[name] for name in ("start_time", "finish_time", "tokens")
    )
    ended = (outcome == SampleOutcome.TRAINED) | (outcome == SampleOutcome.DROPPED)
    trained = outcome == SampleOutcome.TRAINED
    for name, wanted in (
        ("start_time", np.ones(len(frame), bool)),
        ("start_version", np.ones(len(frame), bool)),
        ("finish_time", outcome != SampleOutcome.UNDER_WAY),
        ("tokens", ended | np.isfinite(finish)),
        ("step", trained),
        ("step_end_time", trained),
    ):
        absent = np.isnan(columns[name]) & wanted
        remedy = "fill it in"
        if "outcome" not in frame:
            remedy += ", or say by a column outcome what became of it"
        log.refuse(absent, f"must have {name}", name, remedy)
    what = "must have finish_time at or after start_time"
    log.refuse(finish < start, what, "finish_time", "correct or exchange them")
    what = "must have finish_time after start_time, or no seconds are known"
    log.refuse(ended & (finish == start), what, "finish_time", "log finer times")
    what = "must have tokens above 0"
    log.refuse(ended & (tokens == 0), what, "tokens", "correct or remove the row")
    untrained = (outcome != SampleOutcome.TRAINED) & np.isfinite(columns["step"])
    what = "must have no step, because it is not trained"
    log.refuse(untrained, what, "step", "empty it, or correct the outcome")
    if not trained.any():
        raise DataError(f"{log.path}: must have a trained sample, got none; add rows")


def _step_numbers(
    log: LogTable, columns: Columns, outcome: np.ndarray
) -> Int[np.ndarray, " n"]:
    """Returns the step of each sample, from 1; refuses steps without samples."""
    trained = outcome == SampleOutcome.TRAINED
    numbers = np.unique(columns["step"][trained]).astype(np.int64)
    gap = np.flatnonzero(np.diff(numbers) > 1)
    if gap.size:
        raise DataError(
            f"{log.path}: must have the samples of every step from {numbers[0]} to "
            f"{numbers[-1]}, got none of step {numbers[gap[0]] + 1}; add them, or cut "
            f"the log there"
        )
    step = np.where(trained, columns["step"] - numbers[0] + 1, NO_STEP)
    return step.astype(np.int64)


def _steps(log: LogTable, columns: Columns, step: Int[np.ndarray, " n"]) -> Columns:
    """Returns `start`, `end` and `version` of each step; refuses what does not fit."""
    trained = np.flatnonzero(step != NO_STEP)
    place = step[trained] - 1
    first = trained[np.unique(place, return_index=True)[1]]
    known: dict[str, np.ndarray] = {}
    for name in ("step_start_time", "step_end_time", "train_version"):
        if name not in columns:
            continue
        known[name] = columns[name][first]
        other = np.zeros(step.size, bool)
        other[trained] = ~(columns[name][trained] == known[name][place])
        what = f"must have the {name} of the other samples of its step"
        log.refuse(other, what, name, "correct it")
    numbers = columns["step"][first]
    last = np.full(numbers.size, -np.inf)
    np.maximum.at(last, place, columns["finish_time"][trained])
    end = known["step_end_time"]
    before = np.r_[-np.inf, end[:-1]]
    start = known.get("step_start_time", np.maximum(before, last))
    _check_order(log, numbers, start, end, last)
    version = known.get("train_version", numbers - 1)
    return {"start": start, "end": end, "version": version}


def _check_order(
    log: LogTable,
    numbers: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    last: np.ndarray,
) -> None:
    before = np.r_[-np.inf, end[:-1]]
    alone = "one trainer takes them one after the other; correct the times"
    finished = "the finish of its samples"
    for wrong, what, values, rule, others, remedy in (
        (end < start, "end", end, "its start or last sample", start, "correct one"),
        (start < last, "start", start, finished, last, "correct it"),
        (start < before, "start", start, "the end of the step before", before, alone),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            raise DataError(
                f"{log.path}: step {numbers[at]:.0f} must {what} at or after {rule}, "
                f"{others[at]!s} s, got {values[at]!s} s; {remedy}"
            )


def _versions_per_step(log: LogTable, columns: Columns, version: np.ndarray) -> int:
    """Returns by how many the versions rise that steps begin with."""
    rises = np.diff(version)
    each = int(rises[0]) if rises.size else 1
    wrong = (rises != each) | (rises < 1)
    if wrong.any():
        at = int(wrong.argmax())
        number = int(np.nanmin(columns["step"])) + at
        raise DataError(
            f"{log.path}: train_version must rise from step to step by one number, "
            f"got {version[at]:g} at step {number} and {version[at + 1]:g} at step "
            f"{number + 1}; correct it, or leave the column out"
        )
    return each


def _check_versions(
    log: LogTable,
    columns: Columns,
    machine: np.ndarray,
    step: np.ndarray,
    steps: Columns,
    each: int,
) -> None:
    """Refuses versions that go backwards, or were there before they were made."""
    start, version = columns["start_time"], columns["start_version"]
    of_step = np.r_[np.inf, steps["version"]][step]  # inf where there is none
    what = "must have start_version at most the version that its step began with"
    remedy = "correct it, or say by train_version how versions are counted"
    log.refuse(version > of_step, what, "start_version", remedy)
    ended = np.searchsorted(steps["end"], start, "right")
    there = steps["version"][0] + each * ended
    remedy = "correct it, the clocks, or say by train_version how versions are counted"
    what = "must have as start_version one whose step had ended by start_time"
    log.refuse(version > there, what, "start_version", remedy)
    order = np.lexsort((version, start, machine))
    before, after = order[:-1], order[1:]
    backwards = (machine[before] == machine[after]) & (version[after] < version[before])
    wrong = np.zeros(start.size, bool)
    wrong[after[backwards]] = True
    what = "must have no start_version below that of an earlier start"
    remedy = "correct it, or name machines that load weights by themselves"
    log.refuse(wrong, what, "start_version", remedy)


def _labels(log: LogTable, name: str) -> Int[np.ndarray, " n"]:
    if name not in log.frame:
        return np.zeros(len(log.frame), np.int64)
    return log.frame[name].factorize()[0].astype(np.int64)
