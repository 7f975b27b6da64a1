"""Finds the extras: a folder of `simulator/extras/` adds its parts and commands.

A folder that is taken away takes its parts and commands along, and nothing else. Its
parts are listed in a table, as those of the core are.
"""

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

if TYPE_CHECKING:  # processes of an extra import this alone
    from ..files.study import Study
    from ..scenario.setting import Varied
    from .base import Config, NamedPart

FOLDER = Path(__file__).parents[1] / "extras"
PACKAGE = "stalesim.simulator.extras"
LISTED = "parts.csv"
"""Table of the parts of a folder: in `parts` the core's, in an extra's folder its own.
For a new part, write a row with kind and module; `docs/generate.py` completes it."""
BASE = "*"
"""In place of a name: the row has the base class of all parts of its kind."""


class ListedPart(NamedTuple):
    """A row of a table of parts.

    Attributes:
        kind: Kind of parts, such as `laws`.
        name: Name by which a scenario chooses the part, or `BASE`.
        where: Its class or record as `"module:name"`.
        what: Its description, in a line.
    """

    kind: str
    name: str
    where: str
    what: str


Recorder: TypeAlias = "Callable[..., Study]"
"""Plays a world and writes a study: of a scenario, a folder and `progress`."""


class ExtraWorld(ABC):
    """A kind of world that `stalesim timeline` plays, other than one of clients."""

    kind: ClassVar[str]
    """Word for it in manifests."""
    entries: ClassVar[tuple[str, ...]]
    """Entries that only its scenarios have; all of them have the first."""

    @abstractmethod
    def scenario(self) -> "type[Varied]":
        """Returns the class of its scenarios."""

    @abstractmethod
    def record(self) -> Recorder:
        """Returns the function that plays the world."""

    @abstractmethod
    def report(self) -> ModuleType:
        """Returns the module of its tables and figures, as `analysis.worlds` has it."""


class Extra(NamedTuple):
    """The additions of an extra to the program. Its package has one, named `EXTRA`.

    Attributes:
        commands: Module with its commands, in a Typer program named `app`; "" for none.
        worlds: Kinds of worlds that it plays.
        tables: Columns that it adds to tables of the trace, or new tables, with type,
            unit and meaning of each column. A new table has the column `run` before
            them; its rows are sorted by that and the next column.
        growing: New tables that grow with the horizon, so that `record: summary` leaves
            them out.
        outputs: Prefixes of the names of its commands' files in the folder of a study,
            which are replaced along with it.
    """

    commands: str = ""
    worlds: tuple[ExtraWorld, ...] = ()
    tables: Mapping[str, Mapping[str, tuple[str, str, str]]] = MappingProxyType({})
    growing: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@cache
def extras() -> dict[str, Extra]:
    """Returns the extras that are installed, by the name of their folder."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    return {name: import_module(f"{PACKAGE}.{name}").EXTRA for name in names}


def tables() -> list[Path]:
    """Returns the tables of parts, of the core and of extras."""
    folders = (Path(__file__).parent, *(FOLDER / name for name in extras()))
    return [path for folder in folders if (path := folder / LISTED).is_file()]


def read(table: Path) -> list[ListedPart]:
    """Returns the rows of a table of parts."""
    with table.open(encoding="utf-8", newline="") as file:
        return list(map(ListedPart._make, csv.reader(file)))


@cache
def listed() -> tuple[ListedPart, ...]:
    """Returns the rows of all tables of parts, those of the core first."""
    return tuple(row for table in tables() for row in read(table))


def worlds() -> list[ExtraWorld]:
    """Returns the kinds of worlds that extras add."""
    return [world for extra in extras().values() for world in extra.worlds]


def extras_of(used: "Iterable[Config]") -> set[str]:
    """Returns the names of the extras that some parts come from."""
    found: set[str] = set()
    for part in used:
        found |= {_extra(each.__module__) for each in type(part).__mro__}
        found |= {_home(record) for record in part.named_parts()}
    return found - {""}


def _extra(module: str) -> str:
    """Returns the extra that a module belongs to; "" if to none."""
    home, _, inner = module.partition(f"{PACKAGE}.")
    return "" if home else inner.partition(".")[0]


@cache
def _home(record: "NamedPart") -> str:
    """Returns the extra that lists a record, such as a metric; "" if none does."""
    for row in listed():
        module, _, attribute = row.where.partition(":")
        # A record that is used comes from a module that is there.
        if getattr(sys.modules.get(module), attribute, None) is record:
            return _extra(module)
    return ""
