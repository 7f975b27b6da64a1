"""Files of what was played, each written once."""

import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def write_once(
    path: Path, fields: Iterable[str], rows: Callable[[], Iterable[tuple[Any, ...]]]
) -> Path:
    """Writes a table, whole or not at all; nothing if another process was faster.

    Args:
        path: File.
        fields: Names of the columns.
        rows: What makes the rows.
    """
    if path.exists():
        return path
    part = path.with_suffix(f".{os.getpid()}")
    with part.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(fields)
        writer.writerows(rows())
    part.replace(path)
    return path
