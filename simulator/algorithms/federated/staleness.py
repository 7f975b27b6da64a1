"""Options of weights: how much a contribution counts, mostly by its staleness."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, model_serializer

from ...config.base import Config, Quantity, without

Positive = Annotated[float, Field(gt=0)]


class ConstantWeight(Config):
    """Stale contributions count as much as fresh ones."""

    kind: Literal["constant"] = "constant"


class PolynomialWeight(Config):
    """(1 + staleness) ** -exponent.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019), 5.2;
    with exponent 1/2, Nguyen et al. (2022).
    """

    kind: Literal["polynomial"] = "polynomial"
    exponent: Annotated[float, Field(ge=0)] = 0.5
    """Exponent; 0 is no discount."""


class HingeWeight(Config):
    """1 up to `late` commits of staleness s, then 1 / (slope (s - late) + 1).

    Source: Xie, Koyejo and Gupta (2019), section 5.2.
    """

    kind: Literal["hinge"] = "hinge"
    slope: Positive = 10.0
    """Slope of the fall beyond `late`."""
    late: Annotated[float, Field(ge=0)] = 4.0
    """Staleness up to which the weight is 1, in commits."""


class InverseWeight(Config):
    """c / max(c, staleness): the step size divided by the staleness beyond c.

    Source: Zhang, Gupta, Lian and Liu, Staleness-Aware Async-SGD (2016), eq. 6, with c
    = 1; with c = K, Mishchenko, Bach, Even and Woodworth, Asynchronous SGD Beats
    Minibatch SGD Under Arbitrary Delays (2022), eq. 6.
    """

    kind: Literal["inverse"] = "inverse"
    concurrency: Annotated[int, Field(ge=1)] = 1
    """c."""

    @model_serializer(mode="wrap")
    def _as_before(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return without(dump(self), concurrency=1)


class InverseShareWeight(Config):
    """1 / (K q), q being the client's share in all contributions, however stale.

    So every client counts alike, whatever its speed. Where clients always work, q is
    proportional to 1 / (a job's mean time): Rescaled ASGD; where tasks are sent to
    clients with chances p, q is p: Generalized AsyncSGD.

    Source: Rescaled ASGD (2026), as methods.md, section 8, has it; Leconte et al.,
    Queueing Dynamics of Asynchronous Federated Learning (2024), Algorithm 1.
    """

    kind: Literal["inverse_share"] = "inverse_share"
    shares: Quantity | None = None
    """q of each client, up to a common factor; by default its share so far."""


class RepeatWeight(Config):
    """1 / (K q^c) for a contribution that is its client's c-th repeat in a round.

    A round is over as soon as everyone has contributed. The steps of first
    contributions then sum up to one of their mean; with `base` 1 all count alike, and
    the larger it is, the less what fast clients send besides counts (THROTTLE, on the
    protocol `asynchronous` with `restarts`).

    Source: THROTTLE (2026), as methods.md, section 12, has it.
    """

    kind: Literal["repeats"] = "repeats"
    base: Annotated[float, Field(ge=1)]
    """q."""


class DistanceWeight(Config):
    """1 where the model has moved by at most a distance since the read, else 0.

    What counts 0 is a commit all the same, which leaves the model as it is, so that who
    does what when does not depend on numbers.

    Source: Cohen et al., Asynchronous Stochastic Optimization Robust to Arbitrary
    Delays (2021), Picky SGD, as methods.md, sections 12 and 15, has it.
    """

    kind: Literal["distance"] = "distance"
    largest: Positive
    """Largest l2 norm of the difference between the model and the one that was read."""


class DelayAdaptiveWeight(Config):
    """Full steps up to a concurrency; beyond, steps of at most 1 / (4 L staleness).

    These are the largest steps that the theorem allows; it asks for steps of at most
    1 / (4 L) besides, single gradients and clients with the same data.

    Source: Koloskova, Stich and Jaggi, Sharper Convergence Guarantees for Asynchronous
    SGD (2022), Theorem 8.
    """

    kind: Literal["delay_adaptive"] = "delay_adaptive"
    concurrency: Annotated[int, Field(ge=0)] | None = None
    """Staleness up to which nothing changes; by default the number of clients."""
    smoothness: Positive | Literal["data"] = "data"
    """L of the objective's gradient, or `data`: computed from the training data."""


StalenessWeight = Annotated[
    ConstantWeight
    | PolynomialWeight
    | HingeWeight
    | InverseWeight
    | InverseShareWeight
    | RepeatWeight
    | DistanceWeight
    | DelayAdaptiveWeight,
    Field(discriminator="kind"),
]
