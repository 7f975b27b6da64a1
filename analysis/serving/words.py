"""How far a study is, in words and numbers."""

import datetime as dt
from typing import Any, NamedTuple

from ...simulator.config.text import counted
from ...simulator.trace import is_world
from .. import claims
from ..frames import UNFINISHED
from ..watching import TaskSpeed, Watched

MOST_ROWS = 30
"""Runs of each state that the queue lists one by one."""


class ProgressWords(NamedTuple):
    """How far a study is, as its page says it.

    Attributes:
        sentence: All in one sentence.
        percent: Part of its runs that is done, in [0, 100].
        sound: Whether it is complete, or under way without a failure.
        over: Whether nothing more is to come.
    """

    sentence: str
    percent: float
    sound: bool
    over: bool


class RunRow(NamedTuple):
    """A run in the queue.

    Attributes:
        state: `under way`, `failed`, `done`, `waiting` or `not run`.
        group: Name of its group.
        replicate: Number among those of its group.
        percent: Part that is done, in [0, 100]; None where that is plain.
        what: Speed and time left, or how it ended.
    """

    state: str
    group: str
    replicate: int
    percent: float | None
    what: str


class RunQueue(NamedTuple):
    """The runs of a study in the order in which they are of interest.

    Attributes:
        counts: Number of runs in each state.
        rows: Runs, at most `MOST_ROWS` of each state.
        left_out: Number of runs of each state that are not listed.
    """

    counts: dict[str, int]
    rows: list[RunRow]
    left_out: dict[str, int]


def duration(seconds: float) -> str:
    """Returns real seconds as hours, minutes and seconds."""
    return str(dt.timedelta(seconds=round(seconds)))


def speed(commits: float) -> str:
    """Returns commits a second with at most three digits that tell."""
    return f"{commits:,.0f} commits/s" if commits >= 100 else f"{commits:.3g} commits/s"


def progress(seen: Watched) -> ProgressWords:
    """Returns how far a study is."""
    ended, failed, runs = len(seen.ended), len(seen.failed), len(seen.runs)
    count = f"{ended} of {counted(runs, 'run')} have ended"
    if failed:
        count += f", {failed} failed"
    percent = 100 * seen.fraction
    if seen.study.complete:
        word = "Complete" if ended == runs else "Not all runs have results"
        return ProgressWords(f"{word}: {count}.", 100.0, ended == runs, over=True)
    if seen.is_over:
        again = "stalesim resume continues it"
        return ProgressWords(
            f"Interrupted: {count}; {again}.", percent, False, over=True
        )
    if not seen.is_alive:
        return ProgressWords(f"{_silence(seen)} {count}.", percent, False, over=False)
    said = [count, f"{percent:.0f} % is done"]
    if seen.speed > 0:
        said.append(speed(seen.speed))
    if seen.left_s is not None:
        said.append(f"about {duration(seen.left_s)} left")
    return ProgressWords(
        f"Under way: {'; '.join(said)}.", percent, not failed, over=False
    )


def _silence(seen: Watched) -> str:
    """Returns what it means that nothing is heard of a study."""
    if is_world(seen.manifest):
        return "Incomplete: the timeline is being written, or was cut short;"
    if not seen.has_spoken:
        return "No sign of life yet: it has just been started, or was killed;"
    return (
        f"No sign of life for {duration(seen.silent_s)}: its process was killed or is "
        f"held up (stalesim resume continues it);"
    )


def queue(seen: Watched) -> RunQueue:
    """Returns the runs of a study: those under way, failed, done, waiting."""
    states: dict[str, list[RunRow]] = {}
    waiting = "waiting" if seen.is_alive else "not run"
    for run in seen.runs:
        task = seen.tasks.get(run.get("task", -1))
        row = _row(run, task, waiting)
        states.setdefault(row.state, []).append(row)
    order = ("under way", "failed", "done", "waiting", "not run")
    rows, left_out = [], {}
    for state in filter(states.__contains__, order):
        mine = states[state]
        # The last that ended, the next that wait.
        rows += mine[-MOST_ROWS:] if state == "done" else mine[:MOST_ROWS]
        if len(mine) > MOST_ROWS:
            left_out[state] = len(mine) - MOST_ROWS
    counts = {state: len(states[state]) for state in order if state in states}
    return RunQueue(counts, rows, left_out)


def _row(run: dict[str, Any], task: TaskSpeed | None, waiting: str) -> RunRow:
    about = run["label"], run["replicate"]
    if run["stop"] == "failed":
        return RunRow("failed", *about, None, run["stop_reason"])
    if run["stop"] not in UNFINISHED:
        said = [run["stop_reason"]]
        if run.get("commits") is not None and run.get("elapsed_s"):
            said.append(f"{run['commits']:,} updates in {duration(run['elapsed_s'])}")
        return RunRow("done", *about, 100.0, "; ".join(said))
    if task is None:
        return RunRow(waiting, *about, None, "")
    said = [speed(task.speed)] if task.commits else ["compiling, or at its first rows"]
    if task.left_s is not None and task.commits:
        said.append(f"about {duration(task.left_s)} left")
    return RunRow("under way", *about, 100 * task.fraction, ", ".join(said))


def verdicts(seen: Watched) -> list[dict[Any, Any]]:
    """Returns the verdicts on the study's claims by what has ended so far.

    Raises:
        StudyError: No run has ended, or the study is damaged.
    """
    if not seen.manifest["scenario"].get("claims"):
        return []
    return claims.evaluate(seen.study).to_dict("records")
