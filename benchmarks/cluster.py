"""One study over Dask workers that are further away than this machine.

    python benchmarks/cluster.py                 # 2, 4 and 8 workers, 0 and 20 ms
    python benchmarks/cluster.py --runs 16       # only to see that it works

Every worker is a process that reaches the scheduler, and is reached, through a relay
that hands all bytes on later: an emulated latency (one way). Reported are wall seconds
from starting `stalesim run` to its end, without figures, and by how much a run takes
longer than in as many processes by `--jobs`, which there are no relays for. At last one
of four workers is slow (stopped nine tenths of the time), or is killed half-way.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from distributed import Client

UPDATES = 200
SCENARIO: dict[str, Any] = {
    "name": "cluster",
    "seed": 1,
    "problem": {
        "data": {"kind": "mnist", "source": "bundled"},
        "partition": {"kind": "iid", "clients": 10},
    },
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.05, "batch": 32},
    "stop": {"commits": UPDATES},
    "evaluate": {"every": {"commits": UPDATES}},
}
STOPPED_S, RUNNING_S = 0.9, 0.1


async def relay(port: int, to: int, delay_s: float) -> None:
    """Hands on all bytes between a port and another, each after a delay."""

    async def hand_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop, last = asyncio.get_running_loop(), None
        while data := await reader.read(1 << 20):
            last = loop.call_later(delay_s, writer.write, data)
        if last is not None:
            await asyncio.sleep(delay_s)
        writer.close()

    async def connect(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(hand_on(reader, back), hand_on(there, writer))

    async with await asyncio.start_server(connect, "127.0.0.1", port) as server:
        await server.serve_forever()


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class RelayedCluster:
    """A scheduler and workers behind relays.

    Args:
        number: Workers, each of one thread.
        delay_s: One-way latency of every message, seconds.
    """

    def __init__(self, number: int, delay_s: float) -> None:
        self.processes: list[subprocess.Popen] = []
        self.workers: list[subprocess.Popen] = []
        scheduler, towards, *ports = free_ports(2 + 2 * number)
        self.address = f"tcp://127.0.0.1:{scheduler}"
        self._start(
            *("-m", "distributed.cli.dask_scheduler", "--no-dashboard"),
            *("--host", "127.0.0.1", "--port", scheduler, "--no-show"),
        )
        self._start(__file__, "--relay", towards, scheduler, delay_s)
        for own, shown in zip(ports[::2], ports[1::2], strict=True):
            self._start(__file__, "--relay", shown, own, delay_s)
            worker = self._start(
                *("-m", "distributed.cli.dask_worker"),
                f"tcp://127.0.0.1:{towards}",
                *("--nthreads", 1, "--no-nanny", "--no-dashboard"),
                *("--listen-address", f"tcp://127.0.0.1:{own}"),
                *("--contact-address", f"tcp://127.0.0.1:{shown}"),
            )
            self.workers.append(worker)
        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(number, timeout=120)

    def _start(self, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, *map(str, arguments)]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.processes.append(process)
        return process

    def __enter__(self) -> "RelayedCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def study(
    folder: Path, runs: int, *arguments: object, by: tuple[str, ...] = ()
) -> subprocess.Popen:
    """Starts a study, perhaps by another command in front of `run`."""
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(SCENARIO | {"replicates": runs}))
    command = [sys.executable, "-m", "stalesim", *by, "run", file, "-o", folder]
    return subprocess.Popen(
        [*map(str, command), "--no-plots", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
    )


def seconds(process: subprocess.Popen) -> float:
    """Waits for a study that was just started; returns how long it took."""
    started = time.perf_counter()
    if process.wait() != 0:
        raise SystemExit("the study has failed")
    return time.perf_counter() - started


def ended(folder: Path) -> int:
    """Returns how many runs of a study under way have ended."""
    journals = folder.glob("journal-*.log")
    return sum(text.count('"stop"') for text in (p.read_text() for p in journals))


def finished(folder: Path) -> tuple[int, int]:
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    return sum(run["stop"] == "commits" for run in runs), len(runs)


def slow_down(worker: subprocess.Popen, process: subprocess.Popen) -> None:
    """Stops a worker nine tenths of the time until a study has ended."""
    while process.poll() is None:
        worker.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        worker.send_signal(signal.SIGCONT)
        time.sleep(RUNNING_S)


def main(runs: int, numbers: list[int]) -> None:
    place = Path(tempfile.mkdtemp(prefix="stalesim-cluster-"))
    seconds(study(place / "warm", 4, "--jobs", 2))  # compiled programs are cached now
    print(f"{runs} runs of {UPDATES} updates, {os.cpu_count()} cores")
    print("| workers | one way | wall s | --jobs, wall s | more, ms a run |")
    print("| --- | --- | ---: | ---: | ---: |")
    alone = {n: seconds(study(place / f"j{n}", runs, "--jobs", n)) for n in numbers}
    for number in numbers:
        for delay_s in (0.0, 0.02):
            with RelayedCluster(number, delay_s) as cluster:
                by = "cluster", "dask", cluster.address
                seconds(study(place / f"w{number}-{delay_s}", 2 * number, by=by))
                took = seconds(study(place / f"d{number}-{delay_s}", runs, by=by))
            more = 1000 * (took - alone[number]) / runs
            print(
                f"| {number} | {1000 * delay_s:g} ms | {took:.1f} | "
                f"{alone[number]:.1f} | {more:+.0f} |",
                flush=True,
            )
    for case in ("all four as they are", "one of four slow", "one of four killed"):
        folder = place / case.replace(" ", "-")
        with RelayedCluster(4, 0.02) as cluster:
            by = "cluster", "dask", cluster.address
            seconds(study(place / f"{folder.name}-first", 8, by=by))
            started = time.perf_counter()
            process = study(folder, runs, by=by)
            if case.endswith("slow"):
                slow_down(cluster.workers[0], process)
            elif case.endswith("killed"):
                while ended(folder) < runs // 2 and process.poll() is None:
                    time.sleep(0.05)
                cluster.workers[0].kill()
            process.wait()
            took = time.perf_counter() - started
        done, of = finished(folder)
        print(f"{case}: {took:.1f} s, {done} of {of} runs finished", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--relay"]:
        asyncio.run(relay(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--runs", type=int, default=96)
        parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
        chosen = parser.parse_args()
        main(chosen.runs, chosen.workers)
