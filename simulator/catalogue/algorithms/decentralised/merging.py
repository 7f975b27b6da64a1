"""How two workers' models become one, a class for each way; how far all are apart."""

from abc import abstractmethod
from typing import Generic, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ....engine.kernel import Event, summed
from ....files.timeline import NO_WORKER, Kind
from ....problem.horizontal import HorizontalProblem

DISTANCE = "consensus_distance"
"""Name of the diagnostic, and of the metric."""
Model = Float[Array, "..."]
Table = Float[Array, "R ..."]
Ages = Int[Array, " R"]


MemoryT = TypeVar("MemoryT")
"""The state of a way of merging, a tree of arrays."""


class Spread(NamedTuple):
    """How far apart workers' models are, as they would read them.

    Attributes:
        centre: Their mean.
        total: Sum of squared distances from it.
    """

    centre: Model
    total: Float[Array, ""]

    def moved(self, num_workers: int, was: Model, now: Model) -> "Spread":
        """Returns the spread after one of the models has moved."""
        share = 1 / num_workers
        centre = self.centre + (now - was) * share

        def gained(was: Array, now: Array, centre: Array) -> Array:
            drift = now - was
            return (2 * (was - centre) + (1 + share) * drift) * drift

        total = self.total + summed(gained, was, now, centre)
        return Spread(centre, jnp.maximum(total, 0))

    def merged(
        self, num_workers: int, one: Model, other: Model, now: Model
    ) -> "Spread":
        """Returns the spread after two of the models have become one."""
        share = 1 / num_workers

        def gained(one: Array, other: Array, now: Array, mean: Array) -> Array:
            drifts = now - one, now - other
            of_each = 2 * (one - mean) + drifts[0], 2 * (other - mean) + drifts[1]
            total = drifts[0] + drifts[1]
            moved = of_each[0] * drifts[0] + of_each[1] * drifts[1]
            return moved - share * total**2

        total = self.total + summed(gained, one, other, now, self.centre)
        centre = self.centre + (2 * now - one - other) * share
        return Spread(centre, jnp.maximum(total, 0))

    def averaged(self, one: Model, other: Model) -> "Spread":
        """Returns the spread after two of the models have become their mean.

        It loses their distance from that.
        """
        lost = 0.5 * summed(lambda a, b: jnp.square(a - b), one, other)
        return self._replace(total=jnp.maximum(self.total - lost, 0))


def spread_of(models: Float[Array, "K ..."]) -> Spread:
    """Returns the spread of some models."""
    centre = models.mean(axis=0)
    apart = models - centre[None]
    return Spread(centre, jnp.vdot(apart, apart))


class Merging(eqx.Module, Generic[MemoryT]):
    """A way of merging: its state, and the model that it makes of two."""

    def begin(self, num_workers: int, registers: Table) -> MemoryT | None:
        """Returns the state before the first row: by default nothing.

        Args:
            num_workers: K.
            registers: Models that workers' jobs have read, then the models in transit.
        """

    @abstractmethod
    def merged(self, memory: MemoryT, event: Event, own: Model, other: Model) -> Model:
        """Returns the merged model of a worker's model and the one that it meets."""

    def after(self, memory: MemoryT, event: Event, arrived: Model | None) -> MemoryT:
        """Returns the state after a row: by default the state before it.

        Args:
            memory: The state before the row.
            event: The row.
            arrived: The model that a MERGE has got; None where models meet in pairs.
        """
        return memory

    def spread(self, num_workers: int, spread: Spread, *models: Model) -> Spread:
        """Returns the spread after an AVERAGE, from both models and the merged one."""
        return spread.merged(num_workers, *models)


class Averaging(Merging[None]):
    """Both become their mean."""

    def merged(self, memory: None, event: Event, own: Model, other: Model) -> Model:
        return 0.5 * (own + other)

    def spread(self, num_workers: int, spread: Spread, *models: Model) -> Spread:
        return spread.averaged(*models[:2])


class ByAge(Merging[Ages]):
    """Models count by the steps that have gone into them; both get the larger age.

    It keeps the age of every model, also of those on their way.
    """

    def begin(self, num_workers: int, registers: Table) -> Ages:
        return jnp.zeros(len(registers), jnp.int32)

    def merged(self, memory: Ages, event: Event, own: Model, other: Model) -> Model:
        ages = self._of_row(memory, event)
        total = ages.sum()
        share = jnp.where(total > 0, ages[0] / jnp.maximum(total, 1), 0.5)
        share = share.astype(own.dtype)
        return share * own + (1 - share) * other

    def after(self, memory: Ages, event: Event, arrived: Model | None) -> Ages:
        ages = self._of_row(memory, event)
        sends, merges = event.kind == Kind.SEND, event.kind == Kind.MERGE
        meets = merges | (event.kind == Kind.AVERAGE)
        age = jnp.where(meets, ages.max(), jnp.where(sends, ages, ages + 1))
        into = jnp.where(sends, event.read_slot, event.worker)
        into = into.at[1].set(jnp.where(merges, NO_WORKER, into[1]))
        return memory.at[into].set(age, mode="drop")

    def _of_row(self, ages: Ages, event: Event) -> Int[Array, " W"]:
        merges, where = event.kind == Kind.MERGE, event.worker
        where = where.at[1].set(jnp.where(merges, event.read_slot[1], where[1]))
        return ages.at[where].get(mode="fill", fill_value=0)


class Replacing(Merging[None]):
    """The model that arrives takes the place of the worker's own."""

    def merged(self, memory: None, event: Event, own: Model, other: Model) -> Model:
        return other


LastModels = tuple[Float[Array, "K K ..."], Bool[Array, "K K"]]
"""Neighbours' models as each worker has last received them, by receiver and sender, and
whether there is one."""


class Cached(Merging[LastModels]):
    """A worker averages its own model and the last ones of its neighbours."""

    def begin(self, num_workers: int, registers: Table) -> LastModels:
        pairs = (num_workers, num_workers)
        models = jnp.zeros((*pairs, *registers.shape[1:]), registers.dtype)
        return models, jnp.zeros(pairs, bool)

    def merged(
        self, memory: LastModels, event: Event, own: Model, other: Model
    ) -> Model:
        (receiver, sender), (models, known) = event.worker, memory
        models = models[receiver].at[sender].set(other)
        known = known[receiver].at[sender].set(True)
        total = jnp.tensordot(known.astype(own.dtype), models, 1)
        return (own + total) / (1 + known.sum())

    def after(
        self, memory: LastModels, event: Event, arrived: Model | None
    ) -> LastModels:
        (models, known), merges = memory, event.kind == Kind.MERGE
        at = jnp.where(merges, event.worker[0], NO_WORKER), event.worker[1]
        models = models.at[at].set(arrived, mode="drop")
        return models, known.at[at].set(True, mode="drop")


WAYS: dict[str, type[Merging]] = {
    "mean": Averaging,
    "age": ByAge,
    "replace": Replacing,
    "cached": Cached,
}
"""The ways by their names in a scenario."""


def consensus_distance(
    problem: HorizontalProblem, models: Float[Array, "K ..."], average: Model
) -> Float[Array, ""]:
    """Returns the mean squared distance of workers' models from the average model.

    In push-sum that is the mean of the numerators, and not of the models.
    """
    apart = models - average[None]
    return jnp.vdot(apart, apart) / len(models)
