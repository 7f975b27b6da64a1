"""stalesim itself, measured as its peers are: one run, or the study of 64.

    python stalesim_driver.py DATA.npz CLIENTS BATCH UPDATES [single|laws|steps]

UPDATES are of each run. A short study before the clock starts compiles; what is
measured is `simulate` in this one process: planning, playing, executing, evaluating,
writing.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import reporting

WHAT = sys.argv.pop()
DATA, CLIENTS, BATCH, UPDATES = reporting.arguments()

import study

from stalesim import simulator
from stalesim.simulator.scenario.scenario import Scenario


def scenario(updates: int) -> Scenario:
    """Returns the scenario of `benchmarks/study.py` on the data of all peers."""
    if WHAT == "single":
        tree = study.base(updates)
    else:
        tree = study.STUDIES[WHAT](updates).scenario
    tree["problem"] = {
        "data": {"kind": "npz", "path": DATA},
        "partition": {"kind": "iid", "clients": CLIENTS},
    }
    tree["algorithm"]["batch"] = BATCH
    tree["evaluate"] = {"every": {"commits": updates}}
    return Scenario.model_validate(tree)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        simulator.simulate(scenario(50), Path(folder) / "warm-up", jobs=1)
        with reporting.Stopwatch() as clock:
            made = simulator.simulate(scenario(UPDATES), Path(folder) / "study", jobs=1)
        updates = sum(run["commits"] for run in made.manifest["runs"])
    reporting.report(updates, clock, asynchronous=True, package="stalesim")


if __name__ == "__main__":
    main()
