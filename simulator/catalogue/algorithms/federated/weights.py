"""How much a contribution counts: one class a weight, with options and numerics.

Factors use operators and methods of arrays alone, so that reading a scenario does not
import JAX.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from ....parts.base import Part
from ....parts.catalogue import AnyPart
from ....parts.errors import ScenarioError
from ....parts.expressions import Quantity, per_client
from ....problem.constants import Constants, measured
from ....world.protocol_abilities import DrawsClients

if TYPE_CHECKING:
    from jaxtyping import Array

    from ....engine.setup import RunSetup
    from ....world.protocol import Protocol

Positive = Annotated[float, Field(gt=0)]


class Weighed(NamedTuple):
    """Arguments of the factors of a row's contributions, as arrays.

    Attributes:
        staleness: `[W]`, versions between each read and now, >= 0, as floats.
        step_size: The server's, before weighting.
        worker: `[W]`, clients of the contributions; of padding, a number of no client.
        counts: `[K]`, contributions of every client, these included; None where the
            weight does not count.
        distance: `[W]`, l2 distance of the model from the one that was read; None where
            the weight does not measure it.
    """

    staleness: "Array"
    step_size: "Array"
    worker: "Array"
    counts: "Array | None" = None
    distance: "Array | None" = None


class StalenessWeight(Part):
    """Common base of the weights: factors of contributions, mostly by staleness."""

    factor: ClassVar[Callable[..., "Array | float"]]
    """A static method of a `Weighed`, and of the weight's options by name; returns the
    factors of a row's contributions, `[W]` or one for all, >= 0."""
    measures: ClassVar[bool] = False
    """Whether the factor depends on the distance between the model and the one read."""
    constant: ClassVar[bool] = False
    """Whether it is 1 for every contribution."""
    at_most_one: ClassVar[bool] = False
    """Whether no factor is above 1, so that it cannot raise a bound on messages."""

    @property
    def counts(self) -> bool:
        """Whether it depends on the clients' contributions so far."""
        return False

    def numbers(self, setup: "RunSetup", constants: Constants) -> dict[str, object]:
        """Returns the arguments that `factor` gets by name: by default its options.

        Runs of one program may differ in these numbers.

        Raises:
            ScenarioError: A number that comes from the data is unknown.
        """
        return {key: value for key, value in self if key != "kind"}

    @staticmethod
    def kept(counts: "Array") -> "Array":
        """Returns the counts `[K]` for the next row: by default all of them."""
        return counts

    def structure(self) -> str:
        """Returns the structure that runs of one program share: by default the kind."""
        return str(getattr(self, "kind", ""))

    def biases(self, protocol: "Protocol", num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others; by default none."""
        yield from ()


AnyWeight = Annotated[StalenessWeight, AnyPart("weights")]
"""Any weight, chosen by its kind."""


class ConstantWeight(StalenessWeight):
    """Stale contributions count as much as fresh ones."""

    kind: Literal["constant"] = "constant"
    at_most_one: ClassVar[bool] = True
    constant: ClassVar[bool] = True

    @staticmethod
    def factor(row: Weighed) -> float:
        return 1.0


class PolynomialWeight(StalenessWeight):
    """(1 + staleness) ** -exponent.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019), 5.2;
    with exponent 1/2, Nguyen et al. (2022).
    """

    kind: Literal["polynomial"] = "polynomial"
    at_most_one: ClassVar[bool] = True
    exponent: Annotated[float, Field(ge=0)] = 0.5
    """Exponent; 0 is no discount."""

    @staticmethod
    def factor(row: Weighed, exponent: "Array") -> "Array":
        return (1 + row.staleness) ** -exponent


class HingeWeight(StalenessWeight):
    """1 up to `late` commits of staleness s, then 1 / (slope (s - late) + 1).

    Source: Xie, Koyejo and Gupta (2019), section 5.2.
    """

    kind: Literal["hinge"] = "hinge"
    at_most_one: ClassVar[bool] = True
    slope: Positive = 10.0
    """Slope of the fall beyond `late`."""
    late: Annotated[float, Field(ge=0)] = 4.0
    """Staleness up to which the weight is 1, in commits."""

    @staticmethod
    def factor(row: Weighed, slope: "Array", late: "Array") -> "Array":
        return 1 / (slope * (row.staleness - late).clip(0) + 1)


class InverseWeight(StalenessWeight):
    """c / max(c, staleness): the step size divided by the staleness beyond c.

    Source: Zhang, Gupta, Lian and Liu, Staleness-Aware Async-SGD (2016), eq. 6, with c
    = 1; with c = K, Mishchenko, Bach, Even and Woodworth, Asynchronous SGD Beats
    Minibatch SGD Under Arbitrary Delays (2022), eq. 6.
    """

    kind: Literal["inverse"] = "inverse"
    at_most_one: ClassVar[bool] = True
    concurrency: Annotated[int, Field(ge=1)] = 1
    """c."""

    @staticmethod
    def factor(row: Weighed, concurrency: "Array") -> "Array":
        return concurrency / row.staleness.clip(concurrency)


class InverseShareWeight(StalenessWeight):
    """1 / (K q), q being the client's share in all contributions, however stale.

    So every client has the same weight, whatever its speed. Where clients always work,
    q is proportional to 1 / (a job's mean time): Rescaled ASGD; where tasks are sent to
    clients with probabilities p, q is p: Generalized AsyncSGD.

    Source: Rescaled ASGD (2026); Leconte et al.,
    Queueing Dynamics of Asynchronous Federated Learning (2024), Algorithm 1.
    """

    kind: Literal["inverse_share"] = "inverse_share"
    shares: Quantity | None = None
    """q of each client, up to a common factor; by default its share so far."""

    @property
    def counts(self) -> bool:
        return self.shares is None

    def _given(self, num_clients: int) -> list[float]:
        assert self.shares is not None
        shares = per_client(self.shares, num_clients, "algorithm.weight.shares")
        return [float(share) for share in shares]

    def numbers(self, setup: "RunSetup", constants: Constants) -> dict[str, object]:
        """Returns the shares, of sum 1, if they are set."""
        if self.shares is None:
            return {}
        shares = self._given(setup.shape.num_clients)
        if not min(shares) > 0:
            raise ScenarioError(
                f"algorithm.weight.shares must be > 0, got {min(shares):g}; change them"
            )
        import jax.numpy as jnp  # the sum is rounded as all that follows

        found = jnp.asarray(shares, float)
        return {"shares": found / found.sum()}

    @staticmethod
    def factor(row: Weighed, shares: "Array | None" = None) -> "Array":
        """Returns a factor > 0."""
        if shares is None:
            assert row.counts is not None
            shares = row.counts / row.counts.sum().clip(1)
        own = shares.at[row.worker].get(mode="fill", fill_value=1)
        return 1 / (shares.shape[0] * own).astype(row.staleness.dtype)

    def structure(self) -> str:
        return self.kind + (", counted" if self.shares is None else "")

    def biases(self, protocol: "Protocol", num_clients: int) -> Iterator[str]:
        if self.shares is None or not isinstance(protocol, DrawsClients):
            return
        if (chances := protocol.chances(num_clients)) is None:
            return
        shares = self._given(num_clients)
        total = sum(shares)
        if any(
            abs(share / total - chance) > 1e-6
            for share, chance in zip(shares, chances, strict=True)
        ):
            yield (
                "algorithm.weight.shares are not the chances of protocol.weights by "
                "which tasks are routed: clients do not count alike"
            )


class RepeatWeight(StalenessWeight):
    """1 / (K q^c) for a contribution that is its client's c-th repeat in a round.

    A round is over as soon as everyone has contributed. The steps of first
    contributions then sum up to one of their mean; with `base` 1 all have equal weight,
    and a larger one lowers the weight of fast clients' further contributions (THROTTLE,
    on the protocol `asynchronous` with `restarts`).

    Source: THROTTLE (2026).
    """

    kind: Literal["repeats"] = "repeats"
    at_most_one: ClassVar[bool] = True
    base: Annotated[float, Field(ge=1)]
    """q."""

    @property
    def counts(self) -> bool:
        return True

    @staticmethod
    def factor(row: Weighed, base: "Array") -> "Array":
        """Returns a factor in (0, 1]."""
        assert row.counts is not None
        own = row.counts.at[row.worker].get(mode="fill", fill_value=1)
        repeats = (own - 1).astype(row.staleness.dtype)
        return 1 / (row.counts.shape[0] * base**repeats)

    @staticmethod
    def kept(counts: "Array") -> "Array":
        return counts * (counts.min() == 0)


class DistanceWeight(StalenessWeight):
    """1 where the model has moved by at most a distance since the read, else 0.

    A contribution of weight 0 is a commit all the same, which leaves the model as it
    is, so that timing does not depend on training.

    Source: Cohen et al., Asynchronous Stochastic Optimization Robust to Arbitrary
    Delays (2021), Picky SGD.
    """

    kind: Literal["distance"] = "distance"
    at_most_one: ClassVar[bool] = True
    largest: Positive
    """Largest l2 norm of the difference between the model and the one that was read."""
    measures: ClassVar[bool] = True

    @staticmethod
    def factor(row: Weighed, largest: "Array") -> "Array":
        assert row.distance is not None
        return (row.distance <= largest).astype(row.staleness.dtype)


class DelayAdaptiveWeight(StalenessWeight):
    """Full steps up to a concurrency; beyond, steps of at most 1 / (4 L staleness).

    These are the largest steps that the theorem allows; it also requires steps of at
    most 1 / (4 L), single gradients and clients with the same data.

    Source: Koloskova, Stich and Jaggi, Sharper Convergence Guarantees for Asynchronous
    SGD (2022), Theorem 8.
    """

    kind: Literal["delay_adaptive"] = "delay_adaptive"
    at_most_one: ClassVar[bool] = True
    concurrency: Annotated[int, Field(ge=0)] | None = None
    """Staleness up to which nothing changes; by default the number of clients."""
    smoothness: Positive | Literal["data"] = "data"
    """L of the objective's gradient, or `data`: computed from the training data."""

    def numbers(self, setup: "RunSetup", constants: Constants) -> dict[str, object]:
        """Returns the concurrency, and L from the data if it is not given."""
        clients, known = setup.shape.num_clients, self.smoothness
        if known == "data":
            known = measured(constants.smoothness)
        if known is None:
            known = constants.estimates().smoothness
        if not known > 0:
            raise ScenarioError(
                f"algorithm.weight.smoothness must be > 0, got {known} from the data; "
                "give a number"
            )
        limit = clients if self.concurrency is None else self.concurrency
        return {"concurrency": limit, "smoothness": known}

    @staticmethod
    def factor(row: Weighed, concurrency: "Array", smoothness: "Array") -> "Array":
        """Returns a factor in (0, 1]."""
        import jax.numpy as jnp  # only where a run needs it

        s = row.staleness
        most = 1 / (4 * smoothness * (s * row.step_size).clip(1e-30))
        return jnp.where(s <= concurrency, 1, most.clip(None, 1))
