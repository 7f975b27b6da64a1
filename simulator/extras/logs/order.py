"""Logs of order: which client made each commit, of how stale a model, and no times.

Their columns are `client` and, of whole numbers, one or both of

- `commit`, or `position`: the version that the row is part of, from any number on; by
  default the rows are in order and each makes a version;
- `staleness`, commits from the read until the update arrived, or `read_version`, where
  the first row has read the first version. Without both each client is taken to read as
  soon as its update before has arrived.

Time is counted in commits: version v is made at v. Of n updates that gather for a
version the k-th arrives the k/n-th part of the way from the version before.
"""

import warnings

import numpy as np
from jaxtyping import Float64

from ...files.study import StudyWarning
from ...parts.errors import DataError
from ...timelines.logs import LogTable

ORDERED = ("position", "commit", "staleness", "read_version")
"""Columns by which a log without times has an order."""


def in_commits(table: LogTable) -> None:
    """Gives a log its times `read_time` and `arrived_time` in commits, in place.

    Raises:
        DataError: the order has gaps, or a client cannot have read that version.
    """
    frame = table.frame
    if "position" in frame and "commit" not in frame:
        frame = table.frame = frame.rename(columns={"position": "commit"})
    if {"staleness", "read_version"} <= {*frame}:
        raise DataError(
            f"{table.path}: must have the column staleness or read_version, got both; "
            f"remove one"
        )
    if "outcome" in frame:
        what = "must be applied, as an order has no time of another job"
        table.refuse(frame["outcome"] != "applied", what, "outcome", "remove the row")
    number, order = _commits(table)
    frame = table.frame = table.frame.iloc[order]
    _, first, size = np.unique(number, return_index=True, return_counts=True)
    version = number - number[0]  # before each arrives, if the log begins at 0
    part = (np.arange(number.size) - np.repeat(first, size) + 1) / np.repeat(size, size)
    arrived = version + part
    before = frame.assign(at=arrived).groupby("client")["at"].shift(1, fill_value=0.0)
    read = _versions(table, version)
    if read is None:
        note = "no column staleness or read_version: each client is taken to read"
        warnings.warn(
            f"{table.path}: {note} as soon as its update before has arrived",
            StudyWarning,
            stacklevel=3,
        )
        read = before.to_numpy()
    else:
        last = np.floor(before.to_numpy())
        early = read < last
        if early.any():
            row = int(early.argmax())
            table.refuse_row(
                row,
                f"must have read version {last[row]:g} of the log or a later one, as "
                f"its client's update before is in it, but has read {read[row]:g}",
                "correct it, or give jobs that ran side by side clients of their own",
            )
        read = np.maximum(read, before.to_numpy())
    kept = frame.drop(columns=[name for name in ORDERED if name in frame])
    table.frame = kept.assign(commit=number, read_time=read, arrived_time=arrived)


def _commits(table: LogTable) -> tuple[Float64[np.ndarray, " n"], np.ndarray]:
    """Returns the commits of rows, from the first, and the rows in their order."""
    rows = np.arange(len(table.frame))
    if "commit" not in table.frame:
        return rows.astype(np.float64), rows
    number = _whole(table, "commit")
    order = np.argsort(number, kind="stable")
    gap = np.zeros(rows.size, bool)
    gap[order[1:]] = np.diff(number[order]) > 1
    what = "must have a commit that follows one of the log"
    table.refuse(gap, what, "commit", "add the rows between them")
    return number[order], order


def _versions(
    table: LogTable, version: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"] | None:
    """Returns the versions that jobs have read, counted from the first of the log."""
    if "staleness" in table.frame:
        name, read = "staleness", version - _whole(table, "staleness")
    elif "read_version" in table.frame:
        name, read = "read_version", _whole(table, "read_version")
        read = read - read[0]
    else:
        return None
    wrong = (read < 0) | (read > version)
    what = f"must have a {name} of a version from the log's first to its own commit"
    table.refuse(wrong, what, name, "correct it, or begin where the server began")
    return read


def _whole(table: LogTable, name: str) -> Float64[np.ndarray, " n"]:
    number = table.numbers(name)
    wrong = ~np.isfinite(number) | (number != np.rint(number))
    table.refuse(wrong, f"must have a whole number as {name}", name, "correct it")
    return number
