"""A study as CSV files: one per table of its trace that has rows, and `runs.csv`.

A text that begins like a formula has a single quote in front (`markup.no_formulas`).
"""

import json
from csv import QUOTE_NONNUMERIC
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from ....analysis.facts import Entry
from ....analysis.frames import OF_A_RUN, Study
from ....analysis.markup import no_formulas, quoted
from ...files.study import COLUMNS, LEFT_OUT, is_summary
from .records import flat, has_ended, measures


def write(study: Study, folder: Path) -> None:
    """Writes a file per table, with the columns of `files.study.COLUMNS`.

    `runs.csv` has all runs, also those without results, which have no rows elsewhere:
    what the manifest says of each, its resolved scenario by dotted keys, and units and
    better directions of its metrics. `run` is the key that joins it to the others.
    Lists stand as JSON in their cells. Numbers are written as they are, texts
    that begin like a formula with a single quote in front.
    """
    described = [_described(study, run) for run in study.manifest["runs"]]
    # A carriage return in a name would end its row, were not all text in quotes.
    pd.DataFrame(described).to_csv(
        folder / "runs.csv", index=False, quoting=QUOTE_NONNUMERIC
    )
    ended = [run["run"] for run in study.manifest["runs"] if has_ended(run)]
    left_out = LEFT_OUT if is_summary(study.manifest) else ()
    for name in [name for name in COLUMNS if name not in left_out]:
        columns, table = COLUMNS[name], study.table(name)
        table = table.loc[table["run"].isin(ended)]
        if table.empty:
            continue
        words = [c for c, of in columns.items() if of.dtype == "string" and c in table]
        lists = [c for c, of in columns.items() if of.dtype.startswith("list")]
        for column in set(lists) & set(table):
            table = table.assign(**{column: table[column].map(_as_json)})
        _save(no_formulas(table, words), folder / f"{name}.csv")


def _save(table: pd.DataFrame, path: Path) -> None:
    """Writes a table as CSV, what is missing as nothing; ten times as fast as pandas.

    The tables of one study may have a hundred million rows.
    """
    csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), path)


def _described(study: Study, run: Entry) -> dict[object, object]:
    told = {
        key: json.dumps(value) if isinstance(value, dict | list) else value
        for key, value in run.items()
        if key not in OF_A_RUN
    }
    told |= run.get("measures", {})
    told |= flat(run.get("scenario", {})) | measures(study, run)
    return {quoted(key): quoted(value) for key, value in told.items()}


def _as_json(cell: np.ndarray | None) -> str:
    return "" if cell is None else json.dumps([value.item() for value in cell])
