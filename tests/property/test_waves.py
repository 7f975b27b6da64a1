"""Waves and critical paths of random timelines, against their definitions."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator import waves
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.protocols import (
    Collect,
    Cyclic,
    Gossip,
    Hierarchy,
    Phases,
    Pipeline,
    Routed,
    SpanningTree,
)
from stalesim.simulator.timeline import NO_WORKER, Jobs, Kind, Outcome, Rows
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from tests.property import test_timeline, test_worlds
from tests.support import everything, played

EXPON = Scipy(law="expon")
RING: Any = {"kind": "ring"}
OTHERS = [
    Collect(count=3),
    Collect(count=3, late="stop"),
    Collect(quota=(2, 1, 0, 3), allotted=1.5),
    Cyclic(step=EXPON),
    Cyclic(step=EXPON, lag="K"),
    Phases(),
    Pipeline(stages=3),
    Routed(tasks=6),
    Routed(tasks=3, reads="service"),
    SpanningTree(graph=RING, count=3),
    SpanningTree(graph=RING, count=3, late="stop"),
]
OF_GOSSIP = [
    Gossip(graph=RING, initiator="every", order="average_then_step"),
    Gossip(graph=RING, initiator="every", order="step_then_average"),
    Gossip(graph=RING, initiator="every", order="during"),
    Gossip(),
    Gossip(average="all"),
    Gossip(graph=RING, average="neighbours"),
    Gossip(graph=RING, average="neighbours", order="step_then_average"),
]
LINKED = {"idle": EXPON, "compute": EXPON, "upload": {"latency": EXPON}}


@st.composite
def others(draw: Any) -> SimulatedTimeline:
    """Draws a world of a protocol that the other random worlds lack."""
    protocol = draw(st.sampled_from(OTHERS))
    stage = st.sampled_from([EXPON, Scipy(law="lognorm", parameters={"s": 1.0})])
    idle = draw(st.none() | stage)
    clients = None if protocol.pooled else Clients(idle=idle, compute=draw(stage))
    number = 1 if protocol.pooled else 4
    seed = draw(st.integers(0, 999))
    return played(protocol, clients, number, seed, time=25.0, commits=60)


WORLDS = st.one_of(test_timeline.worlds(), test_worlds.worlds(), others())


def critical_path(plan: SimulatedTimeline, chunk: int) -> waves.CriticalPath:
    """Returns what is counted chunk by chunk."""
    found = waves.CriticalPath(plan.num_clients)
    for part in plan.chunks(chunk):
        found.add(part)
    return found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(WORLDS, st.integers(1, 50))
def test_waves_are_as_many_as_the_longest_chain_of_jobs(
    plan: SimulatedTimeline, chunk: int
) -> None:
    _, jobs, _ = everything(plan)
    # What was refreshed is part of the next version; what was buffered last, of none.
    refreshed = jobs.refresh == 1
    used = np.isin(jobs.outcome, (Outcome.APPLIED, Outcome.BUFFERED))
    read = jobs.read_version[used]
    part_of = np.where(refreshed, jobs.read_version + 1, jobs.commit)[used]
    length = np.zeros(read.size, int)  # of the longest chain that ends with each job
    for job in np.argsort(read, kind="stable"):
        length[job] = 1 + length[part_of <= read[job]].max(initial=0)
    found = critical_path(plan, chunk)
    assert (found.jobs, found.waves) == (read.size, length.max(initial=0))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(OF_GOSSIP),
    st.integers(4, 7),
    st.integers(0, 999),
    st.integers(1, 50),
)
def test_waves_of_gossip_are_as_many_as_the_longest_chain_through_models(
    protocol: Gossip, number: int, seed: int, chunk: int
) -> None:
    plan = played(protocol, Clients.model_validate(LINKED), number, seed, commits=80)
    rows, jobs, _ = everything(plan)
    columns = (jobs.client.tolist(), jobs.job.tolist(), jobs.read_time.tolist())
    read_time = {(w, job): time for w, job, time in zip(*columns, strict=True)}
    # Each model is the set of the jobs in it, at each time at which it changed.
    models: list[list[tuple[float, frozenset]]] = [
        [(-1.0, frozenset())] for _ in range(number)
    ]
    length: dict[tuple[int, int], int] = {}
    for t in range(rows.time.size):
        time, mine = float(rows.time[t]), rows.worker[t][rows.worker[t] != NO_WORKER]
        if rows.kind[t] == Kind.COMMIT:
            worker, job = int(mine[0]), (int(mine[0]), int(rows.job[t, 0]))
            then = [held for at, held in models[worker] if at <= read_time[job]][-1]
            length[job] = 1 + max((length[one] for one in then), default=0)
            models[worker].append((time, models[worker][-1][1] | {job}))
            continue
        mixed = range(number) if rows.kind[t] == Kind.AVERAGE_ALL else mine.tolist()
        together = frozenset().union(*(models[worker][-1][1] for worker in mixed))
        for worker in mixed:
            models[worker].append((time, together))
    found = critical_path(plan, chunk)
    assert (found.jobs, found.waves) == (len(length), max(length.values()))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(WORLDS)
def test_no_row_of_a_wave_reads_a_version_that_is_made_in_it(
    plan: SimulatedTimeline,
) -> None:
    rows, _, _ = everything(plan)
    contributes = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
    read = np.where(
        (rows.worker != NO_WORKER) & contributes[:, None], rows.read_version, -1
    ).max(axis=1, initial=-1)
    ends = ends_of(rows)
    for begin, end in enumerate(ends):
        assert read[begin:end].max() <= rows.version[begin]
        if end < ends.size:  # it goes as far as it can
            kept_late = rows.kind[begin] != Kind.COMMIT
            assert read[end] >= rows.version[begin] + (not kept_late)


def ends_of(rows: Rows) -> np.ndarray:
    """Returns the ends of the waves that the engine makes of a run's rows."""
    keep = np.append(np.int32(0), rows.write_slot)[: rows.time.size]
    return waves.ends(rows.worker, rows.read_slot, keep)


def test_the_path_is_not_known_where_clients_read_the_models_of_edges() -> None:
    plan = played(Hierarchy(edges=2), Clients(compute=EXPON), 4, commits=5)
    found = critical_path(plan, 64)
    assert found.jobs > 0
    assert found.waves is None


def test_rows_without_work_are_in_no_wave() -> None:
    chunk = next(iter(played(Gossip(), Clients(compute=EXPON), 2, commits=1).chunks(9)))
    nothing = Jobs(*(column[:0] for column in chunk.jobs))
    null = np.full(chunk.rows.kind.shape, Kind.NULL, np.int32)
    rows = chunk.rows._replace(kind=null)
    found = waves.CriticalPath(2)
    found.add(chunk._replace(rows=rows, jobs=nothing))
    assert (found.jobs, found.waves) == (0, 0)
