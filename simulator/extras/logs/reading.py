"""Reads the event log of a real system, and refuses what cannot have been.

A log is a CSV, JSON Lines or Parquet file with a row per job and the columns

- `client`: a number from 1, or any label; clients are numbered from 1 in the order of
  their labels, which the table `clients` keeps;
- `read_time`, `arrived_time`: seconds, or dates by ISO 8601, at which the client read
  the model and at which its update reached the server (for a lost one: at which it was
  abandoned);
- `begun_time`, `computed_time`, `sent_time` (optional): beginning and end of computing,
  beginning of the upload;
- `outcome` (optional): `applied` (the default), `lost` or `rejected`;
- `round` or `read_version` (optional): whole numbers, from any one on;
- `commit` and `applied_time` (optional): the version that an applied job is part of, a
  whole number from any one on, and when that was made.

With `round` the server is synchronous: all updates of a round are one commit, made at
its last arrival, and the jobs of the next round read after it. Else it is asynchronous:
each applied arrival is one commit, in order of arrival, and those at one instant in the
order of the file. A client then reads the version of all commits made until then,
including those of the same instant, unless `read_version` differs for that instant; an
impossible one is refused. With `commit` updates gather, as in a buffer, and a commit
consists of all jobs that name it. Times count from the first read.

A table of durations alone has `seconds` in place of all times: a client's jobs follow
each other in the order of the file or, with `round`, begin when the round before ended.
A log that has no times at all, but an order, is read by `order`.
"""

import warnings
from collections.abc import Hashable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ...catalogue.protocols.asynchronous import Asynchronous
from ...catalogue.protocols.buffered import Buffered
from ...catalogue.protocols.synchronous import Synchronous
from ...files.study import StudyWarning
from ...files.timeline import Outcome
from ...parts.errors import (
    LONGEST,
    DataError,
    UserError,
    shortened,
    shown,
    suggestion,
)
from ...timelines.logs import LogTable
from . import order

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("client", "read_time", "arrived_time")
STAGES = ("begun_time", "computed_time", "sent_time")
OPTIONAL = (*STAGES, "applied_time", "outcome", "round", "read_version", "commit")
TIMES = ("read_time", *STAGES, "arrived_time")
OUTCOMES = {
    "applied": Outcome.APPLIED,
    "lost": Outcome.LOST,
    "rejected": Outcome.REJECTED,
}
PRESETS = {"pai": {"client": "worker", "round": "time", "seconds": "batch_time_norm"}}
"""Documented columns of others' logs, by their names.

`pai`: mini-batch times of Alibaba's PAI (clusterdata, cluster-trace-gpu-v2020,
mini-batch-time), in thousandths of the longest of the job.
"""

SYNONYMS = {
    "client": "client_id worker worker_id rank node node_id device device_id",
    "read_time": "start start_time started begin begin_time",
    "arrived_time": "end end_time ended finish finish_time finished",
}
"""Common names of the columns that a log needs."""


class ClientLog(NamedTuple):
    """A checked log of jobs.

    Attributes:
        path: Its file.
        table: Its rows as they were written.
        labels: Names of the clients, in their order.
        client: Number of each job's client, from 0.
        times: `TIMES` of each job, seconds from the first read; with the column commit,
            `applied_time`, too.
        outcome: `Outcome` of each job.
        began: Time of the first read as the log has it.
        protocol: The log's kind of server.
        repeats: Rows left out, because their client has another job of the round.
        timed: Whether it has its clients' times, not durations in a row.
        in_commits: Whether its times are numbers of commits, as it has an order alone.
    """

    path: Path
    table: LogTable
    labels: list[str]
    client: Int[np.ndarray, " n"]
    times: dict[str, Float[np.ndarray, " n"]]
    outcome: Int[np.ndarray, " n"]
    began: float
    protocol: Asynchronous | Buffered | Synchronous
    repeats: int
    timed: bool
    in_commits: bool

    @property
    def in_rounds(self) -> bool:
        """Whether the server is synchronous."""
        return "round" in self.table.frame

    def stated_versions(
        self, made: Float[np.ndarray, " m"], size: int = 1
    ) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Returns each job's own version of its read, and which are impossible.

        `made` has the times of applied arrivals, of which `size` make a version.
        """
        read, said = self.times["read_time"], self.table.numbers("read_version")
        least = np.searchsorted(made, read) // size
        most = np.searchsorted(made, read, side="right") // size
        first = int(np.argmin(read))
        said = said - said[first] + least[first]
        return said, (said < least) | (said > most)


def columns_of(text: str | None) -> dict[str, str] | None:
    """Returns columns by stalesim's names: `client=cid,...`, or a preset.

    Raises:
        UserError: it is neither.
    """
    if text is None or text in PRESETS:
        return PRESETS[text] if text else None
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) < 2 or not all(pair) for pair in pairs):
        raise UserError(
            f"--columns must be pairs such as client=cid,read_time=start, or one of "
            f"{', '.join(PRESETS)}, got {shown(text)}; correct it"
        )
    return {here.strip(): name.strip() for here, name in pairs}


def read_log(log: str | Path, columns: Mapping[str, str] | None = None) -> ClientLog:
    """Reads a log of jobs.

    Raises:
        DataError: one line with the file, the row, the fault and the remedy.
    """
    path = Path(log)
    table = LogTable(path)
    if columns:
        _choose(table, columns)
    _rename(table)
    if "client" in table.frame:
        nested = table.frame["client"].map(lambda name: not isinstance(name, Hashable))
        what = "must have a number or a name as client"
        table.refuse(nested, what, "client", "write one of its entries")
    timed = "read_time" in table.frame or "round" in table.frame
    repeats = _timed(table)
    if in_commits := _is_order(table):
        order.in_commits(table)
    remedy = "add or rename it, or say which it is by --columns"
    table.check_columns(NEEDED, OPTIONAL, "job", remedy)
    frame = _checked(table)
    labels, client = _numbered(frame["client"])
    _check_overlaps(frame, client, table)
    # Logs count seconds from any origin; a timeline starts with its first read.
    first = frame["read_time"].min()
    times = {name: frame[name].to_numpy(np.float64) - first for name in TIMES}
    outcome = np.array([OUTCOMES[word] for word in frame["outcome"]], np.int32)
    protocol: Asynchronous | Buffered | Synchronous
    protocol = Synchronous() if "round" in frame else Asynchronous()
    if "commit" in frame:
        times["applied_time"] = frame["applied_time"].to_numpy(np.float64) - first
        most = int(frame.groupby("commit").size().max())
        protocol = Buffered(size=most) if most > 1 else protocol
    began = float(first)
    return ClientLog(
        path, table, labels, client, times, outcome, began, protocol, repeats, timed,
        in_commits,
    )  # fmt: skip


def _choose(table: LogTable, columns: Mapping[str, str]) -> None:
    for name in columns.values():
        if name not in table.frame:
            known = [str(each) for each in table.frame.columns]
            raise DataError(
                f"{table.path}: must have the column {name!r} that --columns names, "
                f"but has {', '.join(known)}; {suggestion(name, known)}"
            )
    found = {here: table.frame[name] for here, name in columns.items()}
    # Without its column round, a log of rounds would be one of another protocol.
    own = {*NEEDED, *OPTIONAL, *order.ORDERED, "seconds"}
    named = own & {*table.frame} | {*columns}
    words = (SYNONYMS[ours].split() for ours in SYNONYMS.keys() - named)
    left = own.union(*words) - {*columns.values()} - {*columns}
    more = [name for name in table.frame if name in left]
    table.frame = table.frame[more].assign(**found)


def _rename(table: LogTable) -> None:
    """Reads each common name as ours where the log has one of them and not ours."""
    found: dict[str, str] = {}
    for ours, words in SYNONYMS.items():
        there = [name for name in words.split() if name in table.frame]
        if len(there) == 1 and ours not in table.frame:
            found[there[0]] = ours
    if found:
        table.frame = table.frame.rename(columns=found)
        pairs = ", ".join(f"{name} as {ours}" for name, ours in found.items())
        note = f"{table.path}: columns are read by common names: {pairs}"
        warnings.warn(f"{note}; --columns sets others", StudyWarning, stacklevel=3)


def _timed(table: LogTable) -> int:
    """Gives a table of durations its times; returns how many rows are left out."""
    frame = table.frame
    if "seconds" not in frame or "read_time" in frame or "client" not in frame:
        return 0
    seconds = table.numbers("seconds")
    wrong = ~(np.isfinite(seconds) & (seconds > 0))
    what, remedy = "must have a number above 0 as seconds", "correct or remove the row"
    table.refuse(wrong, what, "seconds", remedy)
    kept = np.ones(len(frame), bool)
    if "round" in frame:
        kept = ~frame.duplicated(["client", "round"]).to_numpy()
        number = np.unique(table.numbers("round")[kept], return_inverse=True)[1]
        lasts = np.zeros(int(number.max()) + 1)
        np.maximum.at(lasts, number, seconds[kept])
        bounds = np.r_[0.0, np.cumsum(lasts)]
        read, ends = bounds[number], bounds[number + 1]
        # The longest of a round ends it, and none is later, without rounding.
        longest = seconds[kept] == lasts[number]
        arrived = np.where(longest, ends, np.minimum(read + seconds[kept], ends))
    else:
        arrived = frame.assign(seconds=seconds).groupby("client")["seconds"].cumsum()
        arrived = arrived.to_numpy()
        read = arrived - seconds
        before = frame.assign(at=arrived).groupby("client")["at"].shift(1)
        read = np.where(before.isna(), read, before)
    times = {"read_time": read, "arrived_time": arrived}
    table.frame = frame[kept].drop(columns="seconds").assign(**times)
    return int((~kept).sum())


def _is_order(table: LogTable) -> bool:
    names = {*table.frame}
    timed = names & {*TIMES, "applied_time", "round"}
    return bool(names & {*order.ORDERED}) and "client" in names and not timed


def _checked(table: LogTable) -> "pd.DataFrame":
    """Returns the log with all columns; refuses what cannot have been."""
    written, refuse = table.frame, table.refuse
    frame = written.copy()
    refuse(frame["client"].isna(), "must name a client", "client", "fill it in")
    for name in TIMES:
        if name not in frame:
            continue
        seconds = table.seconds(name)
        wrong = ~np.isfinite(seconds)
        what = f"must have a finite number of seconds, or a date, as {name}"
        refuse(wrong, what, name, "correct or remove the row")
        table.refuse_units(seconds, name)
        frame[name] = seconds
    numbered = [name for name in ("round", "read_version") if name in frame]
    if len(numbered) > 1:
        raise DataError(
            f"{table.path}: must have the column round of a synchronous server, or "
            f"read_version of an asynchronous one, got both; remove one"
        )
    for name in numbered:
        number = table.numbers(name)
        wrong = ~np.isfinite(number) | (number != np.rint(number))
        refuse(wrong, f"must have a whole number as {name}", name, "correct the row")
        frame[name] = number
    if "outcome" not in frame:
        frame["outcome"] = "applied"
    refuse(
        ~frame["outcome"].isin(list(OUTCOMES)),
        f"must have as outcome one of {', '.join(OUTCOMES)}",
        "outcome",
        "correct it",
    )
    _check_commits(frame, table)
    # A missing moment coincides with the next known one, so that no stage is invented.
    if "computed_time" not in frame:
        frame["computed_time"] = frame.get("sent_time", frame["arrived_time"])
    if "sent_time" not in frame:
        frame["sent_time"] = frame["computed_time"]
    if "begun_time" not in frame:
        frame["begun_time"] = frame["read_time"]
    late = frame["arrived_time"] <= frame["read_time"]
    what = "must have arrived_time after read_time"
    refuse(late, what, "arrived_time", "correct the row, or exchange them")
    for before, after in pairwise(TIMES):
        # A filled-in column is not the user's; the message names one that is.
        name = after if after in written else before
        what = f"must have {name} at or after {before}"
        refuse(frame[after] < frame[before], what, name, "correct the row")
    return frame


def _check_commits(frame: "pd.DataFrame", table: LogTable) -> None:
    """Completes which jobs make a version, and when, in place."""
    if "commit" not in frame:
        if "applied_time" in frame:
            raise DataError(
                f"{table.path}: must have the column commit with applied_time, which "
                f"says what is applied together; add it or remove applied_time"
            )
        return
    if "round" in frame:
        raise DataError(
            f"{table.path}: must have the column commit or round, got both; remove one"
        )
    applied = frame["outcome"] == "applied"
    number, refuse = table.numbers("commit"), table.refuse
    wrong = applied & ~(np.isfinite(number) & (number == np.rint(number)))
    refuse(wrong, "must have a whole number as commit", "commit", "correct the row")
    frame["commit"] = np.where(applied, number, np.nan)
    if "applied_time" not in frame:
        frame["applied_time"] = frame.groupby("commit")["arrived_time"].transform("max")
        return
    time = table.seconds("applied_time")
    table.refuse_units(time, "applied_time")
    early = applied & ~(np.isfinite(time) & (time >= frame["arrived_time"]))
    what = "must have applied_time at or after arrived_time"
    refuse(early, what, "applied_time", "correct the row")
    frame["applied_time"] = np.where(applied, time, np.nan)
    same = frame.groupby("commit")["applied_time"].transform("max")
    differs = applied & (same != frame["applied_time"])
    what = "must have the applied_time of all jobs of its commit"
    refuse(differs, what, "applied_time", "correct the row")
    made = frame[applied].groupby("commit")["applied_time"].max()
    back = frame["commit"].map(made.diff() < 0).fillna(value=False).astype(bool)
    what = "must not be applied before the commit before it"
    refuse(back, what, "applied_time", "correct the row")


def _numbered(column: "pd.Series") -> tuple[list[str], np.ndarray]:
    values = column.tolist()
    found = set(values)
    numeric = all(isinstance(value, int | float) for value in found)
    labels = sorted(found, key=None if numeric else str)
    numbers = {label: number for number, label in enumerate(labels)}
    shown_as = [_label(label) for label in labels]
    return shown_as, np.array([numbers[value] for value in values], np.int32)


def _label(label: object) -> str:
    """Returns a label as text; a column of whole numbers may be read as fractions."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _check_overlaps(frame: "pd.DataFrame", client: np.ndarray, table: LogTable) -> None:
    read, arrived = (frame[f"{what}_time"].to_numpy() for what in ("read", "arrived"))
    order = np.lexsort((read, client))
    before, after = order[:-1], order[1:]
    same = client[before] == client[after]
    wrong = same & (read[after] < arrived[before])
    if wrong.any():
        at = int(wrong.argmax())
        row, other = int(after[at]), int(before[at])
        table.refuse_row(
            row,
            f"must read after the client's earlier job has arrived, but job of row "
            f"{table.number(other)} arrived at {arrived[other]:g} and this read at "
            f"{read[row]:g}",
            "correct the rows, or give jobs that ran side by side clients of their own",
        )


def leaving(log: ClientLog) -> tuple[np.ndarray, dict[int, float]]:
    """Returns the ends of jobs, and when clients leave that do so before the log ends.

    A client has left if its silence until the end is longer than that of any client
    between two updates.
    """
    arrived = log.times["arrived_time"]
    ended = np.fmax(arrived, log.times.get("applied_time", arrived))
    jobs = log.table.frame.assign(client=log.client, ended=ended)
    if log.in_rounds:
        jobs["ended"] = jobs.groupby("round")["ended"].transform("max")
    of_clients = jobs.sort_values("ended").groupby("client")["ended"]
    last = of_clients.max()
    left = last[last.max() - last > of_clients.diff().max()]
    return jobs["ended"].to_numpy(), left.to_dict()


def who_leaves(log: ClientLog) -> str:
    """Returns the clients that leave before the log ends, and when; "" for none.

    Durations alone do not say when a client leaves.
    """
    gone = leaving(log)[1].items() if log.timed else ()
    who = ", ".join(f"{log.labels[client]} at {time:.4g} s" for client, time in gone)
    return shortened(who, LONGEST)
