"""All parts that exist: names for each kind, parts of extras and of plug-ins.

Classes are named as text, so that this module imports none of them, and any of them may
import this one.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import core_schema

from . import plugins
from .base import OPEN, Config, Part, described, tag
from .errors import UserError
from .own_code import Content
from .plugins import Plugin

if TYPE_CHECKING:
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


def extra_tables() -> list[tuple[str, ExtraTable]]:
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
def _home(record: object) -> str:
    """Returns the extra that lists a record, such as a metric; "" if none does."""
    for name in extras():
        for part in listed(FOLDER / name):
            module, _, attribute = part.where.partition(":")
            # A record that is used comes from a module that is there.
            if getattr(sys.modules.get(module), attribute, None) is record:
                return name
    return ""


BASES = {
    "laws": "stalesim.simulator.world.laws.base:Law",
    "slowdowns": "stalesim.simulator.world.slowdowns:Slowdown",
    "availability": "stalesim.simulator.world.availability:Availability",
    "preferences": "stalesim.simulator.world.preferences:Preference",
    "concurrency": "stalesim.simulator.world.concurrency:Concurrency",
    "local_steps": "stalesim.simulator.world.local_steps:LocalStepsRule",
    "protocols": "stalesim.simulator.world.protocol:Protocol",
    "deadlines": "stalesim.simulator.catalogue.protocols.deadlines:Deadline",
    "buffer_sizes": "stalesim.simulator.catalogue.protocols.sizes:BufferSize",
    "graphs": "stalesim.simulator.catalogue.protocols.graphs.base:Graph",
    "accounts": "stalesim.simulator.catalogue.protocols.gossip.accounts:Account",
    "algorithms": "stalesim.simulator.engine.algorithm:Algorithm",
    "stages": "stalesim.simulator.catalogue.algorithms.federated.stage:StagePart",
    "weights": (
        "stalesim.simulator.catalogue.algorithms.federated.weights:StalenessWeight"
    ),
    "step_sizes": "stalesim.simulator.engine.step_rules:StepRule",
    "data": "stalesim.simulator.problem.data.parts:Data",
    "partitions": "stalesim.simulator.parts.base:Part",
    "models": "stalesim.simulator.problem.models.parts:Model",
    "metrics": "stalesim.simulator.parts.metrics:Metric",
    "losses": "stalesim.simulator.parts.metrics:LossPart",
    "claims": "stalesim.simulator.scenario.claims.base:Claim",
    "accountants": "stalesim.simulator.privacy.parts:AccountantPart",
    "figures": "stalesim.analysis.figures.plugin:StudyFigure",
    **extra_kinds(),
}
"""Base class of the parts of each kind, in the order of lists."""


HERE = Path(__file__).parent
KINDS = {
    kind: tuple(part.where for part in listed(HERE) if part.kind == kind)
    for kind in BASES
}
"""Every part of the core as `"module:name"`, in the order of lists; of kinds that an
extra adds, none. Our figures are listed by `stalesim.analysis.figures`."""


@cache
def own(kind: str) -> tuple[Any, ...]:
    """Returns the parts of a kind in the core and in extras."""
    return tuple(map(imported, (*KINDS[kind], *extra_parts(kind))))


def parts(kind: str) -> tuple[Any, ...]:
    """Returns the parts of a kind: ours, then those of plug-ins."""
    return own(kind) + tuple(plugin.part for plugin in registered(kind))


def registered(kind: str) -> tuple[Plugin, ...]:
    """Returns the parts of a kind that plug-ins add.

    Raises:
        UserError: a plug-in, of whatever kind, is not as it should be.
    """
    return all_registered()[kind]


@cache
def all_registered() -> dict[str, tuple[Plugin, ...]]:
    """Returns the parts of every kind that plug-ins add, as `registered`."""
    return _plugins()


def sources(used: Iterable[Config]) -> dict[str, Content]:
    """Returns the code of the plug-ins among some parts, by the plug-in's name.

    Args:
        used: Parts; those of this package are not looked at.
    """
    plugins_of = [plugin for kind in KINDS for plugin in registered(kind)]
    others: dict[object, str] = {p.part: p.source for p in plugins_of}
    if not others:
        return {}
    named = (one for each in used for one in (type(each), *each.named_parts()))
    names = {others[one] for one in named if one in others}
    return {name: plugins.source(name) for name in sorted(names)}


def listing() -> list[list[str]]:
    """Returns kind, name, source and description of all parts there are.

    Without plug-ins they are read from tables: to import all parts takes most of a
    second.

    Raises:
        UserError: a plug-in is not as it should be.
    """
    if plugins.are_there(KINDS):
        every = [(kind, Plugin(p, "stalesim")) for kind in KINDS for p in own(kind)]
        every += [(kind, added) for kind in KINDS for added in registered(kind)]
        rows = [[k, tag(p.part), p.source, described(p.part)] for k, p in every]
    else:
        known = (part for path in tables() for part in listed(path.parent))
        rows = [[part.kind, part.name, "stalesim", part.what] for part in known]
    order = list(KINDS)
    return sorted(rows, key=lambda row: order.index(row[0]))


def tables() -> list[Path]:
    """Returns the tables of parts, of the core and of extras."""
    folders = (HERE, *(FOLDER / name for name in extras()))
    return [folder / LISTED for folder in folders if listed(folder)]


def table(path: Path) -> list[ListedPart]:
    """Returns the rows that a table must have, by the classes of its parts."""
    every = ((part, imported(part.where)) for part in listed(path.parent))
    return [
        ListedPart(row.kind, tag(part), row.where, described(part))
        for row, part in every
    ]


def register(*modules: str | Path) -> None:
    """Makes the parts of plug-in modules known, here and to processes started later.

    Args:
        modules: Dotted names, or paths of .py files; `"__main__"` is a notebook or a
            script itself, whose parts only its own process knows.

    Raises:
        UserError: a module cannot be imported, its parts are not as they should be, or
            scenarios were read before.
    """
    new = [
        name for name in map(plugins.located, modules) if name not in plugins.named()
    ]
    if not new:
        return
    if all_registered.cache_info().currsize:
        raise UserError(
            f"{', '.join(new)} must be registered before the first scenario is read; "
            f"restart Python (or the notebook's kernel), and register it first"
        )
    with plugins.naming(new):
        _plugins()


def _plugins() -> dict[str, tuple[Plugin, ...]]:
    if not plugins.are_there(KINDS):  # else all of our parts would be imported
        return dict.fromkeys(KINDS, ())
    known = {kind: {tag(part) for part in own(kind)} for kind in KINDS}
    return plugins.everything(known, lambda kind: imported(BASES[kind]))


class AnyPart:
    """Stands in an annotation for all parts of a kind, of this package or plug-ins.

    The union is made when a scenario is first read, not with the scenario's classes: a
    plug-in may therefore import anything of the simulator.

    Args:
        kind: a key of `KINDS`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def configs(self) -> tuple[type[Part], ...]:
        """Returns the classes of all parts of the kind."""
        return parts(self.kind)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Returns pydantic's schema of the union."""
        return handler.generate_schema(_union(self.configs()))


class AnyName:
    """Stands in an annotation for the names of all records of a kind.

    Where something is read in a context of further names, they are known as well.

    Args:
        kind: a key of `KINDS`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def names(self) -> list[str]:
        """Returns the names: this package's, then those of plug-ins."""
        return [tag(record) for record in parts(self.kind)]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Returns pydantic's schema of one of the names."""
        names = core_schema.literal_schema(self.names())
        return core_schema.with_info_wrap_validator_function(self._known, names)

    def _known(
        self,
        value: Any,
        check: core_schema.ValidatorFunctionWrapHandler,
        info: core_schema.ValidationInfo,
    ) -> object:
        further = (info.context or {}).get(self.kind, ())
        is_known = isinstance(value, str) and value in further
        return value if is_known else check(value)


def _union(classes: tuple[type[Part], ...]) -> Any:
    """Returns the union of some classes, told apart by their names."""
    names = {tag(part) for part in classes}

    def name_of(value: object) -> str:
        law = getattr(value, "law", None)
        law = value.get("law") if isinstance(value, dict) else law
        return law if isinstance(law, str) and law in names else OPEN

    union: Any = None
    for part in classes:
        member = Annotated[part, Tag(tag(part))] if OPEN in names else part
        union = member if union is None else union | member
    return Annotated[union, Discriminator(name_of if OPEN in names else "kind")]
