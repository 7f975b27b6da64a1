"""Random worlds without feedback, and what two players make of them.

    python -m tests.unit.timelines.random_worlds 0 10000

compares arrays with SimPy on ten thousand of them.
"""

import random
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.turns import Centralised, Cyclic
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.arrays import blocks
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.workload import Workload
from tests.property.whole import (
    REGISTERS,
    as_played,
    assert_alike,
    assert_registers_hold,
)

MOVING: list[dict[str, Any]] = [
    {"law": "expon"},
    {"law": "uniform"},
    {"law": "gamma", "a": 2.0},
    {"law": "lognorm", "s": 1.0},
    {"law": "expon", "scale": "m"},
    {"law": "constant", "value": 1},
    {"law": "constant", "value": 0.5},
    {"law": "poisson", "mu": 1.0},
    {"law": "poisson", "mu": 0.5, "shift": 0.1},
    {"law": "randint", "low": 0, "high": 3},
    {"law": "randint", "low": 1, "high": 4, "scale": 0.25},
    {"law": "autoregressive", "of": {"law": "expon"}, "correlation": 0.8},
    {
        "law": "autoregressive",
        "of": {"law": "poisson", "mu": 1.0},
        "correlation": "1/m",
        "noise": 0.3,
    },
    {"law": "drifting", "of": {"law": "constant", "value": 1}, "factor": 2, "over": 9},
]
"""Laws with which time passes; many of them let events coincide."""
FACTORS: list[dict[str, Any]] = [
    {"law": "randint", "low": 1, "high": 4, "scale": 0.25},
    {"law": "autoregressive", "of": {"law": "lognorm", "s": 1}, "correlation": 0.8},
    {
        "law": "markov",
        "of": [{"law": "constant", "value": 1}, {"law": "constant", "value": "1+m"}],
        "transition": [[0.8, 0.2], [0.5, 0.5]],
    },
]
"""Laws of factors that slow clients in intervals."""
LAWS = [*MOVING, {"law": "constant", "value": 0}]


def world(seed: int) -> SimulatedTimeline:
    """Returns a random world with few clients and few commits."""
    r = random.Random(seed)
    number = r.choice([1, 2, 3, 7, 20, 64])
    clients = _behaviour(r)
    if number > 2 and r.random() < 0.3:
        first = r.randint(1, number - 1)
        clients["groups"] = {
            name: {"number": size, **(_behaviour(r) if r.random() < 0.5 else {})}
            for name, size in (("a", first), ("b", number - first))
        }
    if r.random() < 0.2:
        slowdowns = (
            {"kind": "named", "clients": [1], "factor": 3.0},
            {"kind": "random", "factor": 2.5},
            *(
                {
                    "kind": "shared",
                    "factor": r.choice(FACTORS),
                    "every": r.choice([0.5, 1, 7.3]),
                    "share": r.choice([0, 0.4, 1]),
                    "room": r.choice([1, "ceil(m/2)"]),
                    "stages": r.choice(
                        [["compute"], ["upload", "download"], ["upload", "compute"]]
                    ),
                }
                for _ in range(2)
            ),
        )
        clients["slowdowns"] = [r.choice(slowdowns) for _ in range(r.randint(1, 2))]
        for slowdown in clients["slowdowns"]:
            for stage in {*slowdown.get("stages", ())} - {"compute"}:
                clients.setdefault(stage, {"latency": MOVING[0]})
    protocol: Any = r.choice(
        [
            Asynchronous(),
            Asynchronous(staleness_bound=r.choice([0, 1, 3, 10])),
            Buffered(size=r.choice([1, 2, 5])),
            Buffered(window=r.choice([0.5, 1, 2.3, 10.0])),
            Synchronous(),
            Rounds(),
            Cyclic(step=r.choice(MOVING), lag=r.choice(["K", "K-1"])),
            Centralised(step=r.choice(MOVING)),
        ]
    )
    stop = _stop(r, in_rounds=protocol.cadence(1, 1).in_rounds)
    pooled = protocol.traits.pooled
    workload = Workload(
        r.choice([0, 40]),
        40,
        number,
        steps=r.choice([1, 3]),
        samples=r.choice([1, 4]),
        overhead_s=r.choice([0, 0, 0, 0.25]),
    )
    timeline = SimulatedTimeline(
        None if pooled else Clients.model_validate(clients),
        protocol,
        1 if pooled else number,
        r.randint(0, 999),
        stop,
        workload,
    )
    return of_few(timeline)


def of_few(timeline: SimulatedTimeline) -> SimulatedTimeline:
    """Returns a timeline that arrays make, if they can, of however few clients."""
    with patch.object(blocks, "MANY", 0):
        _ = timeline.feedback  # is worked out once
    return timeline


def _behaviour(r: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"compute": r.choice(MOVING)}
    for stage, chance in (("idle", 0.4), ("read", 0.2)):
        if r.random() < chance:
            found[stage] = r.choice(LAWS)
    for way, rates in (("upload", [10, "5*m"]), ("download", [10, 20])):
        if r.random() < 0.3:
            link = {"latency": r.choice(LAWS), "bandwidth": r.choice(rates)}
            found[way] = {k: v for k, v in link.items() if r.random() < 0.6}
    if r.random() < 0.2:
        found["compute_per"] = r.choice(["step", "sample"])
        found["compute_draws"] = r.choice(["each", "one"])
    if r.random() < 0.25:
        found["loss"] = {
            "chance": r.choice([0, 0.2, 0.5]),
            "timeout": r.choice([0.5, 1, 2.0]),
            "retries": r.choice([0, 1, 3]),
            "duplicates": r.choice([0, 0.3]),
        }
    return found


def _stop(r: random.Random, *, in_rounds: bool) -> Stop:
    limits: list[dict[str, Any]] = [
        {"commits": r.choice([1, 17, 150, 400])},
        {"time": r.choice([1.0, 5, 20.3, 40])},
        {"contributions": r.choice([1, 33, 200])},
        {"epochs": r.choice([1, 10])},
        {"bytes": r.choice([1000, 12345]), "time": 30},
        {"commits": 200, "time": 15},
    ]
    if in_rounds:
        limits.append({"rounds": r.choice([1, 30])})
    return Stop(**r.choice(limits))


def compare(timeline: SimulatedTimeline, num_rows: int = 97) -> None:
    """Compares what arrays make with what SimPy plays.

    Raises:
        AssertionError: they differ, or a register does not hold what is read from it.
    """
    played = as_played(replace(timeline, player="simpy"), 89)
    made = as_played(timeline, num_rows)
    assert_alike(played, made, but=REGISTERS)
    assert_registers_hold(made.rows, timeline.num_registers)


def main(first: int, last: int) -> int:
    """Compares worlds; prints those that differ, and returns how many did."""
    wrong = compared = 0
    for seed in range(first, last):
        timeline = world(seed)
        if timeline.feedback:
            continue
        compared += 1
        try:
            compare(timeline, (5, 61, 1000)[seed % 3])
        except AssertionError as error:
            wrong += 1
            sys.stdout.write(f"{seed}: {error}\n")
    sys.stdout.write(f"{compared} worlds, {wrong} of them different\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
