"""Takers of one folder that are killed every few seconds.

    python benchmarks/takers.py                       # 64 runs by 4, 8 and 16 takers
    python benchmarks/takers.py --runs 6 --takers 2   # only to see that it works

Killed takers are replaced at once; leases last two seconds. Asserted are that the
folder has the bytes of one that a single process has written, and that every run is
in it once. Reported are how many takers were killed, claims a run (one without a
kill), and the seconds a run by which one undisturbed taker takes longer than
`studies.simulate`.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stalesim.simulator import studies
from stalesim.simulator.extras.clusters import takers
from stalesim.simulator.files.study import COLUMNS, load
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies.planning import claims_of

SCENARIO: dict[str, Any] = {
    "name": "takers",
    "seed": 1,
    "problem": {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": 10},
    },
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.05, "batch": 32},
    "engine": {"mode": "compiled"},
}
TAKER = """
import sys
from pathlib import Path
from stalesim.simulator.extras.clusters import takers
from stalesim.simulator.studies.running import scenario_of
folder = Path(sys.argv[1])
takers.take(scenario_of(folder), folder, beat_s=0.2, lease_s=2.0)
"""


def digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of the tables."""
    return {
        f"{name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for name in COLUMNS
        for path in (folder / name).glob("*")
    }


def disturbed(folder: Path, number: int, kill_s: float) -> tuple[int, int]:
    """Lets takers work until a study is complete, one of which is killed now and then.

    Returns:
        The takers that were killed, and the claims of all tasks.
    """
    rng, killed, claims = random.Random(number), 0, set[str]()
    place, command = claims_of(folder, 1), [sys.executable, "-c", TAKER, str(folder)]
    pool = [subprocess.Popen(command) for _ in range(number)]
    due = time.monotonic() + kill_s
    while any(process.poll() is None for process in pool):
        claims |= {".".join(path.name.split(".")[:2]) for path in place.glob("0*")}
        if time.monotonic() > due and not load(folder, quietly=True).complete:
            due = time.monotonic() + rng.expovariate(1 / kill_s)
            one = rng.randrange(number)
            killed += pool[one].poll() is None
            pool[one].send_signal(signal.SIGKILL)
            pool[one].wait()
            pool[one] = subprocess.Popen(command)
        time.sleep(0.02)
    return killed, len(claims)


def main() -> None:
    """Prints a row for each number of takers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--takers", type=int, nargs="*", default=[4, 8, 16])
    parser.add_argument("--kill-s", type=float, default=3.0)
    options = parser.parse_args()
    stop = {"commits": options.commits}
    tree = {"replicates": options.runs, "stop": stop, "evaluate": {"every": stop}}
    scenario = validated(SCENARIO | tree)
    with tempfile.TemporaryDirectory() as scratch:
        studies.simulate(scenario, Path(scratch) / "warm")  # compiles the program
        start = time.perf_counter()
        studies.simulate(scenario, Path(scratch) / "one")
        alone = time.perf_counter() - start
        whole = digests(Path(scratch) / "one")
        takers.begin(scenario, Path(scratch) / "single")
        start = time.perf_counter()
        takers.take(scenario, Path(scratch) / "single")
        over = (time.perf_counter() - start - alone) / options.runs
        assert digests(Path(scratch) / "single") == whole
        print(f"one taker: {over:+.4f} s a run, of {alone / options.runs:.4f}")
        for number in options.takers:
            folder = Path(scratch) / str(number)
            takers.begin(scenario, folder)
            killed, claims = disturbed(folder, number, options.kill_s)
            study = load(folder)
            assert study.complete
            assert all(run["stop"] == "commits" for run in study.manifest["runs"])
            assert digests(folder) == whole, "the folder has other bytes"
            print(
                f"{number} takers: {killed} killed, {claims / options.runs:.2f} claims "
                f"a run; every run once, all files equal"
            )


if __name__ == "__main__":
    main()
