"""The timeline of a log: rows, jobs and registers, and the folder that has them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Int

from ...files import inputs
from ...files.reading import digests
from ...files.study import Categorical, Study
from ...files.study.manifest import Read
from ...files.timeline import (
    IN_COMMITS,
    NO_COMMIT,
    NO_SLOT,
    NO_WORKER,
    Chunk,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
)
from ...studies.saved import TimelineSource, write_all
from ...world.recorders.arrays import server_rows
from ...world.workload import Workload
from .reading import ClientLog, read_log


def import_log(
    log: str | Path | ClientLog,
    folder: str | Path,
    columns: Mapping[str, str] | None = None,
) -> Study:
    """Writes the timeline of an event log into a folder.

    Args:
        log: CSV, JSON Lines or Parquet, as `reading` has it; or a log that is read.
        folder: New or empty.
        columns: Columns of the file, by stalesim's names.

    Returns:
        The study, called as the file; its table `clients` has the labels.

    Raises:
        DataError: one line with the file, the row, the fault and the remedy.
    """
    found = log if isinstance(log, ClientLog) else read_log(log, columns)
    source = source_of(found)
    read: Read = {"inputs": inputs.of_log(found.path)}
    return write_all(Path(folder), source.entry["scenario"], [source], read)


def source_of(log: ClientLog) -> TimelineSource:
    """Returns the timeline of a log.

    Raises:
        DataError: rounds or versions do not fit the times.
    """
    labels, path, protocol = log.labels, log.path, log.protocol
    play = _in_rounds if log.in_rounds else _in_order_of_arrival
    rows, jobs, num_registers = play(log)
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
        "timeline": digests.of_file(path).sha256[:16],
        "upload_bytes": 0,
        "download_bytes": 0,
        "stop_reason": "the run has not ended",
        "stop": "incomplete",
        "began": log.began,
        "facts": protocol.described(len(labels)),
        "scenario": scenario,
    }
    if log.in_commits:
        entry["player"] = IN_COMMITS
    # One chunk: the log is in memory already.
    chunk = Chunk(rows, jobs, StopReason.RECORDING)
    names = {}
    if labels != [str(number) for number in range(1, len(labels) + 1)]:
        everyone = np.arange(len(labels), dtype=np.int32)
        names["client_label"] = Categorical(everyone, tuple(labels))
    workload = Workload(0, 0, len(labels))
    return TimelineSource(entry, lambda: iter([chunk]), workload, names=names)


def _in_rounds(log: ClientLog) -> tuple[Rows, Jobs, int]:
    client, times, outcome, table = log.client, log.times, log.outcome, log.table
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
    rows = server_rows(
        time=ends,
        kind=np.full(T, int(Kind.COMMIT)),
        worker=worker,
        job=of_job,
        version=np.arange(T),
        read_version=read_version,
        read_slot=read_slot,
        write_slot=np.where(later, np.arange(1, T + 1) % 2, NO_SLOT),
        round=np.arange(T),
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
        begun_time=times["begun_time"],
        computed_time=times["computed_time"],
        sent_time=times["sent_time"],
        arrived_time=np.where(lost, np.nan, times["arrived_time"]),
        applied_time=applied_time,
        read_version=read_version,
        commit=commit,
        outcome=outcome,
        uploads=np.ones(client.size, np.int32),
    )


def _read_versions(log: ClientLog, made: np.ndarray) -> Int[np.ndarray, " J"]:
    """Returns how many commits had been made when each job read."""
    if "read_version" not in log.table.frame:
        return np.searchsorted(made, log.times["read_time"], side="right")
    said, wrong = log.stated_versions(made)
    log.table.refuse(
        wrong,
        "must have as read_version the number of arrivals applied before its read",
        "read_version",
        "correct the row; of a server that commits once a round, give the column round "
        "in its place",
    )
    return said.astype(np.int64)


def _in_order_of_arrival(log: ClientLog) -> tuple[Rows, Jobs, int]:
    """Returns rows and jobs in order of arrival, and how many registers suffice.

    Of a log that says which commits were made, in their order: jobs gather for each.
    """
    client, times, outcome, table = log.client, log.times, log.outcome, log.table
    applied, ended = outcome == Outcome.APPLIED, times["arrived_time"]
    commits = applied
    if "applied_time" in times:
        ended, commits = _gathered(times, applied, table.numbers("commit"))
    order = np.argsort(ended, kind="stable")
    made = ended[order][commits[order]]
    read_version = _read_versions(log, made)[order]
    client, applied, commits = client[order], applied[order], commits[order]
    times = {name: values[order] for name, values in times.items()}
    ended, outcome = ended[order], outcome[order]
    version = np.cumsum(commits) - commits  # before each arrival
    read_slot, write_slot, num_registers = _registers(read_version, commits)
    job = _job_numbers(client, times["read_time"])
    written = np.full(client.size, NO_SLOT, np.int32)
    written[commits] = write_slot
    rows = server_rows(
        time=ended[applied],
        kind=np.where(commits, int(Kind.COMMIT), int(Kind.CONTRIBUTE))[applied],
        worker=client[applied, None],
        job=job[applied, None],
        version=version[applied],
        read_version=read_version[applied, None],
        read_slot=read_slot[applied, None],
        write_slot=written[applied],
        round=np.zeros(int(applied.sum()), np.int64),
    )
    commit = np.where(applied, version + 1, NO_COMMIT)
    # Nothing is applied of what gathers for a commit that the log has not.
    moment = np.where(applied, np.append(made, np.nan)[version], np.nan)
    jobs = _jobs(client, job, times, outcome, read_version, commit, moment)
    return rows, jobs, num_registers


def _gathered(
    times: dict[str, np.ndarray], applied: np.ndarray, number: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    ended, arrived = times["arrived_time"].copy(), times["arrived_time"]
    commits = np.zeros(applied.size, bool)
    mine = np.flatnonzero(applied)
    mine = mine[np.lexsort((arrived[mine], number[mine]))]
    last = mine[np.append(np.diff(number[mine]) > 0, np.ones(min(mine.size, 1), bool))]
    commits[last] = True
    ended[last] = times["applied_time"][last]
    ended[mine] = np.maximum.accumulate(ended[mine])
    return ended, commits


def _registers(
    read_version: np.ndarray, applied: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Gives each version that is read a register, freed when its last reader ended.

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
    order = np.lexsort((read_time, client))
    same = np.r_[False, np.diff(client[order]) == 0]
    position = np.arange(order.size)
    first = np.maximum.accumulate(np.where(same, 0, position))
    numbers = np.zeros(order.size, np.int32)
    numbers[order] = position - first
    return numbers
