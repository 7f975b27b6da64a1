"""Finds the extras: a folder of `simulator/extras/` adds its parts and commands.

A folder that is taken away takes its parts and commands along, and nothing else. Its
parts are listed in a table, as those of the core are.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # processes of an extra import this alone
    from .base import Config

FOLDER = Path(__file__).parents[1] / "extras"
PACKAGE = "stalesim.simulator.extras"
LISTED = "parts.csv"
"""Table of the parts of a folder: in `parts` those of the core, in that of an extra
its own. Of a new part a row with kind and module is written by hand;
`docs/generate.py` completes it."""


class ListedPart(NamedTuple):
    """A row of a table of parts.

    Attributes:
        kind: A key of `catalogue.KINDS`.
        name: Name by which a scenario chooses the part.
        where: Its class or record as `"module:name"`.
        what: What it is, in a line.
    """

    kind: str
    name: str
    where: str
    what: str


class ExtraTable(NamedTuple):
    """Columns that an extra adds to a table of the trace, or a table of its own.

    Attributes:
        columns: Type, unit and meaning of each. A table of its own has the column `run`
            before them; its rows are sorted by that and the next column.
        grows: Whether it grows with the horizon, so that `record: summary` leaves it
            out.
    """

    columns: Mapping[str, tuple[str, str, str]]
    grows: bool = False


class ExtraWorld(NamedTuple):
    """A kind of world that `stalesim timeline` plays, other than one of clients.

    Attributes:
        kind: Word for it in manifests.
        entries: Entries that only its scenarios have; all of them have the first.
        scenario: Class of these, a `scenario.setting.Varied`, as `"module:name"`.
        record: Function of a scenario, a folder and `progress` that plays the world and
            writes a study, as `"module:name"`.
        report: Module with its tables and figures, as `analysis.worlds` has them.
    """

    kind: str
    entries: tuple[str, ...]
    scenario: str
    record: str
    report: str


class Extra(NamedTuple):
    """What an extra adds to the program. Its package has one, named `EXTRA`.

    Attributes:
        commands: Module with its commands, in a Typer program named `app`; "" for none.
        kinds: Kinds of parts that only it has: the base of each as `"module:name"`.
        worlds: Kinds of worlds that it plays.
        tables: What it adds to the trace, by the name of the table.
        outputs: Beginnings of the names of what its commands write into the folder of a
            study, which is replaced along with it.
    """

    commands: str = ""
    kinds: Mapping[str, str] = MappingProxyType({})
    worlds: tuple[ExtraWorld, ...] = ()
    tables: Mapping[str, ExtraTable] = MappingProxyType({})
    outputs: tuple[str, ...] = ()


@cache
def extras() -> dict[str, Extra]:
    """Returns the extras that are installed, by the name of their folder."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    return {name: import_module(f"{PACKAGE}.{name}").EXTRA for name in names}


@cache
def listed(folder: Path) -> tuple[ListedPart, ...]:
    """Returns the parts that the table of a folder lists; none where it has none."""
    path = folder / LISTED
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(map(ListedPart._make, csv.reader(file)))


def extra_parts(kind: str) -> tuple[str, ...]:
    """Returns the parts of a kind that extras add, as `"module:name"`."""
    every = (part for name in extras() for part in listed(FOLDER / name))
    return tuple(part.where for part in every if part.kind == kind)


def extra_kinds() -> dict[str, str]:
    """Returns the kinds of parts that extras add, with the base of each."""
    return {k: v for extra in extras().values() for k, v in extra.kinds.items()}


def tables() -> list[tuple[str, ExtraTable]]:
    """Returns what extras add to the trace, each with the name of its table."""
    return [pair for extra in extras().values() for pair in extra.tables.items()]


def worlds() -> list[ExtraWorld]:
    """Returns the kinds of worlds that extras add."""
    return [world for extra in extras().values() for world in extra.worlds]


def imported(text: str) -> Any:
    """Imports and returns what `"module:name"` names, or a module."""
    module, _, name = text.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def extras_of(used: "Iterable[Config]") -> set[str]:
    """Returns the names of the extras that some parts come from."""
    found: set[str] = set()
    for part in used:
        found |= _extras_of_class(type(part))
        found |= {_home(record) for record in part.named_parts()}
    return found - {""}


@cache
def _extras_of_class(part: type) -> frozenset[str]:
    """Returns the extras that a class and those that it inherits from belong to."""
    inside = f"{PACKAGE}."
    modules = {each.__module__ for each in part.__mro__}
    mine = (name.removeprefix(inside) for name in modules if name.startswith(inside))
    return frozenset(name.partition(".")[0] for name in mine)


@cache
def _home(record: Any) -> str:
    """Returns the extra that lists a record, such as a metric; "" if none does."""
    for name in extras():
        for part in listed(FOLDER / name):
            module, _, attribute = part.where.partition(":")
            # A record that is used comes from a module that is there.
            if getattr(sys.modules.get(module), attribute, None) is record:
                return name
    return ""
