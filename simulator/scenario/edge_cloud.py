"""Asynchronous edge-cloud learning with privacy: CSGD, ASGD, AUDP and MAPA. No JAX.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
Privacy for Edge Intelligence; decisions (M-) are in docs/decisions.md.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from simulator.scenario.algorithms import (
    FLOAT_BYTES,
    Algorithm,
    Batch,
    Message,
    OrData,
    Positive,
    ProblemShape,
    StepSize,
    model_and_gradient,
)

Part = Annotated[float, Field(gt=0, lt=1)]


class EdgeCloud(Algorithm):
    """What the four algorithms share: Table II's constants and its step sizes.

    Batches are drawn with replacement (Assumption 2; M-22).
    """

    step_size: StepSize | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """In place of the algorithm's own, which is Table II's."""
    batch: Batch = 12
    sampling: Literal["distinct", "replacement", "shuffled"] = "replacement"
    sigma: Annotated[Positive | Literal["data"], OrData] = 30.0
    """Bound on the deviation of a sample's gradient, or `data`: measured at the start
    of the run (M-25)."""
    smoothness: Annotated[Positive | Literal["data"], OrData] = 10.0
    """Lipschitz constant L of the gradient, or `data`: that of a convex linear model,
    else measured at the start of the run (M-25)."""

    averaged: bool = False
    """Whether the average of all iterates is evaluated, of which Theorem 2 speaks, in
    place of the last one."""

    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic")

    def structure(self) -> dict[str, Any]:
        """Returns all but the numbers that runs of one program may differ in."""
        shaping = ("kind", "batch", "sampling", "samples", "averaged")
        shaping += ("noise", "clip", "noised")
        found = self.model_dump(mode="json")
        own = self.step_size is not None
        return {key: found[key] for key in shaping if key in found} | {"own_step": own}

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns the messages of one contribution: the model down, a gradient up."""
        del common
        return model_and_gradient(shape)


class Csgd(EdgeCloud):
    """Centralised SGD on pooled data: 1/step = L + sigma sqrt(t + 1) / (R sqrt(b)).

    Source: MAPA, Table II.
    """

    kind: Literal["csgd"] = "csgd"
    made_by: ClassVar[str] = "simulator.algorithms.edge_cloud:build"
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
    made_by: ClassVar[str] = "simulator.algorithms.edge_cloud:build"
    radius: Positive = 1.0
    """R, a bound on the distance to the minimum (M-11)."""


class _Private(_Asynchronous):
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
    """Second moment of the noise in the formulas: that of its law, or 2 scale^2
    whatever the law and the dimension (M-02)."""
    clip: Literal["mean", "sample"] = "mean"
    """What is clipped: the mean gradient of a batch, as printed, or each sample's,
    which alone has the stated sensitivity (M-03)."""
    clip_bound: Annotated[Positive | Literal["data"], OrData] | None = None
    """G: the (first) sensitivity is 2 G / b; by default that of eq. 12 (M-10). `data`:
    the largest norm of a sample's gradient at the start of the run."""
    noised: Literal["all", "first_convolution"] = "all"
    """What is clipped and gets noise. `first_convolution` is the paper's for its CNN;
    the other layers' gradients are then released as they are (M-14)."""
    delta: Part = 1e-3
    """Failure probability of eq. 12, a heuristic one (M-15)."""


class Audp(_Private):
    """Asynchronous learning with noise: 1/step = L (tau_max + 1) + sqrt((D_b + 1) t).

    Source: MAPA, section 3, eq. 6 and 10, and Table II.
    """

    kind: Literal["audp"] = "audp"
    made_by: ClassVar[str] = "simulator.algorithms.edge_cloud:build"


class Mapa(_Private):
    """Multi-stage adaptation of step size and sensitivity.

    With decisions M-05 (stages last at least one iteration, rounded up), M-06 (the
    divisor P is at least 1), M-07 (the sensitivity falls by theta) and M-18 (the reply
    that ends a stage still carries its sensitivity).

    Source: MAPA, Algorithm 1.
    """

    kind: Literal["mapa"] = "mapa"
    made_by: ClassVar[str] = "simulator.algorithms.edge_cloud:build"
    theta: Part = 0.5
    """Reduction ratio of the sensitivity."""
    gap: Positive = 50.0
    """f(x_1) - f(x*) in the length of a stage, eq. 15 (M-04)."""

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns the messages of one contribution; with the model, a sensitivity."""
        sensitivity = Message("sensitivity", "down", FLOAT_BYTES)
        return (*super().messages(shape, common=common), sensitivity)
