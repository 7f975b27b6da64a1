"""Robust aggregations: median, trimmed mean, Krum, geometric median, clipping."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from jaxtyping import Bool, Float, Int
from pydantic import Field

from ...catalogue.algorithms.federated.chain import AggregatePart, Chained, in_program
from ...catalogue.algorithms.federated.clients import Count
from ...catalogue.algorithms.federated.server import Weigh
from ...catalogue.algorithms.federated.stages import (
    Contributions,
    ServerRow,
    Step,
    mean_of,
)
from ...files.timeline import Kind
from ...parts.base import tag
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...problem.constants import Constants
from ...world.protocol_abilities import LimitsGathering

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, PyTree

    from ...engine import kernel
    from ...engine.kernel import Info
    from ...engine.setup import RunSetup
    from ...problem.horizontal import HorizontalProblem
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    kernel = Late("...engine.kernel", __package__)
    Array = PyTree = HorizontalProblem = Info = RunSetup = Any


class Kept(NamedTuple):
    """The contributions since the last commit, and the state of the aggregation.

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
    own: PyTree


class RobustPart(AggregatePart):
    """Common base of the robust aggregations of a commit's contributions.

    They are a row's, or the gathered ones where the protocol gathers them, each times
    its staleness weight. The server must see them one by one: a stage that shows it
    their sum alone requires `mean`.
    """

    statistics_would_be: ClassVar[str] = "lost"
    buckets: Count | None = None
    """B: contributions of client m are averaged in bucket m mod B, and the means of the
    buckets are aggregated as soon as none is empty, then emptied; until then commits
    leave the model as it is. On the protocol `asynchronous` it is BASGD. By default
    contributions are aggregated one by one.
    Source: Yang and Li, BASGD: Buffered Asynchronous SGD for Byzantine Learning (2021),
    Algorithm 2."""
    _places: int
    _gathers: bool

    @property
    def least(self) -> int:
        """Least contributions, or buckets, that tolerate one Byzantine client."""
        return 3

    def fits(self, method: Chained) -> None:
        weigh = next((s for s in method.stages if isinstance(s, Weigh)), None)
        if weigh is not None and weigh.weighting != "equal":
            raise method.refusal(
                weigh,
                "weighting",
                "must be equal for a robust aggregation, because a malicious client "
                f"could report any number of samples, got {weigh.weighting!r}; remove "
                "it",
            )

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        """Returns a robust aggregation, with a place for all that a commit applies.

        Raises:
            ScenarioError: Their number is unknown, or too small for an attack.
        """
        protocol, K = setup.scenario.protocol, setup.shape.num_clients
        name = f"algorithm.chain's {tag(type(self))!r}"
        gathers = protocol.gathers
        most = fewest = setup.timeline.width
        limits = isinstance(protocol, LimitsGathering)
        if limits:
            most, fewest = protocol.most_gathered(K), protocol.fewest_gathered(K)
        elif gathers:
            most = fewest = None
        if self.buckets is not None:
            most = fewest = self.buckets
            if most > K:
                raise ScenarioError(
                    f"{name} must have at most {K} buckets, one for each client, got "
                    f"{most}, of which some would never fill; lower it"
                )
        if most is None:
            raise ScenarioError(
                f"{name} must have a fixed number of contributions per commit, which "
                f"the protocol {protocol.kind!r} does not limit; give their number in "
                "place of a time, or add buckets"
            )
        assert fewest is not None
        if fewest < self.least:
            raise ScenarioError(
                f"{name} must get at least {self.least} contributions per commit, got "
                f"{fewest}; wait for more, take a protocol that gathers, or change "
                "its options"
            )
        return in_program(self, _places=most, _gathers=gathers)

    def start(self, problem: HorizontalProblem, weights: Array) -> Kept:
        flat = weights.reshape(-1)
        totals = jnp.zeros((self._places, flat.size), flat.dtype)
        counts = jnp.zeros(self._places, jnp.int32)
        return Kept(totals, counts, jnp.zeros((), flat.dtype), self.first(flat))

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Kept
    ) -> tuple[Step, Kept, Info]:
        """Returns the step, and the places, empty after a commit.

        A commit of too few contributions makes no step: it has weight 0, and they are
        lost.
        """
        message = contributions.message
        assert message is not None
        present = row.event.present() & (contributions.share > 0)
        weight = contributions.weight.astype(message.dtype)[:, None]
        rows = contributions.scaled(message).reshape(present.size, -1)
        rows = jnp.where(present[:, None], weight * rows, 0)
        before = state.counts.sum(dtype=jnp.int32)
        number = before + present.sum(dtype=jnp.int32)
        if self.buckets is not None:
            place = row.event.worker % self._places
        else:
            place = before + jnp.cumsum(present) - 1
        place = jnp.where(present, place, self._places)  # others have none
        filled = state.counts.at[place].get(mode="fill", fill_value=0) > 0
        fresh = jnp.where(filled, self._places, place)
        emptied = state.totals.at[fresh].set(0, mode="drop")
        now = Kept(
            totals=emptied.at[place].add(rows, mode="drop"),
            counts=state.counts.at[place].add(1, mode="drop"),
            weight=state.weight + weight.sum(),
            own=state.own,
        )
        there = now.counts > 0
        ends = row.event.kind == Kind.COMMIT
        ends = ends & there.all() if self.buckets is not None else ends
        applies = ends & (there.sum() >= self.least)

        def aggregated() -> tuple[Array, PyTree]:
            size = jnp.maximum(now.counts, 1)[:, None].astype(rows.dtype)
            means = jnp.where(there[:, None], now.totals / size, 0)
            return self.aggregate(means, there, now.own)

        direction, own = jax.lax.cond(
            applies, aggregated, lambda: (jnp.zeros_like(rows[0]), now.own)
        )
        # More messages than places would be dropped without a word.
        direction = jnp.where(number > now.counts.sum(), jnp.nan, direction)
        moved = rows.sum(axis=0) if self._gathers else direction
        counted = mean_of(row.event.present(), contributions.factor)
        lost = ends & ~applies
        info = {
            "gradient_norm": kernel.norm(moved),
            "weight": jnp.where(lost, jnp.zeros_like(counted), counted),
        }
        info |= {"buffered": number} if self._gathers else {}
        step = row.step(
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
        return step, after, info

    def first(self, weights: Float[Array, " D"]) -> PyTree:
        """Returns the state of `aggregate` before the first commit: by default none."""

    @abstractmethod
    def aggregate(
        self, vectors: Float[Array, "B D"], there: Bool[Array, " B"], state: PyTree
    ) -> tuple[Float[Array, " D"], PyTree]:
        """Returns the aggregate in place of a mean, and the state after the commit.

        Args:
            vectors: Contributions, or means of buckets; zeros where there is none.
            there: Flags of the present ones, at least `least` of them.
            state: State before.
        """


class TrimmedMean(RobustPart):
    """The mean, in each coordinate, without the f largest and smallest values.

    Source: Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates (2018), Definition 2, with beta n = f.
    """

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    tolerated: Annotated[int, Field(ge=0)]
    """f, Byzantine contributions of a commit, or Byzantine buckets."""

    @property
    def least(self) -> int:
        return 2 * self.tolerated + 1

    def aggregate(
        self, vectors: Array, there: Array, state: PyTree
    ) -> tuple[Array, PyTree]:
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

    def aggregate(
        self, vectors: Array, there: Array, state: PyTree
    ) -> tuple[Array, PyTree]:
        return median_of(vectors, there), state


def median_of(
    vectors: Float[Array, "B D"], there: Bool[Array, " B"]
) -> Float[Array, " D"]:
    """Returns the median of each coordinate of the present vectors."""
    ranked = jnp.sort(jnp.where(there[:, None], vectors, jnp.inf), axis=0)
    number = jnp.maximum(there.sum(), 1)
    return (ranked[(number - 1) // 2] + ranked[number // 2]) / 2


class Krum(RobustPart):
    """The mean of the contributions with the smallest scores, by default of one.

    The score of one is the sum of its squared distances to the n - f - 2 closest others
    among n, which tolerates f if n >= 2 f + 3. With several it is multi-Krum.

    Source: Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant
    Gradient Descent (2017), section 4 and Proposition 1; multi-Krum: section 5.
    """

    kind: Literal["krum"] = "krum"
    tolerated: Annotated[int, Field(ge=0)]
    """f, Byzantine contributions of a commit, or Byzantine buckets."""
    selected: Count = 1
    """m, contributions whose mean is taken."""

    @property
    def least(self) -> int:
        return max(2 * self.tolerated + 3, self.selected)

    def aggregate(
        self, vectors: Array, there: Array, state: PyTree
    ) -> tuple[Array, PyTree]:
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
    point is the median of each coordinate (ours), which attacks cannot move far.

    Source: Pillutla, Kakade and Harchaoui, Robust Aggregation for Federated Learning
    (2022), Algorithm 2.
    """

    kind: Literal["geometric_median"] = "geometric_median"
    iterations: Count = 8
    """Number of iterations."""
    smoothing: Annotated[float, Field(gt=0)] = 1e-6
    """nu."""

    def aggregate(
        self, vectors: Array, there: Array, state: PyTree
    ) -> tuple[Array, PyTree]:
        def better(_: int, point: Array) -> Array:
            distance = jnp.linalg.norm(vectors - point[None], axis=1)
            weight = there / jnp.maximum(self.smoothing, distance)
            weight = (weight / jnp.maximum(weight.sum(), 1e-30)).astype(point.dtype)
            return jnp.tensordot(weight, vectors, 1)

        start = jnp.where(there.any(), median_of(vectors, there), 0)
        return jax.lax.fori_loop(0, self.iterations, better, start), state


class CentredClipping(RobustPart):
    """v + rate times the mean of all x - v, each clipped to a radius; v was the last.

    With rate 1 it is the method of rounds. With 1 - beta and one contribution per
    commit v is the server's momentum, of which no message moves more than (1 - beta)
    radius: ours, next to THROTTLE's (2026), whose centre stays the same in a round.

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

    def first(self, weights: Array) -> Array:
        return jnp.zeros_like(weights)

    def aggregate(
        self, vectors: Array, there: Array, state: PyTree
    ) -> tuple[Array, PyTree]:
        share = (there / jnp.maximum(there.sum(), 1)).astype(state.dtype)
        for _ in range(self.iterations):
            apart = vectors - state[None]
            length = jnp.maximum(jnp.linalg.norm(apart, axis=1), 1e-30)
            kept = share * jnp.minimum(1, self.radius / length)
            state = state + self.rate * jnp.tensordot(
                kept.astype(state.dtype), apart, 1
            )
        return state, state
