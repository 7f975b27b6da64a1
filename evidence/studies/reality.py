"""Predictions of a real system: made from one log, written down, then measured.

    python -m evidence.studies.reality calibrate FOLDER   # 1. one run of the testbed
    stalesim log fit FOLDER/calibration/log.csv -o FOLDER/world.yaml
    python -m evidence.studies.reality predict FOLDER     # 2. writes predictions.csv
    python -m evidence.studies.reality measure FOLDER     # 3. the held-out runs

and, with both tables in evidence/results/testbed, `python -m evidence.generate`: 4.
errors, order, verdicts (evidence/pages/reality.md).

The real system is the testbed (`stalesim testbed`): a server and up to 32 processes
on this machine, over TCP. A process sleeps recorded times: the mini-batch times of
workers of four jobs on Alibaba PAI, each job's divided by its mean and multiplied by
`MEAN_S`. The first half of each record is day 1, the second half day 2. The predictor
knows the log of the calibration alone (asynchronous, 32 clients, day 1), not the
records. What it has to foretell are other protocols, fewer clients, and day 2.

What is trained meanwhile is a linear model of digits. Processes sleep, and the engine
trains on the versions that they have read, which is what processes with real gradients
have at the end (`tests/extras/testbed/test_gradients.py`), but for the time to compute.

`predictions.csv` is to be committed before `measure`: it prints its SHA-256.

Measures leave out the start of a run, as `stalesim timeline` does. How they are
compared was written before any held-out run, too: `evidence/generators/reality.py`.

(The first predictions, committed in a78377de and compared after one repetition, had
neither a model nor factors of rooms; their log was lost. These are of a new log.)
"""

import hashlib
import itertools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from stalesim.analysis import timelines
from stalesim.simulator import studies
from stalesim.simulator import world as _world
from stalesim.simulator.catalogue.laws import fitting
from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.studies import saved

RECORDS = Path(_world.__file__).parent / "recorded/pai"
WORKERS = {1: 10, 2: 2, 3: 10, 4: 10}
"""Workers that are taken of each job: 32 in all."""
MEAN_S = 0.15
CALIBRATION_S, RUN_S = 40, 20
REPETITIONS, SEEDS = 3, 10
MOST = 32
QUANTILES = np.arange(0.025, 1, 0.05)
TARGET = 0.5
STEPS = {
    "asynchronous": 0.05,
    "buffered 4": 0.3,
    "synchronous": 1.0,
    "wait for 3/4": 1.0,
    "t-synchronous n/4": 0.3,
}
"""Step sizes, with which a simulation of log-normal times reached it in 3 to 15 s."""


def rows() -> list[dict[str, Any]]:
    """The configurations that are foretold and measured."""

    def protocols(n: int) -> dict[str, dict[str, Any]]:
        return {
            "asynchronous": {"kind": "asynchronous"},
            "buffered 4": {"kind": "buffered", "size": 4},
            "synchronous": {"kind": "synchronous"},
            "wait for 3/4": {"kind": "synchronous", "wait_for": 3 * n // 4},
            "t-synchronous n/4": {"kind": "t_synchronous", "t": n // 4},
        }

    found = []
    for day, n in itertools.product((1, 2), (8, 16, 32)):
        for name, protocol in protocols(n).items():
            if day == 1 and n < MOST and name in ("buffered 4", "t-synchronous n/4"):
                continue
            if (day, n, name) == (1, MOST, "asynchronous"):
                continue  # the calibration itself
            found.append({"row": f"{name}, {n}, day {day}", "protocol": protocol,
                          "clients": n, "day": day, "name": name})  # fmt: skip
    return found


def scenario(clients: Any, row: dict[str, Any], seconds: float, **more: Any) -> Any:
    step = STEPS[row["name"]]
    tree = {
        "name": "reality",
        "problem": {
            "data": {"kind": "digits", "scale": "unit"},
            "partition": {"kind": "iid", "clients": row["clients"]},
            "model": {"kind": "linear"},
        },
        "clients": clients,
        "protocol": row["protocol"],
        "algorithm": {"kind": "sgd", "step_size": step, "batch": 16},
        "stop": {"time": seconds},
        "evaluate": {"every": {"time": 0.1}, "metrics": ["objective"]},
    }
    return loads_any(json.dumps(tree | more), row["row"])


# The real system


def write_days(folder: Path) -> None:
    """Writes the records of both days; clients of the jobs alternate."""
    records = {
        job: pd.read_csv(RECORDS / f"job_{job}.csv.gz").assign(job=job)
        for job in WORKERS
    }
    chosen = [
        (job, worker)
        for worker in range(1, 11)
        for job, number in WORKERS.items()
        if worker <= number
    ]
    days: dict[int, list[pd.DataFrame]] = {1: [], 2: []}
    for client, (job, worker) in enumerate(chosen, 1):
        whole = records[job]
        time = whole.loc[whole["client"] == worker, "time"].to_numpy()
        time = np.maximum(time / whole["time"].mean() * MEAN_S, 1e-3)
        half = time.size // 2
        for day, part in ((1, time[:half]), (2, time[half:])):
            days[day].append(pd.DataFrame({"client": client, "time": part}))
    for day, parts in days.items():
        pd.concat(parts).to_csv(folder / f"day-{day}.csv", index=False)


def recorded(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    path = str((folder / f"day-{row['day']}.csv").absolute())
    law = {"law": "empirical", "path": path, "column": "time", "client": "client"}
    return {"compute": law | {"order": "replay"}}


def calibrate(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_days(folder)
    row = {"row": "calibration", "name": "asynchronous", "clients": MOST, "day": 1,
           "protocol": {"kind": "asynchronous"}}  # fmt: skip
    tree = scenario(recorded(folder, row), row, CALIBRATION_S)
    made = act_out(Bench(tree, folder / "calibration"))
    print(measures(made.timeline, made.study).to_string())


def measure(folder: Path) -> None:
    predictions = folder / "predictions.csv"
    print("predictions:", hashlib.sha256(predictions.read_bytes()).hexdigest())
    for repetition, row in itertools.product(range(REPETITIONS), rows()):
        place = folder / "runs" / f"{row['row']}, {repetition}".replace("/", "-")
        if (place / "done").exists():
            continue
        shutil.rmtree(place, ignore_errors=True)
        tree = scenario(recorded(folder, row), row, RUN_S)
        made = act_out(Bench(tree, place))
        if made.interrupted:
            return
        found = measures(made.timeline, made.study)
        found = found.assign(row=row["row"], repetition=repetition)
        found.to_csv(place / "measures.csv", index=False)
        (place / "done").touch()
    parts = sorted((folder / "runs").glob("*/measures.csv"))
    pd.concat([pd.read_csv(p) for p in parts]).to_csv(
        folder / "measured.csv", index=False
    )


# Predictions


def of_log(folder: Path) -> pd.DataFrame:
    log = pd.read_csv(folder / "calibration/log.csv")
    log = log[log["outcome"] == "applied"].sort_values("read_time")
    log["compute"] = log["computed_time"] - log["read_time"]
    log["upload"] = log["arrived_time"] - log["computed_time"]
    log["pause"] = log.groupby("client")["read_time"].shift(-1) - log["applied_time"]
    return log


def around(log: pd.DataFrame) -> dict[str, Any]:
    """What the system adds to computing: constants, medians of the log."""
    upload, pause = (max(float(log[c].median()), 0) for c in ("upload", "pause"))
    return {
        "upload": {"latency": {"law": "constant", "value": upload}},
        "idle": {"law": "constant", "value": pause},
    }


def predictors(folder: Path) -> dict[str, Any]:
    """Clients as each way of predicting has them; a function of their number."""
    log = of_log(folder)
    log[["client", "compute"]].to_csv(folder / "times.csv", index=False)
    path = str((folder / "times.csv").absolute())
    known = {"law": "empirical", "path": path, "column": "compute", "client": "client"}
    means = log.groupby("client")["compute"].mean().tolist()
    fits = {
        int(client): fitting.fit_law(np.asarray(mine["compute"]))
        for client, mine in log.groupby("client")
    }
    print("laws accepted:", sum(f.accepted for f in fits.values()), "of", len(fits))

    def own(client: int) -> dict[str, Any]:
        law = fits[client].law
        return law or {"law": "constant", "value": means[client - 1]}

    def independent(n: int) -> dict[str, Any]:
        groups = {f"c{c}": {"number": 1, "compute": own(c)} for c in range(1, n + 1)}
        return {"groups": groups}

    def constant(n: int) -> dict[str, Any]:
        return {"compute": {"law": "constant", "value": means[:n]}}

    def measured(order: str) -> Any:
        return lambda n: {"compute": known | {"order": order}}

    ways = {
        "constant mean": constant,
        "independent fit": independent,
        "resampling": measured("resample"),
        "replay": measured("replay"),
    }
    if (fitted := folder / "world.yaml").exists():  # by `stalesim log fit`
        tree = yaml.safe_load(fitted.read_text())["clients"]
        ways["stalesim fit"] = lambda n: _of_first(tree, n)
    return ways


def _of_first(tree: dict[str, Any], n: int) -> dict[str, Any]:
    """Returns a fitted world without the clients after the first n."""
    groups = dict(itertools.islice(tree["groups"].items(), n))
    slowdowns = []
    for slowdown in tree.get("slowdowns", ()):
        if "clients" not in slowdown:
            slowdowns.append(slowdown)
        elif some := [client for client in slowdown["clients"] if client <= n]:
            slowdowns.append(slowdown | {"clients": some})
    return tree | {"groups": groups, "slowdowns": slowdowns}


def predict(folder: Path) -> None:
    more, found = around(of_log(folder)), []
    for way, clients in predictors(folder).items():
        for row in rows():
            world = more | clients(row["clients"])
            tree = scenario(world, row, RUN_S, replicates=SEEDS, seed=2026)
            place = folder / "predicted" / way / row["row"].replace("/", "-")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            played = saved.record(tree, place / "timeline")
            replay = {"replay": str((place / "timeline").absolute())}
            again = scenario(
                world, row, RUN_S, replicates=SEEDS, seed=2026, timeline=replay
            )
            made = measures(played, studies.simulate(again, place / "study"))
            found.append(made.assign(row=row["row"], way=way))
        print(way, flush=True)
    table = pd.concat(found)
    table.groupby(["way", "row"], sort=False).mean(numeric_only=True).round(
        6
    ).reset_index().to_csv(folder / "predictions.csv", index=False)
    data = (folder / "predictions.csv").read_bytes()
    print("predictions:", hashlib.sha256(data).hexdigest())


def measures(timeline: Any, study: Any) -> pd.DataFrame:
    """Measures each run, real or simulated, by the same code.

    Args:
        timeline: Timelines of the runs.
        study: The study that trains on them.
    """
    view = timelines.View(timeline)
    table = view.by_run[
        [
            *("run", "commits_per_s", "contributions_per_s", "staleness_mean"),
            *("staleness_50", "staleness_90", "staleness_99", "waiting_mean"),
        ]
    ].reset_index(drop=True)
    ages = view.histogram(view.runs)
    at = np.searchsorted(np.cumsum(ages["share"]), QUANTILES)
    quantiles = dict(zip(names(), ages["staleness"].to_numpy()[at], strict=True))
    evaluations = study.table("evaluations", ["run", "time", "objective"])
    there = evaluations[evaluations["objective"] <= TARGET].groupby("run")["time"].min()
    return table.assign(
        utilisation=float(view.by_client["utilisation"].mean()),
        target_s=table["run"].map(there),
        **quantiles,
    )


def names() -> list[str]:
    """Returns the columns of the quantiles of staleness."""
    return [f"staleness_q{quantile:.3f}" for quantile in QUANTILES]


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    {"calibrate": calibrate, "predict": predict, "measure": measure}[what](Path(folder))
