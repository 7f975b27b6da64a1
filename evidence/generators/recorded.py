"""Makes the tables of the recorded worlds from the files that they are from.

    python -m evidence.generators.recorded FOLDER

FOLDER holds a folder for each origin, as SOURCE of each table names it.
"""

import csv
import gzip
import hashlib
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MD5 = {
    "pai_minibatch/job_1_norm.csv": "5eda723ed54896c8766679e25d219621",
    "pai_minibatch/job_2_norm.csv": "10f7a04bb202be1177f741eb4cd77020",
    "pai_minibatch/job_3_norm.csv": "420b0907dde1d9b38840a9ed0193f3d1",
    "pai_minibatch/job_4_norm.csv": "c9ecb6f33f44ffb4a5e7b68f2adff0b8",
    "bytedance_stragglers/trace-AR.parquet": "ea6056c53ddca76849193719e746189e",
    "bytedance_stragglers/trace-SE.parquet": "14b68c3980cb3996d35f7046237abd68",
    "bytedance_stragglers/trace-ST.parquet": "99af8dddcd2c74c6edf098931bc7fa6a",
    "azure_vm_noise/matrix_math_long_eastus_D8s_v5.csv": (
        "9d0231aab5fd5e409303c3263e76b6ef"
    ),
    "flash_devices/benchmark2score.json": "174bd4baf352646f8d2d3b0ff48feac2",
    "flash_devices/real2benchmark.json": "65f454224c3985b7cb50aee60831f33a",
    "5gophers/throughput.csv": "0542df339b471b192f5f7d1e6833b692",
    "steam_hardware/gpus.toml": "3b2515fb71c99b777014835c8e82ed25",
}
"""Checksums of the files."""
MADE = Path(__file__).parents[2] / "simulator" / "world" / "recorded"
BLOCK = 5
"""Seconds over which throughput is averaged: some single ones have none."""


def tables(folder: Path) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Yields name, columns and rows of each table."""
    for job in (1, 2, 3, 4):
        yield f"pai/job_{job}", ["client", "time"], pai(folder, job)
    for job in ("AR", "SE", "ST"):
        rows = bytedance(folder / f"bytedance_stragglers/trace-{job}.parquet")
        yield f"bytedance/{job.lower()}", ["client", "time"], rows
    path = folder / "azure_vm_noise/matrix_math_long_eastus_D8s_v5.csv"
    speed = pd.read_csv(path)["value"].to_numpy()
    yield "azure/vms", ["time"], [[f"{v:.6g}"] for v in np.median(speed) / speed]
    yield "flash/phones", ["client", "time"], phones(folder / "flash_devices")
    yield "fivegophers/links", ["client", "factor"], links(folder / "5gophers")
    yield "steam/gpus", ["client", "time"], gpus(folder / "steam_hardware/gpus.toml")


def pai(folder: Path, job: int) -> list[Any]:
    """Returns client, from 1, and time of each iteration, in their order."""
    path = folder / f"pai_minibatch/job_{job}_norm.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    workers = sorted({int(row["worker"]) for row in rows})
    rows.sort(key=lambda row: (int(row["worker"]), int(row["time"])))
    return [
        [workers.index(int(row["worker"])) + 1, row["batch_time_norm"]] for row in rows
    ]


def bytedance(path: Path) -> list[Any]:
    """Returns each rank's seconds of computing in each step, in their order."""
    frame = pd.read_parquet(path)
    frame = frame[frame["optype"].isin(["forward-compute", "backward-compute"])]
    total = frame.pivot_table("duration", "rank", "step", aggfunc="sum")
    if total.isna().any(axis=None):
        raise SystemExit(f"{path} must have every rank in every step")
    return [
        [number, f"{seconds:.6g}"]
        for number, row in enumerate(total.to_numpy(), 1)
        for seconds in row
    ]


def phones(folder: Path) -> list[Any]:
    """Returns a job's time on each phone whose benchmark is known; the median is 1."""
    score = json.loads((folder / "benchmark2score.json").read_text())
    real = json.loads((folder / "real2benchmark.json").read_text())
    found = np.array([score[name] for name in real.values() if name in score])
    return shuffled(np.median(found) / found)


def shuffled(times: np.ndarray) -> list[Any]:
    """Returns client and time; the first clients of all are a sample, too."""
    mixed = np.random.default_rng(0).permutation(np.sort(times))
    return [[number, f"{v:.6g}"] for number, v in enumerate(mixed, 1)]


def links(folder: Path) -> list[Any]:
    """Returns how many times longer than on average a byte took, by client and time.

    A client is a carrier and a place of the server, with 8 connections; its runs of a
    minute follow each other.
    """
    return [
        [number, f"{factor:.6g}"]
        for number, mine in enumerate(throughput(folder / "throughput.csv"), 1)
        for factor in mine.mean() / mine
    ]


def throughput(path: Path) -> list[np.ndarray]:
    """Returns throughput in Mbit/s by client, a mean for every `BLOCK` seconds."""
    frame = pd.read_csv(path)
    frame = frame[(frame["num_tcp_conn"] == 8) & (frame["seq_num"] < 60)]
    frame = frame.assign(block=frame["seq_num"] // BLOCK)
    keys = ["carrier", "server_location"]
    return [
        mine.groupby(["run_num", "block"])["throughput_mbps"].mean().to_numpy()
        for _, mine in frame.groupby(keys)
    ]


def gpus(path: Path) -> list[Any]:
    """Returns a job's time on each of 1,000 graphics cards, by their shares.

    Speed is that of the arithmetic, cores times clock; the median's job takes 1.
    """
    cards = tomllib.loads(path.read_text())["gpus"]
    share = np.array([card["shss"] for card in cards])
    speed = np.array([card["cuda_cores"] * card["clock_speed"] for card in cards])
    number = np.rint(1000 * share / share.sum()).astype(int)
    found = np.repeat(speed, number)
    return shuffled(np.median(found) / found)


def main(folder: Path) -> None:
    """Writes all tables."""
    for name, wanted in MD5.items():
        content = (folder / name).read_bytes()
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != wanted:
            raise SystemExit(f"{name} must have the md5 {wanted}, got {found}")
    for name, columns, rows in tables(folder):
        lines = [",".join(map(str, row)) for row in [columns, *rows]]
        path = MADE / f"{name}.csv.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
