"""The record between numerics and analysis: tables in Parquet, and a manifest.

A *study* is a folder that holds `manifest.json` and one folder of Parquet parts per
table. `COLUMNS` is the one place that says what a column is called, holds and means.
"""

import datetime as dt
import json
import os
import platform
import shutil
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulator.scenario.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Column(NamedTuple):
    """One column of a table: its type, its unit (`""` if none) and its meaning."""

    dtype: str
    unit: str
    meaning: str


_RUN = Column("int32", "", "run of the study; `runs` of the manifest says which")
_CLIENT = Column("int32", "", "client, party or worker, from 0")

COLUMNS: dict[str, dict[str, Column]] = {
    "commits": {
        "run": _RUN,
        "commit": Column("int64", "commits", "version that the row made, from 1"),
        "time": Column("float64", "virtual s", "when it was made"),
        "kind": Column(
            "string", "", "COMMIT, or REFRESH or CONTRIBUTE, which make no version, ..."
        ),
        "round": Column("int32", "", "round of round-based protocols, else 0"),
        "num_contributions": Column("int32", "", "contributions applied"),
        "client": Column("int32", "", "the first contributor"),
        "staleness_mean": Column(
            "float32", "commits", "mean over contributors of commits since their read"
        ),
        "staleness_max": Column("int32", "commits", "the largest of them"),
        # every further column is a diagnostic of the algorithm:
        "loss": Column("float32", "nats", "loss of the contributions' own batches"),
        "gradient_norm": Column(
            "float32", "", "Euclidean norm of the applied gradient"
        ),
        "step_size": Column("float32", "", "step size of the clients"),
        "embedding_staleness_mean": Column(
            "float32",
            "commits",
            "vertical: mean age of the other parties' embeddings used (VAFL eq. 3)",
        ),
        "embedding_staleness_max": Column("float32", "commits", "the largest of them"),
        "noise_std": Column("float32", "", "standard deviation of the upload's noise"),
        "clipped_fraction": Column(
            "float32", "fraction", "of the batch's samples, or 0 or 1 for its mean"
        ),
        "noise_norm": Column("float32", "", "Euclidean norm of the gradient's noise"),
        "stage": Column("float32", "", "of MAPA's server, from 1"),
        "sensitivity": Column(
            "float32",
            "",
            "of the uploaded embedding to one input (VAFL, appendix F), or of the "
            "server's stage (MAPA)",
        ),
    },
    "probes": {
        "run": _RUN,
        "commit": Column("int64", "commits", "version that the row made, from 1"),
        "time": Column("float64", "virtual s", "when it was made"),
        "client": _CLIENT,
        "job": Column("int32", "", "which of the client's jobs"),
        "samples": Column(
            "list of int32", "", "training rows of its batch, 2**31 - 1 for padding"
        ),
        "message": Column("list of float32", "", "what the server received, flat"),
        "gradient": Column(
            "list of float32", "", "the gradient in it, before clipping and noise"
        ),
        "state": Column("list of float32", "", "weights that it was taken at, flat"),
    },
    "jobs": {
        "run": _RUN,
        "client": _CLIENT,
        "job": Column("int32", "", "number of the job of that client, from 0"),
        "kind": Column(
            "string", "", "work (a contribution) or refresh (bounded delay)"
        ),
        "read_time": Column("float64", "virtual s", "when the client read the state"),
        "computed_time": Column("float64", "virtual s", "when it had computed"),
        "sent_time": Column("float64", "virtual s", "when its upload began"),
        "arrived_time": Column("float64", "virtual s", "when its upload had arrived"),
        "applied_time": Column("float64", "virtual s", "when it was applied; else NaN"),
        "read_version": Column("int64", "commits", "version that it read"),
        "commit": Column(
            "int64", "commits", "version that it is part of, or `timeline.NO_COMMIT`"
        ),
        "upload_bytes": Column("int64", "bytes", "sent to the server"),
        "download_bytes": Column("int64", "bytes", "sent to the client"),
        "upload_messages": Column(
            "int32", "messages", "sent to the server, repeats included"
        ),
        "download_messages": Column("int32", "messages", "sent to the client"),
        "outcome": Column("string", "", "APPLIED, IN_FLIGHT, LOST, ..."),
    },
    "evaluations": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "when the model was evaluated"),
        "commits": Column("int64", "commits", "made so far"),
        "contributions": Column("int64", "", "applied so far"),
        "epochs": Column("float64", "epochs", "passes over the data so far"),
        "upload_bytes": Column("int64", "bytes", "arrived at the server so far"),
        "download_bytes": Column("int64", "bytes", "sent to clients so far"),
        # every further column is a metric:
        "test_accuracy": Column("float64", "fraction", "of the test rows"),
        "test_loss": Column("float64", "nats", "mean over the test rows"),
        "objective": Column("float64", "nats", "F on all training rows, regularised"),
        "gradient_norm_squared": Column("float64", "", "squared norm of F's gradient"),
        "optimality_gap": Column("float64", "nats", "F minus its minimum"),
    },
    "clients": {
        "run": _RUN,
        "client": _CLIENT,
        "num_features": Column("int32", "", "columns that it holds"),
        "num_samples": Column("int32", "", "rows that it holds"),
        "num_jobs": Column("int64", "", "jobs begun, refreshes among them"),
        "num_applied": Column("int64", "", "contributions applied"),
        "staleness_mean": Column("float64", "commits", "of its contributions"),
        "staleness_max": Column("int64", "commits", "of its contributions"),
        "embedding_staleness_mean": Column(
            "float64", "commits", "age of its embeddings when others used them"
        ),
        "embedding_staleness_max": Column("float64", "commits", "the largest of them"),
        "releases": Column(
            "int64", "messages", "messages sent that depend on its data"
        ),
    },
    "staleness": {
        "run": _RUN,
        "client": _CLIENT,
        "quantity": Column("string", "", "contribution or embedding"),
        "low": Column("int64", "commits", "smallest staleness of the bin"),
        "high": Column("int64", "commits", "one above the largest of the bin"),
        "count": Column("int64", "", "occurrences"),
    },
    "privacy": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "of the evaluation"),
        "client": _CLIENT,
        "releases": Column(
            "int64",
            "messages",
            "sent so far, applied or not; in the last rows until the run ended",
        ),
        "mu": Column(
            "float64", "", "Gaussian differential privacy level so far (VAFL), or null"
        ),
        "epsilon": Column(
            "float64", "", "of the client's own messages so far, with delta; or null"
        ),
        "delta": Column("float64", "", "that epsilon holds with, or null"),
        "accountant": Column("string", "", "who says so"),
        "formal": Column("bool", "", "a proved guarantee, or a paper's own accounting"),
    },
    "incidents": {
        "run": _RUN,
        "time": Column("float64", "virtual s", "when it happened"),
        "client": _CLIENT,
        "incident": Column("string", "", "what happened: CRASHED, RESENT, LEFT, ..."),
        "messages": Column(
            "int32", "messages", "that it is about; 1 where it is about none"
        ),
    },
    # of recorded timelines alone, one row per worker of a row of `timeline.Rows`:
    "rows": {
        "run": _RUN,
        "row": Column("int64", "", "row of the timeline, from 0"),
        "place": Column("int32", "", "of the worker in the row, from 0"),
        "time": Column("float64", "virtual s", "of the row"),
        "kind": Column("string", "", "COMMIT, CONTRIBUTE, REFRESH, AVERAGE, ..."),
        "node": Column("int32", "", "whose version advances; 0 is the server's"),
        "worker": Column("int32", "", "who takes part, or `timeline.NO_WORKER`"),
        "job": Column("int32", "", "which of its jobs"),
        "version": Column("int64", "commits", "commits before the row"),
        "read_version": Column("int64", "commits", "version that the worker read"),
        "read_slot": Column("int32", "", "register that holds what it read"),
        "write_slot": Column(
            "int32", "", "register of the new version, or `timeline.NO_SLOT`"
        ),
        "peer": Column("int32", "", "gossip partner, else `timeline.NO_WORKER`"),
        "round": Column("int32", "", "of round-based protocols, else 0"),
    },
}


class Words(NamedTuple):
    """A column of words: few different ones, many rows.

    Attributes:
        codes: index of each row's word.
        words: that occur.
    """

    codes: np.ndarray
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)


ORDERS = {"commits": ["run", "commit"], "rows": ["run", "row", "place"]}
"""By what tables are sorted that are not sorted by run, time, client and job."""

PART_ROWS = 100_000
PART_SECONDS = 30.0
"""A part is written when it has so many rows, or is so old."""


class Writer:
    """Writes tables of one study as Parquet parts, renamed into place when finished.

    A kill leaves every finished part readable.

    Args:
        folder: of the study.
        name: of this writer among those of the study, part of its files' names.
        first: number of its first part.
    """

    def __init__(self, folder: Path, name: str, first: int = 0) -> None:
        self._folder, self._name, self._part = folder, name, first
        self._tables: dict[str, list[dict[str, Any]]] = {}
        self._rows: dict[str, int] = {}
        self._since = time.monotonic()

    def append(self, table: str, columns: dict[str, Any]) -> None:
        """Adds rows to a table.

        Args:
            table: a key of `COLUMNS`.
            columns: arrays of equal length, by column.

        Raises:
            StudyError: the disk is full, or the folder cannot be written.
        """
        size = len(columns["run"])
        if not size:
            return
        self._tables.setdefault(table, []).append(columns)
        self._rows[table] = self._rows.get(table, 0) + size
        old = time.monotonic() - self._since > PART_SECONDS
        if old or self._rows[table] >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes everything that was added so far."""
        import pyarrow as pa

        for name, pieces in self._tables.items():
            names = dict.fromkeys(column for piece in pieces for column in piece)
            columns = {column: _concatenate(name, column, pieces) for column in names}
            _write_part(
                self._folder / name / f"part-{self._name}-{self._part:05d}.parquet",
                pa.table(columns),
            )
        self._tables, self._rows = {}, {}
        self._part += 1
        self._since = time.monotonic()


def _concatenate(table: str, column: str, pieces: list[dict]) -> "pa.Array":
    import pyarrow as pa

    dtype = COLUMNS[table].get(column, Column("float32", "", "")).dtype
    parts = []
    for piece in pieces:
        size = len(piece["run"])
        if column not in piece:
            parts.append(pa.nulls(size, _arrow_type(dtype)))
        elif isinstance(piece[column], Words):
            codes, words = piece[column]
            parts.append(
                pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), list(words))
            )
        elif np.ndim(piece[column]) == 2:
            parts.append(pa.array(list(piece[column]), _arrow_type(dtype)))
        else:
            parts.append(pa.array(piece[column], _arrow_type(dtype)))
    return pa.chunked_array(parts, _arrow_type(dtype))


def _arrow_type(dtype: str) -> "pa.DataType":
    import pyarrow as pa

    if dtype == "string":
        return pa.dictionary(pa.int32(), pa.string())
    if dtype.startswith("list of "):
        return pa.list_(_arrow_type(dtype.removeprefix("list of ")))
    return {"bool": pa.bool_()}.get(dtype) or getattr(pa, dtype)()


def _write_part(path: Path, table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, partial, compression="zstd")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StudyError(
            f"{path.parent.parent}: the study must be written, but "
            f"{error.strerror or error}; what was written before is kept; make room or "
            f"choose another folder by --out"
        ) from error


class Study:
    """A finished or interrupted study, read from its folder.

    Attributes:
        folder: where it lies.
        manifest: what was run, with what, and how each run ended.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.keep: object = None
        """Keeps a temporary folder alive as long as the study is."""

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
                frame[column] = frame[column].astype(str)
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
        parts = []
        for path in _parts(self.folder, name):
            try:
                parts.append(pq.read_table(path, filters=wanted))
            except (OSError, pa.ArrowInvalid) as error:
                raise StudyError(
                    f"{path}: the part must be a Parquet file, but it is damaged; "
                    f"remove it to read the rest"
                ) from error
        if not parts:
            types = {c: _arrow_type(d.dtype) for c, d in COLUMNS[name].items()}
            parts = [pa.schema(list(types.items())).empty_table()]
        unified = [part.unify_dictionaries() for part in parts]
        return pa.concat_tables(unified, promote_options="permissive")


def _parts(folder: Path, name: str) -> list[Path]:
    """Returns the parts of a table, also where `compact` was killed half-way."""
    where = folder / name
    if not where.exists():
        where = folder / f"{name}.parts"
    return sorted(where.glob("part-*.parquet"))


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
    return Study(Path(folder), manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a study, all of it or nothing.

    Raises:
        StudyError: the disk is full, or the folder cannot be written.
    """
    partial = folder / "manifest.json.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(manifest, indent=1, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / "manifest.json")
    except OSError as error:
        raise StudyError(
            f"{folder}: the study must be written, but {error.strerror or error}; make "
            f"room or choose another folder by --out"
        ) from error


def provenance(libraries: tuple[str, ...]) -> dict[str, Any]:
    """Returns where a study is made, with what and by which command, for its manifest.

    Args:
        libraries: distributions whose versions are noted.
    """
    return {
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            **{name: _version(name) for name in libraries},
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None


def compact(folder: Path) -> None:
    """Joins the parts of every table of a finished study.

    The joined file is complete before the parts go, and a reader looks for those where
    a kill came between.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in COLUMNS:
        parts = sorted((folder / name).glob("part-*.parquet"))
        if len(parts) < 2:
            continue
        tables = [pq.read_table(path).unify_dictionaries() for path in parts]
        joined = pa.concat_tables(tables, promote_options="permissive")
        replaced = folder / f"{name}.joined"
        _write_part(replaced / "part-all-00000.parquet", joined.unify_dictionaries())
        old = folder / f"{name}.parts"
        (folder / name).rename(old)
        replaced.rename(folder / name)
        shutil.rmtree(old)
