"""Timelines by arrays are those that SimPy plays, bit for bit."""

import heapq
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.catalogue.protocols.turns import Centralised
from stalesim.simulator.engine.of_run import timeline as timeline_of
from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.setting import BaseScenario, Recording, WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from stalesim.simulator.timelines.arrays.blocks import free_rule
from stalesim.simulator.timelines.arrays.events import in_order
from stalesim.simulator.timelines.arrays.job_arrays import LATER, Registers
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.links import Quota
from stalesim.simulator.world.recorders.recorder import Recorder
from stalesim.simulator.world.streams import Purpose, Streams
from stalesim.simulator.world.workload import Workload
from tests.property.whole import whole
from tests.unit.timelines.random_worlds import compare, world

SCENARIOS = Path(__file__).parents[3] / "scenarios"
EXPON = {"law": "expon"}


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_worlds(first: int) -> None:
    _compare_worlds(range(first, first + 100), least=80)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 11_000, 2500))
def test_ten_thousand_random_worlds(first: int) -> None:
    _compare_worlds(range(first, first + 2500), least=2100)


def _compare_worlds(seeds: range, least: int) -> None:
    compared = 0
    for seed in seeds:
        timeline = world(seed)
        if timeline.feedback:
            continue
        try:
            compare(timeline, (5, 61, 1000)[seed % 3])
        except AssertionError as error:
            raise AssertionError(f"world {seed}") from error
        compared += 1
    assert compared >= least


@pytest.mark.long
def test_shipped_scenarios() -> None:
    compared = 0
    for path in sorted(SCENARIOS.rglob("*.yaml")):
        read = read_any(path)
        if not isinstance(read, BaseScenario):
            continue  # a world that an extra plays, by players of its own
        firsts = {run.variant: run for run in reversed(expand(read))}
        for run in firsts.values():
            try:
                timeline = timeline_of(run)
            except DataError:  # a set that is not on this machine; most are
                continue
            if not isinstance(timeline, SimulatedTimeline) or timeline.feedback:
                continue
            short = replace(timeline, stop=Stop(commits=40))
            compare(short)
            compared += 1
    assert compared > 150


def _timeline(clients: dict[str, Any] | None = None, **other: Any) -> SimulatedTimeline:
    made = Clients.model_validate(clients or {"compute": EXPON})
    parts = {"protocol": Asynchronous(), "num_clients": 5, "stop": Stop(commits=50)}
    return SimulatedTimeline(
        made, seed=1, workload=Workload(4, 4, 5), **(parts | other)
    )


@pytest.mark.parametrize("blocks", [1, 7, 64])
def test_blocks_of_any_size_join(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times at which a block ends are times of events, and cut chains of ties."""
    for module in ("arrivals", "lock_step"):
        monkeypatch.setattr(
            f"stalesim.simulator.timelines.arrays.{module}.BLOCK", blocks
        )
    monkeypatch.setattr("stalesim.simulator.timelines.arrays.arrivals.FIRST", 2)
    _compare_worlds(range(500, 560), least=30)


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_taken_as_a_heap_takes_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(1, 6)), int(rng.integers(1, 30))
    steps = rng.integers(0, 3, (K, n))
    before = rng.permutation(K)
    queue, count, found = [], 0, []
    for client in np.argsort(before).tolist():
        heapq.heappush(queue, (int(steps[client, 0]), count, client, 0))
        count += 1
    while queue:
        time, _, client, number = heapq.heappop(queue)
        found.append(client * n + number)
        if number + 1 < n:
            later = time + int(steps[client, number + 1])
            heapq.heappush(queue, (later, count, client, number + 1))
            count += 1
    times = np.cumsum(steps, axis=1).ravel()
    assert in_order(times, np.repeat(np.arange(K), n), before).tolist() == found


def test_registers_are_taken_when_they_are_free() -> None:
    registers = Registers(3)
    none = np.zeros(0, np.int64)
    # Version 1 is read until position 5, version 2 by none, version 3 for longer.
    given = registers.assign(
        np.array([1, 3, 5]), np.array([1, 3]), np.array([5, LATER]), none, none
    )
    assert given.tolist()[0] == 0
    assert given[1] != given[3]
    assert given[2] > 10  # no register
    # Its reader ends after the next version is made: that one has another register.
    later = registers.assign(np.array([1]), none, none, given[3:], np.array([2]))
    assert later[0] == given[3]
    assert later[1] != given[3]
    crowded = Registers(1)
    with pytest.raises(AssertionError, match="more registers than it says"):
        crowded.assign(np.array([1]), np.array([0, 1]), np.full(2, LATER), none, none)


@pytest.mark.parametrize("n", [1, 3, 64, 70])
def test_rectangles_of_random_numbers(n: int) -> None:
    streams, clients = Streams(3), np.array([5, 0, 9])
    first = np.array([2, 7, 4])
    found = streams.rectangle(Purpose.COMPUTE, clients, first, n)
    for row, client, at in zip(found, clients, first, strict=True):
        known = streams.scattered(Purpose.COMPUTE, client, np.arange(at, at + n))
        np.testing.assert_array_equal(row, known)


@pytest.mark.parametrize("protocol", [Asynchronous(), Synchronous(), Centralised()])
def test_chunks_are_equal_parts(protocol: Any) -> None:
    timeline = _timeline(protocol=protocol)
    if protocol.traits.pooled:
        timeline = replace(timeline, clients=None, num_clients=1)
    assert [c.rows.time.size for c in timeline.chunks(16)] == [13, 13, 13, 11]
    assert [c.rows.time.size for c in timeline.chunks(25)] == [25, 25]


class Halting(Asynchronous):
    """Plays otherwise than what it inherits from."""

    def play(self, world: Any, recorder: Any) -> None:
        """Starts nothing."""


ON_OFF = {"kind": "on_off", "on": EXPON, "off": EXPON}
REGIME = {"kind": "regime", "factor": 2.0, "normal": EXPON, "slow": EXPON}
SHARED = {"kind": "shared", "factor": EXPON, "every": 1}
ROUNDS = {"protocol": Synchronous()}
LOSS = {"chance": 0.1, "timeout": 1.0}


@pytest.mark.parametrize(
    ("clients", "other", "words"),
    [
        ({}, {"protocol": TSynchronous(t=2)}, "the protocol t_synchronous"),
        ({}, {"protocol": Asynchronous(staleness_bound=1, beyond="wait")}, "protocol"),
        ({}, {"protocol": Synchronous(deadline=1.0)}, "the protocol synchronous"),
        ({}, {"protocol": Halting()}, "the protocol asynchronous"),
        ({}, {"server": Server(service=EXPON)}, "the server's queue"),
        ({}, {"server": Server(upload_bandwidth=1.0)}, "a link that clients share"),
        ({}, {"quota": Quota((3,) * 5)}, "a privacy budget"),
        ({"selection": {"in_flight": 2}}, {}, "a selection of clients"),
        ({"availability": ON_OFF}, {}, "clients that come and go"),
        ({"crashes": {"after": EXPON, "down": EXPON}}, {}, "clients that come and go"),
        ({"leave": 3.0}, ROUNDS, "clients that come and go"),
        ({"join": "m"}, ROUNDS, "clients that come and go"),
        ({"slowdowns": [REGIME]}, {}, "a slowdown that is worked out job by job"),
        ({"slowdowns": [SHARED]}, {}, "fewer than 32 clients that are slow at times"),
        ({"slowdowns": [SHARED]}, ROUNDS, "rounds of clients who are slow at times"),
        ({"loss": LOSS}, ROUNDS, "rounds of clients who are slow at times, or lose"),
    ],
)
def test_worlds_with_feedback_are_played(
    clients: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    timeline = _timeline({"compute": EXPON} | clients, **other)
    assert words in timeline.feedback
    assert timeline.made_by == f"SimPy, because of {timeline.feedback}"


def test_worlds_without_feedback_are_not() -> None:
    for protocol in (Asynchronous(), Buffered(size=2), Synchronous()):
        timeline = _timeline(protocol=protocol)
        assert timeline.made_by == "arrays"
        assert replace(timeline, player="simpy").made_by == "SimPy"
        assert replace(timeline, player="simpy").digest == timeline.digest


def test_intervals_of_a_file_begin_again_with_every_period(tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    path.write_text(
        "client,start,end\n1,0,4\n1,6,9\n2,1,2.5\n3,0,10\n4,3,3.5\n5,9,10\n"
    )
    traced = {"kind": "trace", "path": str(path), "period": 10}
    world = {"compute": {"law": "constant", "value": 0.8}, "availability": traced}
    timeline = _timeline(world, stop=Stop(time=95))
    jobs = whole(timeline).jobs
    for client, there in ((0, ((0, 4), (6, 9))), (1, ((1, 2.5),)), (4, ((9, 10),))):
        begun = jobs.begun_time[jobs.client == client]
        assert {int(time // 10) for time in begun} == set(range(10 - (client == 4)))
        inside = [(lo <= begun % 10) & (begun % 10 < hi) for lo, hi in there]
        assert np.any(inside, axis=0).all()
    short = _timeline({"compute": EXPON, "availability": traced | {"period": 9}})
    with pytest.raises(DataError, match="within the period of 9 s, got 0 to 10 in row"):
        whole(short)


def test_time_that_stands_still_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = ("arrivals", "lock_step")
    for module in (*(f"arrays.{name}" for name in modules), "simulated"):
        monkeypatch.setattr(f"stalesim.simulator.timelines.{module}.STUCK", 2000)
    never = {"law": "poisson", "mu": 1e-9}
    for protocol in (Asynchronous(), Synchronous()):
        timeline = _timeline({"compute": never}, protocol=protocol)
        timeline = replace(timeline, stop=Stop(time=1.0))
        for player in ("fastest", "simpy"):
            with pytest.raises(ScenarioError, match="clients must take time, but"):
                whole(replace(timeline, player=player), 500)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("player", ["fastest", "simpy"])
def test_a_scenario_chooses_and_its_manifest_says(player: str, tmp_path: Path) -> None:
    tree = {
        "name": "few",
        "clients": {"number": 3, "compute": EXPON},
        "protocol": {"kind": "asynchronous"},
        "stop": {"commits": 9},
        "timeline": {"player": player},
    }
    (run,) = record(WorldScenario.model_validate(tree), tmp_path / "t").manifest["runs"]
    assert run["player"] == {"fastest": "arrays", "simpy": "SimPy"}[player]


def test_what_is_replayed_has_no_player() -> None:
    with pytest.raises(ValueError, match=r"timeline\.player must be left out"):
        Recording(replay="there", player="simpy")
    assert Recording(player="simpy").replay is None


class OwnRecorder(Recorder):
    """Notes something that arrays do not."""


class Noting(Asynchronous):
    """Is played as its base, but recorded otherwise."""

    records: ClassVar[type[Recorder]] = OwnRecorder


def test_a_protocol_with_a_recorder_of_its_own_is_played() -> None:
    assert free_rule(Asynchronous()) is not None
    assert free_rule(Noting()) is None
