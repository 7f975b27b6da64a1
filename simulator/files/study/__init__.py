"""The record between numerics and analysis: tables in Parquet, and a manifest.

A *study* is a folder that holds `manifest.json` and one folder of Parquet parts per
table. `columns.COLUMNS` says what a column is called, holds and means, and how clients
count; `writing` and `study` write and read the tables, whose files `parts` knows;
`manifest` says what was run, with what, and how it ended. All of it goes through
`disk`, with a journal of what was done since the manifest was written, and whatever is
read is what was written, by its checksum.
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
