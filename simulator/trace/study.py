"""Reads the tables and the manifest of a study from its folder."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.scenario.errors import StudyError
from simulator.trace import parts
from simulator.trace.columns import COLUMNS, ORDERS
from simulator.trace.manifest import check_format

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


JOURNAL = "ends.jsonl"
"""File of a study that is being written: a line for each task that has ended."""


class Study:
    """A finished or interrupted study, read from its folder.

    Attributes:
        folder: where it lies.
        manifest: what was run, with what, and how each run ended.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @property
    def complete(self) -> bool:
        """Whether every run of the study has ended."""
        return self.manifest["status"] == "complete"

    def table(self, name: str) -> "pd.DataFrame":
        """Returns one table.

        Args:
            name: a key of `COLUMNS`.

        Raises:
            StudyError: there is no such table, or a part is damaged.
        """
        frame = self.arrow(name).to_pandas(strings_to_categorical=False)
        for column in frame.columns:
            if getattr(frame[column].dtype, "name", "") == "category":
                words = frame[column]
                frame[column] = words.astype(str).where(words.notna())
        keys = [k for k in ("run", "time", "client", "job", "commit") if k in frame]
        keys = ORDERS.get(name, keys)
        return frame.sort_values(keys, kind="stable", ignore_index=True)

    def arrow(self, name: str, run: int | None = None) -> "pa.Table":
        """Returns one table as it was written, row after row.

        Args:
            name: a key of `COLUMNS`.
            run: alone; by default all of the study.

        Raises:
            StudyError: there is no such table, or a part is damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if name not in COLUMNS:
            raise StudyError(f"table must be one of {', '.join(COLUMNS)}, got {name!r}")
        wanted = None if run is None else [("run", "=", run)]
        tables = []
        for path in parts.found(self.folder, name):
            try:
                tables.append(pq.read_table(path, filters=wanted))
            except (OSError, pa.ArrowInvalid) as error:
                raise StudyError(
                    f"{path}: the part must be a Parquet file, but it is damaged; "
                    f"remove it to read the rest"
                ) from error
        if not tables:
            types = {c: parts.arrow_type(d.dtype) for c, d in COLUMNS[name].items()}
            tables = [pa.schema(list(types.items())).empty_table()]
        unified = [table.unify_dictionaries() for table in tables]
        return pa.concat_tables(unified, promote_options="permissive")


def load(folder: str | Path) -> Study:
    """Reads a study.

    Args:
        folder: that `stalesim run` wrote.

    Raises:
        StudyError: it is not the folder of a study, or its manifest is damaged.
    """
    path = Path(folder) / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(
            f"{folder}: must be the folder of a study, but has no manifest.json; "
            f"give the folder that `stalesim run` printed"
        ) from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: must be readable JSON, but {error}") from error
    check_format(manifest, Path(folder))
    _catch_up(manifest, Path(folder) / JOURNAL)
    return Study(Path(folder), manifest)


def _catch_up(manifest: dict[str, Any], journal: Path) -> None:
    """Adds the ends of runs that were noted since the manifest was written.

    A last line that a kill has cut off is of a task that is to be repeated.
    """
    if not journal.exists():
        return
    entries = {str(entry["run"]): entry for entry in manifest["runs"]}
    for line in journal.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            for run, end in json.loads(line).items():
                entries[run].update(end)
