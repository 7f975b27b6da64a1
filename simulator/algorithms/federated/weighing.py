"""What each contribution of a row counts: by its staleness, and by its client."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...learning.horizontal import HorizontalProblem
from ..base import norms_of
from .stages import ChainStage, ServerRow
from .weights import StalenessWeight, Weighed


class Weighing(ChainStage):
    """Factors by a staleness weight, and shares in the average.

    Attributes:
        numbers: Numbers of the staleness weight, by name.
        shares: What a client's contribution counts by, of mean 1; None where all count
            alike.
        rule: Class of the staleness weight.
        counts: Whether the clients' contributions are counted.
    """

    numbers: dict[str, Array]
    shares: Float[Array, " K"] | None
    rule: type[StalenessWeight] = eqx.field(static=True)
    counts: bool = eqx.field(static=True)

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return jnp.zeros(problem.num_clients, jnp.int32) if self.counts else None

    def __call__(
        self,
        row: ServerRow,
        read: Float[Array, "W ..."],
        state: Int[Array, " K"] | None,
    ) -> tuple[
        Float[Array, " W"],
        Float[Array, " W"] | Bool[Array, " W"],
        Int[Array, " K"] | None,
    ]:
        """Returns factors and shares, 0 for padding, and the counts after the row."""
        event, present = row.event, row.event.present()
        counts = state
        if counts is not None:
            counts = counts.at[event.worker].add(1, mode="drop")
        seen = Weighed(
            staleness=event.staleness.astype(float),
            step_size=row.rate,
            worker=event.worker,
            counts=counts,
            distance=norms_of(row.weights[None] - read) if self.rule.measures else None,
        )
        of_rule: Any = self.rule.factor
        factor = present * of_rule(seen, **self.numbers)
        share = present
        if self.shares is not None:
            own = self.shares.at[event.worker].get(mode="fill", fill_value=0)
            share = present * own
        return factor, share, counts if counts is None else self.rule.kept(counts)
