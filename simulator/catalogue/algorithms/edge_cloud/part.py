"""Asynchronous edge-cloud learning with privacy: CSGD, ASGD, AUDP and MAPA. No JAX.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
Privacy for Edge Intelligence; decisions (M-) are in evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ....engine.algorithm import (
    FLOAT_BYTES,
    Algorithm,
    Batch,
    Bytes,
    ProblemShape,
    StepSize,
    model_and_gradient,
)
from ....engine.step_rules import OrData, Positive
from ....parts.base import LocatedError
from ....parts.errors import ScenarioError
from ....privacy.releases import SAMPLE, Guarantee, Pure
from ....problem.capabilities import DividesRows, NoisyMessages

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ..federated.kernel import Chain

Part = Annotated[float, Field(gt=0, lt=1)]


class EdgeCloud(DividesRows, Algorithm):
    """Common base of the four algorithms: Table II's constants and its step sizes.

    Batches are drawn with replacement (Assumption 2; M-22).
    """

    step_size: StepSize | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """Replaces the algorithm's own step size, which is Table II's."""
    batch: Batch = 12
    """Samples of a step, or below 1 a fraction of those of the smallest client."""
    sampling: Literal["distinct", "replacement", "shuffled"] = "replacement"
    sigma: Annotated[Positive | Literal["data"], OrData] = 30.0
    """Bound on the deviation of a sample's gradient, or `data`: measured at the start
    of the run (M-25)."""
    smoothness: Annotated[Positive | Literal["data"], OrData] = 10.0
    """Lipschitz constant L of the gradient, or `data`: computed for a convex linear
    model, else measured at the start of the run (M-25)."""

    averaged: bool = False
    """Whether the average of all iterates is evaluated, of which Theorem 2 speaks, in
    place of the last one."""

    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic")

    def structure(self) -> dict[str, object]:
        shaping = ("kind", "batch", "sampling", "samples", "averaged")
        shaping += ("noise", "clip", "noised")
        found = self.model_dump(mode="json")
        kept = {key: found[key] for key in shaping if key in found}
        return {**kept, "own_step": self.step_size is not None}

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return model_and_gradient(shape)

    def make(self, setup: "RunSetup", constants: "Constants") -> "Chain":
        from .kernel import build

        return build(self, setup, constants)


class Csgd(EdgeCloud):
    """Centralised SGD on pooled data: 1/step = L + sigma sqrt(t + 1) / (R sqrt(b)).

    Source: MAPA, Table II.
    """

    kind: Literal["csgd"] = "csgd"
    radius: Positive = 1.0
    """R, a bound on the distance to the minimum (M-11)."""

    protocols: ClassVar[tuple[str, ...]] = ("centralised",)


class _Asynchronous(EdgeCloud):
    max_staleness: Annotated[int, Field(ge=0)] | None = None
    """tau_max of the formulas; by default the number of clients (M-08)."""


class Asgd(_Asynchronous):
    """Asynchronous SGD: 1/step = L (tau_max + 1)^2 + sigma sqrt(t + 1) / (R sqrt(b)).

    Source: MAPA, Table II.
    """

    kind: Literal["asgd"] = "asgd"
    radius: Positive = 1.0
    """R, a bound on the distance to the minimum (M-11)."""


class NoisyEdgeCloud(NoisyMessages, _Asynchronous):
    """Clipping and noise of every contribution.

    Each client's gradient is clipped to b * sensitivity / 2 and gets noise of scale
    sensitivity / epsilon. Only `spherical_laplace` with `clip: sample` is epsilon-DP.
    """

    epsilon: Positive | tuple[Positive, ...]
    """Privacy level of an iteration, of all clients or of each (M-17)."""
    noise: Literal["radial_exponential", "spherical_laplace", "laplace"] = (
        "radial_exponential"
    )
    """Law of the noise vector: readings B, A and C of eq. 6 (M-01). B alone reproduces
    the figures and is not differentially private; A is; C is with sqrt(d) epsilon."""
    variance_in_analysis: Literal["law", "paper"] = "law"
    """Second moment of the noise in the formulas: the variance of its law, or 2 scale^2
    whatever the law and the dimension (M-02)."""
    clip: Literal["mean", "sample"] = "mean"
    """Object of the clipping: the mean gradient of a batch, as printed, or each
    sample's, which alone has the stated sensitivity (M-03)."""
    clip_bound: Annotated[Positive | Literal["data"], OrData] | None = None
    """G: the (first) sensitivity is 2 G / b; by default from eq. 12 (M-10). `data`: the
    largest norm of a sample's gradient at the start of the run."""
    noised: Literal["all", "first_convolution"] = "all"
    """Part that is clipped and gets noise. `first_convolution` is the paper's for CNNs;
    the other layers' gradients are then released as they are (M-14)."""
    delta: Part = 1e-3
    """Failure probability of eq. 12, a heuristic one (M-15)."""

    @property
    def clips_samples(self) -> bool:
        return self.clip == "sample"

    @property
    def beyond_gradients(self) -> tuple[str | int, ...]:
        return ("clip",) if self.clips_samples else ()

    @property
    def noise_law(self) -> str:
        return self.noise

    def epsilons(self, num_clients: int) -> tuple[float, ...]:
        """Returns the privacy level of each client.

        Raises:
            ScenarioError: not one privacy level for each client.
        """
        if not isinstance(self.epsilon, tuple):
            return (self.epsilon,) * num_clients
        if len(self.epsilon) != num_clients:
            raise ScenarioError(
                f"algorithm.epsilon must have one entry per client ({num_clients}), "
                f"got {len(self.epsilon)}; make it as long, or give one number"
            )
        return self.epsilon

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        return tuple(
            self._guarantee(epsilon, n, batch, num_weights)
            for epsilon, n in zip(
                self.epsilons(len(num_samples)), num_samples, strict=True
            )
        )

    def _guarantee(
        self, epsilon: float, n: int, batch: int, num_weights: int
    ) -> Guarantee:
        """Returns what a message of a client with `n` samples releases.

        Eq. 12's delta only chooses the sensitivity; clipping every sample at b / 2 of
        it makes it one, whatever that delta means (M-15).
        """
        from ....privacy import guarantees  # SciPy

        lacks = guarantees.lacking(self)
        if self.clip == "mean":
            lacks.append(
                f"the clipped means of two batches can differ by b = {batch} times the "
                f"stated sensitivity; only clip: sample bounds it (M-03)"
            )
        if self.noised != "all":
            lacks.append("only the first layer's gradient has noise (M-14)")
        if self.noise == "radial_exponential" and num_weights > 1:
            lacks.append(
                f"an exponential radius in {num_weights} dimensions is private at no "
                f"epsilon (M-01)"
            )
        mechanism = f"{guarantees.NAMES[self.noise]}, clip: {self.clip}"
        if lacks:
            why = "the paper's epsilon of an iteration: " + "; ".join(lacks)
            return Guarantee(Pure(epsilon), False, why, mechanism, SAMPLE)
        why = "the noise is for the l2 sensitivity of clipped samples"
        if self.noise == "laplace":
            epsilon *= math.sqrt(num_weights)
            why = (
                f"independent Laplace noise for an l2 sensitivity costs sqrt(d) = "
                f"{math.sqrt(num_weights):.4g} times the stated epsilon (M-01)"
            )
        spent = guarantees.pure(epsilon, n, batch, self.sampling)
        why += guarantees.repeats(batch, n, self.sampling)
        return Guarantee(Pure(spent), True, why, mechanism, SAMPLE)


class Audp(NoisyEdgeCloud):
    """Asynchronous learning with noise: 1/step = L (tau_max + 1) + sqrt((D_b + 1) t).

    Source: MAPA, section 3, eq. 6 and 10, and Table II.
    """

    kind: Literal["audp"] = "audp"
    rate: Literal["equation_10", "equation_11"] = "equation_10"
    """Step size: of Theorem 2 and Table II, or of equation 11, which has
    (tau_max + 1)^2 + 1 for tau_max + 1, so that the bound has no log T, as Remark 2
    needs it (M-21)."""

    @model_validator(mode="after")
    def _one_step(self) -> "Audp":
        if self.rate != "equation_10" and self.step_size is not None:
            raise LocatedError(
                f"rate must be left out with step_size, got {self.rate!r}; remove one",
            )
        return self


class Mapa(NoisyEdgeCloud):
    """Multi-stage adaptation of step size and sensitivity.

    With decisions M-05 (stages last at least one iteration, rounded up), M-06 (the
    divisor P is at least 1) and M-18 (the reply that ends a stage still carries its
    sensitivity).

    Source: MAPA, Algorithm 1.
    """

    kind: Literal["mapa"] = "mapa"
    theta: Part = 0.5
    """Reduction ratio of the sensitivity."""
    gap: Positive = 50.0
    """f(x_1) - f(x*) in the length of a stage, eq. 15 (M-04)."""
    stage_rule: Literal["theta", "bound"] = "theta"
    """Sensitivity after a stage (M-07): theta times that before, as in line 15 of the
    algorithm, or by Table II 2 / b times the root of the squared norm that the bound of
    Theorem 4 leaves, 2 Delta_b / (P (tau_max + 1)). They differ where P is clamped."""

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        sent = super().messages(shape, common=common)
        return {**sent, "down": sent["down"] + FLOAT_BYTES}  # the sensitivity
