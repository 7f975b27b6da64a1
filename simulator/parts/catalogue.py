"""All parts that exist: names for each kind, parts of extras and of plug-ins.

Classes are named as text, so that this module imports none of them, and any of them may
import this one.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import core_schema

from . import plugins
from .attached import (
    FOLDER,
    LISTED,
    ListedPart,
    extra_kinds,
    extra_parts,
    extras,
    imported,
    listed,
)
from .base import OPEN, Config, Part, described, tag
from .errors import UserError
from .own_code import Content
from .plugins import Plugin

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
