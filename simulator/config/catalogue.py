"""All parts that exist: names for each kind, parts of extras and of plug-ins.

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

from . import plugins
from .attached import FOLDER, extra_kinds, extra_parts, extras
from .base import Config
from .errors import UserError
from .parts import OPEN, Part, described, tag
from .plugins import Plugin, PluginSource

LISTED = "parts.csv"
"""Table of the core's parts next to this module, and of each extra's in its folder."""
KINDS: dict[str, tuple[str, ...]] = {
    "laws": (
        "stalesim.simulator.laws.constant:Constant",
        "stalesim.simulator.laws.distributions:Scipy",
        "stalesim.simulator.laws.empirical:Empirical",
        "stalesim.simulator.laws.mixture:Mixture",
        "stalesim.simulator.laws.markov:Markov",
        "stalesim.simulator.laws.autoregressive:Autoregressive",
        "stalesim.simulator.laws.drifting:Drifting",
        "stalesim.simulator.laws.truncated:Truncated",
        "stalesim.simulator.laws.scaled:Scaled",
    ),
    "slowdowns": (
        "stalesim.simulator.world.slowdowns:NamedSlowdown",
        "stalesim.simulator.world.slowdowns:RandomSlowdown",
        "stalesim.simulator.world.slowdowns:RegimeSlowdown",
        "stalesim.simulator.world.shared_slowdown:SharedSlowdown",
    ),
    "availability": (
        "stalesim.simulator.world.availability:OnOff",
        "stalesim.simulator.world.availability:Periodic",
        "stalesim.simulator.world.availability:Traced",
        "stalesim.simulator.world.phone_traces:FedScaleTrace",
        "stalesim.simulator.world.phone_traces:FlashTrace",
    ),
    "preferences": (
        "stalesim.simulator.world.preferences:PowerOfChoice",
        "stalesim.simulator.world.preferences:Oort",
        "stalesim.simulator.world.preferences:Flad",
    ),
    "concurrency": ("stalesim.simulator.world.concurrency:SteadyStaleness",),
    "local_steps": (
        "stalesim.simulator.world.local_steps:StepSchedule",
        "stalesim.simulator.world.local_steps:AdaComm",
    ),
    "protocols": (
        "stalesim.simulator.protocols.asynchronous:Asynchronous",
        "stalesim.simulator.protocols.bounded:Bounded",
        "stalesim.simulator.protocols.t_synchronous:TSynchronous",
        "stalesim.simulator.protocols.synchronous:Synchronous",
        "stalesim.simulator.protocols.buffered:Buffered",
        "stalesim.simulator.protocols.collect.collect:Collect",
        "stalesim.simulator.protocols.cyclic:Cyclic",
        "stalesim.simulator.protocols.phases:Phases",
        "stalesim.simulator.protocols.rounds:Rounds",
        "stalesim.simulator.protocols.routed.routed:Routed",
        "stalesim.simulator.protocols.gossip.gossip:Gossip",
        "stalesim.simulator.protocols.gossip.push:PushGossip",
        "stalesim.simulator.protocols.spanning_tree.spanning_tree:SpanningTree",
        "stalesim.simulator.protocols.hierarchy.hierarchy:Hierarchy",
        "stalesim.simulator.protocols.centralised:Centralised",
        "stalesim.simulator.protocols.pipeline:Pipeline",
    ),
    "deadlines": (
        "stalesim.simulator.protocols.deadlines:RecentQuantile",
        "stalesim.simulator.protocols.deadlines:MedianSpread",
    ),
    "buffer_sizes": (
        "stalesim.simulator.protocols.sizes:TargetStaleness",
        "stalesim.simulator.protocols.sizes:NormTest",
    ),
    "graphs": (
        "stalesim.simulator.protocols.graphs.fixed:Ring",
        "stalesim.simulator.protocols.graphs.fixed:Torus",
        "stalesim.simulator.protocols.graphs.fixed:Complete",
        "stalesim.simulator.protocols.graphs.fixed:Bipartite",
        "stalesim.simulator.protocols.graphs.random:RandomRegular",
        "stalesim.simulator.protocols.graphs.random:ErdosRenyi",
        "stalesim.simulator.protocols.graphs.fixed:Edges",
        "stalesim.simulator.protocols.graphs.directed:Exponential",
        "stalesim.simulator.protocols.graphs.directed:Arcs",
    ),
    "accounts": (
        "stalesim.simulator.protocols.gossip.accounts:Simple",
        "stalesim.simulator.protocols.gossip.accounts:Generalised",
        "stalesim.simulator.protocols.gossip.accounts:Randomised",
    ),
    "algorithms": (
        "stalesim.simulator.algorithms.vafl.part:Vafl",
        "stalesim.simulator.algorithms.fedbcd.part:FedSgd",
        "stalesim.simulator.algorithms.fedbcd.part:FedBcd",
        "stalesim.simulator.algorithms.fedbcd.part:FedPbcd",
        "stalesim.simulator.algorithms.federated.part:Sgd",
        "stalesim.simulator.algorithms.federated.averaging:FedAvg",
        "stalesim.simulator.algorithms.federated.averaging:FedAsync",
        "stalesim.simulator.algorithms.federated.averaging:FedBuff",
        "stalesim.simulator.algorithms.federated.chain:WrittenChain",
        "stalesim.simulator.algorithms.tables.part:Ia2sgd",
        "stalesim.simulator.algorithms.tables.part:Malenia",
        "stalesim.simulator.algorithms.tables.part:Ringleader",
        "stalesim.simulator.algorithms.tables.part:Ca2fl",
        "stalesim.simulator.algorithms.edge_cloud.part:Csgd",
        "stalesim.simulator.algorithms.edge_cloud.part:Asgd",
        "stalesim.simulator.algorithms.edge_cloud.part:Audp",
        "stalesim.simulator.algorithms.edge_cloud.part:Mapa",
        "stalesim.simulator.algorithms.elastic.part:Easgd",
        "stalesim.simulator.algorithms.pipelined.part:Pipelined",
        "stalesim.simulator.algorithms.hierarchical.part:Hierarchical",
        "stalesim.simulator.algorithms.decentralised.part:Psgd",
        "stalesim.simulator.algorithms.decentralised.part:Adp2sgd",
        "stalesim.simulator.algorithms.decentralised.part:Sgp",
    ),
    "stages": (
        "stalesim.simulator.algorithms.federated.parts:LocalWork",
        "stalesim.simulator.algorithms.federated.parts:ClippedWork",
        "stalesim.simulator.algorithms.federated.parts:Clip",
        "stalesim.simulator.algorithms.federated.parts:SentNoise",
        "stalesim.simulator.algorithms.federated.parts:Compensate",
        "stalesim.simulator.algorithms.federated.parts:AsMoves",
        "stalesim.simulator.algorithms.federated.measuring:EffectiveSize",
        "stalesim.simulator.algorithms.federated.measuring:Cosine",
        "stalesim.simulator.algorithms.federated.parts:Weigh",
        "stalesim.simulator.algorithms.federated.parts:Mean",
        "stalesim.simulator.algorithms.federated.parts:LimitByStaleness",
        "stalesim.simulator.algorithms.federated.parts:ScaleByWeight",
        "stalesim.simulator.algorithms.federated.parts:Optimise",
        "stalesim.simulator.algorithms.federated.parts:ServerStep",
        "stalesim.simulator.algorithms.federated.parts:Mix",
    ),
    "weights": (
        "stalesim.simulator.algorithms.federated.weights:ConstantWeight",
        "stalesim.simulator.algorithms.federated.weights:PolynomialWeight",
        "stalesim.simulator.algorithms.federated.weights:HingeWeight",
        "stalesim.simulator.algorithms.federated.weights:InverseWeight",
        "stalesim.simulator.algorithms.federated.weights:InverseShareWeight",
        "stalesim.simulator.algorithms.federated.weights:RepeatWeight",
        "stalesim.simulator.algorithms.federated.weights:DistanceWeight",
        "stalesim.simulator.algorithms.federated.weights:DelayAdaptiveWeight",
    ),
    "step_sizes": (
        "stalesim.simulator.algorithms.step_rules:ConstantStep",
        "stalesim.simulator.algorithms.step_rules:InverseRootStep",
        "stalesim.simulator.algorithms.step_rules:PiecewiseStep",
        "stalesim.simulator.algorithms.step_rules:WarmupStep",
        "stalesim.simulator.algorithms.vafl.theorems:BoundedNonconvexStep",
        "stalesim.simulator.algorithms.vafl.theorems:BoundedStronglyConvexStep",
        "stalesim.simulator.algorithms.vafl.theorems:StochasticNonconvexStep",
        "stalesim.simulator.algorithms.vafl.theorems:StochasticStronglyConvexStep",
    ),
    "data": (
        "stalesim.simulator.data.bundled:Digits",
        "stalesim.simulator.data.bundled:BreastCancer",
        "stalesim.simulator.data.mnist:Mnist",
        "stalesim.simulator.data.mnist:FashionMnist",
        "stalesim.simulator.data.cifar:Cifar10",
        "stalesim.simulator.data.cifar:Cifar100",
        "stalesim.simulator.data.leaf.femnist:LeafFemnist",
        "stalesim.simulator.data.leaf.shakespeare:LeafShakespeare",
        "stalesim.simulator.data.leaf.celeba:LeafCeleba",
        "stalesim.simulator.data.leaf.sent140:LeafSent140",
        "stalesim.simulator.data.text:Text",
        "stalesim.simulator.data.synthetic_logistic:SyntheticLogistic",
        "stalesim.simulator.data.synthetic:SyntheticTable",
        "stalesim.simulator.data.synthetic:SyntheticImages",
        "stalesim.simulator.data.synthetic:SyntheticSeries",
        "stalesim.simulator.data.quadratic:Quadratic",
        "stalesim.simulator.data.own_arrays:Npz",
        "stalesim.simulator.data.tables:Csv",
        "stalesim.simulator.data.tables:Parquet",
        "stalesim.simulator.data.tables:HuggingFace",
        "stalesim.simulator.data.own_arrays:Generated",
    ),
    "partitions": (
        "stalesim.simulator.partitions.vertical:Vertical",
        "stalesim.simulator.partitions.vertical:Views",
        "stalesim.simulator.partitions.vertical:Strips",
        "stalesim.simulator.partitions.shares:Iid",
        "stalesim.simulator.partitions.classes:Labels",
        "stalesim.simulator.partitions.classes:Dirichlet",
        "stalesim.simulator.partitions.classes:DirichletClients",
        "stalesim.simulator.partitions.shares:Sizes",
        "stalesim.simulator.partitions.column:ByColumn",
        "stalesim.simulator.partitions.natural:Natural",
        "stalesim.simulator.partitions.shares:Contiguous",
    ),
    "models": (
        "stalesim.simulator.models.linear.part:Linear",
        "stalesim.simulator.models.mlp.part:Mlp",
        "stalesim.simulator.models.dense.part:Dense",
        "stalesim.simulator.models.cnn.part:Cnn",
        "stalesim.simulator.models.deep_cnn.part:DeepCnn",
        "stalesim.simulator.models.lstm.part:Lstm",
        "stalesim.simulator.models.diagonal.part:Diagonal",
        "stalesim.simulator.models.python.part:Python",
        "stalesim.simulator.models.vector.part:Vector",
        "stalesim.simulator.models.transformer.part:Transformer",
    ),
    "metrics": (
        "stalesim.simulator.learning.metrics.of_model:TEST_ACCURACY",
        "stalesim.simulator.learning.metrics.of_model:TEST_LOSS",
        "stalesim.simulator.learning.metrics.of_model:TEST_PERPLEXITY",
        "stalesim.simulator.learning.metrics.of_model:TEST_AUC",
        "stalesim.simulator.learning.metrics.of_model:OBJECTIVE",
        "stalesim.simulator.learning.metrics.of_model:GRADIENT_NORM_SQUARED",
        "stalesim.simulator.learning.metrics.of_model:OPTIMALITY_GAP",
        "stalesim.simulator.algorithms.vafl.part:SMOOTHED_GRADIENT_NORM_SQUARED",
        "stalesim.simulator.algorithms.decentralised.part:CONSENSUS_DISTANCE",
        "stalesim.simulator.learning.metrics.of_model:WORKER_ACCURACY",
        "stalesim.simulator.learning.metrics.of_model:WORKER_LOSS",
        "stalesim.simulator.learning.metrics.fairness:CLIENT_ACCURACY",
        "stalesim.simulator.learning.metrics.fairness:CLIENT_ACCURACY_STD",
        "stalesim.simulator.learning.metrics.fairness:CLIENT_ACCURACY_WORST_DECILE",
        "stalesim.simulator.learning.metrics.fairness:CLIENT_ACCURACY_MIN",
        "stalesim.simulator.learning.metrics.fairness:LABEL_ACCURACY",
    ),
    "losses": (
        "stalesim.simulator.losses:SOFTMAX",
        "stalesim.simulator.losses:SIGMOID",
        "stalesim.simulator.losses:HINGE",
        "stalesim.simulator.losses:TAYLOR",
        "stalesim.simulator.losses:SQUARED",
        "stalesim.simulator.losses:BINARY",
    ),
    "claims": (
        "stalesim.analysis.claims.speed:Faster",
        "stalesim.analysis.claims.speed:Fewer",
        "stalesim.analysis.claims.final_values:Higher",
        "stalesim.analysis.claims.final_values:NoWorse",
        "stalesim.analysis.claims.final_values:Close",
        "stalesim.analysis.claims.ratio:Ratio",
        "stalesim.analysis.claims.final_values:Value",
        "stalesim.analysis.claims.slope:Slope",
        "stalesim.analysis.claims.sweeps:Monotone",
        "stalesim.analysis.claims.sweeps:Steady",
        "stalesim.analysis.claims.below:Below",
        "stalesim.analysis.claims.critical:Critical",
        "stalesim.analysis.claims.sweeps:NoWorseMean",
        "stalesim.analysis.claims.ahead:Ahead",
    ),
    "accountants": (
        "stalesim.simulator.privacy.parts:BASIC",
        "stalesim.simulator.privacy.parts:ADVANCED",
        "stalesim.simulator.privacy.parts:OPTIMAL",
        "stalesim.simulator.privacy.parts:RDP",
        "stalesim.simulator.privacy.parts:PLD",
        "stalesim.simulator.privacy.parts:GDP",
        "stalesim.simulator.privacy.parts:LEMMA2",
        "stalesim.simulator.privacy.parts:THEOREM2",
    ),
    "figures": (),
    **dict.fromkeys(extra_kinds(), ()),
}
"""Every part of the core as `"module:name"`, in the order of lists; of kinds that an
extra adds, none. Our figures are listed by `stalesim.analysis.figures`."""
BASES = {
    "laws": "stalesim.simulator.laws.base:Law",
    "slowdowns": "stalesim.simulator.world.slowdowns:Slowdown",
    "availability": "stalesim.simulator.world.availability:Availability",
    "preferences": "stalesim.simulator.world.preferences:Preference",
    "concurrency": "stalesim.simulator.world.concurrency:Concurrency",
    "local_steps": "stalesim.simulator.world.local_steps:LocalStepsRule",
    "protocols": "stalesim.simulator.protocols.base:Protocol",
    "deadlines": "stalesim.simulator.protocols.deadlines:Deadline",
    "buffer_sizes": "stalesim.simulator.protocols.sizes:BufferSize",
    "graphs": "stalesim.simulator.protocols.graphs.base:Graph",
    "accounts": "stalesim.simulator.protocols.gossip.accounts:Account",
    "algorithms": "stalesim.simulator.algorithms.part:Algorithm",
    "stages": "stalesim.simulator.algorithms.federated.chain:StagePart",
    "weights": "stalesim.simulator.algorithms.federated.weights:StalenessWeight",
    "step_sizes": "stalesim.simulator.algorithms.step_rules:StepRule",
    "data": "stalesim.simulator.data.parts:Data",
    "partitions": "stalesim.simulator.config.parts:Part",
    "models": "stalesim.simulator.models.parts:Model",
    "metrics": "stalesim.simulator.metrics:Metric",
    "losses": "stalesim.simulator.losses:LossPart",
    "claims": "stalesim.simulator.claims.base:Claim",
    "accountants": "stalesim.simulator.privacy.parts:AccountantPart",
    "figures": "stalesim.analysis.figures.plugin:StudyFigure",
    **extra_kinds(),
}
"""Base class of the parts of each kind."""


@cache
def own(kind: str) -> tuple[Any, ...]:
    """Returns the parts of a kind in the core and in extras."""
    return tuple(map(_named, (*KINDS[kind], *extra_parts(kind))))


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

    Without plug-ins they are read from tables, which `docs/generate.py` writes: to
    import all parts takes most of a second.

    Raises:
        UserError: a plug-in is not as it should be.
    """
    if plugins.are_there(KINDS):
        rows = [_line(kind, part, "stalesim") for kind in KINDS for part in own(kind)]
        rows += [row for kind in KINDS for row in _added(kind)]
    else:
        rows = [row for path in tables() for row in _rows(path)]
    order = list(KINDS)
    return sorted(rows, key=lambda row: order.index(row[0]))


def tables() -> dict[Path, tuple[str, ...]]:
    """Returns the tables that `listing` reads, and the parts that each must list."""
    core = tuple(text for kind in KINDS for text in KINDS[kind])
    found = {Path(__file__).with_name(LISTED): core}
    for name, extra in extras().items():
        if texts := tuple(text for kind in KINDS for text in extra.parts.get(kind, ())):
            found[FOLDER / name / LISTED] = texts
    return found


def table(texts: Iterable[str]) -> list[list[str]]:
    """Returns the rows of a table, from the classes of its parts."""
    kinds = {
        text: kind for kind in KINDS for text in (*KINDS[kind], *extra_parts(kind))
    }
    return [_line(kinds[text], _named(text), "stalesim") for text in texts]


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


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
    if not plugins.are_there(KINDS):  # else all of our parts would be imported
        return dict.fromkeys(KINDS, ())
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
