"""Predictions of a real system: made from one log, written down, then measured.

    python benchmarks/reality.py calibrate FOLDER   # 1. one run of the testbed
    stalesim fit FOLDER/calibration/log.csv -o FOLDER/world.yaml
    python benchmarks/reality.py predict FOLDER     # 2. writes predictions.csv
    python benchmarks/reality.py measure FOLDER     # 3. the held-out runs
    python benchmarks/reality.py compare FOLDER     # 4. errors, order, verdicts

The real system is the testbed (`stalesim testbed`): a server and up to 32 processes
on this machine, over TCP. A process sleeps recorded times: the mini-batch times of
workers of four jobs on Alibaba PAI, each job's divided by its mean and multiplied by
`MEAN_S`. The first half of each record is day 1, the second half day 2. The predictor
knows the log of the calibration alone (asynchronous, 32 clients, day 1), not the
records. What it has to foretell are other protocols, fewer clients, and day 2.

`predictions.csv` is to be committed before `measure`: it prints its SHA-256.

Rules, written before any held-out run: measures leave out the start of a run, as
`stalesim timeline` does. The error of throughput is signed and relative. That of mean
staleness is good within 10 % or 0.3 versions. Order: Kendall's tau of contributions a
second over all rows, and over the rows of one number of clients. A pair of rows of one
number of clients and one day is decided if the ranges of its repetitions do not
overlap; a prediction agrees if its difference has the same sign. The floor is the
largest distance of a repetition from the mean of its row.
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
from scipy import stats

from stalesim.analysis import timelines
from stalesim.simulator import world as _world
from stalesim.simulator.laws import fitting
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.testbed.running import Options, act_out
from stalesim.simulator.timelines import saved

RECORDS = Path(_world.__file__).parent / "recorded/pai"
WORKERS = {1: 10, 2: 2, 3: 10, 4: 10}
"""Workers that are taken of each job: 32 in all."""
MEAN_S = 0.15
CALIBRATION_S, RUN_S = 40, 20
REPETITIONS, SEEDS = 3, 10
MOST = 32


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


def scenario(clients: Any, protocol: Any, seconds: float, **more: Any) -> Any:
    row = str(protocol)
    tree = {
        "name": "reality",
        "clients": clients,
        "protocol": protocol,
        "stop": {"time": seconds},
    }
    return loads_any(json.dumps(tree | more), row)


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


def recorded(folder: Path, day: int, n: int) -> dict[str, Any]:
    path = str((folder / f"day-{day}.csv").absolute())
    law = {"law": "empirical", "path": path, "column": "time", "client": "client"}
    return {"number": n, "compute": law | {"order": "replay"}}


def calibrate(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_days(folder)
    world = recorded(folder, 1, MOST)
    tree = scenario(world, {"kind": "asynchronous"}, CALIBRATION_S)
    made = act_out(tree, folder / "calibration", Options())
    print(measures(made.timeline).to_string())


def measure(folder: Path) -> None:
    predictions = folder / "predictions.csv"
    print("predictions:", hashlib.sha256(predictions.read_bytes()).hexdigest())
    for repetition, row in itertools.product(range(REPETITIONS), rows()):
        place = folder / "runs" / f"{row['row']}, {repetition}".replace("/", "-")
        if (place / "done").exists():
            continue
        shutil.rmtree(place, ignore_errors=True)
        world = recorded(folder, row["day"], row["clients"])
        made = act_out(scenario(world, row["protocol"], RUN_S), place, Options())
        if made.interrupted:
            return
        found = measures(made.timeline).assign(row=row["row"], repetition=repetition)
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
        law = {"law": "constant", "value": means[:n]}
        return {"number": n, "compute": law}

    def measured(order: str) -> Any:
        return lambda n: {"number": n, "compute": known | {"order": order}}

    ways = {
        "constant mean": constant,
        "independent fit": independent,
        "resampling": measured("resample"),
        "replay": measured("replay"),
    }
    if (fitted := folder / "world.yaml").exists():  # by `stalesim fit`, of the log
        tree = yaml.safe_load(fitted.read_text())["clients"]
        ways["stalesim fit"] = lambda n: (
            tree | {"groups": dict(itertools.islice(tree["groups"].items(), n))}
        )
    return ways


def predict(folder: Path) -> None:
    more, found = around(of_log(folder)), []
    for way, clients in predictors(folder).items():
        for row in rows():
            world = more | clients(row["clients"])
            tree = scenario(
                *(world, row["protocol"], RUN_S), replicates=SEEDS, seed=2026
            )
            place = folder / "predicted" / way / row["row"].replace("/", "-")
            shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            made = measures(saved.record(tree, place))
            found.append(made.assign(row=row["row"], way=way))
        print(way, flush=True)
    table = pd.concat(found)
    table.groupby(["way", "row"], sort=False).mean(numeric_only=True).round(
        6
    ).reset_index().to_csv(folder / "predictions.csv", index=False)
    data = (folder / "predictions.csv").read_bytes()
    print("predictions:", hashlib.sha256(data).hexdigest())


def measures(study: Any) -> pd.DataFrame:
    """Measures each run of a timeline, real or simulated, by the same code."""
    view = timelines.View(study)
    table = view.by_run[
        [
            *("run", "commits_per_s", "contributions_per_s", "staleness_mean"),
            *("staleness_50", "staleness_90", "staleness_99", "waiting_mean"),
        ]
    ].reset_index(drop=True)
    return table.assign(utilisation=float(view.by_client["utilisation"].mean()))


# Errors


def compare(folder: Path) -> None:
    measured = pd.read_csv(folder / "measured.csv")
    predicted = pd.read_csv(folder / "predictions.csv")
    by = measured.groupby("row", sort=False)
    real = by.mean(numeric_only=True)
    speed = by["contributions_per_s"]
    floor = ((speed.max() - speed.min()) / speed.mean()).max()
    print(f"{len(real)} rows, {len(measured)} runs; floor of throughput {floor:.1%}")
    order = {row["row"]: (row["clients"], row["day"]) for row in rows()}
    where = pd.DataFrame(order, index=["clients", "day"]).T
    for way, mine in predicted.groupby("way", sort=False):
        mine = mine.set_index("row").loc[real.index]
        error = mine["contributions_per_s"] / real["contributions_per_s"] - 1
        apart = (mine["staleness_mean"] - real["staleness_mean"]).abs()
        near = apart <= np.maximum(0.3, 0.1 * real["staleness_mean"])
        tau = stats.kendalltau(mine["contributions_per_s"], real["contributions_per_s"])
        agree, decided = _verdicts(mine, speed, where)
        print(
            f"{way:16} throughput: mean {error.mean():+.1%}, absolute "
            f"{error.abs().mean():.1%}, worst {error[error.abs().idxmax()]:+.1%}; "
            f"within 5 % {int((error.abs() <= 0.05).sum())}, 10 % "
            f"{int((error.abs() <= 0.1).sum())}; staleness near {int(near.sum())} of "
            f"{len(real)}; tau {tau.statistic:.3f}; verdicts {agree} of {decided}"
        )
        table = pd.DataFrame({
            "real": real["contributions_per_s"],
            "error": error,
            "staleness": real["staleness_mean"],
            "off": mine["staleness_mean"] - real["staleness_mean"],
        })  # fmt: skip
        table.round(4).to_csv(folder / f"errors, {way}.csv")


def _verdicts(mine: pd.DataFrame, speed: Any, where: pd.DataFrame) -> tuple[int, int]:
    low, high = speed.min(), speed.max()
    agree = decided = 0
    for one, other in itertools.combinations(mine.index, 2):
        if tuple(where.loc[one]) != tuple(where.loc[other]):
            continue
        if low[one] <= high[other] and low[other] <= high[one]:
            continue
        decided += 1
        foretold = mine["contributions_per_s"]
        agree += (foretold[one] > foretold[other]) == (low[one] > high[other])
    return agree, decided


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    {"calibrate": calibrate, "predict": predict, "measure": measure,
     "compare": compare}[what](Path(folder))  # fmt: skip
