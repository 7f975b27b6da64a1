"""MAPA's figure 8 on real processes, and its simulation.

    python -m evidence.studies.figure8 run FOLDER         # an hour, of two cores
    python -m evidence.studies.figure8 summarise FOLDER   # into results/testbed

`scenarios/mapa/testbed_cnn.yaml` is acted out by 5, 10, 15 and 20 processes, each of
which computes the gradients of its edge, and simulated with the same seeds. A second of
the scenario takes a tenth of a real one. CSGD waits for no other: it is only simulated.

What real time adds to a job is the time from its read to the client's next read, less
the law's draw, which is the simulation's time of the same job of the same client.

Processes of a session share what Linux gives to the session (`autogroup`), so that
`nice` alone does not put them before other sessions: on a machine that others use, give
the session a higher priority by `echo -5 > /proc/self/autogroup`, as root.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from stalesim.simulator.engine import simulation
from stalesim.simulator.files.study import load
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import expand

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios/mapa/testbed_cnn.yaml"
EDGES = (5, 10, 15, 20)
VARIANTS = ("csgd", "asgd", "audp", "audp-tuned", "mapa")
ACTED_OUT = ("asgd", "audp-tuned", "mapa")
SCALE = 0.1
"""Real seconds of one of the scenario."""
SEEDS = 2
FIRST = (
    "stop.commits=3000",
    "evaluate.every.commits=150",
    "algorithm.sigma=30",
    "variants.audp-tuned.algorithm.clip_bound=15",
)
"""What processes can do in an hour, and the constants that the scenario had then."""
EVERY_S = 2.0


def sets(kept: tuple[str, ...], clients: int) -> list[str]:
    """Returns options that keep some variants, and fix the number of edges."""
    entries = [
        *("sweep={}", "claims=[]", f"replicates={SEEDS}", *FIRST),
        f"problem.partition.clients={clients}",
        *(f"variants.{name}.algorithm.sigma=30" for name in kept if name != "mapa"),
        *(f"variants.{name}=null" for name in VARIANTS if name not in kept),
    ]
    return [word for entry in entries for word in ("--set", entry)]


def run(folder: Path) -> None:
    """Acts out and simulates everything; what is there already is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    watched = threading.Event()
    threading.Thread(target=_watch, args=(folder / "load.txt", watched)).start()
    acting = ["--compute", "gradients", "--time-scale", str(SCALE)]
    plans = [("csgd", "run", sets(("csgd",), EDGES[0]))]
    for clients in EDGES:
        mine = sets(ACTED_OUT, clients)
        plans.append((f"bed-{clients}", "testbed", [*mine, *acting]))
        plans.append((f"sim-{clients}", "run", mine))
    try:
        for name, command, options in plans:
            if not (folder / name).exists():
                words = [command, str(SCENARIO), *options, "-o", str(folder / name)]
                called = [sys.executable, "-m", "stalesim", *words, "--no-plots"]
                subprocess.run(called, check=True)
    finally:
        watched.set()


def _watch(path: Path, ended: threading.Event) -> None:
    """Writes down the machine's load."""
    with path.open("a") as file:
        while not ended.wait(EVERY_S):
            file.write(f"{time.time():.1f} {os.getloadavg()[0]:.2f}\n")
            file.flush()


# Summaries


def curves(folder: Path) -> pd.DataFrame:
    """Returns accuracy by commits and time: a row per evaluation of each run."""
    parts = []
    for clients in EDGES:
        places = {"testbed": f"bed-{clients}/study", "simulation": f"sim-{clients}"}
        for by, place in places.items():
            parts.append(_curve(folder / place).assign(clients=clients, by=by))
    parts.append(_curve(folder / "csgd").assign(clients=0, by="simulation"))
    return pd.concat(parts)[
        ["by", "clients", "variant", "replicate", "commits", "time", "test_accuracy"]
    ]


def _curve(place: Path) -> pd.DataFrame:
    study = load(place)
    runs = pd.DataFrame(study.manifest["runs"])[["run", "variant", "replicate"]]
    found = study.table("evaluations", ["run", "commits", "time", "test_accuracy"])
    return found.merge(runs, on="run")


def times(folder: Path) -> pd.DataFrame:
    """Returns what real time did to each run of the testbed."""
    watched = pd.read_csv(
        folder / "load.txt", sep=" ", header=None, usecols=[0, 1], names=["at", "load"]
    )
    rows = []
    for clients in EDGES:
        bed, sim = (
            load(folder / f"bed-{clients}/study"),
            load(folder / f"sim-{clients}"),
        )
        for entry in bed.manifest["runs"]:
            number = entry["run"]
            real, drawn = (_jobs(study, number) for study in (bed, sim))
            log = folder / f"bed-{clients}" / f"log-{number + 1}.csv"
            end = log.stat().st_mtime
            length = float(real["applied_time"].max())
            during = watched[watched["at"].between(end - length * SCALE, end)]
            rows.append(
                {
                    "clients": clients,
                    "variant": entry["variant"],
                    "replicate": entry["replicate"],
                    "load": during["load"].mean(),
                    "first_read_s": real.groupby("client")["read_time"].min().median(),
                    **_excess(real, drawn),
                    "model_apart": _model_apart(folder / f"bed-{clients}", number),
                    "end_s": length,
                    "simulated_end_s": float(drawn["applied_time"].max()),
                    **_staleness(real, ""),
                    **_staleness(drawn, "simulated_"),
                }
            )
    return pd.DataFrame(rows)


def _model_apart(bed: Path, number: int) -> float:
    """Returns the largest difference of the server's model and that of its replay."""
    scenario = validated(load(bed / "study").manifest["scenario"])
    plan = simulation.prepare(expand(scenario)[number])
    with jax.enable_x64(scenario.engine.precision == "float64"):
        runner = simulation._runner([plan], simulation._program([plan], "compiled"))
        assert list(runner.records())
        replayed = np.asarray(plan.kernel.read_out(runner._carry.state))
    return float(np.abs(np.load(bed / f"model-{number + 1}.npy") - replayed).max())


def _jobs(study: Any, run: int) -> pd.DataFrame:
    jobs = study.table("jobs")
    jobs = jobs[(jobs["run"] == run) & (jobs["outcome"] == "APPLIED")]
    return jobs.sort_values(["client", "job"])


def _excess(real: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, float]:
    """Returns what a job takes beyond its law, in parts, means in real milliseconds."""
    ends = drawn.assign(law=drawn["arrived_time"] - drawn["read_time"])
    both = real.merge(ends[["client", "job", "law"]], on=["client", "job"])
    after = both.groupby("client")["read_time"].shift(-1) - both["applied_time"]
    kept = after.notna()
    both, after = both[kept], after[kept]
    computed = both["computed_time"] - both["begun_time"]
    parts = {
        "to_client_ms": both["begun_time"] - both["read_time"],
        "computing_ms": computed - both["law"],
        "to_server_ms": both["arrived_time"] - both["computed_time"],
        "at_server_ms": after,
    }
    share = pd.concat(list(parts.values())).sum() / both["law"].sum()
    means = {name: 1e3 * SCALE * part.mean() for name, part in parts.items()}
    law = {"law_ms": 1e3 * SCALE * both["law"].mean()}
    return law | means | {"excess": float(share)}


def _staleness(jobs: pd.DataFrame, before: str) -> dict[str, float]:
    found = jobs["commit"] - 1 - jobs["read_version"]
    return {
        f"{before}staleness": float(found.mean()),
        f"{before}staleness_90": float(np.quantile(found, 0.9)),
    }


def summarise(folder: Path) -> None:
    """Writes the tables of which the page is made."""
    target = ROOT / "evidence/results/testbed"
    curves(folder).to_csv(target / "figure8.csv", index=False, float_format="%.5g")
    times(folder).to_csv(target / "figure8_times.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    {"run": run, "summarise": summarise}[what](Path(folder))
