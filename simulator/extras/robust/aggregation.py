"""Robust aggregations: median, trimmed mean, Krum, geometric median, clipping."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...algorithms.federated.chain import AggregatePart, Chained
from ...algorithms.federated.parts import Count, Weigh
from ...models.parts import ModelCounts


class RobustPart(AggregatePart):
    """Common base of the robust aggregations of a commit's contributions.

    They are those of a row, or what has gathered where the protocol gathers them, each
    times its staleness weight. The server must see them one by one: a stage that shows
    it their sum alone goes with `mean`.
    """

    made_by: ClassVar[str] = f"{__package__}.gathering:robust"
    buckets: Count | None = None
    """B: contributions of client m are averaged in bucket m mod B, and the means of the
    buckets are aggregated as soon as none is empty, then emptied; until then commits
    leave the model as it is. On the protocol `asynchronous` it is BASGD. By default
    contributions are aggregated one by one.
    Source: Yang and Li, BASGD: Buffered Asynchronous SGD for Byzantine Learning (2021),
    Algorithm 2."""

    @property
    def least(self) -> int:
        """Contributions, or buckets, with which an enemy is tolerated, at least."""
        return 3

    def fits(self, method: Chained) -> None:
        weigh = next((s for s in method.stages if isinstance(s, Weigh)), None)
        if weigh is not None and weigh.weighting != "equal":
            raise method.refusal(
                weigh,
                "weighting",
                "must be equal for a robust aggregation, for the number of samples is "
                f"a client's own word, got {weigh.weighting!r}; remove it",
            )

    def start(self, problem: Any, weights: Any) -> Any:
        """Returns its state before the first commit, for weights as one vector."""

    def check_model(self, method: Chained, counts: ModelCounts) -> None:
        method.refuse_statistics(self, counts, "lost")

    @abstractmethod
    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns what takes the place of a mean, and the state after the commit.

        Args:
            vectors: Contributions, or means of buckets, `[B, D]`; zeros where there is
                none.
            there: Flags of those that are there, `[B]`, at least `least` of them.
            state: State before.
        """


class TrimmedMean(RobustPart):
    """The mean of what is left, in each coordinate, without its f largest and smallest.

    Source: Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates (2018), Definition 2, with beta n = f.
    """

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    tolerated: Annotated[int, Field(ge=0)]
    """f, enemies among the contributions of a commit, or among buckets."""

    @property
    def least(self) -> int:
        return 2 * self.tolerated + 1

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the trimmed mean of each coordinate."""
        import jax.numpy as jnp  # only where a run needs it

        ranked = jnp.sort(jnp.where(there[:, None], vectors, jnp.inf), axis=0)
        rank, number = jnp.arange(there.size), there.sum()
        inner = (rank >= self.tolerated) & (rank < number - self.tolerated)
        total = jnp.where(inner[:, None], ranked, 0).sum(axis=0)
        return total / jnp.maximum(inner.sum(), 1).astype(total.dtype), state


class CoordinateMedian(RobustPart):
    """The median of each coordinate, of an even number the mean of the middle two.

    Source: Yin et al. (2018), Definition 1.
    """

    kind: Literal["coordinate_median"] = "coordinate_median"

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the median of each coordinate."""
        return median_of(vectors, there), state


def median_of(vectors: Any, there: Any) -> Any:
    """Returns the median of each coordinate `[D]` of the vectors that are there."""
    import jax.numpy as jnp  # only where a run needs it

    ranked = jnp.sort(jnp.where(there[:, None], vectors, jnp.inf), axis=0)
    number = jnp.maximum(there.sum(), 1)
    return (ranked[(number - 1) // 2] + ranked[number // 2]) / 2


class Krum(RobustPart):
    """The mean of the contributions with the smallest scores, by default of one.

    The score of one is the sum of its squared distances to the n - f - 2 closest others
    among n, which tolerates f enemies if n >= 2 f + 3. With several it is multi-Krum.

    Source: Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant
    Gradient Descent (2017), section 4 and Proposition 1; multi-Krum: section 5.
    """

    kind: Literal["krum"] = "krum"
    tolerated: Annotated[int, Field(ge=0)]
    """f, enemies among the contributions of a commit, or among buckets."""
    selected: Count = 1
    """m, contributions whose mean is taken."""

    @property
    def least(self) -> int:
        return max(2 * self.tolerated + 3, self.selected)

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the mean of those with the smallest scores."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        size = there.size
        apart = jax.lax.map(
            lambda one: ((vectors - one[None]) ** 2).sum(axis=1), vectors
        )
        others = there[None, :] & ~jnp.eye(size, dtype=bool)
        ranked = jnp.sort(jnp.where(others, apart, jnp.inf), axis=1)
        near = jnp.arange(size) < there.sum() - self.tolerated - 2
        scores = jnp.where(near, ranked, 0).sum(axis=1)
        chosen = jnp.argsort(jnp.where(there, scores, jnp.inf))[: self.selected]
        return vectors[chosen].mean(axis=0), state


class GeometricMedian(RobustPart):
    """The point with the least sum of distances, by smoothed Weiszfeld iterations.

    Each is the mean with weights 1 / max(nu, distance from the point before). The first
    point is the median of each coordinate (ours), which enemies cannot move far.

    Source: Pillutla, Kakade and Harchaoui, Robust Aggregation for Federated Learning
    (2022), Algorithm 2.
    """

    kind: Literal["geometric_median"] = "geometric_median"
    iterations: Count = 8
    """Number of iterations."""
    smoothing: Annotated[float, Field(gt=0)] = 1e-6
    """nu."""

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the point after the iterations."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        def better(_: Any, point: Any) -> Any:
            distance = jnp.linalg.norm(vectors - point[None], axis=1)
            weight = there / jnp.maximum(self.smoothing, distance)
            weight = (weight / jnp.maximum(weight.sum(), 1e-30)).astype(point.dtype)
            return jnp.tensordot(weight, vectors, 1)

        start = jnp.where(there.any(), median_of(vectors, there), 0)
        return jax.lax.fori_loop(0, self.iterations, better, start), state


class CentredClipping(RobustPart):
    """v + rate times the mean of all x - v, each clipped to a radius; v was the last.

    With rate 1 it is that of rounds. With 1 - beta and one contribution a commit v is
    the server's momentum, of which no message moves more than (1 - beta) radius: ours,
    next to THROTTLE's (2026), whose centre stays the same in a round.

    Source: Karimireddy, He and Jaggi, Learning from History for Byzantine Robust
    Optimization (2021), Algorithm 2, equation (CC).
    """

    kind: Literal["centred_clipping"] = "centred_clipping"
    radius: Annotated[float, Field(gt=0)]
    """tau, the largest distance from v that counts."""
    iterations: Count = 1
    """Times that v moves in a commit."""
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of the clipped mean that v moves by."""

    @property
    def least(self) -> int:
        return 1

    def start(self, problem: Any, weights: Any) -> Any:
        import jax.numpy as jnp  # only where a run needs it

        return jnp.zeros_like(weights)

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns v twice, after it has moved."""
        import jax.numpy as jnp  # only where a run needs it

        share = (there / jnp.maximum(there.sum(), 1)).astype(state.dtype)
        for _ in range(self.iterations):
            apart = vectors - state[None]
            length = jnp.maximum(jnp.linalg.norm(apart, axis=1), 1e-30)
            kept = share * jnp.minimum(1, self.radius / length)
            state = state + self.rate * jnp.tensordot(
                kept.astype(state.dtype), apart, 1
            )
        return state, state
