"""The data of a run: its samples, its columns, and which client has which. No JAX."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int

from simulator.config.errors import DataError, ScenarioError
from simulator.metrics import metric
from simulator.problems.caching import dataset
from simulator.problems.data.base import Dataset
from simulator.streams import Purpose, Streams

MOST_WEIGHTS = 250_000_000
"""Weights of all clients' models, 1 GB in float32; their registers take as much."""
OVERLAP = 2**32
"""Position, in the stream of partitions, of the samples that parties have in common."""
LIKELIHOODS = ("softmax", "sigmoid")
"""Losses that are negative log-likelihoods; of a linear model their least value is
computed."""


class Shares(NamedTuple):
    """The data of a run, and the client that each part belongs to.

    Attributes:
        data: Training and test data.
        num_outputs: Logits of a sample.
        pools: Sample ids of each client, or one pool that all clients draw from.
        num_samples: Samples of each client, K numbers.
        num_features: Columns of each client, K numbers.
        num_weights: Weights of all models together.
        num_exchanged: Numbers that a party of a vertical problem sends per sample.
    """

    data: Dataset
    num_outputs: int
    pools: list[Int[np.ndarray, " _"]]
    num_samples: tuple[int, ...]
    num_features: tuple[int, ...]
    num_weights: int
    num_exchanged: int


def shares(
    config: Any, metrics: Sequence[str], seed: int, *, clients: int, pooled: bool
) -> Shares:
    """Returns the data of a run, divided among its clients.

    Args:
        config: The problem's configuration, a `simulator.scenario.scenario.Problem`.
        metrics: Names of the metrics that are evaluated.
        seed: Seed of the run.
        clients: Number of clients, K; 1 where data are pooled.
        pooled: Whether all data are in one place.

    Raises:
        ScenarioError: The problem does not fit the data.
        DataError: A data file is missing or damaged.
    """
    data = dataset(config.data)
    _check_metrics(config, metrics, data)
    _check_frames(config, data)
    outputs = num_outputs(config, data)
    weights = _num_weights(config, outputs)
    if weights > MOST_WEIGHTS:
        raise ScenarioError(
            f"problem.model must have at most {MOST_WEIGHTS:,} weights, got "
            f"{weights:,}; make it smaller"
        )
    exchanged = outputs if config.server is None else config.server.num_sent
    if config.transfer is not None:
        exchanged = config.model.hidden * (config.model.hidden + 2)
    pools, features = _divided(config, data, seed, pooled=pooled)
    sizes = tuple(pool.size for pool in pools)
    return Shares(
        data=data,
        num_outputs=outputs,
        pools=pools,
        num_samples=sizes * (clients // len(pools)),
        num_features=features,
        num_weights=weights,
        num_exchanged=exchanged,
    )


def loss(
    config: Any, data: Dataset
) -> Literal["softmax", "sigmoid", "hinge", "taylor"]:
    """Returns the loss that a problem names, or that its classes call for.

    Raises:
        DataError: The targets are no classes.
        ScenarioError: The loss is one for two classes, and there are more.
    """
    if data.no_classes:
        raise DataError(data.no_classes)
    if config.loss in ("sigmoid", "taylor") and data.num_classes > 2:
        raise ScenarioError(
            f"problem.loss must be softmax for {data.num_classes} classes, "
            f"got {config.loss}; leave it out"
        )
    if config.loss != "auto":
        return config.loss
    return "sigmoid" if data.num_classes == 2 else "softmax"


def num_outputs(config: Any, data: Dataset) -> int:
    """Returns the logits of a sample: one per class, or one for two classes.

    Only `softmax` has two for two classes.
    """
    one = data.num_classes == 2 and loss(config, data) != "softmax"
    return 1 if one else data.num_classes


def common_samples(config: Any, num_samples: int) -> Int[np.ndarray, " n"]:
    """Returns the samples that all parties of a vertical problem hold.

    All of them, except in transfer learning, where a random set overlaps; like the
    division into training and test rows, it is fixed by `split_seed`.
    """
    if config.transfer is None:
        return np.arange(num_samples)
    size = max(1, round(config.transfer.overlap * num_samples))
    draw = Streams(config.data.split).at(Purpose.PARTITION, OVERLAP, 0)
    return np.sort(draw.permutation(num_samples)[:size])


def _check_metrics(config: Any, metrics: Sequence[str], data: Dataset) -> None:
    """Refuses metrics that the data or the model do not have.

    Raises:
        ScenarioError: One line with the metric and the remedy.
    """
    likelihood = loss(config, data) in LIKELIHOODS
    known = config.is_linear and likelihood
    for name in metrics:
        metric(name).refuse(
            data.num_classes, data.name, minimum=known, likelihood=likelihood
        )


def _check_frames(config: Any, data: Dataset) -> None:
    """Refuses models that do not have as many frames as the data's rows.

    Raises:
        ScenarioError: One line with the rule and the remedy.
    """
    model, frames = config.model, data.num_frames
    takes, fitting = "features", "lstm"
    if data.has_tokens:
        takes, fitting = "tokens", "transformer"
    if frames is not None and config.partition.family != "horizontal":
        raise ScenarioError(
            f"problem.partition.kind must be one by rows for {data.name}, whose "
            f"columns are {frames} frames, got {config.partition.kind!r}; take iid"
        )
    if config.partition.family != "horizontal":
        return
    if frames is None and model.sequential:
        raise ScenarioError(
            f"problem.model.kind must be for one class a row, as {data.name} has it, "
            f"got {model.kind!r}; take linear, or the data speech or text"
        )
    if frames is not None and not model.sequential:
        raise ScenarioError(
            f"problem.model.kind must be sequential for {data.name}, each of whose "
            f"rows has {frames} frames with classes of their own, got {model.kind!r}; "
            f"take {fitting}"
        )
    if frames is not None and model.takes_tokens != data.has_tokens:
        raise ScenarioError(
            f"problem.model.kind must be for {takes}, as {data.name} has them, got "
            f"{model.kind!r}; take {fitting}"
        )
    if frames is not None and model.frames not in (None, frames):
        raise ScenarioError(
            f"problem.model.frames must be the {frames} of problem.data.frames, got "
            f"{model.frames}; change one of them"
        )


def _num_weights(config: Any, outputs: int) -> int:
    """Returns the weights of all models together: one, or the parties' and a server's.

    Raises:
        ScenarioError: The columns do not fit the model.
    """
    model, server, widths = config.model, config.server, _widths(config)
    if config.partition.family == "horizontal":
        return model.num_weights(widths[0], outputs)
    if server is None:
        return sum(model.party_weights(own, outputs) for own in widths)
    parties = sum(
        model.party_weights(own // server.views, server.width) for own in widths
    )
    return parties + server.num_weights(len(widths), outputs)


def _widths(config: Any) -> tuple[int, ...]:
    """Returns the columns that each model is applied to: a party's, or all of them."""
    data = dataset(config.data)
    if config.partition.family == "horizontal":
        return (data.x_train.shape[1],)
    columns = config.partition.make(data)
    return tuple(part.size for part in columns)


def _divided(
    config: Any, data: Dataset, seed: int, *, pooled: bool
) -> tuple[list[Int[np.ndarray, " _"]], tuple[int, ...]]:
    """Returns the pools of samples, and the number of columns of each client."""
    N, P = data.x_train.shape
    if pooled:
        return [np.arange(N)], (P,)
    if config.partition.family == "vertical":
        columns = config.partition.make(data)
        return [common_samples(config, N)], tuple(part.size for part in columns)
    pools = config.partition.make(data, seed)
    return pools, (P,) * len(pools)
