"""What all runs of one problem share: made once, and handed on. No JAX."""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from jaxtyping import Float, Int

from ..files import inputs
from ..files.reading import files
from ..parts.base import Config
from ..parts.errors import ScenarioError
from ..parts.metrics import ProblemFacts, facts, metric
from ..world.streams import Purpose, Streams
from .data import outputs
from .data.base import Dataset, features_in
from .models.parts import ModelCounts

if TYPE_CHECKING:
    from ..scenario.scenario import Problem
    from .data.parts import Data
    from .numerics import Numerics

C = TypeVar("C", bound=Config)
P = ParamSpec("P")
R = TypeVar("R")
MOST_REMEMBERED = 8
"""Data sets and problems that a process keeps."""
MOST_WEIGHTS = 250_000_000
"""Weights of all clients' models, 1 GB in float32; their registers take as much."""
OVERLAP = 2**32
"""Position, in the stream of partitions, of the samples that parties have in common."""


def cached_by_content(
    build: Callable[Concatenate[C, P], R],
) -> Callable[Concatenate[C, P], R]:
    """Keeps the last few results of a function of a configuration, by its content.

    The content of the files that it names or finds belongs to that.
    """
    results: dict[tuple[object, ...], R] = {}

    @wraps(build)
    def remembering(config: C, *rest: P.args, **options: P.kwargs) -> R:
        content = type(config).__name__, config.model_dump_json()
        read = inputs.state(config)
        key = (*content, read, rest, tuple(sorted(options.items())))
        if key not in results:
            while len(results) >= MOST_REMEMBERED:
                results.pop(next(iter(results)))
            results[key] = build(config, *rest, **options)
        return results[key]

    return remembering


@cached_by_content
def dataset(config: "Data", precision: str = "float32") -> Dataset:
    """Returns the data of a configuration, once for all runs that share it.

    Args:
        config: Configuration of the data set.
        precision: Type in which features are kept, `float32` or `float64`.

    Raises:
        DataError: a file is missing, damaged, or has changed since the study started.
    """
    with files.noted() as read, features_in(precision):
        data = config.make()
    # Before it is remembered: otherwise later runs would get the refused rows.
    inputs.confirm(config, "problem.data", read)
    return data


class Learning:
    """A problem with its data: all that does not depend on a run's seed.

    Attributes:
        config: The problem's configuration, a `simulator.scenario.scenario.Problem`.
        precision: Type in which features are kept, `float32` or `float64`.
        data: Training and test data.
        form: Outputs that the loss takes.

    Raises:
        DataError: As in `outputs.form`.
        ScenarioError: As in `outputs.form`.
    """

    def __init__(self, config: "Problem", precision: str, data: Dataset) -> None:
        self.config, self.precision, self.data = config, precision, data
        self.form = outputs.form(config, data)

    @cached_property
    def columns(self) -> list[Int[np.ndarray, " _"]]:
        """Columns of each party, of a problem that is divided by columns."""
        found = self.config.partition.make(self.data)
        chosen = getattr(self.config.data, "features", None) or ()
        unheld = {*range(len(self.data.columns))} - {*np.concatenate(found).tolist()}
        if chosen and unheld:
            names = ", ".join(repr(self.data.columns[i]) for i in sorted(unheld)[:5])
            raise ScenarioError(
                f"problem.data.features must be columns that some party holds, got "
                f"{names}, which no entry of problem.partition.groups names; add it to "
                f"one, or take it out of the features"
            )
        return found

    @cached_property
    def common(self) -> Int[np.ndarray, " n"]:
        """Samples that all parties hold.

        All of them, except in transfer learning, where a random set overlaps; like the
        division into training and test rows, it is fixed by `split_seed`.
        """
        config, num_samples = self.config, len(self.data.x_train)
        if config.transfer is None:
            return np.arange(num_samples)
        size = max(1, round(config.transfer.overlap * num_samples))
        draw = Streams(config.data.split).at(Purpose.PARTITION, OVERLAP, 0)
        return np.sort(draw.permutation(num_samples)[:size])

    @cached_property
    def counts(self) -> ModelCounts:
        """Counts of all models together: one, or the parties' and a server's.

        Raises:
            ScenarioError: The model does not fit the rows or columns, or is too large.
        """
        _check_rows(self.config, self.data, self.form)
        counts = self._counts()
        if counts.num_weights > MOST_WEIGHTS:
            raise ScenarioError(
                f"problem.model must have at most {MOST_WEIGHTS:,} weights, got "
                f"{counts.num_weights:,}; make it smaller"
            )
        return counts

    def _counts(self) -> ModelCounts:
        model, server, form = self.config.model, self.config.server, self.form
        if self.config.partition.family == "horizontal":
            return model.counts(self.data, form)
        widths = [part.size for part in self.columns]
        if server is None:
            return ModelCounts(model.weights_of_parties(widths, form.num_outputs))
        of_views = [own // server.views for own in widths]
        parties = model.weights_of_parties(of_views, server.width)
        return ModelCounts(parties + server.num_weights(len(widths), form))

    @property
    def num_exchanged(self) -> int:
        """Numbers that a party of a vertical problem sends per sample."""
        config, aligned = self.config, self.config.model.num_aligned
        if config.transfer is not None and aligned is not None:
            return aligned * (aligned + 2)
        return config.server.num_sent if config.server else self.form.num_outputs

    @cached_property
    def numerics(self) -> "Numerics":
        """The problem on the device; imports JAX."""
        from .numerics import Numerics

        return Numerics(self)

    def check_metrics(self, metrics: Sequence[str]) -> None:
        """Refuses metrics that the data or the model do not have.

        Raises:
            ScenarioError: One line with the metric and the remedy.
        """
        config, data, loss = self.config, self.data, self.form.loss
        part = facts(loss)
        known = config.is_linear and bool(part.row)
        known = known or (config.model.is_diagonal and loss == "squared")
        problem = ProblemFacts(
            dataset=data.name,
            num_classes=data.num_classes,
            minimum=known,
            likelihood=part.targets == "classes" and part.in_nats,
            divided=config.partition.family == "horizontal",
        )
        for name in metrics:
            metric(name).refuse(problem)


@cached_by_content
def learning(config: "Problem", precision: str = "float32") -> Learning:
    """Returns the learning problem of runs, once for all that share it.

    Raises:
        DataError: As in `dataset`.
        ScenarioError: The loss does not fit the data.
    """
    return Learning(config, precision, dataset(config.data, precision))


def _check_rows(config: "Problem", data: Dataset, form: outputs.OutputForm) -> None:
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
    if model.sequential and not frames and not (data.has_tokens and model.takes_tokens):
        raise ScenarioError(
            f"problem.model.kind must be for one class a row, as {data.name} has it, "
            f"got {model.kind!r}; take linear, or the data text"
        )
    if not frames and not data.has_tokens:
        return
    if frames and not model.sequential:
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
    if frames and model.num_frames not in (None, frames[0]):
        raise ScenarioError(
            f"problem.model.frames must be the {frames[0]} of problem.data.frames, got "
            f"{model.num_frames}; change one of them"
        )


def _is_of_rows(shape: tuple[int, ...]) -> bool:
    """Says whether models for rows of numbers, or for images in planes, can take it."""
    return len(shape) < 3 or (len(shape) == 3 and shape[0] in (1, 3))


class Shares(NamedTuple):
    """The data of a run, and the client that each part belongs to.

    Attributes:
        data: Training and test data.
        pools: Sample ids of each client, or one pool that all clients draw from.
        num_samples: Samples of each client, K numbers.
        num_features: Columns of each client, K numbers.
        labels: The data's name of each client; empty without names.
        paired: Columns of the clients' table that show why each has its share: K
            numbers each; none where nothing pairs shares with clients.
    """

    data: Dataset
    pools: list[Int[np.ndarray, " _"]]
    num_samples: tuple[int, ...]
    num_features: tuple[int, ...]
    labels: tuple[str, ...] = ()
    paired: dict[str, Float[np.ndarray, " K"]] = {}  # noqa: RUF012


def shares(
    learning: Learning,
    seed: int,
    *,
    clients: int,
    pooled: bool,
    seconds: Float[np.ndarray, " K"] | None = None,
) -> Shares:
    """Returns the data of a run, divided among its clients.

    Args:
        learning: The problem with its data.
        seed: Seed of the run.
        clients: Number of clients, K; where data are pooled, of those who work on them.
        pooled: Whether all data are in one place.
        seconds: How long each client computes, where shares are paired by it.

    Raises:
        ScenarioError: The data cannot be divided so.
    """
    partition, data = learning.config.partition, learning.data
    pools, features = _divided(learning, seed, pooled=pooled)
    divides = partition.family == "horizontal" and not pooled
    labels = partition.labels(data) if divides else ()
    paired = {}
    if seconds is not None and divides:
        measure = partition.pairing.measured(data, pools)
        order = partition.pairing.order(seconds, measure, seed)
        pools = [pools[share] for share in order]
        labels = tuple(labels[share] for share in order) if labels else ()
        paired = {"compute_median_s": seconds, "paired_by": measure[order]}
    sizes = tuple(pool.size for pool in pools)
    return Shares(
        data=data,
        pools=pools,
        num_samples=sizes * (clients // len(pools)),
        num_features=features * (clients // len(features)),
        labels=labels,
        paired=paired,
    )


def _divided(
    learning: Learning, seed: int, *, pooled: bool
) -> tuple[list[Int[np.ndarray, " _"]], tuple[int, ...]]:
    partition, (N, P) = learning.config.partition, learning.data.x_train.shape
    if pooled:
        return [np.arange(N)], (P,)
    if partition.family == "vertical":
        return [learning.common], tuple(part.size for part in learning.columns)
    pools = partition.make(learning.data, seed)
    return pools, (P,) * len(pools)
