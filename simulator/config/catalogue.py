"""What exists: one explicit tuple of names a kind of part, and what plug-ins add.

Classes are named as text, so that this module imports none of them, and any of them may
import this one.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, GetCoreSchemaHandler, Tag

from simulator.config import plugins
from simulator.config.base import Config
from simulator.config.errors import UserError
from simulator.config.parts import OPEN, Part, tag
from simulator.config.plugins import Plugin, Source

KINDS: dict[str, tuple[str, ...]] = {
    "laws": (
        "simulator.scenario.laws:Constant",
        "simulator.scenario.laws:Scipy",
        "simulator.scenario.laws:Empirical",
        "simulator.scenario.laws:Mixture",
        "simulator.scenario.laws:Markov",
        "simulator.scenario.laws:Truncated",
        "simulator.scenario.laws:Scaled",
    ),
    "protocols": (
        "simulator.protocols.asynchronous:Asynchronous",
        "simulator.protocols.bounded:Bounded",
        "simulator.protocols.t_synchronous:TSynchronous",
        "simulator.protocols.synchronous:Synchronous",
        "simulator.protocols.buffered:Buffered",
        "simulator.protocols.cyclic:Cyclic",
        "simulator.protocols.rounds:Rounds",
        "simulator.protocols.gossip.gossip:Gossip",
        "simulator.protocols.centralised:Centralised",
    ),
    "algorithms": (
        "simulator.scenario.algorithms:Vafl",
        "simulator.scenario.fedbcd:FedSgd",
        "simulator.scenario.fedbcd:FedBcd",
        "simulator.scenario.fedbcd:FedPbcd",
        "simulator.scenario.federated:Sgd",
        "simulator.scenario.federated:FedAsync",
        "simulator.scenario.federated:FedBuff",
        "simulator.scenario.edge_cloud:Csgd",
        "simulator.scenario.edge_cloud:Asgd",
        "simulator.scenario.edge_cloud:Audp",
        "simulator.scenario.edge_cloud:Mapa",
        "simulator.scenario.decentralised:Psgd",
        "simulator.scenario.decentralised:Adp2sgd",
        "simulator.scenario.decentralised:Sgp",
    ),
    "data": (
        "simulator.scenario.problems:Digits",
        "simulator.scenario.problems:BreastCancer",
        "simulator.scenario.problems:Mnist",
        "simulator.scenario.problems:FashionMnist",
        "simulator.scenario.problems:Cifar10",
        "simulator.scenario.problems:Usps",
        "simulator.scenario.problems:Parkinson",
        "simulator.scenario.problems:Mimic",
        "simulator.scenario.problems:NusWide",
        "simulator.scenario.problems:Credit",
        "simulator.scenario.problems:Speech",
        "simulator.scenario.problems:SyntheticLogistic",
        "simulator.scenario.problems:Npz",
        "simulator.scenario.problems:Csv",
    ),
    "partitions": (
        "simulator.scenario.problems:Vertical",
        "simulator.scenario.problems:Strips",
        "simulator.scenario.problems:Iid",
        "simulator.scenario.problems:Labels",
        "simulator.scenario.problems:Dirichlet",
        "simulator.scenario.problems:Sizes",
        "simulator.scenario.problems:Column",
    ),
    "models": (
        "simulator.scenario.models:Linear",
        "simulator.scenario.models:Mlp",
        "simulator.scenario.models:Dense",
        "simulator.scenario.models:Cnn",
        "simulator.scenario.models:CifarNet",
        "simulator.scenario.models:ViewCnn",
        "simulator.scenario.models:Lstm",
    ),
}
"""Every part of this package as `"module:Class"`, in the order in which it is listed."""
BASES = {
    "laws": "simulator.config.parts:Part",
    "protocols": "simulator.protocols.base:Protocol",
    "algorithms": "simulator.scenario.algorithms:Algorithm",
    "data": "simulator.scenario.problems:Data",
    "partitions": "simulator.config.parts:Part",
    "models": "simulator.config.parts:Part",
}
"""What a part of each kind inherits from."""


@cache
def own(kind: str) -> tuple[type[Part], ...]:
    """Returns this package's parts of a kind."""
    return tuple(map(_named, KINDS[kind]))


def parts(kind: str) -> tuple[type[Part], ...]:
    """Returns the parts of a kind: ours, then those of plug-ins."""
    return own(kind) + tuple(plugin.part for plugin in registered(kind))


@cache
def registered(kind: str) -> tuple[Plugin, ...]:
    """Returns the parts of a kind that plug-ins add.

    Raises:
        UserError: a plug-in, of whatever kind, is not as it should be.
    """
    return _plugins()[kind]


def sources(used: Iterable[Config]) -> dict[str, Source]:
    """Returns the code of the plug-ins among some parts, by the plug-in's name.

    Args:
        used: parts; those of this package are not looked at.
    """
    others = {
        plugin.part: plugin.source for kind in KINDS for plugin in registered(kind)
    }
    if not others:
        return {}
    names = {others[type(each)] for each in used if type(each) in others}
    return {name: plugins.source(name) for name in sorted(names)}


def register(*modules: str | Path) -> None:
    """Makes the parts of plug-in modules known, here and to processes started later.

    Args:
        modules: dotted names, or paths of .py files; `"__main__"` is a notebook or a
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
    if registered.cache_info().currsize:
        raise UserError(
            f"{', '.join(new)} must be registered before the first scenario is read; "
            f"restart Python (or the notebook's kernel), and register it first"
        )
    with plugins.naming(new):
        _plugins()


def _plugins() -> dict[str, tuple[Plugin, ...]]:
    known = {kind: {tag(part) for part in own(kind)} for kind in KINDS}
    bases = {kind: _named(text) for kind, text in BASES.items()}
    return plugins.everything(known, bases)


def _named(text: str) -> Any:
    module, name = text.split(":")
    return getattr(import_module(module), name)


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
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> Any:
        """Returns pydantic's schema of the union."""
        del source
        return handler.generate_schema(_union(self.configs()))


def _union(classes: tuple[type[Part], ...]) -> Any:
    """Returns the union of some classes, told apart by their names."""
    names = {tag(part) for part in classes}

    def name_of(value: Any) -> str:
        law = getattr(value, "law", None)
        law = value.get("law") if isinstance(value, dict) else law
        return law if isinstance(law, str) and law in names else OPEN

    union: Any = None
    for part in classes:
        member = Annotated[part, Tag(tag(part))] if OPEN in names else part
        union = member if union is None else union | member
    return Annotated[union, Discriminator(name_of if OPEN in names else "kind")]
