"""The record between numerics and analysis: tables in Parquet, and a manifest.

A *study* is a folder that holds `manifest.json` and one folder of Parquet parts per
table. `columns.COLUMNS` has the name, type and meaning of each column, and the numbers
of clients; `writing` and `study` write and read the tables, whose files are in `parts`;
`manifest` has the runs, their environment and their ends. All of it goes through
`disk`, with a journal of the steps since the manifest was written. Checksums confirm
all that is read.
"""

from ...parts.errors import DamageError, StudyError
from .columns import COLUMNS, TraceColumn, inward
from .disk import DISK, Disk, Files, StudyWarning
from .manifest import MACHINE, is_world, program, provenance, write_manifest
from .measured import metric_of_study
from .study import LEFT_OUT, Study, is_summary, load
from .writing import Categorical, Writer

__all__ = [
    "COLUMNS",
    "DISK",
    "LEFT_OUT",
    "MACHINE",
    "Categorical",
    "DamageError",
    "Disk",
    "Files",
    "Study",
    "StudyError",
    "StudyWarning",
    "TraceColumn",
    "Writer",
    "inward",
    "is_summary",
    "is_world",
    "load",
    "metric_of_study",
    "program",
    "provenance",
    "write_manifest",
]
