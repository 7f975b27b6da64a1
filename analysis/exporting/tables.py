"""A study as CSV files: one per table of its trace that has rows, and `runs.csv`."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv

from analysis.exporting.records import flat, has_ended
from analysis.frames import Study
from simulator.trace import COLUMNS


def write(study: Study, folder: Path) -> None:
    """Writes a file per table, with the columns of `simulator.trace.COLUMNS`.

    `runs.csv` has all runs, also those without results, which have no rows elsewhere:
    what the manifest says of each, and its resolved scenario by dotted keys. `run` is
    the key that joins it to the others. Lists stand as JSON in their cells.

    Args:
        study: with at least one run that has ended.
        folder: new or empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described = [_described(run) for run in study.manifest["runs"]]
    pd.DataFrame(described).to_csv(folder / "runs.csv", index=False)
    ended = [run["run"] for run in study.manifest["runs"] if has_ended(run)]
    for name, columns in COLUMNS.items():
        table = study.table(name)
        table = table.loc[table["run"].isin(ended)]
        if table.empty:
            continue
        lists = [c for c, of in columns.items() if of.dtype.startswith("list")]
        for column in set(lists) & set(table):
            table = table.assign(**{column: table[column].map(_as_json)})
        _save(table, folder / f"{name}.csv")


def _save(table: pd.DataFrame, path: Path) -> None:
    """Writes a table as CSV, what is missing as nothing; ten times as fast as pandas.

    The tables of one study may have a hundred million rows.
    """
    csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), path)


def _described(run: dict[str, Any]) -> dict[str, Any]:
    told = {
        key: json.dumps(value) if isinstance(value, dict | list) else value
        for key, value in run.items()
        if key not in ("scenario", "parameters")
    }
    return told | flat(run.get("scenario", {}))


def _as_json(cell: Any) -> str:
    return "" if cell is None else json.dumps([value.item() for value in cell])
