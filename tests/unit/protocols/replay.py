"""What the tests of several protocols look at in a timeline."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stalesim.simulator.files.timeline import (
    NO_SLOT,
    NO_WORKER,
    SERVER,
    Jobs,
    Kind,
    Outcome,
    Rows,
    check,
)
from stalesim.simulator.world.streams import Purpose, Streams


def kinds(rows: Rows) -> list[str]:
    """Returns the rows' kinds by name."""
    return [Kind(kind).name for kind in rows.kind]


def workers(rows: Rows) -> list[tuple[int, ...]]:
    """Returns the workers of each row."""
    return [tuple(int(w) for w in row if w != NO_WORKER) for row in rows.worker]


def staleness(rows: Rows) -> list[int]:
    """Returns the staleness of each row's first worker, where there is one."""
    named = rows.worker[:, 0] != NO_WORKER
    return (rows.version - rows.read_version[:, 0])[named].tolist()


def stale(jobs: Jobs) -> np.ndarray:
    """Returns the staleness of each job that was applied."""
    applied = jobs.outcome == Outcome.APPLIED
    return jobs.commit[applied] - 1 - jobs.read_version[applied]


def replay_registers(rows: Rows) -> None:
    """Reads and writes the server's registers as the rows say."""
    held = {0: 0}
    for row in range(rows.time.size):
        for column in np.flatnonzero(rows.worker[row] != NO_WORKER):
            slot = int(rows.read_slot[row, column])
            assert held[slot] == rows.read_version[row, column]
        if rows.write_slot[row] != NO_SLOT:
            advances = rows.kind[row] != Kind.CONTRIBUTE
            held[int(rows.write_slot[row])] = int(rows.version[row]) + int(advances)


def check_conservation(rows: Rows, jobs: Jobs, num_workers: int) -> None:
    """Asserts that no job and no version is lost or there twice."""
    check(rows, num_workers + 1)
    made = rows.version[rows.kind == Kind.COMMIT]
    assert made.tolist() == list(range(made.size))
    for worker in range(num_workers):
        mine = jobs.job[jobs.client == worker]
        assert sorted(mine.tolist()) == list(range(mine.size))
    taken = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
    named = int((rows.worker[taken] != NO_WORKER).sum())
    arrived = np.isin(jobs.outcome, (Outcome.APPLIED, Outcome.BUFFERED))
    assert named == arrived.sum()
    gone = (Outcome.LOST, Outcome.CRASHED, Outcome.REJECTED, Outcome.STOPPED)
    ended = np.isin(jobs.outcome, gone)
    flying = jobs.outcome == Outcome.IN_FLIGHT
    assert named + ended.sum() + flying.sum() == jobs.job.size
    assert flying.sum() <= num_workers


def check_tasks(rows: Rows, jobs: Jobs, tasks: int) -> None:
    """Asserts that no task is lost, and that as many are in flight as there may be."""
    check(rows, tasks + 1)
    assert rows.version.tolist() == list(range(rows.time.size))
    for client in range(jobs.client.max() + 1):
        mine = jobs.job[jobs.client == client]
        assert sorted(mine.tolist()) == list(range(mine.size))
    assert (jobs.outcome == Outcome.IN_FLIGHT).sum() == tasks
    assert (jobs.outcome == Outcome.APPLIED).sum() == rows.time.size
    replay_registers(rows)


def averaging_matrix(pair: Sequence[int], num_workers: int) -> np.ndarray:
    """Returns the matrix by which an AVERAGE multiplies all models, `[K, K]`.

    Source: A(DP)2SGD, section 2.3: I - (e_i - e_j)(e_i - e_j)^T / 2.
    """
    apart = np.zeros(num_workers)
    apart[pair[0]], apart[pair[1]] = 1, -1
    return np.eye(num_workers) - np.outer(apart, apart) / 2


def edges_of(graph, num_workers: int, seed: int = 1) -> list[tuple[int, int]]:
    """Returns the edges that a run with that seed has."""
    streams = Streams(seed)
    return graph.edges_of(
        num_workers, lambda number: streams.at(Purpose.GRAPH, 0, number)
    )


def pairs(rows: Rows) -> list[tuple[int, ...]]:
    return [
        pair
        for pair, kind in zip(workers(rows), kinds(rows), strict=True)
        if kind == "AVERAGE"
    ]


class Change(NamedTuple):
    """A row that changed a model; `commits` were made with it."""

    row: int
    time: float
    commits: int


def replay_models(rows: Rows, jobs: Jobs, num_workers: int) -> None:
    """Asserts that a job finds in its register the model that its worker had.

    A model is known by the row that last changed it. Between two commits, a change and
    a read at the same instant may have come in either order.
    """
    times = zip(jobs.client, jobs.job, jobs.read_time, strict=True)
    read_times = {(int(client), int(job)): time for client, job, time in times}
    start = Change(-1, -1.0, 0)
    changes = [[start] for _ in range(num_workers)]
    registers = [start] * num_workers
    for row in range(rows.time.size):
        is_commit = rows.kind[row] == Kind.COMMIT
        made = Change(row, rows.time[row], int(rows.version[row]) + is_commit)
        first, second = (int(worker) for worker in rows.worker[row])
        if is_commit:
            assert rows.node[row] == rows.write_slot[row] == first
            assert rows.read_slot[row].tolist() == [first, NO_SLOT]
            assert second == rows.peer[row] == NO_WORKER
            when = read_times[first, int(rows.job[row, 0])]
            version = int(rows.read_version[row, 0])
            known = [c for c in changes[first] if c.commits <= version]
            latest = max(c for c in known if c.time <= when)
            surely = max(c for c in known if c.time < when or c is start)
            assert surely <= registers[first] <= latest
            registers[first] = made
            changes[first].append(made)
        elif rows.kind[row] == Kind.AVERAGE:
            assert [rows.node[row], rows.peer[row]] == [first, second]
            assert rows.write_slot[row] == NO_SLOT
            for worker, slot in zip((first, second), rows.read_slot[row], strict=True):
                changes[worker].append(made)
                if slot != NO_SLOT:
                    assert slot == worker
                    registers[worker] = made
        else:
            assert rows.node[row] == SERVER
            assert rows.worker[row].tolist() == [NO_WORKER] * 2
            assert rows.write_slot[row] == NO_SLOT
            for mine in changes:
                mine.append(made)
            if rows.read_slot[row, 0] == 0:
                registers = [made] * num_workers
