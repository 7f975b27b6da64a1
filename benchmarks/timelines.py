"""Timelines by arrays, compared with SimPy's player on the same worlds.

    python benchmarks/timelines.py [NAME...]     # default: all worlds

Processor time of every chunk with its whole record (rows, jobs, incidents, registers),
each measured in a process of its own; SciPy is imported before. The players take turns,
and the best of three is compared.
"""

import resource
import subprocess
import sys
import time
from importlib import import_module
from typing import Any, Literal

EXPON: dict[str, Any] = {"law": "expon"}
LINK = {"latency": EXPON, "bandwidth": 1e6}
STAGES = {"idle": EXPON, "compute": EXPON, "upload": LINK, "download": LINK}
LOSS = {"chance": 0.1, "timeout": 1.0}
LONG, SHORT = {"law": "expon", "scale": 20}, {"law": "expon", "scale": 5}
AWAY = {
    "availability": {"kind": "on_off", "on": LONG, "off": SHORT},
    "crashes": {"after": {"law": "expon", "scale": 50}, "down": EXPON},
}
WORLDS: dict[str, tuple[int, int, dict[str, Any], dict[str, Any]]] = {
    "10": (10, 1_000_000, {"compute": EXPON}, {}),
    "1,000": (1000, 1_000_000, {"compute": EXPON}, {}),
    "100,000": (100_000, 1_000_000, {"compute": EXPON}, {}),
    "1,000,000": (1_000_000, 2_000_000, {"compute": EXPON}, {}),
    "1,000, all stages": (1000, 400_000, STAGES, {}),
    "1,000, all stages, losses": (1000, 400_000, STAGES | {"loss": LOSS}, {}),
    "1,000, all on a lattice": (
        1000,
        400_000,
        {"compute": {"law": "poisson", "mu": 5, "shift": 1}},
        {},
    ),
    "1,000, rejecting": (1000, 400_000, {"compute": EXPON}, {"staleness_bound": 1500}),
    "1,000, buffered": (1000, 100_000, {"compute": EXPON}, {"size": 10}),
    "100, synchronous": (100, 10_000, {"compute": EXPON}, {"kind": "synchronous"}),
    "1,000, coming and going": (1000, 200_000, {"compute": EXPON} | AWAY, {}),
    "1,000, uniform on a lattice": (
        1000,
        400_000,
        {"compute": {"law": "randint", "low": 1, "high": 8}},
        {},
    ),
    "10, idle": (10, 400_000, {"idle": EXPON, "compute": EXPON}, {}),
}
"""Clients, commits, options of the clients and of the protocol."""
ROUNDS = 3


def measure(name: str, player: Literal["fastest", "simpy"]) -> None:
    import_module("scipy.stats")  # takes longer than some of these worlds

    from simulator.config.stop import Stop
    from simulator.protocols import Asynchronous, Synchronous
    from simulator.protocols.buffered import Buffered
    from simulator.timelines.simulated import SimulatedTimeline
    from simulator.world.clients import Clients
    from simulator.world.workload import Workload

    number, commits, clients, options = WORLDS[name]
    kinds: dict[str, Any] = {"size": Buffered, "kind": Synchronous}
    kind = next((kinds[key] for key in options if key in kinds), Asynchronous)
    timeline = SimulatedTimeline(
        Clients.model_validate(clients),
        kind(**options),
        number,
        1,
        Stop(commits=commits),
        Workload(40_000, 40_000, number),
        player=player,
    )
    started, contributions = time.process_time(), 0
    for chunk in timeline.chunks(65_536):
        contributions += chunk.jobs.client.size
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(seconds, contributions, peak)


def main(names: list[str]) -> None:
    print("| clients | SimPy, jobs/s | arrays, jobs/s | ratio | MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in names or WORLDS:
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(ROUNDS):
            for player in ("simpy", "fastest"):
                command = [sys.executable, __file__, "--measure", name, player]
                run = subprocess.run(
                    command, capture_output=True, text=True, check=True
                )
                seconds, jobs, peak = map(float, run.stdout.split())
                best[player] = min(best.get(player, (1e9, 0, 0)), (seconds, jobs, peak))
        (slow, jobs, _), (fast, _, peak) = best["simpy"], best["fastest"]
        print(
            f"| {name} | {jobs / slow:,.0f} | {jobs / fast:,.0f} | "
            f"**{slow / fast:.1f}** | {peak:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])  # pyright: ignore[reportArgumentType]
    else:
        main(sys.argv[1:])
