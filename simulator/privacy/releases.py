"""Releases: the information on a client's data in one message, as accountants see it.

A release is counted when it is sent, applied or not. Its noise multiplier is the scale
of the noise over the sensitivity *under the adjacency that is claimed*: clipping b
samples at C and averaging has sensitivity C / b where adjacent data sets differ by one
sample more, and 2 C / b where one sample is replaced.

`sampling_ratio` is the chance that a given sample is in the release *by the client's
own fresh draw*. When and how often a client releases is not a draw: there is no field
for a share of clients or of arrivals, and batches of a shuffled epoch have ratio 1.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..parts.errors import UserError
from ..parts.extras import extra

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Sampling = Literal["uniform", "poisson"]
"""Batches of a fixed size under replace-one adjacency, or every sample by chance under
add-or-remove adjacency."""

SAMPLE = "one sample of one client, replaced"
CONTRIBUTION = "one client's whole contribution, replaced"
FEATURES = "one sample's features at one client, replaced"
"""Protected units of an epsilon: the difference between adjacent data sets."""

_LARGE = 500.0
"""Above this epsilon amplification is not worth its overflow."""


class Release(ABC):
    """The information on a client's data in one message, and its form in dp-accounting.

    It is hashable, and equal to releases that cost the same.
    """

    is_pure: ClassVar[bool]
    """Whether it has an epsilon at delta 0."""
    if TYPE_CHECKING:
        sampling_ratio: float
        """Ratio of the client's own draw, in (0, 1]."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Scale of the noise over the sensitivity, >= 0."""

    @property
    def drawn(self) -> Sampling | None:
        """Way in which the client draws, where its adjacency follows from that."""
        return None

    @property
    @abstractmethod
    def pure_epsilon(self) -> float:
        """Epsilon at delta 0, amplified by the client's own draw; inf: none."""

    @property
    @abstractmethod
    def protects(self) -> bool:
        """Whether there is any noise."""

    def event(self) -> "DpEvent | None":
        """Returns dp-accounting's event; None: randomised response of the epsilon."""
        return None

    def losses(self, interval: float) -> "PrivacyLossDistribution":
        """Returns the distribution of its privacy losses, of dp-accounting.

        Args:
            interval: Between losses on the grid, > 0.
        """
        common = library("pld.common")
        privacy_loss_distribution = library("pld.privacy_loss_distribution")
        pure = common.DifferentialPrivacyParameters(self.pure_epsilon, 0)
        return privacy_loss_distribution.from_privacy_parameters(pure, interval)


@dataclass(frozen=True)
class Gaussian(Release):
    """A release with independent normal noise on every coordinate.

    Attributes:
        multiplier: Standard deviation over l2 sensitivity, >= 0; zero protects nothing.
        sampling_ratio: Ratio of the client's own draw, in (0, 1].
        sampling: Way in which the client draws; without effect at ratio 1.
    """

    is_pure: ClassVar[bool] = False
    multiplier: float
    sampling_ratio: float = 1.0
    sampling: Sampling = "uniform"

    def __post_init__(self) -> None:
        if not 0 <= self.multiplier < math.inf:
            raise UserError(
                f"noise multiplier must be >= 0 and finite, got {self.multiplier}; "
                "it is the noise's standard deviation over the sensitivity"
            )
        _check_ratio(self.sampling_ratio)

    @property
    def noise(self) -> float:
        return self.multiplier

    @property
    def pure_epsilon(self) -> float:
        return math.inf

    @property
    def protects(self) -> bool:
        return self.multiplier > 0

    @property
    def drawn(self) -> Sampling | None:
        return self.sampling if self.sampling_ratio < 1 else None

    def event(self) -> "DpEvent | None":
        dpa = library()
        noise = dpa.GaussianDpEvent(self.multiplier)
        if self.drawn is None:
            return noise
        if self.drawn == "poisson":
            return dpa.PoissonSampledDpEvent(self.sampling_ratio, noise)
        # It asks for numbers of samples and uses their ratio.
        ratio = Fraction(self.sampling_ratio).limit_denominator(10**9)
        return dpa.SampledWithoutReplacementDpEvent(
            ratio.denominator, ratio.numerator, noise
        )

    def losses(self, interval: float) -> "PrivacyLossDistribution":
        privacy_loss_distribution = library("pld.privacy_loss_distribution")
        # Add-or-remove takes the sensitivity as 1; replace-one would take it as 2.
        return privacy_loss_distribution.from_gaussian_mechanism(
            self.multiplier,
            value_discretization_interval=interval,
            sampling_prob=self.sampling_ratio,
        )


@dataclass(frozen=True)
class Pure(Release):
    """A release that is (epsilon, 0)-DP by any mechanism, spherical Laplace included.

    Accounted for as the worst such mechanism, randomised response.

    Attributes:
        epsilon: Epsilon of the mechanism on its batch, > 0; inf protects nothing.
        sampling_ratio: Ratio of the client's own draw, in (0, 1].

    Source: Kairouz, Oh and Viswanath (2015), section 3; for the spherical law, MAPA,
    Theorem 1.
    """

    is_pure: ClassVar[bool] = True
    epsilon: float
    sampling_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise UserError(
                f"epsilon of a release must be > 0, got {self.epsilon}; "
                "it is the sensitivity over the noise's scale"
            )
        _check_ratio(self.sampling_ratio)

    @classmethod
    def of_multiplier(cls, multiplier: float, sampling_ratio: float = 1.0) -> "Pure":
        """Makes the release of a noise scale over sensitivity >= 0."""
        epsilon = 1 / multiplier if multiplier else math.inf
        return cls(epsilon, sampling_ratio)

    @property
    def noise(self) -> float:
        return 1 / self.epsilon

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at delta 0, amplified by the client's own draw.

        Source: Balle, Barthe and Gaboardi (2018), Theorems 8 and 9.
        """
        if self.sampling_ratio == 1 or self.epsilon > _LARGE:
            return self.epsilon
        return math.log1p(self.sampling_ratio * math.expm1(self.epsilon))

    @property
    def protects(self) -> bool:
        return self.epsilon < math.inf


class Laplace(Pure):
    """A release with independent Laplace noise on every coordinate.

    Its privacy loss equals the loss of one coordinate moved by the whole l1
    sensitivity, which dominates any split of the move over coordinates; RDP and PLD use
    it at sampling ratio 1 and fall back on `Pure` below.

    Attributes:
        epsilon: l1 sensitivity over the noise's scale, > 0; inf protects nothing.
        sampling_ratio: Ratio of the client's own draw, in (0, 1].
    """

    def event(self) -> "DpEvent | None":
        dpa = library()
        whole = self.sampling_ratio == 1
        return dpa.LaplaceDpEvent(1 / self.epsilon) if whole else super().event()

    def losses(self, interval: float) -> "PrivacyLossDistribution":
        privacy_loss_distribution = library("pld.privacy_loss_distribution")
        if self.sampling_ratio < 1:
            return super().losses(interval)
        return privacy_loss_distribution.from_laplace_mechanism(
            1 / self.epsilon, value_discretization_interval=interval
        )


@dataclass(frozen=True)
class Guarantee:
    """The release of one message of a client.

    Attributes:
        release: Release as accountants count it.
        formal: Whether it is proved, or a paper's own accounting.
        why: A sentence: the proof, or its gap.
        mechanism: Law of the noise, and the clipped quantity.
        protects: The difference between epsilon's data sets.
        by_commit: Commits of a tree if the noise is on sums, and it is for a sum with
            one message of the client; 1 if the sums are of single commits, 0 if the
            noise is on messages. m messages in a sum count as m^2 (`CommitCosts`).
        afresh: Whether a message depends on nothing that its client keeps from earlier
            ones, which a secret draw would not hide.
    """

    release: Release
    formal: bool
    why: str
    mechanism: str
    protects: str
    by_commit: int = 0
    afresh: bool = False


@dataclass(frozen=True)
class Calibrated:
    """The budget that determined an algorithm's noise; runs end before exceeding it.

    Attributes:
        key: Its dotted key in the scenario.
        releases: Messages of each client, where none of the next three are set.
        epsilon: Most epsilon of a client, by an accountant of its own messages.
        delta: Delta that it holds with.
        accountant: Name of the accountant.
        in_all: Messages of all clients together.
    """

    key: str
    releases: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    accountant: str | None = None
    in_all: int | None = None


def _check_ratio(sampling_ratio: float) -> None:
    if not 0 < sampling_ratio <= 1:
        raise UserError(
            f"sampling ratio must be in (0, 1], got {sampling_ratio}; "
            "it is the batch over the client's number of samples"
        )


def library(module: str = "") -> Any:
    """Imports and returns dp-accounting, or a module of it.

    Raises:
        UserError: It is not installed.
    """
    name = ".".join(filter(None, ("dp_accounting", module)))
    return extra(name, "privacy", "an accountant rdp or pld")
