"""The mean of a commit with the noise of DP-FTRL: that of a tree of partial sums.

No JAX is imported until a run needs it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...catalogue.algorithms.federated.chain import Chained
from ...catalogue.algorithms.federated.stages import ServerRow
from ...files.timeline import Kind
from ...parts.lazy import Late
from ...privacy.releases import Guarantee
from .part import NoisyMean

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ...engine.setup import RunSetup
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    Array = RunSetup = Any


class TreeMean(NoisyMean):
    """The weighted mean of a commit's contributions, with the noise of DP-FTRL.

    The sum of all contributions up to commit t has the noise of the nodes of a binary
    tree that are the binary digits of t, each z C: a variance of popcount(t) z^2 C^2,
    where `noisy_mean` has t z^2 C^2. A commit adds its sum, the noise of its own node,
    and minus that of the nodes which this one takes the place of. With equal numbers
    of contributions, a constant step size and no optimiser, the model is x_0 minus the
    step size times the noised sum. Otherwise privacy is the same, and noise that was
    added is taken back only in part.

    A commit publishes one node. Given all before it, that moves by at most m C if m of
    its messages are zeroed, so nodes compose as releases of noise do.

    Source: Kairouz et al., Practical and Private (Deep) Learning Without Sampling or
    Shuffling (2021), Algorithm 1, without Honaker's estimate; account and restarts:
    appendix D. Several contributions of a client: Choquette-Choo et al., Multi-Epoch
    Matrix Factorization Mechanisms (2023), for matrices without negative entries.
    """

    kind: Literal["tree_mean"] = "tree_mean"  # pyright: ignore[reportIncompatibleVariableOverride]
    sums: ClassVar[str] = "a node of the tree"
    commits: Annotated[int, Field(ge=1, le=2**30)]
    """T, commits of a tree. After them a new one starts, which costs a client that
    contributes to both as much again."""
    _commits: Array

    def fits(self, method: Chained) -> None:
        """Refuses what `noisy_mean` does, and commits whose sums are lost."""
        super().fits(method)
        if self.secure is not None and self.secure.least > 1:
            raise method.refusal(
                self,
                "secure",
                "must have least 1 with tree_mean, whose noise lasts over all "
                f"commits, got {self.secure.least}; remove least",
            )

    def guarantees(
        self, method: Chained, num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        """Returns the guarantee of a node with one message of each client."""
        each = super().guarantees(method, num_samples, batch)
        return tuple(replace(one, by_commit=self.commits) for one in each)

    def facts(self, setup: RunSetup) -> dict[str, object]:
        return super().facts(setup) | {"_commits": jnp.int32(self.commits)}

    def draws_in(self, row: ServerRow, enough: Array) -> Array:
        """Returns whether a row makes a commit, also one of nothing."""
        return row.event.kind == Kind.COMMIT

    def drawn(self, row: ServerRow, zero: Array) -> Array:
        """Returns the noise of the sum so far, less that of the sum before it."""
        draw = super().drawn

        def node(back: Array) -> Array:
            event = row.event._replace(version=row.event.version - back)
            return draw(row._replace(event=event), zero)

        t = row.event.version % self._commits + 1
        own = node(jnp.zeros_like(t))
        # The digits of t - 1 that end in t: nodes of one, two, four, .. commits ago.
        replaced = jax.lax.population_count((t & -t) - 1)
        less = partial(jax.lax.shift_left, jnp.ones_like(t))
        return jax.lax.fori_loop(0, replaced, lambda j, x: x - node(less(j)), own)
