"""Tidy frames of a study: one row an observation, parameters as columns."""

from typing import Any, Protocol

import pandas as pd

from simulator.trace import COLUMNS, StudyError


class Study(Protocol):
    """What analysis needs of a study; `simulator.trace.load` gives one."""

    manifest: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Returns one table of `simulator.trace.COLUMNS`."""
        ...


def validated(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Returns a table unchanged if it has the columns that every trace has.

    Raises:
        ValueError: naming the column that is missing.
    """
    metrics = {"test_accuracy", "test_loss", "objective"}
    needed = {"run", "time", "commits"} if table == "evaluations" else {"run"}
    for column in needed - metrics:
        if column not in frame:
            raise ValueError(
                f"table {table!r} must have the column {column!r}, got "
                f"{list(frame.columns)}; is it a trace of this version?"
            )
    assert table in COLUMNS
    return frame


def runs(study: Study) -> pd.DataFrame:
    """Returns one row per run that has ended: who it was and how it ended.

    `group` is the variant with its swept values: runs that differ in replicate alone.
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
    """Returns all evaluations, each with its run's variant, group and replicate."""
    table = validated(study.table("evaluations"), "evaluations")
    of_run = runs(study)[["run", "variant", "group", "replicate", "protocol"]]
    return table.merge(of_run, on="run", how="inner", validate="many_to_one")


def joined(study: Study, table: str) -> pd.DataFrame:
    """Returns any table, each row with its run's variant, group and replicate."""
    rows = validated(study.table(table), table)
    of_run = runs(study)[["run", "variant", "group", "replicate", "protocol"]]
    return rows.merge(of_run, on="run", how="inner", validate="many_to_one")
