"""Exact event orders of every protocol, from constant durations."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.bounded import Bounded
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.catalogue.protocols.turns import Centralised
from stalesim.simulator.files.timeline import (
    NO_COMMIT,
    NO_WORKER,
    Kind,
    Outcome,
    StopReason,
    check,
)
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world.clients import Clients, Crashes
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.protocol import Protocol
from stalesim.simulator.world.recorders.recorder import Recorder
from stalesim.simulator.world.streams import Purpose
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World
from tests.support import everything, played


def rows(protocol, values=(1, 2, 3.5), **stop) -> list[tuple]:
    clients = Clients(compute=Constant(value=values))
    found, _, _ = everything(played(protocol, clients, len(values), **stop))
    workers = [tuple(int(w) for w in row if w != NO_WORKER) for row in found.worker]
    return list(zip(found.time.tolist(), workers, strict=True))


def test_asynchronous() -> None:
    assert rows(Asynchronous(), time=4.0) == [
        (1.0, (0,)),
        (2.0, (1,)),
        (2.0, (0,)),
        (3.0, (0,)),
        (3.5, (2,)),
        (4.0, (1,)),
        (4.0, (0,)),
    ]


def test_an_algorithms_overhead_comes_on_top_of_the_law() -> None:
    traffic = Workload(4, 4, 2, overhead_s=0.25)
    clients = Clients(compute=Constant(value=(1, 2)))
    plan = played(Asynchronous(), clients, 2, workload=traffic, time=4.5)
    found, _, _ = everything(plan)
    assert found.time.tolist() == [1.25, 2.25, 2.5, 3.75, 4.5]
    assert found.worker[:, 0].tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("per", ["job", "step", "sample"])
def test_a_job_has_one_step_of_one_sample_unless_it_is_said(per: str) -> None:
    clients = Clients.model_validate(
        {"compute": Constant(value=1), "compute_per": per, "download": {"bandwidth": 1}}
    )
    plan = played(Asynchronous(), clients, 1, workload=Workload(0, 0, 1), commits=3)
    assert everything(plan)[0].time.tolist() == [1, 2, 3]
    world = World(clients, 1, seed=0)
    assert world.transit(Purpose.DOWNLOAD, 0) == 0  # and weighs nothing


def test_who_waits_for_a_job_reads_when_it_is_lost() -> None:
    crashes = Crashes(after=Constant(value=(2, 1000)), down=Constant(value=(100, 1)))
    clients = Clients(compute=Constant(value=5), crashes=crashes)
    protocol = Asynchronous(staleness_bound=0, beyond="wait")
    found, jobs, _ = everything(played(protocol, clients, 2, time=20))
    # Only one job may be under way. Client 0's is lost at 2 s, for 100 s.
    assert found.time.tolist() == [7, 12, 17]
    assert found.worker[:, 0].tolist() == [1, 1, 1]
    assert jobs.read_time[jobs.client == 1].tolist() == [2, 7, 12, 17]


def test_t_synchronous_lets_the_others_go_on() -> None:
    assert rows(TSynchronous(t=2), time=6.5) == [
        (2.0, (0, 1)),
        (3.5, (0, 2)),  # client 0 waits from 3 s on; client 1 works until 4 s
        (4.5, (1, 0)),
        (6.5, (0, 1)),  # client 0 waits from 5.5 s on
    ]


def test_synchronous_waits_for_the_slowest() -> None:
    assert rows(Synchronous(), rounds=2) == [(3.5, (0, 1, 2)), (7.0, (0, 1, 2))]


def test_centralised() -> None:
    protocol = Centralised(step=Constant(value=0.5))
    found, jobs, stop = everything(played(protocol, None, 1, commits=3))
    assert found.time.tolist() == [0.5, 1.0, 1.5]
    assert stop is StopReason.COMMITS
    assert jobs.outcome.tolist() == [Outcome.APPLIED] * 3 + [Outcome.IN_FLIGHT]


def test_one_of_t_is_asynchronous() -> None:
    assert rows(TSynchronous(t=1), time=50.0) == rows(Asynchronous(), time=50.0)


def test_all_of_t_is_synchronous_up_to_the_order_in_a_row() -> None:
    every = [(t, tuple(sorted(w))) for t, w in rows(TSynchronous(t=3), time=50.0)]
    assert every == rows(Synchronous(), time=50.0)


def test_idle_comes_before_the_read() -> None:
    clients = Clients(idle=Constant(value=1), compute=Constant(value=2))
    found, jobs, _ = everything(played(Asynchronous(), clients, 1, time=6.0))
    assert found.time.tolist() == [3.0, 6.0]
    assert jobs.read_time[:2].tolist() == [1.0, 4.0]


def test_versions_and_registers_of_a_short_run() -> None:
    clients = Clients(compute=Constant(value=(1, 2)))
    found, jobs, _ = everything(played(Asynchronous(), clients, 2, commits=4))
    # Client 1 reads version 0 at 0 s and applies it at 2 s, before client 0's second.
    assert found.worker[:, 0].tolist() == [0, 1, 0, 0]
    assert found.version.tolist() == [0, 1, 2, 3]
    assert found.read_version[:, 0].tolist() == [0, 0, 1, 3]
    assert jobs.commit.tolist() == [1, 2, 3, 4, NO_COMMIT, NO_COMMIT]
    check(found, 3)


def test_what_is_under_way_at_the_end_is_in_flight() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    _, jobs, stop = everything(played(Asynchronous(), clients, 3, time=3.0))
    assert stop is StopReason.TIME
    flying = jobs.outcome == Outcome.IN_FLIGHT
    assert jobs.client[flying].tolist() == [0, 1, 2]
    assert jobs.read_time[flying].tolist() == [3.0, 2.0, 0.0]
    assert np.isnan(jobs.applied_time[flying]).all()


def test_bounded_refreshes_what_is_too_old_and_waits_for_it() -> None:
    clients = Clients(compute=Constant(value=(1, 10)))
    found, jobs, _ = everything(
        played(Bounded(staleness_bound=2), clients, 2, commits=4)
    )
    kinds = [Kind(k).name for k in found.kind]
    # Client 1's entries have age 1, 2, 3 at client 0's commits: the third one asks for
    # them, and gets them 10 s later; by then client 1 has arrived as well.
    assert kinds == ["COMMIT", "COMMIT", "REFRESH", "COMMIT", "COMMIT"]
    assert found.time.tolist() == [1.0, 2.0, 13.0, 13.0, 13.0]
    assert found.worker[2].tolist() == [0, 1]
    assert found.version.tolist() == [0, 1, 2, 2, 3]
    refresh = jobs.refresh == 1
    assert jobs.client[refresh].tolist() == [1]
    assert jobs.read_time[refresh].tolist() == [3.0]
    assert jobs.applied_time[refresh].tolist() == [13.0]


@pytest.mark.parametrize(
    ("stop", "reason", "commits"),
    [
        ({"commits": 5}, StopReason.COMMITS, 5),
        ({"contributions": 5}, StopReason.CONTRIBUTIONS, 3),
        ({"rounds": 4}, StopReason.ROUNDS, 4),
        ({"epochs": 2}, StopReason.EPOCHS, 3),
        ({"bytes": 50}, StopReason.BYTES, 3),
        ({"time": 2.0}, StopReason.TIME, 2),
        ({"time": 2.0, "commits": 1}, StopReason.COMMITS, 1),
    ],
)
def test_a_run_ends_where_it_is_told_to(
    stop: dict, reason: StopReason, commits: int
) -> None:
    clients = Clients(compute=Constant(value=1))
    plan = played(TSynchronous(t=2), clients, 2, 0, Workload(4, 6, 2.5), **stop)
    found, _, why = everything(plan)
    assert why is reason
    assert found.time.size == commits


def test_time_that_stands_still_is_an_error() -> None:
    clients = Clients.model_construct(idle=None, compute=Constant(value=0))
    plan = played(Asynchronous(), clients, 2, commits=10**9)
    with pytest.raises(ScenarioError, match="must take time"):
        for _ in plan.chunks(256):
            pass


def test_time_that_goes_on_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stalesim.simulator.timelines.simulated.STUCK", 50)
    clients = Clients(compute=Constant(value=1))
    plan = played(Asynchronous(), clients, 2, commits=1000)
    found, _, stop = everything(plan, 10)  # two rows at each instant
    assert stop is StopReason.COMMITS
    assert found.time[-1] == 500


def test_the_digest_tells_timelines_apart() -> None:
    clients = Clients(compute=Scipy(law="expon"))
    plan = played(Asynchronous(), clients, 5, commits=10)
    same = played(Asynchronous(), clients, 5, commits=10)
    assert plan.digest == same.digest
    others = [
        played(TSynchronous(t=2), clients, 5, commits=10),
        played(Asynchronous(), clients, 6, commits=10),
        played(Asynchronous(), clients, 5, commits=11),
        played(Asynchronous(), Clients(compute=Constant(value=1)), 5, commits=10),
        played(Asynchronous(), clients, 5, seed=2, commits=10),
        *(
            replace(plan, workload=replace(plan.workload, overhead_s=overhead))
            for overhead in (0.25, 0.5)
        ),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 8


class Pairing(Protocol):
    """A plug-in's protocol that does not say how many are answered."""

    kind: str = "pairing"
    like: ClassVar[str] = "t_synchronous"

    def play(self, world: World, recorder: Recorder) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("protocol", "contributions"),
    [
        (Asynchronous(), 1),
        (TSynchronous(t=3), 3),
        (Pairing(), 1),
        (Synchronous(), 4),
        (Synchronous(wait_for=2), 2),
        (Buffered(size=5), 5),
        (Buffered(window=1.0), 1),
        (Rounds(), 4),
        (Rounds(order="sequential"), 1),
    ],
)
def test_commits_that_make_an_epoch(protocol, contributions: int) -> None:
    clients = Clients(compute=Constant(value=1))
    plan = played(protocol, clients, 4, 0, Workload(1, 1, 60.0), commits=1)
    assert plan.cadence.contributions_per_commit == contributions
    assert plan.commits_per_epoch == 60 / contributions
