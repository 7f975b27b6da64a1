"""Plays the worlds, block by block, and judges every ratio in its proved interval."""

import csv
import os
from concurrent.futures import ProcessPoolExecutor
from math import isnan
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from .methods import PROVED, checks
from .worlds import KINDS, world

BLOCK = 50
"""Worlds of a file; what an interrupted command has to play again at most."""
ROUNDING = 1e-9
"""Part by which a ratio of sums of floats may be beyond its interval."""
WRONG = 0.01
"""Chance that any mean of a method is called a violation that is none (Bonferroni)."""
FIELDS = ("kind", "world", "clients", "method", "quantity", "ratio", "p")


def play(folder: Path, worlds: int, processes: int) -> pd.DataFrame:
    """Plays the worlds that are not there yet and returns all checks."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [
        (folder / f"{kind}-{first:05d}.csv", kind, first, min(first + BLOCK, worlds))
        for first in range(0, worlds, BLOCK)
        for kind in KINDS
    ]
    left = [block for block in blocks if not block[0].exists()]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        for path in pool.map(_play, left):
            print(path, flush=True)
    frames = [pd.read_csv(path) for path, *_ in blocks]
    return pd.concat(frames, ignore_index=True)


def _play(block: tuple[Path, str, int, int]) -> Path:
    """Writes a block's table, whole or not at all; nothing if it is there already."""
    path, kind, first, last = block
    if path.exists():
        return path
    part = path.with_suffix(f".{os.getpid()}")
    with part.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for number in range(first, last):
            made = world(kind, number)
            for method, quantity, ratio, p in checks(made):
                row = (kind, number, made.size, method, quantity, repr(float(ratio)))
                writer.writerow((*row, "" if isnan(p) else repr(p)))
    part.replace(path)
    return path


def judged(found: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each method, quantity and kind: its ratios and violations."""
    rows = []
    for (method, quantity, kind), own in found.groupby(
        ["method", "quantity", "kind"], sort=False
    ):
        low, high = PROVED[quantity]
        of_means = own["p"].notna().any()
        wrong = (own["ratio"] < low - ROUNDING) | (own["ratio"] > high + ROUNDING)
        if of_means:
            wrong = own["p"] < WRONG / len(own)
        else:
            wrong |= own["ratio"].isna()
        quantiles = own["ratio"].quantile([0, 0.05, 0.5, 0.95, 1]).tolist()
        rows.append(
            {
                "method": method,
                "quantity": quantity,
                "worlds": kind,
                "played": len(own),
                "proved": _interval(low, high, of_means=of_means),
                "least": quantiles[0],
                "5 %": quantiles[1],
                "median": quantiles[2],
                "95 %": quantiles[3],
                "largest": quantiles[4],
                "violations": int(wrong.sum()),
                "first violation": str(own["world"][wrong].min())
                if wrong.any()
                else "",
            }
        )
    return pd.DataFrame(rows).sort_values(["method", "quantity", "worlds"])


def _interval(low: float, high: float, *, of_means: bool) -> str:
    if of_means:
        return "mean 1"
    if low == high:
        return f"{low:g}"
    return f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"


def quantiles(found: pd.DataFrame) -> pd.DataFrame:
    """Returns the 0th to the 100th percentile of each method, quantity and kind."""
    at = np.arange(0, 101, 2) / 100
    rows = [
        (*keys, *own["ratio"].quantile(at.tolist()))
        for keys, own in found.groupby(["method", "quantity", "kind"])
    ]
    return pd.DataFrame(
        rows, columns=["method", "quantity", "worlds", *(f"{100 * q:g}" for q in at)]
    )
