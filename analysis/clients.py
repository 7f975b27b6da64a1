"""Names of clients: their numbers, the labels of a log, their groups."""

import re
from collections.abc import Iterable

import pandas as pd

from .frames import Study

GROUP, LABEL = "client_group", "client_label"
"""Columns of the table `clients`."""
NUMBER = re.compile(r"[-+.\d]+")
"""A label that is a number, or looks like one."""
NUMBERED = re.compile(r"\d+( \(|$)")
"""A name that begins with a client's number."""


def of_run(study: Study, run: int) -> pd.DataFrame:
    """Returns the clients of a run.

    Returns:
        Columns `client_group` and `client_label`, null where there is none, by the
        clients' numbers (from 1).
    """
    table = study.table("clients")
    mine = table.loc[table["run"] == run].set_index("client")
    return mine.reindex(columns=pd.Index([GROUP, LABEL]))


def names(known: pd.DataFrame, numbers: Iterable[int]) -> list[str]:
    """Returns short names: a label, or a number with its group, such as `3 (fast)`.

    A label that is a number itself follows the client's own: `1 (log: 7)`.
    """
    wanted = [int(number) for number in numbers]
    found = known.reindex(wanted)
    rows = zip(wanted, found[LABEL], found[GROUP], strict=True)
    return [_name(number, label, group) for number, label, group in rows]


def titles(known: pd.DataFrame, numbers: Iterable[int]) -> list[str]:
    """Returns names that can be used alone: as from `names`, numbers after `client`."""
    numbers = list(numbers)
    found = names(known, numbers)
    return [f"client {name}" if NUMBERED.match(name) else name for name in found]


def are_named(known: pd.DataFrame) -> bool:
    """Returns whether clients have names other than their numbers."""
    return bool(known.notna().to_numpy().any())


def groups(known: pd.DataFrame) -> dict[str, int]:
    """Returns the groups of clients in order, and how many each has; maybe none."""
    return {
        str(group): int(size)
        for group, size in known.groupby(GROUP, sort=False).size().items()
    }


def _name(number: int, label: object, group: object) -> str:
    if isinstance(label, str):
        return f"{number} (log: {label})" if NUMBER.fullmatch(label) else label
    return f"{number} ({group})" if isinstance(group, str) else str(number)
