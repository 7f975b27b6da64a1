"""Speed and memory of large worlds, compared with a bare heapq loop.

    python benchmarks/worlds.py [NAME...]     # default: everything

Every figure is processor time in a process of its own; the loop draws the
same kind of delays, keeps the order and writes a row per update, and does nothing else.
"""

import heapq
import resource
import subprocess
import sys
import time

import numpy as np

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.workload import Workload

EXPON = {"law": "expon"}
WORLDS = {
    "selected": (
        1_000_000,
        1000,
        400_000,
        {"compute": EXPON, "selection": {"in_flight": 1000}},
    ),
    "active": (1_000_000, 1_000_000, 400_000, {"compute": EXPON}),
    "stages": (
        1000,
        1000,
        200_000,
        {
            "compute": EXPON,
            "upload": {"latency": EXPON, "bandwidth": 1e6},
            "download": {"latency": EXPON, "bandwidth": 1e6},
        },
    ),
    "plain": (1000, 1000, 400_000, {"compute": EXPON}),
}


def play(num_clients: int, updates: int, clients: dict) -> None:
    plan = SimulatedTimeline(
        Clients.model_validate(clients),
        Asynchronous(),
        num_clients,
        1,
        Stop(commits=updates),
        Workload(40_000, 40_000, num_clients),
    )
    for _ in plan.chunks(65_536):
        pass


def loop(num_clients: int, in_flight: int, updates: int, draws: int) -> None:
    """The least that any simulator of these worlds must do, without their options."""
    rng = np.random.default_rng(0)
    first = rng.exponential(size=in_flight).tolist()
    pending = [(delay, client) for client, delay in enumerate(first)]
    heapq.heapify(pending)
    delays = iter(rng.exponential(size=(updates, draws)).sum(axis=1).tolist())
    chosen = iter(rng.integers(0, num_clients, updates).tolist())
    selects = in_flight < num_clients
    read: list[int] | dict[int, int] = {} if selects else [0] * num_clients
    if selects:
        read = dict.fromkeys(range(in_flight), 0)
    rows = []
    for version, delay in enumerate(delays):
        now, client = pending[0]
        rows.append((now, client, version, read[client]))
        if selects:
            del read[client]
            client = next(chosen)
            while client in read:
                client = (client + 1) % num_clients
        read[client] = version + 1
        heapq.heapreplace(pending, (now + delay, client))


def measure(name: str, what: str) -> None:
    num_clients, in_flight, updates, clients = WORLDS[name]
    started = time.process_time()
    if what == "loop":
        loop(num_clients, in_flight, updates, 3 if name == "stages" else 1)
    else:
        play(num_clients, updates, clients)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(seconds, peak)


def main(names: list[str]) -> None:
    for name in names or WORLDS:
        num_clients, in_flight, updates, _ = WORLDS[name]
        found = {}
        for what in ("loop", "play"):
            command = [sys.executable, __file__, "--measure", name, what]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            found[what] = [float(word) for word in run.stdout.split()]
        seconds, peak = found["play"]
        print(
            f"{name}: {num_clients:,} clients, {in_flight:,} in flight: "
            f"{updates / seconds:,.0f} updates per CPU second with set-up, "
            f"{found['loop'][0] / seconds:.2f} of a bare loop, {peak:,.0f} MiB"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        main(sys.argv[1:])
