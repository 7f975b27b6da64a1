"""All parts that exist: a tuple of names for each kind, and the parts of plug-ins.

Classes are named as text, so that this module imports none of them, and any of them may
import this one.
"""

import csv
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import core_schema

from simulator.config import plugins
from simulator.config.base import Config
from simulator.config.errors import UserError
from simulator.config.parts import OPEN, Part, described, tag
from simulator.config.plugins import Plugin, PluginSource

LISTED = Path(__file__).with_name("parts.csv")
"""What `own_listing` returns of all kinds."""
KINDS: dict[str, tuple[str, ...]] = {
    "laws": (
        "simulator.laws.constant:Constant",
        "simulator.laws.distributions:Scipy",
        "simulator.laws.empirical:Empirical",
        "simulator.laws.mixture:Mixture",
        "simulator.laws.markov:Markov",
        "simulator.laws.truncated:Truncated",
        "simulator.laws.scaled:Scaled",
    ),
    "protocols": (
        "simulator.protocols.asynchronous:Asynchronous",
        "simulator.protocols.bounded:Bounded",
        "simulator.protocols.t_synchronous:TSynchronous",
        "simulator.protocols.synchronous:Synchronous",
        "simulator.protocols.buffered:Buffered",
        "simulator.protocols.collect.collect:Collect",
        "simulator.protocols.cyclic:Cyclic",
        "simulator.protocols.phases:Phases",
        "simulator.protocols.rounds:Rounds",
        "simulator.protocols.routed.routed:Routed",
        "simulator.protocols.gossip.gossip:Gossip",
        "simulator.protocols.spanning_tree.spanning_tree:SpanningTree",
        "simulator.protocols.hierarchy.hierarchy:Hierarchy",
        "simulator.protocols.centralised:Centralised",
        "simulator.protocols.pipeline:Pipeline",
        "simulator.protocols.rollouts:GenerateAndTrain",
    ),
    "algorithms": (
        "simulator.algorithms.vafl.part:Vafl",
        "simulator.algorithms.fedbcd.part:FedSgd",
        "simulator.algorithms.fedbcd.part:FedBcd",
        "simulator.algorithms.fedbcd.part:FedPbcd",
        "simulator.algorithms.federated.part:Sgd",
        "simulator.algorithms.federated.averaging:FedAvg",
        "simulator.algorithms.federated.averaging:FedAsync",
        "simulator.algorithms.federated.averaging:FedBuff",
        "simulator.algorithms.tables.part:Ia2sgd",
        "simulator.algorithms.tables.part:Malenia",
        "simulator.algorithms.tables.part:Ringleader",
        "simulator.algorithms.tables.part:Ca2fl",
        "simulator.algorithms.edge_cloud.part:Csgd",
        "simulator.algorithms.edge_cloud.part:Asgd",
        "simulator.algorithms.edge_cloud.part:Audp",
        "simulator.algorithms.edge_cloud.part:Mapa",
        "simulator.algorithms.elastic.part:Easgd",
        "simulator.algorithms.pipelined.part:Pipelined",
        "simulator.algorithms.hierarchical.part:Hierarchical",
        "simulator.algorithms.policy_gradient.part:PolicyGradient",
        "simulator.algorithms.decentralised.part:Psgd",
        "simulator.algorithms.decentralised.part:Adp2sgd",
        "simulator.algorithms.decentralised.part:Sgp",
    ),
    "data": (
        "simulator.problems.data.digits:Digits",
        "simulator.problems.data.breast_cancer:BreastCancer",
        "simulator.problems.data.mnist.part:Mnist",
        "simulator.problems.data.fashion_mnist.part:FashionMnist",
        "simulator.problems.data.cifar10.part:Cifar10",
        "simulator.problems.data.usps.part:Usps",
        "simulator.problems.data.parkinson.part:Parkinson",
        "simulator.problems.data.mimic.part:Mimic",
        "simulator.problems.data.modelnet40.part:ModelNet40",
        "simulator.problems.data.nus_wide.part:NusWide",
        "simulator.problems.data.credit.part:Credit",
        "simulator.problems.data.speech.part:Speech",
        "simulator.problems.data.spoken_digits.part:SpokenDigits",
        "simulator.problems.data.mfeat.part:Mfeat",
        "simulator.problems.data.physionet2012.part:PhysioNet2012",
        "simulator.problems.data.text.part:Text",
        "simulator.problems.data.arithmetic:Arithmetic",
        "simulator.problems.data.synthetic_logistic:SyntheticLogistic",
        "simulator.problems.data.quadratic:Quadratic",
        "simulator.problems.data.user_npz:Npz",
        "simulator.problems.data.user_csv:Csv",
        "simulator.problems.data.user_parquet:Parquet",
        "simulator.problems.data.huggingface:HuggingFace",
        "simulator.problems.data.generated:Generated",
    ),
    "partitions": (
        "simulator.problems.partitions.vertical:Vertical",
        "simulator.problems.partitions.views:Views",
        "simulator.problems.partitions.strips:Strips",
        "simulator.problems.partitions.iid:Iid",
        "simulator.problems.partitions.labels:Labels",
        "simulator.problems.partitions.dirichlet:Dirichlet",
        "simulator.problems.partitions.sizes:Sizes",
        "simulator.problems.partitions.column:ByColumn",
        "simulator.problems.partitions.natural:Natural",
        "simulator.problems.partitions.contiguous:Contiguous",
    ),
    "models": (
        "simulator.problems.models.linear.part:Linear",
        "simulator.problems.models.mlp.part:Mlp",
        "simulator.problems.models.dense.part:Dense",
        "simulator.problems.models.cnn.part:Cnn",
        "simulator.problems.models.deep_cnn.part:DeepCnn",
        "simulator.problems.models.cifar_net.part:CifarNet",
        "simulator.problems.models.view_cnn.part:ViewCnn",
        "simulator.problems.models.lstm.part:Lstm",
        "simulator.problems.models.diagonal.part:Diagonal",
        "simulator.problems.models.python.part:Python",
        "simulator.problems.models.transformer.part:Transformer",
    ),
    "metrics": (
        "simulator.metrics:TEST_ACCURACY",
        "simulator.metrics:TEST_LOSS",
        "simulator.metrics:TEST_PERPLEXITY",
        "simulator.metrics:TEST_AUC",
        "simulator.metrics:EXPECTED_REWARD",
        "simulator.metrics:OBJECTIVE",
        "simulator.metrics:GRADIENT_NORM_SQUARED",
        "simulator.metrics:OPTIMALITY_GAP",
        "simulator.metrics:SMOOTHED_GRADIENT_NORM_SQUARED",
        "simulator.metrics:CONSENSUS_DISTANCE",
        "simulator.metrics:WORKER_ACCURACY",
        "simulator.metrics:WORKER_LOSS",
        "simulator.problems.fairness:CLIENT_ACCURACY",
        "simulator.problems.fairness:CLIENT_ACCURACY_STD",
        "simulator.problems.fairness:CLIENT_ACCURACY_WORST_DECILE",
        "simulator.problems.fairness:CLIENT_ACCURACY_MIN",
        "simulator.problems.fairness:LABEL_ACCURACY",
    ),
    "claims": (
        "simulator.claims.faster:Faster",
        "simulator.claims.fewer:Fewer",
        "simulator.claims.higher:Higher",
        "simulator.claims.no_worse:NoWorse",
        "simulator.claims.close:Close",
        "simulator.claims.ratio:Ratio",
        "simulator.claims.value:Value",
        "simulator.claims.slope:Slope",
        "simulator.claims.monotone:Monotone",
        "simulator.claims.steady:Steady",
        "simulator.claims.below:Below",
        "simulator.claims.critical:Critical",
        "simulator.claims.no_worse_mean:NoWorseMean",
        "simulator.claims.ahead:Ahead",
    ),
    "accountants": (
        "simulator.privacy.parts:BASIC",
        "simulator.privacy.parts:ADVANCED",
        "simulator.privacy.parts:OPTIMAL",
        "simulator.privacy.parts:RDP",
        "simulator.privacy.parts:PLD",
        "simulator.privacy.parts:GDP",
        "simulator.privacy.parts:LEMMA2",
        "simulator.privacy.parts:THEOREM2",
    ),
    "figures": (),
}
"""Every part of this package as `"module:name"`, in the order of lists. Our figures
are listed by `analysis.figures`."""
BASES = {
    "laws": "simulator.laws.base:Law",
    "protocols": "simulator.protocols.base:Protocol",
    "algorithms": "simulator.algorithms.part:Algorithm",
    "data": "simulator.problems.data.parts:Data",
    "partitions": "simulator.config.parts:Part",
    "models": "simulator.problems.models.parts:Model",
    "metrics": "simulator.metrics:Metric",
    "claims": "simulator.claims.base:Claim",
    "accountants": "simulator.privacy.parts:AccountantPart",
    "figures": "analysis.figures.plugin:StudyFigure",
}
"""Base class of the parts of each kind."""


@cache
def own(kind: str) -> tuple[Any, ...]:
    """Returns this package's parts of a kind."""
    return tuple(map(_named, KINDS[kind]))


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


def sources(used: Iterable[Config]) -> dict[str, PluginSource]:
    """Returns the code of the plug-ins among some parts, by the plug-in's name.

    Args:
        used: Parts; those of this package are not looked at.
    """
    plugins_of = [plugin for kind in KINDS for plugin in registered(kind)]
    others: dict[Any, str] = {p.part: p.source for p in plugins_of}
    if not others:
        return {}
    named = (one for each in used for one in (type(each), *each.named_parts()))
    names = {others[one] for one in named if one in others}
    return {name: plugins.source(name) for name in sorted(names)}


def listing() -> list[list[str]]:
    """Returns kind, name, source and description of all parts there are.

    Without plug-ins they are read from a table, which `docs/generate.py` writes: to
    import all parts takes most of a second.

    Raises:
        UserError: a plug-in is not as it should be.
    """
    if not plugins.are_there(KINDS):
        with LISTED.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))
    return [row for kind in KINDS for row in (*own_listing(kind), *_added(kind))]


def own_listing(*kinds: str) -> list[list[str]]:
    """Returns the same of this package's parts of some kinds, from their classes."""
    return [_line(kind, part, "stalesim") for kind in kinds for part in own(kind)]


def _added(kind: str) -> list[list[str]]:
    return [_line(kind, plugin.part, plugin.source) for plugin in registered(kind)]


def _line(kind: str, part: Any, source: str) -> list[str]:
    return [kind, tag(part), source, described(part)]


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
    known = {kind: {tag(part) for part in own(kind)} for kind in KINDS}
    return plugins.everything(known, lambda kind: _named(BASES[kind]))


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
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> Any:
        """Returns pydantic's schema of one of the names."""
        del source, handler
        names = core_schema.literal_schema(self.names())
        return core_schema.with_info_wrap_validator_function(self._known, names)

    def _known(self, value: Any, check: Any, info: Any) -> Any:
        further = (info.context or {}).get(self.kind, ())
        is_known = isinstance(value, str) and value in further
        return value if is_known else check(value)


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
