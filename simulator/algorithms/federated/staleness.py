"""Options of staleness weights: how much a contribution counts by its staleness."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.config.base import Config

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
    """1 / max(1, staleness): the step size divided by the staleness.

    Source: Zhang, Gupta, Lian and Liu, Staleness-Aware Async-SGD (2016), eq. 6.
    """

    kind: Literal["inverse"] = "inverse"


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
    | DelayAdaptiveWeight,
    Field(discriminator="kind"),
]
