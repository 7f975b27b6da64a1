"""What the tests of several protocols look at in a timeline."""

from collections.abc import Sequence

import numpy as np

from stalesim.simulator.timeline import (
    NO_SLOT,
    NO_WORKER,
    Jobs,
    Kind,
    Outcome,
    Rows,
    check,
)


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


def averaging_matrix(pair: Sequence[int], num_workers: int) -> np.ndarray:
    """Returns the matrix by which an AVERAGE multiplies all models, `[K, K]`.

    Source: A(DP)2SGD, section 2.3: I - (e_i - e_j)(e_i - e_j)^T / 2.
    """
    apart = np.zeros(num_workers)
    apart[pair[0]], apart[pair[1]] = 1, -1
    return np.eye(num_workers) - np.outer(apart, apart) / 2
