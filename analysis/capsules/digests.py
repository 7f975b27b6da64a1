"""The SHA-256 of what runs have recorded."""

import hashlib
import json
from typing import Any

import numpy as np
import pandas as pd

from ...simulator.trace import COLUMNS
from ..frames import Study, runs


def of_runs(study: Study) -> pd.DataFrame:
    """Returns what every run of a study was, and the digest of all that it recorded.

    Real seconds are in no table, so that the same run on the same machine has the same
    digest.

    Args:
        study: Study with at least one run that has ended.

    Returns:
        Columns run, group, replicate, seed, stop, sha256.

    Raises:
        StudyError: A table is damaged, or no run has ended.
    """
    table = runs(study)
    found = {run: hashlib.sha256() for run in table["run"]}
    for name in sorted(study.manifest.get("parts", {})):
        for run, rows in study.table(name).groupby("run", sort=True):
            if run in found:
                _add(found[run], name, rows)
    kept = table[["run", "group", "replicate", "seed", "stop"]]
    return kept.assign(sha256=[found[run].hexdigest() for run in table["run"]])


def _add(digest: Any, name: str, rows: pd.DataFrame) -> None:
    """Adds rows of a table, column by column; the number of the run is left out."""
    for column in sorted(set(map(str, rows.columns)) - {"run"}):
        values, of = rows[column], COLUMNS[name].get(column)
        if of is not None and of.none is not None:  # as in the files
            values = values.fillna(of.none).astype(np.dtype(of.dtype))
        digest.update(f"{name}.{column}:{len(values)}:".encode())
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            numbers = values.to_numpy()
            if numbers.dtype == object:
                numbers = values.to_numpy(np.float64, na_value=np.nan)
            digest.update(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
        else:
            words = [None if _is_missing(v) else _plain(v) for v in values]
            digest.update(json.dumps(words).encode())


def _is_missing(value: Any) -> bool:
    return value is None or (np.ndim(value) == 0 and bool(pd.isna(value)))


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist() if np.ndim(value) else str(value)
