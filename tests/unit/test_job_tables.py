"""The tables of jobs and of their ages, from timelines without numerics."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.stop import Stop
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.protocols import Asynchronous
from stalesim.simulator.results import ages, jobs
from stalesim.simulator.results.jobs import JobTables
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Crashes
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
    return JobTables(0, played, writer, lambda jobs: None, lambda jobs: None)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_run_that_ends_early_has_each_job_once(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timeline was read further than it was executed."""
    monkeypatch.setattr(jobs, "CHUNK", 8)
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
    assert fetched.sum() == ((outcomes != 5).sum() if down else 0)
    np.testing.assert_array_equal(memory.column("jobs", "upload_bytes"), up * sent)
    np.testing.assert_array_equal(
        memory.column("jobs", "download_bytes"), down * fetched
    )


def test_staleness_is_counted_exactly_and_then_in_eighths_of_an_octave() -> None:
    edges = ages.bin_edges()
    assert edges[:65].tolist() == list(range(65))
    assert edges[64::8].tolist() == [64 * 2**k for k in range(26)]
    # The largest staleness that fits 31 bits has a bin.
    assert edges[-1] == 2**31
    ratios = edges[65:] / edges[64:-1]
    np.testing.assert_allclose(ratios[40:], 2 ** (1 / 8), rtol=1e-3)
    counted = ages.Ages(1)
    given = np.array([0, 63, 64, 70, 127, 128, 2**31 - 1])
    counted.add(np.zeros(7, int), given, np.zeros(7, bool))
    bins = np.flatnonzero(counted.bins[0, 0])
    assert ((edges[bins] <= given) & (given < edges[bins + 1])).all()
    assert counted.bins.sum() == 7
    assert counted.largest.tolist() == [2**31 - 1]
