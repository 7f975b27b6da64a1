"""What becomes of the time of a stopped job: drawn again, kept, or what is left."""

import heapq
from typing import Any, Literal

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.files.timeline import Outcome
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.world.clients import Clients, Group
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import check_conservation

SOON = Scipy(law="expon")
Fate = Literal["redrawn", "kept", "resumed"]


def draws(n: int, number: int, seed: int) -> list[list[float]]:
    """Returns each client's draws in order, from a world in which no job is stopped."""
    plain = played(Asynchronous(), Clients(compute=SOON), n, seed=seed, commits=number)
    _, jobs, _ = everything(plain)
    took = jobs.arrived_time - jobs.read_time
    return [took[jobs.client == client].tolist() for client in range(n)]


def by_hand(
    drawn: list[list[float]], most: int, commits: int, fate: Fate, cost: float
) -> list[tuple[float, int]]:
    """Ringmaster by an event loop of its own: time and client of each commit.

    Source: Maranjyan, Tyurin and Richtarik (2025), Algorithm 5: a job that has become
    more than `most` commits old is stopped and begun again.
    """
    n = len(drawn)
    queue: list[tuple[float, int, int]] = []
    serial, version, at = [0] * n, [0] * n, 0
    began, took = [0.0] * n, [0.0] * n
    left: list[list[float]] = [[*each] for each in drawn]
    given: dict[int, float] = {}

    def begin(client: int, time: float) -> None:
        serial[client] += 1
        version[client] = at
        began[client] = time
        took[client] = given.pop(client) if client in given else left[client].pop(0)
        heapq.heappush(queue, (time + took[client], client, serial[client]))

    waiting: list[tuple[float, int]] = []
    for client in range(n):
        begin(client, 0)
    made: list[tuple[float, int]] = []
    while len(made) < commits:
        if waiting and (not queue or waiting[0][0] <= queue[0][0]):
            time, client = heapq.heappop(waiting)
            begin(client, time)
            continue
        time, client, number = heapq.heappop(queue)
        if number != serial[client]:
            continue
        made.append((time, client))
        at += 1
        for other in range(n):
            busy = other != client and not any(who == other for _, who in waiting)
            if busy and at - version[other] > most:
                serial[other] += 1
                if fate == "kept":
                    given[other] = took[other]
                elif fate == "resumed":
                    given[other] = took[other] - (time - began[other])
                heapq.heappush(waiting, (time + cost, other))
        begin(client, time)
    return made


@pytest.mark.parametrize("fate", ["redrawn", "kept", "resumed"])
@pytest.mark.parametrize("cost", [0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_commits_are_those_of_an_event_loop(fate: Fate, cost: float, seed: int) -> None:
    n, most, commits = 6, 4, 150
    entries: dict[str, Any] = {"compute": SOON, "stopped": fate}
    if cost:
        entries["restart"] = Constant(value=cost)
    protocol = Asynchronous(staleness_bound=most, beyond="stop")
    world = played(protocol, Clients(**entries), n, seed=seed, commits=commits)
    rows, jobs, _ = everything(world)
    wanted = by_hand(draws(n, 40 * commits, seed), most, commits, fate, cost)
    np.testing.assert_allclose(rows.time, [time for time, _ in wanted], rtol=1e-12)
    assert rows.worker[:, 0].tolist() == [client for _, client in wanted]
    assert (jobs.outcome == Outcome.STOPPED).sum() > 10
    check_conservation(rows, jobs, n)


def test_a_slow_client_never_ends_if_its_job_is_kept_and_does_if_it_goes_on() -> None:
    """Two clients, 1 and 5 s; a round ends with one report and stops the other."""
    slow = Constant(value=(1, 4.5))
    ended = {}
    for fate in ("kept", "resumed"):
        clients = Clients(compute=slow, stopped=fate)
        protocol = Collect(count=1, late="stop")
        rows, *_ = everything(played(protocol, clients, 2, time=9.6))
        ended[fate] = rows.time[(rows.worker == 1).any(axis=1)].tolist()
    assert ended == {"kept": [], "resumed": [4.5, 9.0]}


def test_groups_have_fates_of_their_own() -> None:
    """What is drawn again is constant here, so only the second group goes on."""
    groups = {
        "fast": Group(number=1, compute=Constant(value=1)),
        "slow": Group(number=1, compute=Constant(value=4.5), stopped="resumed"),
    }
    protocol = Collect(count=1, late="stop")
    rows, *_ = everything(played(protocol, Clients(groups=groups), 2, time=5))
    assert rows.time[(rows.worker == 1).any(axis=1)].tolist() == [4.5]


@pytest.mark.parametrize(("base", "own"), [("kept", "redrawn"), ("redrawn", "kept")])
def test_what_is_written_survives_a_dump(base: Fate, own: Fate) -> None:
    """Also a group's default, where all others have another fate."""
    tree = {
        "name": "x",
        "clients": {
            "compute": {"law": "expon"},
            "stopped": base,
            "groups": {"a": {"number": 1}, "b": {"number": 1, "stopped": own}},
        },
        "protocol": {"kind": "collect", "count": 1, "late": "stop"},
        "stop": {"time": 5},
    }
    scenario = WorldScenario.model_validate(tree)
    again = WorldScenario.model_validate(scenario.model_dump(mode="json"))
    for each in (scenario, again):
        assert each.clients is not None
        fates = [part.stopped for _, _, part in each.clients.behaviours(2)]
        assert fates == [base, own]
    dumped = Clients(compute=SOON).model_dump(mode="json")
    assert "stopped" not in dumped
