"""What runs of a robust aggregation: contributions one by one, until a commit."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...algorithms.base import Info, norm
from ...algorithms.federated.stages import (
    Aggregate,
    Contributions,
    OwnStage,
    ServerRow,
    mean_of,
    own_stage,
)
from ...capabilities import LimitsGathering
from ...config.errors import ScenarioError
from ...config.parts import tag
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...setup import RunSetup
from ...timeline import Kind
from .aggregation import RobustPart


class Kept(NamedTuple):
    """What has gathered since the last commit, and the state of the aggregation.

    Attributes:
        totals: Sum of weighted contributions in each place, `[B, D]`; of an empty one
            anything.
        counts: Number of them.
        weight: Sum of all their weights.
        own: State of the aggregation.
    """

    totals: Float[Array, "B D"]
    counts: Int[Array, " B"]
    weight: Float[Array, ""]
    own: Any


class Robust(OwnStage):
    """Aggregates what has gathered in places: buckets, or one for each contribution.

    Attributes:
        places: B.
        buckets: Whether places are buckets of clients.
        gathers: Whether contributions gather over rows.
    """

    places: int = eqx.field(static=True)
    buckets: bool = eqx.field(static=True)
    gathers: bool = eqx.field(static=True)

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Kept:
        flat = weights.reshape(-1)
        totals = jnp.zeros((self.places, flat.size), flat.dtype)
        counts = jnp.zeros(self.places, jnp.int32)
        own = self._own().start(problem, flat)
        return Kept(totals, counts, jnp.zeros((), flat.dtype), own)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Kept
    ) -> tuple[Aggregate, Kept, Info]:
        """Returns the aggregate, and the places, empty after a commit.

        A commit of too few contributions makes no step: it has weight 0, and they are
        lost.
        """
        message, part = contributions.message, self._own()
        assert message is not None
        present = row.event.present() & (contributions.share > 0)
        weight = contributions.weight.astype(message.dtype)[:, None]
        rows = contributions.scaled(message).reshape(present.size, -1)
        rows = jnp.where(present[:, None], weight * rows, 0)
        before = state.counts.sum(dtype=jnp.int32)
        number = before + present.sum(dtype=jnp.int32)
        if self.buckets:
            place = row.event.worker % self.places
        else:
            place = before + jnp.cumsum(present) - 1
        place = jnp.where(present, place, self.places)  # others have none
        filled = state.counts.at[place].get(mode="fill", fill_value=0) > 0
        fresh = jnp.where(filled, self.places, place)
        emptied = state.totals.at[fresh].set(0, mode="drop")
        now = Kept(
            totals=emptied.at[place].add(rows, mode="drop"),
            counts=state.counts.at[place].add(1, mode="drop"),
            weight=state.weight + weight.sum(),
            own=state.own,
        )
        there = now.counts > 0
        ends = row.event.kind == Kind.COMMIT
        ends = ends & there.all() if self.buckets else ends
        applies = ends & (there.sum() >= part.least)

        def aggregated() -> tuple[Any, Any]:
            size = jnp.maximum(now.counts, 1)[:, None].astype(rows.dtype)
            means = jnp.where(there[:, None], now.totals / size, 0)
            return part(means, there, now.own)

        direction, own = jax.lax.cond(
            applies, aggregated, lambda: (jnp.zeros_like(rows[0]), now.own)
        )
        # More messages than places would be dropped without a word.
        direction = jnp.where(number > now.counts.sum(), jnp.nan, direction)
        moved = rows.sum(axis=0) if self.gathers else direction
        counted = mean_of(row.event.present(), contributions.factor)
        lost = ends & ~applies
        info = {
            "gradient_norm": norm(moved),
            "weight": jnp.where(lost, jnp.zeros_like(counted), counted),
        }
        info |= {"buffered": number} if self.gathers else {}
        aggregate = Aggregate(
            direction=direction.reshape(message.shape[1:]),
            applies=applies,
            weight=now.weight / jnp.maximum(number, 1).astype(rows.dtype),
        )
        after = Kept(
            totals=now.totals,
            counts=jnp.where(ends, 0, now.counts),
            weight=jnp.where(ends, 0, now.weight),
            own=own,
        )
        return aggregate, after, info


def robust(part: RobustPart, setup: RunSetup, _: Constants) -> Robust:
    """Returns a robust aggregation, with a place for all that a commit applies.

    Raises:
        ScenarioError: Their number is not known, or too small for any enemy.
    """
    protocol, K = setup.scenario.protocol, setup.shape.num_clients
    name = f"algorithm.chain's {tag(type(part))!r}"
    gathers = protocol.gathers
    most = fewest = setup.timeline.width
    limits = isinstance(protocol, LimitsGathering)
    if limits:
        most, fewest = protocol.most_gathered(K), protocol.fewest_gathered(K)
    elif gathers:
        most = fewest = None
    if part.buckets is not None:
        most = fewest = part.buckets
        if most > K:
            raise ScenarioError(
                f"{name} must have at most {K} buckets, one for each client, got "
                f"{most}, of which some would never fill; lower it"
            )
    places = most
    if places is None:
        raise ScenarioError(
            f"{name} must know how many contributions make a commit, which the "
            f"protocol {protocol.kind!r} does not limit; give their number in place of "
            f"a time, or add buckets"
        )
    assert fewest is not None
    if fewest < part.least:
        raise ScenarioError(
            f"{name} must get at least {part.least} contributions a commit, got "
            f"{fewest}; wait for more, take a protocol that gathers, or change its "
            f"options"
        )
    own = own_stage(part)
    facts = (places, part.buckets is not None, gathers)
    return Robust(own.numbers, own.part, own.options, *facts)
