"""What exists: one explicit tuple per kind of part, plus what others bring.

Each entry is a pair: the configuration class, and `"module:factory"`, imported only
when the part is used. `simulator.scenario.bringing` finds those of other packages.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from simulator.scenario import (
    algorithms,
    bringing,
    decentralised,
    edge_cloud,
    fedbcd,
    federated,
    models,
    problems,
    protocols,
)
from simulator.scenario.base import Config
from simulator.scenario.bringing import VARIABLE, everything, located, named
from simulator.scenario.entry import Entry
from simulator.scenario.errors import UserError
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


@cache
def brought(kind: str) -> tuple[Entry, ...]:
    """Returns the parts of one kind that others bring.

    Raises:
        UserError: what is brought, of whatever kind, is not as it should be.
    """
    return everything(KINDS)[kind]


def sources(configs: Iterable[Config]) -> dict[str, bringing.Source]:
    """Returns the code that brings some parts, by the names that `source` has.

    Args:
        configs: of parts; those of this package are not looked at.
    """
    others = {entry.config: entry.source for kind in KINDS for entry in brought(kind)}
    if not others:
        return {}
    used = {others[type(each)] for each in configs if type(each) in others}
    return {name: bringing.source(name) for name in sorted(used)}


def factory(config: Config, kind: str) -> Callable[..., Any]:
    """Imports and returns the factory of a configured part.

    Args:
        config: the part's configuration.
        kind: a key of `KINDS`.

    Raises:
        UserError: a part that others bring is not known here, or its factory is not.
    """
    for entry in entries(kind):
        if entry.config is type(config):
            return _factory(entry)
    raise UserError(
        f"{kind} must be known to every process, got {type(config).__name__}, which "
        f"this one does not know; take jobs=1, or bring it by a module as in "
        f"docs/extending.md"
    )


def bring(*modules: str | Path) -> None:
    """Makes the parts known that modules bring, here and to processes started later.

    Args:
        modules: dotted names, or paths of .py files; `"__main__"` is a notebook or a
            script itself, whose parts only its own process knows.

    Raises:
        UserError: a module cannot be imported, what it brings is not as it should be,
            or scenarios were read before.
    """
    new = [name for name in map(located, modules) if name not in named()]
    if not new:
        return
    if brought.cache_info().currsize:
        raise UserError(
            f"{', '.join(new)} must be brought before the first scenario is read; "
            f"restart Python (or the notebook's kernel), and bring it first"
        )
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = os.pathsep.join([*named(), *new])
    try:
        everything(KINDS)
    except UserError:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        raise


def _factory(entry: Entry) -> Callable[..., Any]:
    module, name = entry.factory.split(":")
    if entry.source == Entry._field_defaults["source"]:
        return getattr(import_module(module), name)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"the factory {entry.factory!r} of {entry.source} must exist, but: "
            f"{error}; change the entry"
        ) from error
    if not callable(found):
        raise UserError(
            f"the factory {entry.factory!r} of {entry.source} must be a function, got "
            f"{type(found).__name__}; change the entry"
        )
    return found
