"""Presence, crashes and losses of a played world against closed forms.

Clients are independent of each other, so that the standard error of a mean over K
clients is their standard deviation over the root of K. Five of those bound each
difference.
"""

from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import theory
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.files.timeline import Incident, Incidents, Jobs, Outcome
from stalesim.simulator.world.availability import OnOff, Periodic, Traced
from stalesim.simulator.world.clients import (
    Clients,
    Crashes,
    Link,
    Loss,
    Selection,
    Server,
)
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World
from tests.oracles import queues as oracles
from tests.property.whole import as_played
from tests.support import played
from tests.verification.test_world_queues import agrees


def expon(mean: Any) -> Scipy:
    return Scipy(law="expon", scale=mean)


def play(
    clients: Clients, number: int, server: Server | None = None, **stop: Any
) -> tuple[Jobs, Incidents]:
    work = Workload(60, 40, number)
    plan = played(Asynchronous(), clients, number, 1, work, server, **stop)
    return as_played(plan, 4096)[1:3]


def times(incidents: Incidents, what: Incident, client: int) -> np.ndarray:
    """Returns when something happened to a client, in order."""
    return incidents.time[(incidents.incident == what) & (incidents.client == client)]


def of_client(jobs: Jobs, client: int) -> Jobs:
    """Returns a client's jobs, in the order of their numbers."""
    mine = np.flatnonzero(jobs.client == client)
    mine = mine[np.argsort(jobs.job[mine])]
    return Jobs(*(column[mine] for column in jobs))


MOMENTS = np.arange(50, 400, 0.7)
"""All begin present, which is forgotten by the first of them: after ten cycles."""


def watch(clients: Clients, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns at which moments each client is there, and until when."""
    world = World(clients, number, seed=1)
    there = np.zeros((number, MOMENTS.size), bool)
    until = np.zeros(there.shape)
    for client, i in np.ndindex(there.shape):
        moment = float(MOMENTS[i])
        there[client, i] = world.present_since(client, moment) == moment
        until[client, i] = world.present_until(client, moment)
    return there, until


@pytest.mark.parametrize(
    ("on", "off", "mean_on", "mean_off"),
    [
        (expon(3.0), expon(2.0), 3.0, 2.0),
        (
            Scipy(law="uniform", loc=1),
            Scipy(law="gamma", parameters={"a": 2}),
            *(1.5, 2.0),
        ),
    ],
)
def test_share_of_time_available(
    on: Scipy, off: Scipy, mean_on: float, mean_off: float
) -> None:
    clients = Clients(compute=expon(1.0), availability=OnOff(on=on, off=off))
    K = 60
    there, until = watch(clients, K)
    assert (until == inf).all()  # a job that has begun is finished
    agrees(there.mean(axis=1), theory.availability(mean_on, mean_off))


def test_share_of_time_up() -> None:
    K, up, down = 60, 3.0, 2.0
    crashes = Crashes(after=expon(up), down=expon(down))
    there, until = watch(Clients(compute=expon(1.0), crashes=crashes), K)
    agrees(there.mean(axis=1), theory.availability(up, down))
    # Without memory the time to the next crash is as long as at the start. About
    # K T / (up + down) times there were seen, each at several moments.
    independent = K * 350 / (up + down)
    left = (until - MOMENTS)[there]
    assert left.mean() == pytest.approx(up, abs=5 * up / sqrt(independent))


def test_throughput_of_clients_who_come_and_go() -> None:
    # A job begins available, and ends so with probability p + (1 - p) E[exp(-g S)],
    # g = 1/on + 1/off; else its client waits for the rest of its time away, which is
    # exponential again. Cycles are independent.
    K, on, off, job, seconds = 40, 2.0, 3.0, 1.5, 2_000.0
    clients = Clients(
        compute=expon(job), availability=OnOff(on=expon(on), off=expon(off))
    )
    jobs, _ = play(clients, K, time=seconds)
    p, g = theory.availability(on, off), 1 / on + 1 / off
    ends_there = p + (1 - p) / (1 + g * job)
    cycle = job + (1 - ends_there) * off
    applied = jobs.client[jobs.outcome == Outcome.APPLIED]
    # The count differs from T / cycle by less than one in the mean: 0.3 % of it.
    counts = np.bincount(applied, minlength=K)
    bound = 5 * counts.std(ddof=1) / sqrt(K) + 1
    assert counts.mean() == pytest.approx(seconds / cycle, abs=bound)


def test_periodic_availability() -> None:
    K, period, on = 5, 10.0, 0.3
    availability = Periodic(period=period, on=on, phase="m")
    jobs, _ = play(
        Clients(compute=expon(0.7), availability=availability), K, time=3_000.0
    )
    within = (jobs.read_time + jobs.client + 1) % period
    # A moment that was worked out as the start of a period may be just before it.
    assert ((within < on * period) | (within > period - 1e-7)).all()
    # From the 300 periods' first parts of 3 s every client takes jobs of 0.7 s: in the
    # mean 3/0.7 jobs that end in it, and the one that does not, which none outlives
    # (exp(-10) per period).
    counts = np.bincount(jobs.client, minlength=K)
    expected = 300 * (3 / 0.7 + 1)
    assert (np.abs(counts - expected) < 5 * sqrt(300 * 3 / 0.7) + 6).all()


def test_availability_from_a_trace(tmp_path: Path) -> None:
    intervals = {1: [(0.0, 4.0), (10.5, 11.0), (30.0, 60.0)], 2: [(2.5, 9.0)], 3: []}
    path = tmp_path / "trace.csv"
    lines = [f"{m},{a},{b}" for m, some in intervals.items() for a, b in some]
    path.write_text("\n".join(["client,start,end", *lines]) + "\n")
    clients = Clients(compute=expon(0.3), availability=Traced(path=str(path)))
    jobs, incidents = play(clients, 3, time=100.0)
    for m, mine in intervals.items():
        reads = jobs.read_time[jobs.client == m - 1]
        inside = [((a <= reads) & (reads < b)).sum() for a, b in mine]
        assert sum(inside) == reads.size
        assert all(inside)
        first = [reads[reads >= a].min() for a, _ in mine]
        np.testing.assert_allclose(first[1:], [a for a, _ in mine][1:], rtol=1e-12)
        assert times(incidents, Incident.LEFT, m - 1).size == 1


def test_joining_and_leaving() -> None:
    K = 30
    clients = Clients(compute=expon(0.7), join="m / 3", leave="m / 3 + 5")
    jobs, incidents = play(clients, K, time=100.0)
    for client in range(K):
        join, mine = (client + 1) / 3, of_client(jobs, client)
        np.testing.assert_allclose(mine.read_time[0], join, rtol=1e-12)
        assert ((mine.read_time >= join - 1e-9) & (mine.read_time < join + 5)).all()
        assert (mine.outcome[:-1] == Outcome.APPLIED).all()
        assert mine.outcome[-1] == Outcome.CRASHED
        crashed = times(incidents, Incident.CRASHED, client)
        np.testing.assert_allclose(crashed, [join + 5], rtol=1e-12)
        left = times(incidents, Incident.LEFT, client)
        np.testing.assert_allclose(left, [join + 5], rtol=1e-12)
        assert not times(incidents, Incident.REJOINED, client).size


@pytest.mark.parametrize("what", ["availability", "crashes"])
def test_nobody_is_selected_who_is_away(what: str) -> None:
    # Everybody is there for a second of every ten, jobs take 0.3 s, and of those who
    # are away nobody may be chosen, however often it is asked.
    on, off = Constant(value=1), Constant(value=9)
    options: dict[str, Any] = {
        "availability": {"availability": OnOff(on=on, off=off)},
        "crashes": {"crashes": Crashes(after=on, down=off)},
    }
    clients = Clients(
        compute=Constant(value=0.3),
        join=0.01,
        selection=Selection(in_flight=3),
        **options[what],
    )
    jobs, _ = play(clients, 10, time=200.0)
    # Of the 3 in flight each begins four jobs in each of 20 seconds.
    assert jobs.client.size == pytest.approx(3 * 4 * 20, abs=12)
    within = (jobs.read_time + 1e-9) % 10
    assert within.max() < 1 + 2e-9


def test_a_question_may_be_asked_again() -> None:
    # There in [0, 3), [5, 8), ...: the answer is the same at every moment away.
    turns = OnOff(on=Constant(value=3), off=Constant(value=2))
    world = World(Clients(compute=expon(1.0), availability=turns), 1, seed=1)
    answers = [world.present_since(0, t) for t in (1.0, 3.0, 3.5, 4.9, 5.0, 8.5, 9)]
    assert answers == [1.0, 5.0, 5.0, 5.0, 5.0, 10.0, 10.0]


def test_who_is_selected_and_leaves_has_left() -> None:
    clients = Clients(
        compute=expon(1.0), leave="10 + m", selection=Selection(in_flight=10)
    )
    jobs, incidents = play(clients, 10, time=100.0)
    assert (jobs.outcome == Outcome.CRASHED).sum() == 10
    for client in range(10):
        assert times(incidents, Incident.LEFT, client).size == 1


@pytest.mark.parametrize("way", ["upload", "download"])
def test_leaving_in_the_middle_of_a_shared_transfer(way: str) -> None:
    # Computes for 1 s; a message takes 60 s up or 40 s down at the server's link, and
    # its client leaves after 5.5 s, in the middle of it.
    clients = Clients(compute=Constant(value=1), leave=5.5)
    server = Server(**{f"{way}_bandwidth": 1})
    jobs, incidents = play(clients, 1, server, time=200.0)
    assert jobs.outcome.tolist() == [Outcome.CRASHED]
    assert times(incidents, Incident.CRASHED, 0) == pytest.approx([5.5])


def test_a_client_does_not_crash_twice_at_once() -> None:
    # Crashes after 0.4 to 0.6 s in the middle of a job, and is back 1.3 s later; the
    # job that it begins then crashes by 2.5 s. The moment of a crash must be the same
    # double wherever it is worked out, or a job begins just before it.
    K = 4_000
    up = Scipy(law="uniform", loc=0.4, scale=0.2)
    clients = Clients(
        compute=expon(3.0), crashes=Crashes(after=up, down=Constant(value=1.3))
    )
    _, incidents = play(clients, K, time=3.0)
    crashed = incidents.incident == Incident.CRASHED
    order = np.lexsort((incidents.time[crashed], incidents.client[crashed]))
    who, when = incidents.client[crashed][order], incidents.time[crashed][order]
    gaps = np.diff(when)[np.diff(who) == 0]
    assert gaps.size >= K - 20
    assert gaps.min() > 1.3


def test_a_client_that_is_back_at_once_does_not_crash_again_at_once() -> None:
    # Jobs whose ends are not known beforehand, because uploads share a link: each takes
    # 1 s of computing and 1 s of sending, and a crash comes after every 7 s, in the
    # middle of the fourth one since the last.
    crashes = Crashes(after=Constant(value=7), down=Constant(value=0))
    clients = Clients(compute=Constant(value=1), crashes=crashes)
    server = Server(upload_bandwidth=60)  # and each has 60 bytes
    jobs, incidents = play(clients, 1, server, time=34.0)
    assert times(incidents, Incident.CRASHED, 0).tolist() == [7, 14, 21, 28]
    begun = [*range(0, 7, 2), *range(7, 14, 2), *range(14, 21, 2), *range(21, 28, 2)]
    assert jobs.read_time.tolist() == [*begun, 28, 30, 32, 34]


def test_a_client_does_not_leave_twice() -> None:
    # The same for leaving.
    K = 4_000
    leave = Scipy(law="uniform", loc=0.5, scale=1.6)
    _, incidents = play(Clients(compute=expon(0.4), leave=leave), K, time=3.0)
    crashed = incidents.client[incidents.incident == Incident.CRASHED]
    assert (np.bincount(crashed, minlength=K) == 1).all()


def test_crashes_of_clients_who_always_work() -> None:
    K, up, down, job, seconds = 150, 4.0, 1.0, 0.8, 200.0
    crashes = Crashes(after=expon(up), down=expon(down))
    clients = Clients(compute=expon(job), crashes=crashes)
    jobs, incidents = play(clients, K, time=seconds)
    counts, done = np.zeros(K), np.zeros(K)
    for client in range(K):
        mine = of_client(jobs, client)
        lost = mine.outcome == Outcome.CRASHED
        crashed = times(incidents, Incident.CRASHED, client)
        back = times(incidents, Incident.REJOINED, client)
        assert crashed.size == lost.sum()
        assert (mine.read_time[lost] <= crashed).all()
        assert np.isnan(mine.applied_time[lost]).all()
        # Always works, so that its next job begins when it is back.
        after = mine.read_time[1:][lost[:-1]]
        np.testing.assert_allclose(after, back[: after.size], rtol=1e-12)
        counts[client] = crashed.size
        done[client] = (mine.outcome == Outcome.APPLIED).sum()
    # Delayed renewal: crashes are m = up + down apart, the first one after up:
    # (T - up)/m + (s^2 + m^2)/(2 m^2) in the mean, but for exp(-T / down).
    mean, variance = up + down, up**2 + down**2
    agrees(counts, (seconds - up) / mean + (variance / mean**2 + 1) / 2)
    # While a client is there its jobs end at rate 1/job. It is there for the share
    # up/(up + down) of time, and by its start there for (1 - share) / (1/up + 1/down)
    # seconds more.
    share = theory.availability(up, down)
    there = share * seconds + (1 - share) / (1 / up + 1 / down)
    agrees(done, there / job)


@pytest.mark.parametrize(("chance", "retries"), [(0.3, 2), (0.6, 0), (0.5, 5), (0, 1)])
def test_losses_and_repeats(chance: float, retries: int) -> None:
    timeout, latency, duplicates, n = 2.0, 0.5, 0.25, 10_000
    loss = Loss(chance=chance, timeout=timeout, retries=retries, duplicates=duplicates)
    upload = Link(latency=Constant(value=latency))
    clients = Clients(compute=expon(1.0), upload=upload, loss=loss)
    jobs, incidents = play(clients, 5, commits=n)
    ended = jobs.outcome != Outcome.IN_FLIGHT
    arrived = jobs.outcome == Outcome.APPLIED
    expected = oracles.bounded_retries(chance, retries, timeout, latency)
    total = int(ended.sum())
    # Jobs are independent; the number of them depends on the last few alone.
    found = arrived.sum() / total
    q = expected.probability
    assert found == pytest.approx(q, abs=5 * sqrt(q * (1 - q) / total))
    assert (jobs.outcome[ended & ~arrived] == Outcome.LOST).all()
    trip = (jobs.arrived_time - jobs.sent_time)[arrived]
    bound = 5 * trip.std() / sqrt(n) + 1e-9
    assert trip.mean() == pytest.approx(expected.mean_time_s, abs=bound)
    repeats = np.round((trip - latency) / timeout)
    np.testing.assert_allclose(trip, latency + repeats * timeout, atol=1e-9)
    # One more for a message that arrives twice.
    twice = jobs.uploads[arrived] - repeats - 1
    assert set(np.unique(twice)) <= {0, 1}
    spread = 5 * sqrt(duplicates * (1 - duplicates) / n)
    assert twice.mean() == pytest.approx(duplicates, abs=spread)
    uploads = jobs.uploads[ended]
    mean = expected.mean_num_sends + expected.probability * duplicates
    bound = 5 * uploads.std() / sqrt(total)
    assert uploads.mean() == pytest.approx(mean, abs=bound)
    assert (jobs.uploads[ended & ~arrived] == retries + 1).all()

    # Incidents say the same, but for those of jobs under way at the end.
    def messages(what: Incident) -> int:
        return int(incidents.messages[incidents.incident == what].sum())

    assert 0 <= messages(Incident.DUPLICATE) - twice.sum() <= 5
    assert 0 <= messages(Incident.RESENT) - repeats.sum() <= 5 * retries
    assert messages(Incident.GAVE_UP) == (retries + 1) * (ended & ~arrived).sum()
