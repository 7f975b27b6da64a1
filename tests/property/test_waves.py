"""Waves and critical paths of random timelines, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.protocols.gossip import Gossip
from stalesim.simulator.catalogue.protocols.hierarchy import Hierarchy
from stalesim.simulator.engine import row_waves
from stalesim.simulator.files.timeline import NO_WORKER, Jobs, Kind, Outcome, Rows
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from tests.drawn_worlds import PROTOCOLS
from tests.property import test_timeline
from tests.property.test_worlds import worlds
from tests.support import everything, played

EXPON = Scipy(law="expon")
LINKED = {"idle": EXPON, "compute": EXPON, "upload": {"latency": EXPON}}
PATHS = [kind for kind in PROTOCOLS if not kind.endswith("gossip")]
PATHS.remove("hierarchy")  # whose clients read the models of edges
WORLDS = st.one_of(test_timeline.worlds(), worlds(*PATHS))


def critical_path(plan: SimulatedTimeline, chunk: int) -> row_waves.CriticalPath:
    """Returns what is counted chunk by chunk."""
    found = row_waves.CriticalPath(plan.num_clients)
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
@given(worlds("gossip"), st.integers(1, 50))
def test_waves_of_gossip_are_as_many_as_the_longest_chain_through_models(
    plan: SimulatedTimeline, chunk: int
) -> None:
    number = plan.num_clients
    # At no instant do two things happen to a model.
    plan = played(plan.protocol, LINKED, number, plan.seed, commits=80)
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
    return row_waves.ends(rows.worker, rows.read_slot, keep)


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
    found = row_waves.CriticalPath(2)
    found.add(chunk._replace(rows=rows, jobs=nothing))
    assert (found.jobs, found.waves) == (0, 0)
