"""Rounds whose deadlines follow from arrivals, against a loop over plain lists."""

import math

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import NO_WORKER, Outcome
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.streams import Purpose, Streams
from tests.support import everything, played

K, ROUNDS, SEED = 7, 60, 5


def at_quantile(before: list[float]) -> float:
    """The 0.6 quantile of the last 20, times 1.2."""
    recent = sorted(before[-20:])
    rank = math.ceil(0.6 * len(recent)) - 1
    return 1.2 * recent[rank] if recent else math.inf


def rounds() -> tuple[list[float], list[list[int]]]:
    """Everyone is asked in each round; who is late is stopped."""
    streams, now = Streams(SEED), 0.0
    drawn = [streams.uniforms(Purpose.COMPUTE, c, 0, ROUNDS) for c in range(K)]
    before: list[float] = []
    times, clients = [], []
    for number in range(ROUNDS):
        took = {c: -math.log1p(-drawn[c][number]) for c in range(K)}
        ordered = sorted(took.values())
        end = min(max(at_quantile(before), ordered[0]), ordered[-1])
        there = [c for c in range(K) if took[c] <= end]
        before += [each for each in ordered if each <= end]
        before += [math.inf] * (K - len(there))
        now += end
        times.append(now)
        clients.append(there)
    return times, clients


def test_rounds_are_as_long_as_a_plain_loop_says() -> None:
    by = {"kind": "quantile", "share": 0.6, "recent": 20, "factor": 1.2}
    protocol = Synchronous.model_validate({"deadline_by": by, "late": "stop"})
    clients = Clients.model_validate({"compute": {"law": "expon"}, "number": K})
    rows, jobs, _ = everything(played(protocol, clients, K, SEED, commits=ROUNDS))
    times, there = rounds()
    np.testing.assert_allclose(rows.time, times, rtol=1e-12)
    found = [[w for w in row if w != NO_WORKER] for row in rows.worker.tolist()]
    assert found == there
    cut = sum(len(each) < K for each in there)
    assert 5 < cut < ROUNDS + 1
    stopped = int((jobs.outcome == Outcome.STOPPED).sum())
    assert stopped == sum(K - len(each) for each in there)


def test_late_responses_count_when_they_arrive() -> None:
    """Client 3 is cut off by what the others take, and takes part again."""
    protocol = Synchronous.model_validate(
        {"deadline_by": {"kind": "quantile", "share": 0.6}, "late": "reject"}
    )
    law = {"law": "constant", "value": [1, 1.5, 4]}
    clients = Clients.model_validate({"compute": law, "number": 3})
    rows, _, _ = everything(played(protocol, clients, 3, commits=6))
    # Round 1 has no deadline. Later ones have 1.5 s, the second of 3 responses and the
    # third of 5, which cuts client 3 off; it is back in the middle of round 4.
    np.testing.assert_allclose(rows.time, [4, 5.5, 7, 8.5, 10, 11.5])
    assert [(row != NO_WORKER).sum() for row in rows.worker] == [3, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("late", ["stop", "reject"])
@pytest.mark.parametrize("seconds", [2, 5, 7])
def test_all_of_the_instant_that_ends_an_overdue_round_count(
    seconds: float, late: str
) -> None:
    protocol = Synchronous.model_validate({"deadline": seconds, "late": late})
    law = {"law": "constant", "value": [5, 5, 5, 8]}
    clients = Clients.model_validate({"compute": law, "number": 4})
    rows, jobs, _ = everything(played(protocol, clients, 4, time=40))
    there = [{w for w in row if w != NO_WORKER} for row in rows.worker.tolist()]
    # No job takes 2 s: those of 5 s end each round together, whoever comes first.
    assert all({0, 1, 2} <= each for each in there)
    length = max(seconds, 5)
    np.testing.assert_allclose(rows.time, np.arange(1, 40 // length + 1) * length)
    on_time = jobs.outcome[jobs.client < 3]
    assert set(on_time.tolist()) == {Outcome.APPLIED, Outcome.IN_FLIGHT}


@pytest.mark.parametrize("least", [1, 3, K])
def test_a_deadline_waits_for_the_least_number(least: int) -> None:
    """A round takes the deadline, or as long as its `least`-th arrival."""
    clients = Clients.model_validate({"compute": {"law": "expon"}, "number": K})
    protocol = Synchronous(deadline=0.5, least=least, late="stop")
    rows, *_ = everything(played(protocol, clients, K, SEED, commits=ROUNDS))
    streams = Streams(SEED)
    drawn = [streams.uniforms(Purpose.COMPUTE, c, 0, ROUNDS) for c in range(K)]
    took = np.sort(-np.log1p(-np.array(drawn)), axis=0)
    lasts = np.clip(np.maximum(took[least - 1], 0.5), None, took[-1])
    np.testing.assert_allclose(rows.time, np.cumsum(lasts), rtol=1e-12)
    assert ((rows.worker != NO_WORKER).sum(1) >= least).all()


def test_a_least_number_that_never_comes_ends_with_all_who_can() -> None:
    """Two of four clients are left: both are a round, and nobody waits for ever."""
    clients = Clients.model_validate(
        {"number": 4, "compute": {"law": "expon"}, "leave": [99, 99, 3, 3]}
    )
    protocol = Synchronous(deadline=1, least=3, late="stop", timeout=1)
    rows, *_ = everything(played(protocol, clients, 4, SEED, time=30))
    late = rows.time > 6
    assert late.sum() > 5
    assert {(w != NO_WORKER).sum() for w in rows.worker[late]} == {2}
