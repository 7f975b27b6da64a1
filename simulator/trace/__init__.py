"""The record between numerics and analysis: tables in Parquet, and a manifest.

A *study* is a folder that holds `manifest.json` and one folder of Parquet parts per
table. `columns.COLUMNS` says what a column is called, holds and means; `writing` and
`study` write and read the tables, whose files `parts` knows; `numbering` says how their
clients count; `manifest` says what was run, with what, and how it ended.
"""

from simulator.scenario.errors import StudyError
from simulator.trace.columns import COLUMNS, Column
from simulator.trace.manifest import git_commit, provenance, write_manifest
from simulator.trace.numbering import inward
from simulator.trace.parts import compact, recover, remove_parts
from simulator.trace.study import JOURNAL, Study, load
from simulator.trace.writing import Words, Writer

__all__ = [
    "COLUMNS",
    "JOURNAL",
    "Column",
    "Study",
    "StudyError",
    "Words",
    "Writer",
    "compact",
    "git_commit",
    "inward",
    "load",
    "provenance",
    "recover",
    "remove_parts",
    "write_manifest",
]
