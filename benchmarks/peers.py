"""Updates per CPU second, next to the public simulators that are installed.

    python benchmarks/peers.py --python-flgo PATH --python-fedjax PATH --python-pfl PATH
    python benchmarks/peers.py --updates 1000 --peer-updates 500  # to see that it works

Each peer has a virtual environment of its own, whose interpreter is given as above or
by STALESIM_PEER_FLGO and so on; a peer that is not installed is skipped, and said to
be. They install so:

    python3.11 -m venv flgo
    flgo/bin/pip install flgo==0.4.4 torch==2.2.2 torchvision==0.17.2 "numpy<2"
    python3.11 -m venv fedjax
    fedjax/bin/pip install fedjax==0.0.17 jax==0.4.20 jaxlib==0.4.20 "numpy<2" \\
        "scipy<1.12" "dm-haiku<0.0.12" "flax<0.8"
    python3.11 -m venv pfl
    pfl/bin/pip install pfl==0.6.0 torch

Logistic regression 784 -> 10 on random arrays of MNIST's shape, batch 32, one local
step, 10 clients. An update is one client's contribution. A peer without asynchrony
makes rounds of all its clients, which is less work: said in the table. Every driver
(`peers/`) warms up, then notes the processor time of its process, all threads; nothing
is evaluated but, by stalesim, at the beginning and the end. Measured in turns, the best
of a few.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CLIENTS, BATCH = 10, 32
NUM_SAMPLES, NUM_FEATURES, NUM_CLASSES = 4_000, 784, 10
DRIVERS = Path(__file__).parent / "peers"
PEERS = ("flgo", "fedjax", "pfl")
OURS = {
    "single": "stalesim, one run",
    "laws": "stalesim, study of 8 laws x 8",
    "steps": "stalesim, study of 8 step sizes x 8",
}


class Entry(NamedTuple):
    """Something to be measured.

    Attributes:
        title: Title in the table.
        command: Command of the driver.
    """

    title: str
    command: list[str]


def write_data(path: Path) -> None:
    """Writes random arrays of MNIST's shape."""
    rng = np.random.default_rng(1)
    x = rng.random((NUM_SAMPLES, NUM_FEATURES), dtype=np.float32)
    y = rng.integers(0, NUM_CLASSES, NUM_SAMPLES, dtype=np.int32)
    np.savez(path, x=x, y=y)


def entries(options: argparse.Namespace, data: Path) -> list[Entry]:
    """Returns the peers that can be measured here; prints those that cannot."""
    setting = [str(data), str(CLIENTS), str(BATCH)]
    ours = [sys.executable, str(DRIVERS / "stalesim_driver.py"), *setting]
    found = [
        Entry(title, [*ours, str(options.updates), what])
        for what, title in OURS.items()
    ]
    for peer in PEERS:
        python = getattr(options, f"python_{peer}")
        if not python or not _has(python, peer):
            print(f"{peer}: not installed, skipped (see --help)", file=sys.stderr)
            continue
        driver = [python, str(DRIVERS / f"{peer}_driver.py"), *setting]
        found.append(Entry(peer, [*driver, str(options.peer_updates)]))
    return found


def _has(python: str, package: str) -> bool:
    found = (
        f"import importlib.util as u; raise SystemExit(not u.find_spec({package!r}))"
    )
    try:
        return not subprocess.run([python, "-c", found], check=False).returncode
    except OSError:
        return False


def measure(entry: Entry) -> dict[str, Any] | None:
    """Runs a driver; returns what it reports, None where it fails."""
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(threads, "1")}
    done = subprocess.run(
        entry.command, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{entry.title} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def rate(found: dict[str, Any]) -> float:
    """Returns updates per CPU second."""
    return found["updates"] / found["run_cpu_s"]


def show(best: dict[str, dict[str, Any]]) -> None:
    """Prints the table; the ratios are to our single run and to our study of laws."""
    single, study = (best.get(OURS[what]) for what in ("single", "laws"))
    print(
        "| | version | protocol | updates per CPU s | one run is faster by | the "
        "study is faster by | start, CPU s |"
    )
    print("|---|---|---|---|---|---|---|")
    for title, found in best.items():
        kind = "asynchronous" if found["asynchronous"] else "synchronous"
        ratios = (
            f"{rate(ours) / rate(found):.1f}" if ours else "-"
            for ours in (single, study)
        )
        print(
            f"| {title} | {found['version']} | {kind} | {rate(found):,.0f} | "
            f"{' | '.join(ratios)} | {found['startup_cpu_s']:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=20_000, help="of a run of ours")
    parser.add_argument("--peer-updates", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=3)
    for peer in PEERS:
        named = os.environ.get(f"STALESIM_PEER_{peer.upper()}")
        parser.add_argument(f"--python-{peer}", default=named, metavar="PATH")
    options = parser.parse_args()
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        data = Path(folder) / "data.npz"
        write_data(data)
        chosen = entries(options, data)
        for _ in range(options.repeats):
            for entry in chosen:
                found = measure(entry)
                if found is None:
                    continue
                known = best.get(entry.title)
                if known is None or rate(found) > rate(known):
                    best[entry.title] = found
    show(best)


if __name__ == "__main__":
    main()
