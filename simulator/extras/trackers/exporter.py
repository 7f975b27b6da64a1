"""Writes a study in one of the formats that other programs read: CSV, TensorBoard."""

import json
from collections import Counter
from collections.abc import Callable
from csv import QUOTE_NONNUMERIC
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from ....analysis.facts import Entry
from ....analysis.files import filled, written
from ....analysis.frames import OF_A_RUN, Study
from ....analysis.markup import no_formulas, quoted
from ...files.study import COLUMNS, LEFT_OUT, StudyError, is_summary
from . import tensorboard
from .records import flat, has_ended, measures


def write_tables(study: Study, folder: Path) -> None:
    """Writes a file per table, with the columns of `files.study.COLUMNS`.

    `runs.csv` has all runs, also those without results, which have no rows elsewhere:
    each run's entry in the manifest, its resolved scenario by dotted keys, and units
    and better directions of its metrics. `run` is the key that joins it to the others.
    Lists are JSON in their cells. Numbers are written as they are, texts that begin
    like a formula with a single quote in front.
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
        # Ten times as fast as pandas: tables may have a hundred million rows.
        arrow = pa.Table.from_pandas(no_formulas(table, words), preserve_index=False)
        csv.write_csv(arrow, folder / f"{name}.csv")


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


TARGETS: dict[str, Callable[[Study, Path], None]] = {
    "csv": write_tables,
    "tensorboard": tensorboard.write,
}
"""Each writes a study into a folder whose content is moved up when it is whole."""


def export(study: Study, target: str, folder: str | Path) -> Counter[str]:
    """Writes the runs of a study that have ended; reaches no network.

    An export that is cut short leaves nothing that could be taken for a whole one, and
    can be repeated at once.

    Args:
        study: Study, finished or not.
        target: Key of `TARGETS`; `tensorboard` needs its extra to be installed.
        folder: New or empty folder.

    Returns:
        Numbers of runs that were left out, for want of results, by how they ended.

    Raises:
        StudyError: No run has ended, or the folder holds something or cannot be
            written, or there is no such target.
        UserError: The target's library is not installed.
    """
    if target not in TARGETS:
        raise StudyError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    runs = study.manifest["runs"]
    left_out = Counter(str(run["stop"]) for run in runs if not has_ended(run))
    if left_out.total() == len(runs):
        raise StudyError(
            f"study {study.manifest['name']!r} must have a run that has ended to be "
            f"exported, but none has yet; wait if it is under way, else continue with "
            f"stalesim resume"
        )
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise StudyError(
            f"{path}: must be a new or empty folder, but is a file; choose another by "
            f"--out"
        )
    remedy = "make room or choose another folder by --out"
    with written(path, "the export", remedy), filled(path) as partial:
        TARGETS[target](study, partial)
    return left_out
