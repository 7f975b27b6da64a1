"""Arrays of rows and jobs, as a server's timeline has them."""

import numpy as np
from jaxtyping import Float, Int

from ...files.timeline import NO_WORKER, SERVER, Jobs, Rows
from ...parts.errors import ScenarioError

JOB = 7  # client, job, refresh, read_version, commit, outcome, uploads
TIMES = 6  # read, started, computed, sent, arrived, applied
NEVER = -1
"""A time of a job, in the clock's unit, that has not come."""


def server_rows(
    *,
    time: Float[np.ndarray, " T"],
    kind: Int[np.ndarray, " T"],
    worker: Int[np.ndarray, "T W"],
    job: Int[np.ndarray, "T W"],
    version: Int[np.ndarray, " T"],
    read_version: Int[np.ndarray, "T W"],
    read_slot: Int[np.ndarray, "T W"],
    write_slot: Int[np.ndarray, " T"],
    round: Int[np.ndarray, " T"],  # noqa: A002
) -> Rows:
    """Returns the rows of a server, from columns as `Rows` has them."""

    def small(values: np.ndarray) -> np.ndarray:
        return values.astype(np.int32)

    return Rows(
        time=time,
        kind=small(kind),
        node=np.full(time.size, SERVER, np.int32),
        worker=small(worker),
        job=small(job),
        version=version,
        read_version=read_version,
        read_slot=small(read_slot),
        write_slot=small(write_slot),
        peer=np.full(time.size, NO_WORKER, np.int32),
        round=small(round),
    )


def rows_of(
    head: Int[np.ndarray, "T 5"],
    work: Int[np.ndarray, "J 4"],
    times: Float[np.ndarray, " T"],
    width: int,
) -> Rows:
    """Returns rows whose jobs follow one another.

    Args:
        head: Kind, version, write slot, round and number of jobs of each row.
        work: Worker, job, read version and read slot of each job.
        times: Times of the rows, virtual seconds.
        width: Most jobs of a row, `W`.

    Raises:
        ScenarioError: A row has more jobs.
    """
    T, W = head.shape[0], width
    counts = head[:, 4]
    if T and (most := counts.max()) > W:
        raise ScenarioError(
            f"protocol must have at most {W} clients per commit, got {most}; let its "
            f"cadence return Cadence({most}, in_flight + 1, contributions_per_commit="
            f"{most})"
        )
    row = np.repeat(np.arange(T), counts)
    column = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = np.full((4, T, W), NO_WORKER, np.int64)
    spread[:, row, column] = work.T
    return server_rows(
        time=times,
        kind=head[:, 0],
        worker=spread[0],
        job=spread[1],
        version=head[:, 1],
        read_version=spread[2],
        read_slot=spread[3],
        write_slot=head[:, 2],
        round=head[:, 3],
    )


def jobs_of(entries: list[int], moments: Float[np.ndarray, " N"]) -> Jobs:
    """Returns jobs.

    Args:
        entries: Client, job, whether it is a refresh, read version, commit, outcome
            and uploads of each job, one after the other.
        moments: When each was read, started, computed, sent, arrived and applied, in
            virtual seconds; below zero for never.
    """
    table = np.array(entries, np.int64).reshape(-1, JOB)
    times = moments.reshape(-1, TIMES)
    times[times < 0] = np.nan
    return Jobs(
        client=table[:, 0].astype(np.int32),
        job=table[:, 1].astype(np.int32),
        refresh=table[:, 2].astype(np.int32),
        read_time=times[:, 0],
        begun_time=times[:, 1],
        computed_time=times[:, 2],
        sent_time=times[:, 3],
        arrived_time=times[:, 4],
        applied_time=times[:, 5],
        read_version=table[:, 3],
        commit=table[:, 4],
        outcome=table[:, 5].astype(np.int32),
        uploads=table[:, 6].astype(np.int32),
    )
