"""All parts that exist: names for each kind, parts of extras and of plug-ins.

Classes are named as text, so that this module imports none of them, and any of them may
import this one.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeVar, Union

from pydantic import Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import core_schema

from . import plugins
from .attached import BASE, ListedPart, listed
from .base import OPEN, Config, NamedPart, Part, described, tag
from .errors import UserError
from .own_code import Content

P = TypeVar("P", bound=Part)
R = TypeVar("R", bound=NamedPart)

BASES = {row.kind: row.where for row in listed() if row.name == BASE}
"""Base class of the parts of each kind as `"module:name"`, in the order of lists."""


@cache
def own(kind: str) -> tuple[type[Part] | NamedPart, ...]:
    """Returns the parts of a kind in the core and in extras.

    Our figures are none: `stalesim.analysis.figures` lists them.
    """
    rows = (row for row in listed() if row.kind == kind and row.name != BASE)
    return tuple(_imported(row.where) for row in rows)


def parts(kind: str) -> tuple[type[Part] | NamedPart, ...]:
    """Returns the parts of a kind: ours, then those of plug-ins.

    Raises:
        UserError: a plug-in, of whatever kind, is not as it should be.
    """
    return (*own(kind), *registered()[kind])


def classes(kind: str, base: type[P]) -> tuple[type[P], ...]:
    """Returns the parts of a kind, by its base class."""
    every = (part for part in parts(kind) if isinstance(part, type))
    return tuple(part for part in every if issubclass(part, base))


def records(kind: str, base: type[R]) -> tuple[R, ...]:
    """Returns the parts of a kind that are records of a class."""
    return tuple(part for part in parts(kind) if isinstance(part, base))


@cache
def registered() -> plugins.Plugins:
    """Returns the parts of every kind that plug-ins add, as `parts`."""
    return _plugins()


def sources(used: Iterable[Config]) -> dict[str, Content]:
    """Returns the code of the plug-ins among some parts, by the plug-in's name."""
    others: dict[object, str] = {}
    for added in registered().values():
        others |= added
    if not others:
        return {}
    named = (one for each in used for one in (type(each), *each.named_parts()))
    names = {others[one] for one in named if one in others}
    return {name: plugins.source(name) for name in sorted(names)}


def listing() -> list[list[str]]:
    """Returns kind, name, source and description of all parts there are.

    Ours are read from tables: to import all of them takes most of a second.

    Raises:
        UserError: a plug-in is not as it should be.
    """
    ours = [row for row in listed() if row.name != BASE]
    rows = [[row.kind, row.name, "stalesim", row.what] for row in ours]
    for kind, added in registered().items():
        rows += [[kind, tag(part), at, described(part)] for part, at in added.items()]
    order = list(BASES)
    return sorted(rows, key=lambda row: order.index(row[0]))


def completed(row: ListedPart) -> ListedPart:
    """Returns a row of a table with name and description by the part's class."""
    if row.name == BASE:
        return row
    part = _imported(row.where)
    return row._replace(name=tag(part), what=described(part))


def register(*modules: str | Path) -> None:
    """Makes the parts of plug-in modules known, here and to processes started later.

    Args:
        modules: Dotted names, or paths of .py files; `"__main__"` is a notebook or a
            script itself, whose parts exist in its own process alone.

    Raises:
        UserError: a module cannot be imported, its parts are not as they should be, or
            scenarios were read before.
    """
    # A file is named so that it is found from any folder.
    given = [
        str(Path(name).absolute()) if str(name).endswith(".py") else str(name)
        for name in modules
    ]
    new = [name for name in given if name not in plugins.named()]
    if not new:
        return
    if registered.cache_info().currsize:
        raise UserError(
            f"{', '.join(new)} must be registered before the first scenario is read; "
            f"restart Python (or the notebook's kernel), and register it first"
        )
    with plugins.naming(new):
        _plugins()


def _plugins() -> plugins.Plugins:
    if not plugins.are_there(BASES):  # else all of our parts would be imported
        return {kind: {} for kind in BASES}
    known = {kind: {tag(part) for part in own(kind)} for kind in BASES}
    return plugins.everything(known, lambda kind: getattr(*_place(BASES[kind])))


def _imported(where: str) -> type[Part] | NamedPart:
    return getattr(*_place(where))


def _place(where: str) -> tuple[ModuleType, str]:
    module, _, name = where.partition(":")
    return import_module(module), name


class AnyPart:
    """Annotates an entry that takes all parts of a kind, of this package or plug-ins.

    The union is made when a scenario is first read, not with the scenario's classes: a
    plug-in may therefore import anything of the simulator.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def configs(self) -> tuple[type[Part], ...]:
        """Returns the classes of all parts of the kind."""
        return classes(self.kind, Part)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return handler.generate_schema(_union(self.configs()))


class AnyName:
    """Annotates an entry that takes the names of all records of a kind.

    Where something is read in a context of further names, they are known as well.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def names(self) -> list[str]:
        """Returns the names: this package's, then those of plug-ins."""
        return [record.name for record in records(self.kind, NamedPart)]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        names = core_schema.literal_schema(self.names())
        return core_schema.with_info_wrap_validator_function(self._known, names)

    def _known(
        self,
        value: object,
        check: core_schema.ValidatorFunctionWrapHandler,
        info: core_schema.ValidationInfo,
    ) -> object:
        further = (info.context or {}).get(self.kind, ())
        is_known = isinstance(value, str) and value in further
        return value if is_known else check(value)


def _union(members: Iterable[type[Part]]) -> object:
    named = {tag(part): part for part in members}

    def name_of(value: object) -> str:
        law = getattr(value, "law", None)
        law = value.get("law") if isinstance(value, dict) else law
        return law if isinstance(law, str) and law in named else OPEN

    if OPEN not in named:
        return Annotated[Union[*named.values()], Discriminator("kind")]
    tagged = (Annotated[part, Tag(name)] for name, part in named.items())
    return Annotated[Union[*tagged], Discriminator(name_of)]
