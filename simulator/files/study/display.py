"""A study in a few words, as a prompt or a notebook shows it."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ...parts.text import counted, one_line, ranges, shortened
from .manifest import is_world

OPEN = ("incomplete", "failed")
"""Ends of runs that have no results."""
MOST_GROUPS = 12
"""Groups that are named."""
LONGEST = 60
"""Characters of a group's name."""
NEXT = "stalesim.tidy(study), stalesim.convergence(study), study.table(NAME)"
NEXT_OF_WORLD = "study.table(NAME)"
"""What to do with it."""

Pairs = list[tuple[str, str]]


def pairs(folder: Path, manifest: Mapping[str, Any], tables: Iterable[str]) -> Pairs:
    """Returns what a study is, what it holds and what can be done with it.

    Args:
        folder: Folder of the study.
        manifest: Its manifest.
        tables: Names of the tables that it has.

    Returns:
        Headings, each with a line of text.
    """
    runs = manifest["runs"]
    stops = Counter(run["stop"] for run in runs)
    ended = len(runs) - sum(stops[stop] for stop in OPEN)
    failed = f", {stops['failed']} failed" if stops["failed"] else ""
    groups = Counter(run["label"] for run in runs)
    names = [shortened(one_line(label), LONGEST) for label in groups]
    more = f"; ... ({len(names)} in all)" if len(names) > MOST_GROUPS else ""
    replicates = ranges(groups.values())
    of_each = "replicate" if replicates == "1" else "replicates"
    return [
        ("study", one_line(manifest["name"])),
        ("folder", f"{one_line(str(folder))}{_passing(folder)}"),
        ("runs", f"{ended} of {counted(len(runs), 'run')} ended{failed}"),
        ("groups", f"{'; '.join(names[:MOST_GROUPS])}{more}"),
        ("of each", f"{replicates} {of_each}"),
        ("tables", ", ".join(tables)),
        ("next", NEXT_OF_WORLD if is_world(manifest) else NEXT),
    ]


def _passing(folder: Path) -> str:
    """Returns words on a folder that `simulate` has made; "" of others."""
    made = folder.name.startswith("stalesim-")
    mine = made and folder.parent == Path(tempfile.gettempdir())
    return " (removed with this object)" * mine


def text(of: Pairs) -> str:
    """Returns a study as lines of text."""
    width = max(len(heading) for heading, _ in of) + 2
    return "\n".join(f"{heading + ':':{width}}{said}" for heading, said in of)


def html(of: Pairs) -> str:
    """Returns a study as a table of HTML, in which no name is markup."""
    cell = "style='text-align: left'"
    rows = (
        f"<tr><th {cell}>{escape(heading)}</th><td {cell}>{escape(said)}</td></tr>"
        for heading, said in of
    )
    return f"<table>{''.join(rows)}</table>"
