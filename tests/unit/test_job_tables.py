"""The tables of jobs and of their ages, from timelines without numerics."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.engine.results import rows
from stalesim.simulator.engine.results.rows import JobTables
from stalesim.simulator.files.timeline import Incident, Outcome, staleness
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Crashes, Server
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.workload import Workload
from tests.property.whole import whole
from tests.support import Memory

EXPON = Scipy(law="expon")


def plan(upload_bytes: int = 4, download_bytes: int = 4) -> SimulatedTimeline:
    return SimulatedTimeline(
        Clients(compute=EXPON, crashes=Crashes(after=EXPON, down=EXPON)),
        Asynchronous(),
        5,
        1,
        Stop(time=60),
        Workload(upload_bytes, download_bytes, 5),
    )


def tables(played: SimulatedTimeline, memory: Memory) -> JobTables:
    writer: Any = memory
    return JobTables(0, played, writer, lambda jobs: None)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_run_that_ends_early_has_each_job_once(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timeline was read further than it was executed."""
    monkeypatch.setattr(rows, "CHUNK", 8)
    played, memory = plan(), Memory()
    made = tables(played, memory)
    for chunk, _ in zip(played.chunks(11), range(before), strict=False):
        made.add(chunk)
    made.replay(Stop(time=40))
    expected = whole(replace(played, stop=Stop(time=40)))
    order = np.lexsort((memory.column("jobs", "job"), memory.column("jobs", "client")))
    for name in ("client", "job", "read_time", "computed_time", "commit"):
        found = memory.column("jobs", name)[order]
        np.testing.assert_array_equal(found, getattr(expected.jobs, name))
    assert memory.column("incidents", "time").size == expected.incidents.time.size
    counts = np.bincount(expected.jobs.client, minlength=5)
    assert made.started.tolist() == counts.tolist()


@pytest.mark.parametrize("up", [0, 4])
@pytest.mark.parametrize("down", [0, 6])
def test_a_message_of_no_bytes_is_none(up: int, down: int) -> None:
    played, memory = plan(up, down), Memory()
    made = tables(played, memory)
    for chunk in played.chunks(64):
        made.add(chunk)
    sent = memory.column("jobs", "upload_messages")
    fetched = memory.column("jobs", "download_messages")
    whole_jobs = whole(played).jobs
    assert sent.sum() == (whole_jobs.uploads.sum() if up else 0)
    ended = memory.tables["jobs"]
    outcomes = np.concatenate([piece["outcome"].codes for piece in ended])
    assert fetched.sum() == (len(outcomes) if down else 0)  # nothing is on its way
    np.testing.assert_array_equal(memory.column("jobs", "upload_bytes"), up * sent)
    np.testing.assert_array_equal(
        memory.column("jobs", "download_bytes"), down * fetched
    )


@pytest.mark.parametrize("shared", [None, 50.0])
def test_repeats_are_noted_of_messages_that_arrive(shared: float | None) -> None:
    """Those of jobs that crashed, or had not arrived at the end, never came about."""
    loss = {"chance": 0.6, "timeout": 0.4, "retries": 3, "duplicates": 0.5}
    crashes = {"after": EXPON, "down": EXPON}
    upload = {"latency": {"law": "expon", "scale": 0.2}}
    told = {"compute": EXPON, "crashes": crashes, "loss": loss, "upload": upload}
    clients, server = Clients.model_validate(told), Server(upload_bandwidth=shared)
    world = clients, Asynchronous(), 5, 1, Stop(time=60), Workload(4, 4, 5)
    found = whole(SimulatedTimeline(*world, server))
    jobs, incidents = found.jobs, found.incidents
    arrived, outcome = ~np.isnan(jobs.arrived_time), jobs.outcome

    def messages(*kinds: Incident) -> int:
        return int(incidents.messages[np.isin(incidents.incident, kinds)].sum())

    assert (outcome == Outcome.CRASHED).sum() > 20
    repeats = int((jobs.uploads[arrived] - 1).sum())
    assert messages(Incident.RESENT, Incident.DUPLICATE) == repeats > 20
    assert messages(Incident.GAVE_UP) == jobs.uploads[outcome == Outcome.LOST].sum()


def test_a_client_that_leaves_while_it_asks_reads_no_more() -> None:
    asks, works = Constant(value=3), Constant(value=1)
    clients = Clients(read=asks, compute=works, leave=10)
    world = clients, Asynchronous(), 2, 1, Stop(time=60), Workload(4, 4, 5)
    found = whole(SimulatedTimeline(*world))
    # It asks at 0, 4 and 8, and has left when the third answer comes, at 11.
    assert found.jobs.read_time.tolist() == [3, 7, 3, 7]
    assert found.incidents.incident.tolist() == [Incident.LEFT, Incident.LEFT]
    assert found.incidents.time.tolist() == [11, 11]


def test_what_is_read_within_a_round_is_not_stale() -> None:
    """A worker that idles first reads after others of its round have committed."""
    assert staleness(22, 17, at_once=8) == 0
    assert staleness(22, 11, at_once=8) == 5


def test_staleness_is_counted_exactly_and_then_in_eighths_of_an_octave() -> None:
    edges = rows.bin_edges()
    assert edges[:65].tolist() == list(range(65))
    assert edges[64::8].tolist() == [64 * 2**k for k in range(26)]
    # The largest staleness that fits 31 bits has a bin.
    assert edges[-1] == 2**31
    ratios = edges[65:] / edges[64:-1]
    np.testing.assert_allclose(ratios[40:], 2 ** (1 / 8), rtol=1e-3)
    counted = rows.Ages(1)
    given = np.array([0, 63, 64, 70, 127, 128, 2**31 - 1])
    counted.add(np.zeros(7, int), given, np.zeros(7, bool))
    bins = np.flatnonzero(counted.bins[0, 0])
    assert ((edges[bins] <= given) & (given < edges[bins + 1])).all()
    assert counted.bins.sum() == 7
    assert counted.largest.tolist() == [2**31 - 1]
