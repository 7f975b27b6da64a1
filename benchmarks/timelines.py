"""Timelines by arrays, compared with SimPy's player on the same worlds.

    python benchmarks/timelines.py [NAME...]     # default: all worlds
    python benchmarks/timelines.py summary     # a million clients, ten million commits
    python benchmarks/timelines.py record      # the same with its whole record

Processor time of every chunk with its whole record (rows, jobs, incidents, registers),
and with statistics alone, each measured in a process of its own; SciPy is imported
before. The players take turns, and the best of three is compared. `summary` is the
whole command `stalesim timeline --summary`, from starting Python to its last table.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

EXPON: dict[str, Any] = {"law": "expon"}
LINK = {"latency": EXPON, "bandwidth": 1e6}
STAGES = {"idle": EXPON, "compute": EXPON, "upload": LINK, "download": LINK}
LOSS = {"chance": 0.1, "timeout": 1.0}
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
    "1,000, uniform on a lattice": (
        1000,
        400_000,
        {"compute": {"law": "randint", "low": 1, "high": 8}},
        {},
    ),
    "10, idle": (10, 400_000, {"idle": EXPON, "compute": EXPON}, {}),
}
"""Clients, commits, options of the clients and of the protocol."""
MOST_GIB = 1.5
"""Of a million clients and ten million commits: what more memory would end it."""
ROUNDS = 3
STALESIM = [sys.executable, "-m", "stalesim"]


def measure(name: str, way: str) -> None:
    import_module("scipy.stats")  # takes longer than some of these worlds

    from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
    from stalesim.simulator.catalogue.protocols.buffered import Buffered
    from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
    from stalesim.simulator.files.summary import Summary
    from stalesim.simulator.parts.stop import Stop
    from stalesim.simulator.studies.saved import PAIRS
    from stalesim.simulator.timelines.simulated import SimulatedTimeline
    from stalesim.simulator.world.clients import Clients
    from stalesim.simulator.world.workload import Workload

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
        player="simpy" if way == "simpy" else "fastest",
    )
    started, contributions, last = time.process_time(), 0, 0.0
    summary = Summary(number, number) if way == "summary" else None
    for chunk in timeline.chunks(max(PAIRS, number // 4 if summary else 0)):
        contributions += chunk.jobs.client.size
        if summary is not None:
            summary.add(chunk)
        if chunk.rows.time.size:
            last = float(chunk.rows.time[-1])
    if summary is not None:
        summary.finish(last)
        summary.clients(0, last), summary.ages(0)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(seconds, contributions, peak)


def main(names: list[str]) -> None:
    print(
        "| clients | SimPy, jobs/s | arrays | ratio | MiB | statistics | ratio | MiB |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in names or WORLDS:
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(ROUNDS):
            for way in ("simpy", "fastest", "summary"):
                command = [sys.executable, __file__, "--measure", name, way]
                run = subprocess.run(
                    command, capture_output=True, text=True, check=True
                )
                seconds, jobs, peak = map(float, run.stdout.split())
                best[way] = min(best.get(way, (1e9, 0, 0)), (seconds, jobs, peak))
        slow, jobs, _ = best.pop("simpy")
        cells = [
            f"{jobs / fast:,.0f} | **{slow / fast:.1f}** | {peak:,.0f}"
            for fast, _, peak in best.values()
        ]
        print(f"| {name} | {jobs / slow:,.0f} | {' | '.join(cells)} |", flush=True)


def whole_command(kept: str) -> None:
    tree = {
        "name": "million",
        "clients": {"number": 1_000_000, "compute": EXPON},
        "protocol": {"kind": "asynchronous"},
        "stop": {"commits": 10_000_000},
    }
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "million.json"
        file.write_text(json.dumps(tree))
        more = ["--summary"] if kept == "summary" else []
        peak = finished([*STALESIM, "timeline", str(file), *more, "-o", f"{place}/out"])
    if peak > MOST_GIB:
        sys.exit(f"at most {MOST_GIB} GiB were expected")


def finished(command: list[str]) -> float:
    """Runs a command, prints its status, times and memory, and returns the GiB."""
    started = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    busy = used.ru_utime + used.ru_stime
    peak = used.ru_maxrss / 2**20
    print(
        f"status {status}: {wall:.0f} s, {busy:.0f} of processor time, {peak:.2f} GiB"
    )
    return peak


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    elif sys.argv[1:] in (["summary"], ["record"]):
        whole_command(sys.argv[1])
    else:
        main(sys.argv[1:])
