"""What the rows of a record say: the tables of commits and of probes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulator.engine.records import Record
from simulator.timeline import NO_WORKER, Kind, staleness
from simulator.trace import Categorical

KINDS = tuple(kind.name for kind in Kind)


def commits(run: int, record: Record, at_once: int = 1) -> dict[str, Any]:
    """Returns the table of a record's rows, with the diagnostics of each.

    Args:
        run: number of the run in its study.
        record: of successive rows.
        at_once: as of `timeline.staleness`.
    """
    rows, infos = record.rows, record.infos
    present = rows.worker != NO_WORKER
    refresh = rows.kind == Kind.REFRESH
    present[refresh, 1:] = False
    count = present.sum(axis=1)
    alone = (count == 1) | (rows.kind == Kind.AVERAGE)
    brings = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
    age = staleness(rows.version[:, None], rows.read_version, at_once)
    age = np.where(present, age, 0)
    mean = age.sum(axis=1) / np.maximum(count, 1)
    columns = {
        "run": np.full(rows.time.size, run, np.int32),
        "commit": rows.version + (rows.kind == Kind.COMMIT),
        "time": rows.time,
        "kind": Categorical(rows.kind, KINDS),
        "round": rows.round,
        "num_contributions": np.where(brings, count, 0).astype(np.int32),
        "client": np.where(alone, rows.worker[:, 0], NO_WORKER),
        "staleness_mean": mean.astype(np.float32),
        "staleness_max": age.max(axis=1).astype(np.int32),
    }
    for name, values in infos.items():
        if "/" not in name:
            columns[name] = values.astype(np.float32)
    if "workers/noise_std" in infos:
        held = infos["workers/noise_std"].shape[1]
        mask = present[:, :held]
        mean = np.where(mask, infos["workers/noise_std"], 0).sum(axis=1) / count
        columns["noise_std"] = mean.astype(np.float32)
    return columns


def probes(run: int, record: Record) -> Iterator[dict[str, Any]]:
    """Yields the table of what was saved of a record's rows, row after row."""
    for row, samples, values in record.probes:
        workers = record.rows.worker[row]
        present = workers != NO_WORKER
        count = int(present.sum())
        own = np.broadcast_to(samples, (workers.size, samples.shape[-1]))[present]
        columns = {
            "run": np.full(count, run, np.int32),
            "commit": np.full(count, record.rows.version[row] + 1),
            "time": np.full(count, record.rows.time[row]),
            "client": workers[present],
            "job": record.rows.job[row][present],
            "samples": own,
        }
        for name, value in values.items():
            columns[name] = value[present].reshape(count, -1).astype(np.float32)
        yield columns
