"""How contributions become a direction: each row's at once, or gathered in a buffer."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...learning.horizontal import HorizontalProblem
from ...timeline import Kind
from ..base import Info, norm
from .stages import Aggregate, ChainStage, Contributions, ServerRow


class AtOnce(ChainStage):
    """The weighted mean of a row's contributions, which is applied at once."""

    @property
    def takes_sums(self) -> bool:
        return True

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: None
    ) -> tuple[Aggregate, None, Info]:
        """Returns the mean, over what contributions count by."""
        total, mass = summed(contributions)
        direction = total / divisor(mass)
        info = {"gradient_norm": norm(direction)}
        direction = placed(direction, statistics(row, contributions), mass)
        weight = contributions.weight.sum() / divisor(mass)
        return Aggregate(direction, mass > 0, weight), state, info


class Gathered(NamedTuple):
    """What has gathered since the last commit.

    Attributes:
        total: Sum of weighted contributions.
        number: Number of them.
        mass: Sum of what they count by.
        weight: Sum of their weights.
    """

    total: Float[Array, "..."]
    number: Int[Array, ""]
    mass: Float[Array, ""]
    weight: Float[Array, ""]


class Buffer(ChainStage):
    """The weighted mean of what has gathered, which a COMMIT applies.

    Attributes:
        divisor: Number by which the sum is divided; None for what contributions count.
    """

    divisor: Float[Array, ""] | None

    @property
    def takes_sums(self) -> bool:
        return True

    def start(
        self, problem: HorizontalProblem, weights: Float[Array, "..."]
    ) -> Gathered:
        zero = jnp.zeros((), weights.dtype)
        return Gathered(jnp.zeros_like(weights), jnp.int32(0), zero, zero)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Gathered
    ) -> tuple[Aggregate, Gathered, Info]:
        """Returns the mean of the buffer, and the buffer, empty after a COMMIT."""
        total, mass = summed(contributions)
        arrived = row.event.present().sum(dtype=jnp.int32)
        info = {"gradient_norm": norm(total)}
        total = placed(total, statistics(row, contributions), jnp.int32(1))
        weight = contributions.weight.sum(dtype=state.weight.dtype)
        now = Gathered(
            total=state.total + total,
            number=state.number + arrived,
            mass=state.mass + mass,
            weight=state.weight + weight,
        )
        if self.divisor is None:
            direction = now.total / divisor(now.mass)
        else:
            kept = now.total[-row.num_statistics :] if row.num_statistics else None
            direction = placed(now.total / self.divisor, kept, now.number)
        applies = row.event.kind == Kind.COMMIT
        after = Gathered(*(jnp.where(applies, 0, x).astype(x.dtype) for x in now))
        found = Aggregate(direction, applies, now.weight / divisor(now.mass))
        return found, after, info | {"buffered": now.number}


def summed(
    contributions: Contributions,
) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    """Returns the weighted sum of a row's contributions, and what they count by."""
    total, message = contributions.total, contributions.message
    if message is not None:
        weight = contributions.weight.astype(message.dtype)
        total = jnp.tensordot(weight, message, 1)
    assert total is not None
    mass = contributions.share.sum(dtype=total.dtype)
    return contributions.scaled(total), mass


def statistics(
    row: ServerRow, contributions: Contributions
) -> Float[Array, " Q"] | None:
    """Returns the sum, by shares, of what clients make of running statistics.

    Each sends its own, of which the server takes the part that the contribution counts
    by, all of it at most, and keeps the rest of its own: a mean of those is one of
    statistics, however stale they are. None of a model without any.
    """
    if contributions.statistics is None:
        return None
    mine = row.weights[-row.num_statistics :][None]
    counts = jnp.minimum(contributions.factor, 1).astype(mine.dtype)[:, None]
    blended = mine + counts * (contributions.statistics - mine)
    shares = contributions.share.astype(mine.dtype)[:, None]
    return jnp.where(shares > 0, shares * blended, 0).sum(axis=0)


def divisor(count: Int[Array, ""] | Float[Array, ""]) -> Array:
    """Returns what a sum is divided by for its mean; that of nothing is 0."""
    return jnp.where(count > 0, count, 1)


def placed(
    vector: Float[Array, "..."],
    statistics: Float[Array, " Q"] | None,
    count: Int[Array, ""] | Float[Array, ""],
) -> Float[Array, "..."]:
    """Returns a vector that ends with the mean of the statistics, if any."""
    if statistics is None:
        return vector
    mean = statistics / divisor(count).astype(statistics.dtype)
    return vector.at[-statistics.size :].set(mean)
