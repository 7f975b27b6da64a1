"""Clients that change places, and one that never finishes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator import studies
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.bounded import Bounded
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.gossip import Gossip
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import (
    NO_WORKER,
    Incidents,
    Jobs,
    Outcome,
    StopReason,
)
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.world.workload import Workload
from tests.drawn_worlds import Dice, behaviour
from tests.property.whole import (
    REGISTERS,
    Whole,
    assert_alike,
    ordered,
    renamed,
    whole,
)
from tests.support import played, scenario

HORIZON = 40.0


class World:
    """A world whose clients differ by numbers that are nobody else's.

    Randomness is keyed by the client's number, so that it would change places as well:
    all laws are constants, one for each client. No two of them have a sum in common, so
    that nothing happens at the same instant by chance; what does so always (the first
    reads, the answers to all of a round) is in the order of the clients' numbers, by
    which nobody gains who may read in any case.
    """

    def __init__(self, seed: int, num_clients: int, parts: frozenset[str]) -> None:
        self._rng = np.random.default_rng(seed)
        self._n = num_clients
        self.parts: dict[str, Any] = {}
        self._columns: list[np.ndarray] = []
        once = self._once
        law = lambda low, high: {"law": "constant", "value": once(low, high)}  # noqa: E731
        link = lambda: {"latency": law(0.1, 0.5), "bandwidth": once(20, 60)}  # noqa: E731
        made = {
            "compute": lambda: law(0.5, 3),
            "idle": lambda: law(0.1, 1),
            "read": lambda: law(0.01, 0.1),
            "upload": link,
            "download": link,
            "join": lambda: once(0, 4),
            "leave": lambda: once(15, 60),
            "on_off": lambda: {
                "kind": "on_off",
                "on": law(3, 9),
                "off": law(1, 2),
            },
            "periodic": lambda: {
                "kind": "periodic",
                "period": 10,
                "on": 0.6,
                "phase": once(0, 10),
            },
            "crashes": lambda: {"after": law(7, 20), "down": law(1, 3)},
            "regime": lambda: {
                "kind": "regime",
                "factor": 3,
                "normal": law(5, 9),
                "slow": law(1, 4),
            },
        }
        tree = {name: made[name]() for name in sorted({"compute", *parts})}
        for kind in ("periodic", "on_off"):
            if kind in tree:
                tree["availability"] = tree.pop(kind)
        if "regime" in tree:
            tree["slowdowns"] = [tree.pop("regime")]
        self.tree = tree

    def _once(self, low: float, high: float) -> Any:
        return self._rng.uniform(low, high, self._n)

    def clients(self, order: Sequence[int]) -> Clients:
        """Returns the clients, of whom client `order[i]` comes i-th."""
        at = np.asarray(order)

        def placed(tree: Any) -> Any:
            if isinstance(tree, np.ndarray):
                return tuple(tree[at].tolist())
            if isinstance(tree, dict):
                return {key: placed(value) for key, value in tree.items()}
            return [placed(one) for one in tree] if isinstance(tree, list) else tree

        return Clients.model_validate(placed(self.tree))


PARTS = st.frozensets(
    st.sampled_from(
        [
            *("idle", "read", "upload", "download", "join", "leave"),
            *("on_off", "periodic", "crashes", "regime"),
        ]
    )
)


def protocols(num_clients: int) -> Any:
    """Draws a protocol that treats all clients alike."""
    return st.one_of(
        st.just(Asynchronous()),
        st.builds(
            Asynchronous,
            staleness_bound=st.integers(0, 4),
            beyond=st.sampled_from(["wait", "reject"]),
        ),
        st.builds(TSynchronous, t=st.integers(1, num_clients)),
        st.builds(
            Synchronous,
            deadline=st.none() | st.just(2.5),
            timeout=st.none() | st.just(3.0),
            wait_for=st.none() | st.integers(1, num_clients),
        ),
        st.builds(Buffered, size=st.integers(1, 4)),
        st.builds(Buffered, window=st.just(2.5)),
        st.builds(Bounded, staleness_bound=st.integers(1, 6)),
        st.just(Rounds()),
    )


@st.composite
def permuted(draw: Any) -> tuple[World, SimulatedTimeline, list[int]]:
    n = draw(st.integers(2, 6))
    protocol, parts = draw(protocols(n)), draw(PARTS)
    if getattr(protocol, "beyond", None) == "wait":
        parts |= {"idle"}  # not all may read, so who does first gains by it
    world = World(draw(st.integers(0, 2**32)), n, parts)
    server = Server(
        service=draw(st.none() | st.just(Constant(value=0.0371))),
        upload_bandwidth=draw(st.none() | st.just(19.0)),
        download_bandwidth=draw(st.none() | st.just(23.0)),
    )
    clients, work = world.clients(range(n)), Workload(5, 5, n)
    plan = played(protocol, clients, n, 0, work, server, time=HORIZON, commits=150)
    return world, plan, draw(st.permutations(range(n)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(permuted())
def test_clients_may_change_places(
    case: tuple[World, SimulatedTimeline, list[int]],
) -> None:
    world, plan, order = case
    other = replace(plan, clients=world.clients(order))
    there = np.argsort(order)  # where each client went
    # Arrays number some registers by their clients.
    moved, again = (
        renamed(whole(plan), there),
        renamed(whole(other), np.arange(len(order))),
    )
    assert_alike(moved, again, but=REGISTERS)


def test_workers_who_average_with_everyone_may_change_places() -> None:
    world = World(3, 4, frozenset({"idle", "upload"}))
    order = [2, 0, 3, 1]
    clients = world.clients(range(4))
    plan = played(Gossip(average="all"), clients, 4, commits=80)
    there = np.argsort(order)
    moved = renamed(whole(plan), there)
    found = whole(replace(plan, clients=world.clients(order)))
    again = renamed(found, np.arange(4))
    # A worker's register has its number.
    assert_alike(moved, again, but=("node", "read_slot", "write_slot"))
    nodes = np.append(there, NO_WORKER)
    node = whole(plan).rows.node
    named = nodes[np.where(node == NO_WORKER, -1, node)]
    np.testing.assert_array_equal(named, found.rows.node)


def test_clients_change_places_with_their_data(tmp_path: Path) -> None:
    """Every party has its columns and its laws; batches are everybody's whole data.

    What differs is the order in which float32 numbers are added: 30 products of a
    sample, and 455 samples. Sums of n terms in any two orders differ by at most about
    n 2^-24 of the terms' sizes, 3e-5 here, at each of 40 steps; of the loss, which a
    step of descent does not amplify, 1e-3 is then more than all of them together.
    """
    columns = {"a": ["0-9"], "b": ["10-14"], "c": ["15-22"], "d": ["23-29"]}
    compute = {"a": 0.71, "b": 1.93, "c": 0.5, "d": 1.13}
    found = []
    for number, names in enumerate(("abcd", "cadb")):
        values = tuple(compute[name] for name in names)
        study = scenario(
            {
                "problem": {
                    "partition": {
                        "kind": "vertical",
                        "parties": None,
                        "groups": {name: columns[name] for name in names},
                    },
                },
                "clients": {"compute": {"law": "constant", "value": values}},
                "algorithm": {"batch": 455},
                "stop": {"commits": 40},
                "evaluate": {"every": {"commits": 5}, "metrics": ["objective"]},
            }
        )
        done = studies.simulate(study, tmp_path / str(number))
        jobs = done.table("jobs")
        jobs["client"] = [names[client - 1] for client in jobs["client"]]
        moments = ["read_time", "applied_time", "read_version", "commit"]
        jobs = jobs.sort_values(["client", "job"], ignore_index=True)
        found.append((done.table("evaluations"), jobs[["client", "job", *moments]]))
    (one, jobs), (other, moved) = found
    assert jobs.equals(moved)
    assert one["time"].equals(other["time"])
    losses = one["objective"].to_numpy()
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_allclose(other["objective"], losses, rtol=1e-3)


NEVER = 1e9
"""Virtual seconds that the additional client computes: far beyond every horizon."""

INDIFFERENT = st.one_of(
    st.just(Asynchronous()),
    st.builds(Asynchronous, staleness_bound=st.integers(0, 4)),
    st.builds(TSynchronous, t=st.integers(1, 3)),
    st.builds(Buffered, size=st.integers(1, 4)),
    st.builds(Buffered, window=st.just(2.5)),
    st.builds(Synchronous, wait_for=st.just(3)),
)
"""Protocols in which nobody waits for everybody.

Others do by what they are: rounds of all, bounded delay (which asks a client that holds
an embedding for a newer one), a staleness bound with `wait` (which is kept by waiting
for the oldest job), and cyclic turns. Gossip is left out, since one more worker changes
the graph, and so is selection, which draws among all.
"""


@st.composite
def joined(draw: Any) -> tuple[SimulatedTimeline, SimulatedTimeline]:
    """Draws a world of three clients, and the same with a fourth who never finishes."""
    common = behaviour(Dice(draw(st.integers(0, 10_000))), "asynchronous")
    silent = {"compute": Constant(value=NEVER)}
    own = ("idle", "read", "upload", "download", "availability", "crashes", "loss")
    silent |= dict.fromkeys((*own, "power")) | {"join": 0, "leave": None}
    clients = {
        number: Clients.model_validate(
            common | {"groups": {"first": {"number": 3}} | more}
        )
        for number, more in ((3, {}), (4, {"silent": silent | {"number": 1}}))
    }
    # Its download would take a share of a common link.
    server = Server(
        service=draw(st.none() | st.just(Constant(value=0.1))),
        upload_bandwidth=draw(st.none() | st.just(20.0)),
    )
    protocol, seed = draw(INDIFFERENT), draw(st.integers(0, 2**32))
    stop, work = {"time": HORIZON, "commits": 150}, Workload(5, 5, 10)
    plan = played(protocol, clients[3], 3, seed, work, server, **stop)
    return plan, replace(plan, clients=clients[4], num_clients=4)


def without(found: Whole, client: int) -> Whole:
    """Leaves a client out of the tables of jobs and incidents."""
    rows, jobs, incidents, stop = found
    assert not (rows.worker == client).any()
    mine, noted = jobs.client != client, incidents.client != client
    assert (~mine).sum() == 1
    assert jobs.outcome[~mine].tolist() == [Outcome.IN_FLIGHT]
    return ordered(
        Whole(
            rows,
            Jobs(*(column[mine] for column in jobs)),
            Incidents(*(column[noted] for column in incidents)),
            stop,
        )
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(joined())
def test_a_client_that_never_finishes_changes_nothing(
    case: tuple[SimulatedTimeline, SimulatedTimeline],
) -> None:
    alone, accompanied = map(whole, case)
    found = without(accompanied, client=3)
    if accompanied.rows.worker.shape[1] > alone.rows.worker.shape[1]:
        rows = found.rows
        assert (rows.worker[:, 3] == NO_WORKER).all()
        wide = ("worker", "job", "read_version", "read_slot")
        narrow = {name: getattr(rows, name)[:, :3] for name in wide}
        found = found._replace(rows=rows._replace(**narrow))
    # It holds the first register for ever, so that others have other numbers.
    assert_alike(alone, found, but=("read_slot", "write_slot"))


@pytest.mark.parametrize(
    ("protocol", "commits"),
    [
        (Synchronous(), 0),
        (Rounds(), 0),
        (TSynchronous(t=4), 0),
        # It has read version 0 and must be applied by version 5, and so must be before
        # any newer job that would then be among the first five.
        (Asynchronous(staleness_bound=5, beyond="wait"), 5),
    ],
    ids=["synchronous", "rounds", "t-synchronous", "stale-synchronous"],
)
def test_protocols_that_wait_for_it_stand_still(protocol: Any, commits: int) -> None:
    compute = Constant(value=(1.0, 1.3, 1.7, NEVER))
    found = whole(played(protocol, Clients(compute=compute), 4, time=1e6))
    assert found.stop is StopReason.TIME
    assert found.rows.time.size == commits
