"""VAFL's options, and what its messages weigh. No JAX here."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.algorithms.part import (
    FLOAT_BYTES,
    Algorithm,
    Message,
    Positive,
    ProblemShape,
    StepSize,
)
from simulator.config.base import Config, LocatedError


class Perturbation(Config):
    """Gaussian noise on every embedding that leaves a client.

    Either `std` (the noise's standard deviation, V-14), or a privacy target `mu`
    with the number of `releases` that it must last for: then the noise of each upload
    is the calibrated multiplier times the sensitivity of that upload.

    Source: VAFL, equations 10-11 and Theorem 6.
    """

    std: Annotated[float, Field(ge=0)] | None = None
    mu: Positive | None = None
    releases: Annotated[int, Field(ge=1)] | None = None
    input_diameter: Positive | None = None
    """Largest distance between two inputs of one party (V-19); without it the noise is
    played, but no privacy is accounted for."""
    accountant: Literal["gdp_uniform", "gdp_poisson", "gdp_linear"] = "gdp_uniform"
    """V-18: the central-limit form for fixed-size batches, for Poisson batches, or the
    paper's linear rule, which under-noises."""

    @model_validator(mode="after")
    def _one_way(self) -> "Perturbation":
        if (self.std is None) == (self.mu is None):
            raise ValueError(
                "must have either std or mu, not both or neither; remove one or add one"
            )
        if self.mu is not None and (
            self.releases is None or self.input_diameter is None
        ):
            raise ValueError("must have releases and input_diameter with mu; add both")
        return self


class Vafl(Algorithm):
    """Vertical asynchronous federated learning.

    Source: Chen, Jin, Sun and Yin, VAFL, Algorithms 1 and 2.
    """

    kind: Literal["vafl"] = "vafl"
    made_by: ClassVar[str] = "simulator.algorithms.vafl.building:build"
    server_step_size: StepSize | None = None
    """The server's own step size; by default the clients' (V-25)."""
    upload: Literal["batch", "all"]
    """Embeddings that a client uploads: those of its batch, or of all samples
    (V-05: decides whether asynchrony wins in wall-clock time)."""
    client_order: Literal["upload_first", "query_first"] = "upload_first"
    """V-06: upload, query, update; or query, update, select, upload."""
    server_gradient: Literal["before", "after"] = "before"
    """V-08: a query is answered at the server model before its update, or after."""
    perturbation: Perturbation | None = None

    family: ClassVar[str] = "vertical"
    protocols: ClassVar[tuple[str, ...]] = (
        *("asynchronous", "bounded", "t_synchronous", "synchronous", "centralised"),
    )
    stores_embeddings: ClassVar[bool] = True

    @property
    def step_sizes(self) -> tuple[StepSize | None, ...]:
        """The clients' step size and the server's."""
        return (self.step_size, None, self.server_step_size)

    @property
    def uploads_batch(self) -> bool:
        """Whether an upload carries its batch's samples alone."""
        return self.upload == "batch"

    @property
    def uploads_all(self) -> bool:
        """Whether an upload carries all samples."""
        return self.upload == "all"

    @property
    def embedding_noise(self) -> Perturbation | None:
        """Noise on the embeddings that are uploaded."""
        return self.perturbation

    def check(self, problem: Any, protocol: Any) -> None:
        """Refuses orders and accounts that are not defined."""
        super().check(problem, protocol)
        if protocol.refresh_bound and self.client_order != "upload_first":
            raise LocatedError(
                f"algorithm.client_order must be 'upload_first' with a bounded "
                f"delay, got {self.client_order!r}; with two batches in use, V-10 does "
                f"not say whose ages are bounded",
                ("algorithm", "client_order"),
            )
        noise = self.perturbation
        priced = noise is not None and noise.input_diameter is not None
        if priced and not problem.model.is_linear:
            raise LocatedError(
                f"algorithm.perturbation.input_diameter must not be set for the model "
                f"{problem.model.kind!r}, whose sensitivity is not known; remove "
                f"it, and give std in place of mu",
                ("algorithm", "perturbation", "input_diameter"),
            )

    def structure(self) -> dict[str, Any]:
        """Returns all but the numbers that runs of one program may differ in."""
        numbers = {"step_size", "server_step_size", "perturbation"}
        rest = self.model_dump(mode="json", exclude=numbers)
        noisy = self.perturbation is not None and self.perturbation.std != 0
        return {**rest, "perturbed": noisy}

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns the messages of one contribution: embeddings up, gradients down.

        Args:
            shape: the problem's counts.
            common: whether the batch is coordinated, so that everything is fresh.
        """
        rows = shape.batch if self.upload == "batch" or common else shape.num_samples
        return (
            Message("embedding", "up", FLOAT_BYTES * rows * shape.num_outputs),
            Message("gradient", "down", FLOAT_BYTES * shape.batch * shape.num_outputs),
        )
