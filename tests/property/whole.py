"""Everything that a timeline tells, in an order that does not depend on its chunks."""

from typing import Any, NamedTuple

import numpy as np

from stalesim.simulator.files.timeline import (
    NO_SLOT,
    NO_WORKER,
    Incidents,
    Jobs,
    Kind,
    Rows,
    StopReason,
    check,
)
from stalesim.simulator.timelines.simulated import SimulatedTimeline

MOMENTS = ("read", "begun", "computed", "sent", "arrived", "applied")
TIMES = ("time", *(f"{moment}_time" for moment in MOMENTS))
"""Columns that are virtual seconds."""
REGISTERS = ("read_slot", "write_slot")
"""Columns that two players may number otherwise."""


class Whole(NamedTuple):
    """A timeline, its rows, jobs and incidents in some order."""

    rows: Rows
    jobs: Jobs
    incidents: Incidents
    stop: StopReason | None


def whole(plan: SimulatedTimeline, chunk: int = 512) -> Whole:
    """Plays a timeline to its end; jobs by client, incidents by time."""
    return ordered(as_played(plan, chunk))


def as_played(plan: SimulatedTimeline, chunk: int) -> Whole:
    """Plays a timeline to its end, and leaves everything in its order."""
    chunks = list(plan.chunks(chunk))
    for one in chunks:
        check(one.rows, plan.num_registers)
    assert [one.stop for one in chunks[:-1]] == [None] * (len(chunks) - 1)
    join = lambda tables: map(np.concatenate, zip(*tables, strict=True))  # noqa: E731
    rows = Rows(*join(one.rows for one in chunks))
    jobs = Jobs(*join(one.jobs for one in chunks))
    incidents = Incidents(*join(one.incidents for one in chunks))
    return Whole(rows, jobs, incidents, chunks[-1].stop)


def ordered(found: Whole) -> Whole:
    """Sorts jobs by client, incidents by time and client, and a row's workers."""
    rows, jobs, incidents, stop = found
    by_job = np.lexsort((jobs.job, jobs.client))
    by_time = np.lexsort((incidents.incident, incidents.client, incidents.time))
    return Whole(
        rows,
        Jobs(*(column[by_job] for column in jobs)),
        Incidents(*(column[by_time] for column in incidents)),
        stop,
    )


def renamed(found: Whole, new: np.ndarray) -> Whole:
    """Gives clients other numbers; those of one row are sorted by them."""
    worker = found.rows.worker
    names = np.append(new, NO_WORKER)
    named = names[np.where(worker == NO_WORKER, -1, worker)].astype(np.int32)
    order = np.argsort(named, axis=1, kind="stable")
    wide = ("job", "read_version", "read_slot")
    rows = found.rows._replace(
        worker=np.take_along_axis(named, order, axis=1),
        **{
            name: np.take_along_axis(getattr(found.rows, name), order, axis=1)
            for name in wide
        },
    )
    jobs = found.jobs._replace(client=new[found.jobs.client].astype(np.int32))
    client = new[found.incidents.client].astype(np.int32)
    return ordered(
        Whole(rows, jobs, found.incidents._replace(client=client), found.stop)
    )


def assert_alike(
    one: Whole, other: Whole, factor: float = 1.0, *, but: tuple[str, ...] = ()
) -> None:
    """Compares timelines bit for bit.

    Args:
        one: a timeline.
        other: one whose times are `factor` times as long.
        factor: of all times.
        but: columns that may differ.
    """
    assert one.stop is other.stop
    tables: tuple[Any, ...] = one[:3]
    for first, second in zip(tables, other[:3], strict=True):
        for name, column in first._asdict().items():
            if name in but:
                continue
            if factor != 1 and name in TIMES:  # of which ticks may be no power of two
                scaled = factor * column
                np.testing.assert_allclose(getattr(second, name), scaled, 1e-14)
            else:
                np.testing.assert_array_equal(getattr(second, name), column, name)
            assert getattr(second, name).dtype == column.dtype, name


def assert_registers_hold(rows: Rows, num_registers: int) -> None:
    """Compares what a protocol with a server reads with what its registers hold."""
    held = np.full(num_registers, -1)
    held[0] = 0
    for t in range(rows.time.size):
        there = rows.worker[t] != NO_WORKER
        read = rows.read_version[t][there]
        np.testing.assert_array_equal(held[rows.read_slot[t][there]], read, f"row {t}")
        if rows.write_slot[t] != NO_SLOT:
            made = rows.version[t] + (rows.kind[t] == Kind.COMMIT)
            held[rows.write_slot[t]] = made
