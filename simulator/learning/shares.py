"""The data of a run: its samples, its columns, and which client has which. No JAX."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from ..config.errors import ScenarioError
from ..data import losses, outputs
from ..data.base import Dataset
from ..data.outputs import OutputForm
from ..metrics import metric
from ..models.parts import ModelCounts
from ..streams import Purpose, Streams
from .caching import dataset

MOST_WEIGHTS = 250_000_000
"""Weights of all clients' models, 1 GB in float32; their registers take as much."""
OVERLAP = 2**32
"""Position, in the stream of partitions, of the samples that parties have in common."""


class Shares(NamedTuple):
    """The data of a run, and the client that each part belongs to.

    Attributes:
        data: Training and test data.
        num_outputs: Logits of a sample.
        pools: Sample ids of each client, or one pool that all clients draw from.
        num_samples: Samples of each client, K numbers.
        num_features: Columns of each client, K numbers.
        counts: ModelCounts of the model: its weights, and what else it keeps.
        num_exchanged: Numbers that a party of a vertical problem sends per sample.
        labels: What the data call each client; empty where they do not.
    """

    data: Dataset
    num_outputs: int
    pools: list[Int[np.ndarray, " _"]]
    num_samples: tuple[int, ...]
    num_features: tuple[int, ...]
    counts: ModelCounts
    num_exchanged: int
    labels: tuple[str, ...] = ()

    @property
    def num_weights(self) -> int:
        """Weights of all models together."""
        return self.counts.num_weights


def shares(
    config: Any,
    metrics: Sequence[str],
    seed: int,
    *,
    clients: int,
    pooled: bool,
    precision: str = "float32",
) -> Shares:
    """Returns the data of a run, divided among its clients.

    Args:
        config: The problem's configuration, a `simulator.scenario.scenario.Problem`.
        metrics: Names of the metrics that are evaluated.
        seed: Seed of the run.
        clients: Number of clients, K; where data are pooled, of those who work on them.
        pooled: Whether all data are in one place.
        precision: Type in which features are kept, `float32` or `float64`.

    Raises:
        ScenarioError: The problem does not fit the data.
        DataError: A data file is missing or damaged.
    """
    data = dataset(config.data, precision)
    _check_metrics(config, metrics, data)
    form = outputs.form(config, data)
    _check_rows(config, data, form)
    counts = _counts(config, data, form)
    weights = counts.num_weights
    if weights > MOST_WEIGHTS:
        raise ScenarioError(
            f"problem.model must have at most {MOST_WEIGHTS:,} weights, got "
            f"{weights:,}; make it smaller"
        )
    exchanged = form.num_outputs if config.server is None else config.server.num_sent
    if config.transfer is not None:
        exchanged = config.model.hidden * (config.model.hidden + 2)
    pools, features = _divided(config, data, seed, pooled=pooled)
    sizes = tuple(pool.size for pool in pools)
    divides = config.partition.family == "horizontal" and not pooled
    return Shares(
        data=data,
        num_outputs=form.num_outputs,
        pools=pools,
        num_samples=sizes * (clients // len(pools)),
        num_features=features * (clients // len(features)),
        counts=counts,
        num_exchanged=exchanged,
        labels=config.partition.labels(data) if divides else (),
    )


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
    loss = outputs.loss(config, data)
    part = losses.facts(loss)
    known = config.is_linear and bool(part.row)
    known = known or (config.model.is_diagonal and loss == "squared")
    divided = config.partition.family == "horizontal"
    for name in metrics:
        metric(name).refuse(
            *(data.num_classes, data.name),
            minimum=known,
            likelihood=part.targets == "classes" and part.in_nats,
            divided=divided,
        )


def _check_rows(config: Any, data: Dataset, form: OutputForm) -> None:
    """Refuses models that do not take the data's rows, or have other positions.

    Raises:
        ScenarioError: One line with the rule and the remedy.
    """
    model, frames = config.model, form.positions
    if frames and config.partition.family != "horizontal":
        raise ScenarioError(
            f"problem.partition.kind must be one by rows for {data.name}, whose "
            f"columns are {frames[0]} frames, got {config.partition.kind!r}; take iid"
        )
    if config.partition.family != "horizontal" or model.shaped:
        return
    takes, fitting = "features", "lstm"
    if data.has_tokens:
        takes, fitting = "tokens", "transformer"
    for field in () if data.has_tokens else data.fields:
        if field.name or not _is_of_rows(field.shape):
            raise ScenarioError(
                f"problem.model.kind must be python for {data.name}, whose rows have "
                f"the input {field.name or 'x'} of shape {field.shape}, got "
                f"{model.kind!r}; take python, or save rows of numbers (images plane "
                f"by plane)"
            )
    if model.sequential and not frames:
        raise ScenarioError(
            f"problem.model.kind must be for one class a row, as {data.name} has it, "
            f"got {model.kind!r}; take linear, or the data speech or text"
        )
    if not frames:
        return
    if not model.sequential:
        raise ScenarioError(
            f"problem.model.kind must be sequential for {data.name}, each of whose "
            f"rows has {frames[0]} frames with classes of their own, got "
            f"{model.kind!r}; take {fitting}"
        )
    if model.takes_tokens != data.has_tokens:
        raise ScenarioError(
            f"problem.model.kind must be for {takes}, as {data.name} has them, got "
            f"{model.kind!r}; take {fitting}"
        )
    if model.frames not in (None, frames[0]):
        raise ScenarioError(
            f"problem.model.frames must be the {frames[0]} of problem.data.frames, got "
            f"{model.frames}; change one of them"
        )


def _is_of_rows(shape: tuple[int, ...]) -> bool:
    """Says whether models for rows of numbers, or for images in planes, can take it."""
    return len(shape) < 3 or (len(shape) == 3 and shape[0] in (1, 3))


def _counts(config: Any, data: Dataset, form: OutputForm) -> ModelCounts:
    """Returns the counts of all models together: one, or the parties' and a server's.

    Raises:
        ScenarioError: The columns do not fit the model.
    """
    model, server = config.model, config.server
    if config.partition.family == "horizontal":
        return model.counts(data, form)
    widths = [part.size for part in config.partition.make(data)]
    if server is None:
        return ModelCounts(model.weights_of_parties(widths, form.num_outputs))
    of_views = [own // server.views for own in widths]
    parties = model.weights_of_parties(of_views, server.width)
    return ModelCounts(parties + server.num_weights(len(widths), form))


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
