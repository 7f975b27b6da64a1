"""Numbers of contributions that change during a run (AdaSync)."""

from collections.abc import Callable

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.schedules import CountSchedule
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import NO_COMMIT
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.protocol import Protocol
from tests.support import SGD, everything, played, scenario
from tests.unit.protocols.replay import kinds, replay_registers

EXPON = Scipy(law="expon")
KINDS: dict[str, Callable[[CountSchedule], Protocol]] = {
    "buffered": lambda count: Buffered(size=count),
    "t_synchronous": lambda count: TSynchronous(t=count),
    "collect": lambda count: Collect(count=count, repeats=False, late="stop"),
    "wait_for": lambda count: Synchronous(wait_for=count, late="stop"),
}
"""Protocols of 8 clients in which a number of contributions make a commit."""


def sizes(protocol: Protocol, commits: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many contributions each commit applies, and when it is made."""
    plan = played(protocol, Clients(compute=EXPON), 8, commits=commits)
    rows, jobs, _ = everything(plan)
    replay_registers(rows)
    is_commit = np.array(kinds(rows)) == "COMMIT"
    made = jobs.commit[jobs.commit != NO_COMMIT]
    counts = np.bincount(made, minlength=commits + 1)
    return counts[1 : commits + 1], rows.time[is_commit]


@pytest.mark.parametrize("kind", KINDS)
def test_each_commit_has_as_many_as_the_schedule_says(kind: str) -> None:
    schedule = CountSchedule(values=(1, 4, 8), commits=(10, 25))
    counts, times = sizes(KINDS[kind](schedule), 40)
    assert counts.tolist() == [1] * 10 + [4] * 15 + [8] * 15
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_by_seconds_the_number_of_the_arrival_or_the_round_holds(kind: str) -> None:
    at = 5.0
    schedule = CountSchedule(values=(2, 6), seconds=(at,))
    counts, times = sizes(KINDS[kind](schedule), 60)
    begun = np.concatenate([[0.0], times[:-1]])
    judged = begun if kind == "collect" else times
    assert counts.tolist() == np.where(judged < at, 2, 6).tolist()
    assert {2, 6} == set(counts.tolist())


def test_a_falling_number_is_met_by_the_next_arrival() -> None:
    counts, _ = sizes(Buffered(size=CountSchedule(values=(8, 1), seconds=(2.9,))), 30)
    assert counts[-10:].tolist() == [1] * 10


def test_seconds_a_commit_are_order_statistics_of_each_stretch() -> None:
    # t distinct of n memoryless clients, all others going on: sum 1/(n - i).
    schedule = CountSchedule(values=(2, 6), commits=(4000,))
    _, times = sizes(TSynchronous(t=schedule), 8000)
    for first, t in ((0, 2), (4000, 6)):
        gaps = np.diff(times[first : first + 4000])
        expected = sum(1 / (8 - i) for i in range(t))
        error = gaps.std() / np.sqrt(gaps.size)
        assert abs(gaps.mean() - expected) < 4 * error


@pytest.mark.slow
def test_step_sizes_by_epochs_are_refused_where_commits_change_in_size() -> None:
    from stalesim.simulator.engine.checking import check

    changing = {"values": [1, 3], "commits": [4]}
    rule = {"kind": "piecewise", "values": [0.1, 0.01], "epochs": [2]}
    changes = {
        "protocol": {"kind": "buffered", "size": changing},
        "algorithm": {"step_size": rule},
    }
    with pytest.raises(ScenarioError, match="step_size must not be by epochs"):
        check(Run(0, "base", {}, 0, 1, scenario(SGD, changes)))
