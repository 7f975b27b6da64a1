"""Tidy frames of a study: one row an observation, parameters as columns."""

from typing import Any, Protocol

import pandas as pd

from simulator.trace import COLUMNS, StudyError

FIRST_OPTIONAL = {"commits": "loss", "evaluations": "test_accuracy"}
"""From here on, columns of a table depend on what was run."""
OPTIONAL = (
    *("embedding_staleness_mean", "embedding_staleness_max"),
    *("mu", "epsilon", "delta"),
)
"""Columns of vertical studies, and of one way or another of accounting for privacy."""
OF_RUN = ("variant", "group", "replicate", "protocol")
"""What is said of every row's run, with the swept values."""


class Study(Protocol):
    """What analysis needs of a study; `simulator.trace.load` gives one."""

    manifest: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Returns one table of `simulator.trace.COLUMNS`."""
        ...


def validated(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Returns a table unchanged if it has the columns that every trace has.

    Further columns are metrics and diagnostics, a user's own among them.

    Args:
        frame: to look at.
        table: a key of `simulator.trace.COLUMNS`.

    Raises:
        StudyError: naming the column that is missing or of another type.
    """
    if table not in COLUMNS:
        raise StudyError(f"table must be one of {', '.join(COLUMNS)}, got {table!r}")
    needed = list(COLUMNS[table])
    if table in FIRST_OPTIONAL:
        needed = needed[: needed.index(FIRST_OPTIONAL[table])]
    for column in needed:
        if column not in frame and column not in OPTIONAL:
            raise StudyError(
                f"table {table!r} must have the column {column!r}, got "
                f"{', '.join(map(str, frame.columns))}; was it written by another "
                f"version?"
            )
    for column, (dtype, _, _) in COLUMNS[table].items():
        if len(frame) and column in frame:
            _check_type(frame[column], dtype, table)
    return frame


def _check_type(values: Any, dtype: str, table: str) -> None:
    """Checks a column's type: words, truth or numbers (missing ones make it float)."""
    truth = pd.api.types.is_bool_dtype(values)
    number = pd.api.types.is_numeric_dtype(values) and not truth
    wanted = {"string": "words", "bool": "truth values"}.get(dtype, "numbers")
    if dtype.startswith("list of "):
        return
    found = "truth values" if truth else "numbers" if number else "words"
    if found != wanted:
        raise StudyError(
            f"column {values.name!r} of table {table!r} must hold {wanted}, got "
            f"{values.dtype}; was it written by another version?"
        )


def runs(study: Study) -> pd.DataFrame:
    """Returns one row per run that has ended: who it was and how it ended.

    `group` is the variant with its swept values: runs that differ in replicate alone.

    Raises:
        StudyError: no run has ended.
    """
    rows = []
    for run in study.manifest["runs"]:
        if run["stop"] == "incomplete":
            continue
        row = {k: v for k, v in run.items() if k not in ("scenario", "parameters")}
        row |= {"group": run["label"], **run["parameters"]}
        rows.append(row)
    if not rows:
        raise StudyError(
            f"study {study.manifest['name']!r} has no run that has ended; run it again"
        )
    return pd.DataFrame(rows)


def groups(study: Study) -> list[str]:
    """Returns the groups of a study in the order of their first runs."""
    return list(dict.fromkeys(runs(study)["group"]))


def evaluations(study: Study) -> pd.DataFrame:
    """Returns all evaluations, each with what is said of its run.

    Those are its variant, group, replicate, protocol and swept values.
    """
    return joined(study, "evaluations")


def metric_of(frame: pd.DataFrame, column: str) -> pd.Series:
    """Returns a column of evaluations.

    Raises:
        StudyError: nothing of that name was evaluated.
    """
    if column not in frame:
        known = ", ".join(map(str, frame.columns))
        raise StudyError(f"evaluations have no column {column!r}; known are {known}")
    found: Any = frame[column]
    return found


def joined(study: Study, table: str) -> pd.DataFrame:
    """Returns any table, each row with what is said of its run.

    Raises:
        StudyError: the table is not one of a trace, or no run has ended.
    """
    rows = validated(study.table(table), table)
    swept = dict.fromkeys(
        key for run in study.manifest["runs"] for key in run["parameters"]
    )
    more = [key for key in (*OF_RUN, *swept) if key not in rows]
    of_run = runs(study)[["run", *more]]
    return rows.merge(of_run, on="run", how="inner", validate="many_to_one")
