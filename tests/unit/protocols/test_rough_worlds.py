"""Every job ends in one way, also where messages are lost and clients crash."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.phases import Phases
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.catalogue.protocols.routed import Routed
from stalesim.simulator.catalogue.protocols.ssp import StaleSynchronous
from stalesim.simulator.files.timeline import Jobs, Kind, Outcome, Rows
from stalesim.simulator.world.clients import Server
from stalesim.simulator.world.laws.distributions import Constant
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    check_tasks,
    replay_registers,
    stale,
    staleness,
)

EXPON: Any = {"law": "expon"}
LINK = {"latency": EXPON}
SERVER, BUSY = Server(), Server(service=Constant(value=0.1))
CRASHES = {"crashes": {"after": {"law": "expon", "scale": 3}, "down": EXPON}}
LOSS = {"loss": {"chance": 0.4, "timeout": 1, "retries": 1}}
ROUGH: dict[str, dict[str, Any]] = {
    "links": {"upload": LINK, "idle": EXPON},
    "losses": LOSS,
    "crashes": CRASHES,
    "all": {"upload": LINK, "download": LINK, **LOSS, **CRASHES},
}
"""What happens to clients."""


def nobody_is_stale(rows: Rows, jobs: Jobs) -> None:
    del jobs
    assert set(staleness(rows)) <= {0}


def everyone_commits(rows: Rows, jobs: Jobs) -> None:
    del jobs
    made = rows.kind == Kind.COMMIT
    for number in range(40):
        assert sorted(rows.worker[made & (rows.round == number), 0]) == [0, 1, 2, 3]


def some_are_stopped(rows: Rows, jobs: Jobs) -> None:
    del rows
    assert (jobs.outcome == Outcome.STOPPED).any()
    assert stale(jobs).max() <= 2


def each_grace_is_over(rows: Rows, jobs: Jobs) -> None:
    del jobs
    first: dict[int, float] = {}
    for place in np.flatnonzero(rows.kind == Kind.CONTRIBUTE):
        first.setdefault(int(rows.version[place]), rows.time[place])
    ends = rows.time[rows.kind == Kind.COMMIT]
    np.testing.assert_allclose(ends, [first[k] + 0.3 for k in range(ends.size)])


class Rule(NamedTuple):
    """A protocol and what holds in its rows beside; for some worlds."""

    protocol: Any
    holds: Callable[[Rows, Jobs], None] = lambda rows, jobs: None
    worlds: tuple[str, ...] = tuple(ROUGH)
    server: Server = SERVER
    clients: Any = ()


RULES = [
    *(
        Rule(Collect.model_validate(how | {"late": late}), nobody_is_stale, server=at)
        for how in (
            {"count": 5},
            {"count": 3, "repeats": False},
            {"harmonic_mean": 1.5},
            {"quota": "m", "allotted": 2.0},
            {"seconds": 1.0},
            {"allotment": {"jobs": 5, "spread": 0.3}},
        )
        for late, at in (("stop", BUSY), ("reject", SERVER))
    ),
    Rule(Collect(count=5, filter="start", late="stop")),
    Rule(Collect(count=5, filter="start"), server=BUSY),
    *(
        Rule(Rounds(order=order), nobody_is_stale, ("crashes",))
        for order in ("parallel", "sequential")
    ),
    Rule(Phases(), everyone_commits),
    Rule(StaleSynchronous(slack=1)),
    *(Rule(Routed(tasks=7, route=route)) for route in ("random", "shuffled", "back")),
    *(
        Rule(protocol, clients={"selection": {"in_flight": 3}})
        for protocol in (Buffered(size=4), Buffered(window=2))
    ),
    Rule(Buffered(grace=0.3), each_grace_is_over),
    Rule(Asynchronous(staleness_bound=2, beyond="stop"), some_are_stopped),
    Rule(
        Asynchronous(staleness_bound=2, beyond="stop"),
        some_are_stopped,
        ("links",),
        clients={"selection": {"in_flight": 3}, "restart": EXPON},
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.protocol.kind)
def test_every_job_ends_in_one_way(rule: Rule) -> None:
    protocol, holds, worlds, server, more = rule
    stop = {"rounds": 40} if protocol.kind in ("collect", "phases") else {"commits": 99}
    for name in worlds:
        clients = {"compute": EXPON, **ROUGH[name], **dict(more)}
        rows, jobs, _ = everything(played(protocol, clients, 4, server=server, **stop))
        assert (rows.kind == Kind.COMMIT).any()
        assert (jobs.outcome == Outcome.CRASHED).any() == ("crashes" in ROUGH[name])
        if protocol.kind == "routed":
            check_tasks(rows, jobs, 7)
        else:
            check_conservation(rows, jobs, 4)
        replay_registers(rows)
        holds(rows, jobs)
