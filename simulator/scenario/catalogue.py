"""What exists: one explicit tuple per kind of part, plus Python entry points.

Each entry is a pair: the configuration class, and `"module:factory"`, imported only
when the part is used. A package adds its own by an entry point in the group
`stalesim.KIND` (`laws`, `protocols`, `algorithms`, `models`, `data`, `partitions`) that
names such a pair.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

from pydantic import Field

from simulator.scenario import (
    algorithms,
    decentralised,
    edge_cloud,
    fedbcd,
    federated,
    models,
    problems,
    protocols,
)
from simulator.scenario.base import Config
from simulator.scenario.entry import Entry, brought
from simulator.scenario.laws import LAWS

PROTOCOLS: tuple[Entry, ...] = (
    Entry(protocols.Asynchronous, "simulator.protocols.asynchronous:play"),
    Entry(protocols.Bounded, "simulator.protocols.bounded:play"),
    Entry(protocols.TSynchronous, "simulator.protocols.t_synchronous:play"),
    Entry(protocols.Synchronous, "simulator.protocols.synchronous:play"),
    Entry(protocols.Buffered, "simulator.protocols.buffered:play"),
    Entry(protocols.Cyclic, "simulator.protocols.cyclic:play"),
    Entry(protocols.Rounds, "simulator.protocols.rounds:play"),
    Entry(protocols.Gossip, "simulator.protocols.gossip:play"),
    Entry(protocols.Centralised, "simulator.protocols.centralised:play"),
)
ALGORITHMS: tuple[Entry, ...] = (
    Entry(algorithms.Vafl, "simulator.algorithms.vafl_building:build"),
    Entry(fedbcd.FedSgd, "simulator.algorithms.fedbcd_building:build"),
    Entry(fedbcd.FedBcd, "simulator.algorithms.fedbcd_building:build"),
    Entry(fedbcd.FedPbcd, "simulator.algorithms.fedbcd_building:build"),
    Entry(federated.Sgd, "simulator.algorithms.federated:build"),
    Entry(federated.FedAsync, "simulator.algorithms.federated:build"),
    Entry(federated.FedBuff, "simulator.algorithms.federated:build"),
    Entry(edge_cloud.Csgd, "simulator.algorithms.edge_cloud:build"),
    Entry(edge_cloud.Asgd, "simulator.algorithms.edge_cloud:build"),
    Entry(edge_cloud.Audp, "simulator.algorithms.edge_cloud:build"),
    Entry(edge_cloud.Mapa, "simulator.algorithms.edge_cloud:build"),
    Entry(decentralised.Psgd, "simulator.algorithms.decentralised:build"),
    Entry(decentralised.Adp2sgd, "simulator.algorithms.decentralised:build"),
    Entry(decentralised.Sgp, "simulator.algorithms.decentralised:build"),
)
DATA: tuple[Entry, ...] = (
    Entry(problems.Digits, "simulator.problems.data.bundled:digits"),
    Entry(problems.BreastCancer, "simulator.problems.data.bundled:breast_cancer"),
    Entry(problems.Mnist, "simulator.problems.data.idx:mnist"),
    Entry(problems.FashionMnist, "simulator.problems.data.idx:fashion_mnist"),
    Entry(problems.Cifar10, "simulator.problems.data.cifar:cifar10"),
    Entry(problems.Usps, "simulator.problems.data.usps:usps"),
    Entry(problems.Parkinson, "simulator.problems.data.parkinson:parkinson"),
    Entry(problems.Mimic, "simulator.problems.data.mimic:mimic"),
    Entry(problems.NusWide, "simulator.problems.data.nus_wide:nus_wide"),
    Entry(problems.Credit, "simulator.problems.data.credit:credit"),
    Entry(problems.Speech, "simulator.problems.data.speech:speech"),
    Entry(
        problems.SyntheticLogistic,
        "simulator.problems.data.synthetic:synthetic_logistic",
    ),
    Entry(problems.Npz, "simulator.problems.data.own:npz"),
    Entry(problems.Csv, "simulator.problems.data.own:csv"),
)
PARTITIONS: tuple[Entry, ...] = (
    Entry(problems.Vertical, "simulator.problems.partitions.columns:vertical"),
    Entry(problems.Strips, "simulator.problems.partitions.columns:strips"),
    Entry(problems.Iid, "simulator.problems.partitions.rows:iid"),
    Entry(problems.Labels, "simulator.problems.partitions.rows:labels"),
    Entry(problems.Dirichlet, "simulator.problems.partitions.rows:dirichlet"),
    Entry(problems.Sizes, "simulator.problems.partitions.rows:sizes"),
    Entry(problems.Column, "simulator.problems.partitions.rows:column"),
)
MODELS: tuple[Entry, ...] = (
    Entry(models.Linear, "simulator.problems.models:linear"),
    Entry(models.Mlp, "simulator.problems.embeddings:mlp"),
    Entry(models.Dense, "simulator.problems.dense:dense"),
    Entry(models.Cnn, "simulator.problems.cnn:cnn"),
    Entry(models.CifarNet, "simulator.problems.zoo:cifar_net"),
    Entry(models.ViewCnn, "simulator.problems.embeddings:view_cnn"),
    Entry(models.Lstm, "simulator.problems.lstm:lstm"),
)
KINDS: dict[str, tuple[Entry, ...]] = {
    "laws": LAWS,
    "protocols": PROTOCOLS,
    "algorithms": ALGORITHMS,
    "data": DATA,
    "partitions": PARTITIONS,
    "models": MODELS,
}


def entries(kind: str) -> tuple[Entry, ...]:
    """Returns the parts of one kind: ours, then those that other packages bring."""
    return KINDS[kind] + brought(kind)


def tag(entry: Entry) -> str:
    """Returns the name by which a scenario chooses an entry."""
    field = entry.config.model_fields.get("kind") or entry.config.model_fields["law"]
    return str(field.default)


def factory(config: Config, kind: str) -> Callable[..., Any]:
    """Imports and returns the factory of a configured part.

    Args:
        config: the part's configuration.
        kind: a key of `KINDS`.
    """
    for entry in entries(kind):
        if entry.config is type(config):
            module, name = entry.factory.split(":")
            return getattr(import_module(module), name)
    raise LookupError(f"{type(config).__name__} is not in the catalogue of {kind}")


def union(kind: str) -> Any:
    """Returns the discriminated union of all configurations of one kind."""
    configs: Any = None
    for entry in entries(kind):
        configs = entry.config if configs is None else configs | entry.config
    if len(entries(kind)) == 1:
        return configs
    return Annotated[configs, Field(discriminator="kind")]
