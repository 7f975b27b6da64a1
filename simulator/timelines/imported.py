"""Turns the event log of a real system into a recorded timeline.

A log is a CSV, JSON Lines or Parquet file with a row per job and the columns

- `client`: a number from 1, or any label; clients are numbered from 1 in the order of
  their labels, which the table `clients` keeps;
- `read_time`, `arrived_time`: seconds at which the client read the model and at which
  its update reached the server (of a lost one: at which it was given up);
- `computed_time`, `sent_time` (optional): ends of computing, beginning of the upload;
- `outcome` (optional): `applied` (the default), `lost` or `rejected`;
- `round` or `read_version` (optional): whole numbers, from any one on.

With `round` the server is synchronous: all that a round applies is one commit, made at
its last arrival, and the jobs of the next round read after it. Else it is asynchronous:
each applied arrival is one commit, in order of arrival, and those at one instant in the
order of the file. A client then reads the version of all commits made until then, those
of the same instant among them, unless `read_version` says otherwise of that instant;
one that cannot be is refused. Times count from the first read.
"""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from ..config.errors import DataError
from ..protocols import Asynchronous, Protocol, Synchronous
from ..storage import digests
from ..timeline import (
    NO_COMMIT,
    NO_SLOT,
    NO_WORKER,
    SERVER,
    Chunk,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
)
from ..trace import Categorical, Study
from ..world.workload import Workload
from .logs import LogTable
from .saved import TimelineSource, write_all

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("client", "read_time", "arrived_time")
OPTIONAL = ("computed_time", "sent_time", "outcome", "round", "read_version")
OUTCOMES = {
    "applied": Outcome.APPLIED,
    "lost": Outcome.LOST,
    "rejected": Outcome.REJECTED,
}


def import_log(log: str | Path, folder: str | Path) -> Study:
    """Writes the timeline of an event log into a folder.

    Args:
        log: CSV, JSON Lines or Parquet, as the module's description has it.
        folder: New or empty.

    Returns:
        The study, called as the file; its table `clients` has the labels.

    Raises:
        DataError: one line with the file, the row, what is wrong and the remedy.
    """
    path = Path(log)
    table = LogTable(path)
    table.check_columns(NEEDED, OPTIONAL, "job")
    origin = table.origin("read_time")
    frame = _checked(table, origin)
    held = digests.of_file(path)
    labels, client = _numbered(frame["client"])
    _check_overlaps(frame, client, table)
    # Logs count seconds from any origin; a timeline starts with its first read.
    first = frame["read_time"].min()
    times = {
        name: frame[name].to_numpy(np.float64) - first
        for name in ("read_time", "computed_time", "sent_time", "arrived_time")
    }
    outcome = np.array([OUTCOMES[word] for word in frame["outcome"]], np.int32)
    protocol: Protocol = Asynchronous()
    if "round" in frame:
        protocol = Synchronous()
        rows, jobs, num_registers = _in_rounds(client, times, outcome, table)
    else:
        rows, jobs, num_registers = _timeline(client, times, outcome, table)
    scenario = {
        "name": path.stem,
        "source": f"imported from {path.name}",
        "clients": {"number": len(labels)},
        "protocol": protocol.model_dump(mode="json"),
    }
    entry = {
        "run": 0,
        "label": path.stem,
        "variant": path.stem,
        "parameters": {},
        "replicate": 0,
        "seed": 0,
        "protocol": protocol.kind,
        "num_clients": len(labels),
        "width": rows.worker.shape[1],
        "num_registers": num_registers,
        "commits_at_once": 1,
        "in_flight": len(labels),
        "timeline": held.sha256[:16],
        "upload_bytes": 0,
        "download_bytes": 0,
        "stop_reason": "the run has not ended",
        "stop": "incomplete",
        "began": float(first + origin),
        "facts": protocol.described(len(labels)),
        "scenario": scenario,
    }
    # One chunk: the log is in memory already.
    chunk = Chunk(rows, jobs, StopReason.RECORDING)
    names = {}
    if labels != [str(number) for number in range(1, len(labels) + 1)]:
        everyone = np.arange(len(labels), dtype=np.int32)
        names["client_label"] = Categorical(everyone, tuple(labels))
    workload = Workload(0, 0, len(labels))
    source = TimelineSource(entry, lambda: iter([chunk]), workload, names=names)
    read = {str(log): {"at": str(path.absolute()), **held._asdict()}}
    return write_all(Path(folder), scenario, [source], {"inputs": read})


def _checked(table: LogTable, origin: int) -> "pd.DataFrame":
    """Returns the log with all columns, in seconds from an origin.

    Raises:
        DataError: a row says what cannot have been.
    """
    written, refuse = table.frame, table.refuse
    frame = written.copy()
    refuse(frame["client"].isna(), "must name a client", "client", "fill it in")
    for name in ("read_time", "computed_time", "sent_time", "arrived_time"):
        if name not in frame:
            continue
        seconds = table.numbers(name, origin)
        wrong = ~np.isfinite(seconds)
        what = f"must have a finite number of seconds as {name}"
        refuse(wrong, what, name, "correct or remove the row")
        frame[name] = seconds
    with np.errstate(over="ignore"):
        endless = ~np.isfinite(frame["arrived_time"] - frame["read_time"].min())
    what = "must have arrived_time within 1e308 s of the first read_time"
    refuse(endless, what, "arrived_time", "correct or remove the row")
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
    # A missing moment coincides with the next known one, so that no stage is invented.
    if "computed_time" not in frame:
        frame["computed_time"] = frame.get("sent_time", frame["arrived_time"])
    if "sent_time" not in frame:
        frame["sent_time"] = frame["computed_time"]
    late = frame["arrived_time"] <= frame["read_time"]
    what = "must have arrived_time after read_time"
    refuse(late, what, "arrived_time", "correct the row, or exchange them")
    order = ["read_time", "computed_time", "sent_time", "arrived_time"]
    for before, after in pairwise(order):
        # A filled-in column is not the user's; the message names one that is.
        name = after if after in written else "sent_time"
        what = f"must have {name} at or after {before}"
        refuse(frame[after] < frame[before], what, name, "correct the row")
    return frame


def _numbered(column: "pd.Series") -> tuple[list[str], np.ndarray]:
    """Returns the clients' labels in order, and the number of each job's client."""
    values = column.tolist()
    found = set(values)
    numeric = all(isinstance(value, int | float) for value in found)
    labels = sorted(found, key=None if numeric else str)
    numbers = {label: number for number, label in enumerate(labels)}
    shown_as = [_label(label) for label in labels]
    return shown_as, np.array([numbers[value] for value in values], np.int32)


def _label(label: Any) -> str:
    """Returns a label as text; a column of whole numbers may be read as fractions."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if whole else label)


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


def _in_rounds(
    client: np.ndarray,
    times: dict[str, np.ndarray],
    outcome: np.ndarray,
    table: LogTable,
) -> tuple[Rows, Jobs, int]:
    """Returns a row for each round, jobs in order of their ends, and two registers."""
    applied = outcome == Outcome.APPLIED
    number, read, arrived = (
        each.astype(np.float64)
        for each in (table.numbers("round"), times["read_time"], times["arrived_time"])
    )
    # A round in which nothing was applied makes no version.
    made = np.unique(number[applied])
    version = np.searchsorted(made, number)
    T, width = made.size, int(client.max()) + 1
    ends = np.full(T, -np.inf)
    np.maximum.at(ends, version[applied], arrived[applied])
    early = (version > 0) & (read < np.r_[-np.inf, ends][version])
    table.refuse(
        early,
        "must read after the last applied arrival of the round before",
        "read_time",
        "correct the row; of a server that does not wait, leave out the column round",
    )
    pairs = np.stack([np.where(applied, version, -1 - np.arange(client.size)), client])
    _, counts = np.unique(pairs, axis=1, return_inverse=True)
    twice = np.bincount(counts.ravel())[counts.ravel()] > 1
    table.refuse(
        twice,
        "must be its client's only applied job of the round",
        "round",
        "remove it",
    )
    end = arrived.copy()
    end[applied] = ends[version[applied]]
    order = np.lexsort((client, end))
    job = _job_numbers(client, read)
    wide = np.full((4, T, width), NO_WORKER, np.int64)
    place = np.zeros(client.size, np.int64)
    first = order[applied[order]]
    starts = np.searchsorted(version[first], np.arange(T))
    place[first] = np.arange(first.size) - starts[version[first]]
    at = (slice(None), version[first], place[first])
    wide[at] = client[first], job[first], version[first], version[first] % 2
    worker, of_job, read_version, read_slot = wide
    later = np.r_[np.isin(np.arange(1, T), version), False]
    rows = Rows(
        time=ends,
        kind=np.full(T, Kind.COMMIT, np.int32),
        node=np.full(T, SERVER, np.int32),
        worker=worker.astype(np.int32),
        job=of_job.astype(np.int32),
        version=np.arange(T),
        read_version=read_version,
        read_slot=read_slot.astype(np.int32),
        write_slot=np.where(later, np.arange(1, T + 1) % 2, NO_SLOT).astype(np.int32),
        peer=np.full(T, NO_WORKER, np.int32),
        round=np.arange(T, dtype=np.int32),
    )
    commit = np.where(applied, version + 1, NO_COMMIT)
    ended = np.where(applied, end, np.nan)
    jobs = _jobs(client, job, times, outcome, version, commit, ended)
    return rows, Jobs(*(column[order] for column in jobs)), min(2, T + 1)


def _jobs(
    client: np.ndarray,
    job: np.ndarray,
    times: dict[str, np.ndarray],
    outcome: np.ndarray,
    read_version: np.ndarray,
    commit: np.ndarray,
    applied_time: np.ndarray,
) -> Jobs:
    lost = outcome == Outcome.LOST
    return Jobs(
        client=client,
        job=job,
        refresh=np.zeros(client.size, np.int32),
        read_time=times["read_time"],
        begun_time=times["read_time"],  # a log says no more
        computed_time=times["computed_time"],
        sent_time=times["sent_time"],
        arrived_time=np.where(lost, np.nan, times["arrived_time"]),
        applied_time=applied_time,
        read_version=read_version,
        commit=commit,
        outcome=outcome,
        uploads=np.ones(client.size, np.int32),
    )


def _read_versions(
    read: np.ndarray, made: np.ndarray, table: LogTable
) -> Int[np.ndarray, " J"]:
    """Returns how many commits had been made when each job read.

    Args:
        read: Times of the reads, in the order of the file.
        made: Times of the commits, in order.
        table: Log, which may say so of commits at that very instant.
    """
    most = np.searchsorted(made, read, side="right")
    if "read_version" not in table.frame:
        return most
    least, said = np.searchsorted(made, read), table.numbers("read_version")
    first = int(np.argmin(read))
    said = (said - said[first] + least[first]).astype(np.int64)
    table.refuse(
        (said < least) | (said > most),
        "must have as read_version the number of arrivals applied before its read",
        "read_version",
        "correct the row; of a server that commits once a round, give the column round "
        "in its place",
    )
    return said


def _timeline(
    client: np.ndarray,
    times: dict[str, np.ndarray],
    outcome: np.ndarray,
    table: LogTable,
) -> tuple[Rows, Jobs, int]:
    """Returns rows and jobs in order of arrival, and how many registers suffice."""
    order = np.argsort(times["arrived_time"], kind="stable")
    made = times["arrived_time"][order][(outcome == Outcome.APPLIED)[order]]
    read_version = _read_versions(times["read_time"], made, table)[order]
    client, outcome = client[order], outcome[order]
    times = {name: values[order] for name, values in times.items()}
    applied = outcome == Outcome.APPLIED
    version = np.cumsum(applied) - applied  # before each arrival
    read_slot, write_slot, num_registers = _registers(read_version, applied)
    T, job = int(applied.sum()), _job_numbers(client, times["read_time"])
    wide = {
        "worker": client[applied, None],
        "job": job[applied, None],
        "read_version": read_version[applied, None],
        "read_slot": read_slot[applied, None],
    }
    rows = Rows(
        time=made,
        kind=np.full(T, Kind.COMMIT, np.int32),
        node=np.full(T, SERVER, np.int32),
        version=np.arange(T),
        write_slot=write_slot,
        peer=np.full(T, NO_WORKER, np.int32),
        round=np.zeros(T, np.int32),
        **wide,
    )
    commit = np.where(applied, version + 1, NO_COMMIT)
    ended = np.where(applied, times["arrived_time"], np.nan)
    jobs = _jobs(client, job, times, outcome, read_version, commit, ended)
    return rows, jobs, num_registers


def _registers(
    read_version: np.ndarray, applied: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Gives each version that is read a register, freed when its last reader ended.

    Args:
        read_version: Version that each job read, in order of arrival.
        applied: Whether each job was applied.

    Returns:
        Register that each job reads, that each commit writes, and how many there are.
    """
    readers = np.bincount(read_version, minlength=int(applied.sum()) + 1).tolist()
    slot_of, free, num_registers, current = {0: 0}, [], 1, 0
    read_slot = np.zeros(read_version.size, np.int32)
    write_slot: list[int] = []
    for position, (read, commits) in enumerate(
        zip(read_version.tolist(), applied.tolist(), strict=True)
    ):
        read_slot[position] = slot_of[read]
        readers[read] -= 1
        if not readers[read] and read != current:
            free.append(slot_of.pop(read))
        if not commits:
            continue
        if not readers[current] and current in slot_of:
            free.append(slot_of.pop(current))
        current += 1
        if not readers[current]:
            write_slot.append(NO_SLOT)
            continue
        if not free:
            free.append(num_registers)
            num_registers += 1
        slot_of[current] = free.pop()
        write_slot.append(slot_of[current])
    return read_slot, np.array(write_slot, np.int32), num_registers


def _job_numbers(client: np.ndarray, read_time: np.ndarray) -> np.ndarray:
    """Returns the number of each job among its client's, in order of reads."""
    order = np.lexsort((read_time, client))
    same = np.r_[False, np.diff(client[order]) == 0]
    position = np.arange(order.size)
    first = np.maximum.accumulate(np.where(same, 0, position))
    numbers = np.zeros(order.size, np.int32)
    numbers[order] = position - first
    return numbers
