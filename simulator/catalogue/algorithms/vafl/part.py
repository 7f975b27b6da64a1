"""VAFL's options and the sizes of its messages. No JAX here."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ....engine.algorithm import FLOAT_BYTES, Algorithm, Bytes, ProblemShape, StepSize
from ....engine.optimizers.part import Optimizer, programs
from ....engine.step_rules import Positive
from ....parts.base import Config, LocatedError, Rule
from ....parts.metrics import HasModels, Metric, Models
from ....privacy.releases import Calibrated
from ....problem.capabilities import NoisyMessages, StoresEmbeddings
from ....world.protocol import Protocol
from ....world.protocol_abilities import RefreshesEmbeddings

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .kernel import VaflKernel

Scales = Annotated[
    Annotated[float, Field(ge=0)]
    | Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)],
    Rule("a number >= 0, or a list of one for each layer but the last", "[0.1, 0.01]"),
]


class HiddenNoise(Config):
    """Noise inside the layers of a party's network before the last one.

    It enters before the activation: on a convolution's outputs, for example. Layers of
    LSTM have it on their outputs. Either uniform or Gaussian.

    Source: VAFL, equations 10 and 11b, appendix G; V-15, V-16.
    """

    uniform: Scales | None = None
    """Half of the width of its law, sqrt(3) c_l, as the experiments state it (V-15)."""
    std: Scales | None = None
    """Standard deviation, c_l, of Gaussian noise."""

    @model_validator(mode="after")
    def _one_law(self) -> "HiddenNoise":
        if (self.uniform is None) == (self.std is None):
            raise ValueError(
                "must have either uniform or std, not both or neither; keep one"
            )
        return self

    @property
    def law(self) -> Literal["uniform", "std"]:
        """Name of the field that is set."""
        return "std" if self.uniform is None else "uniform"

    def of_layers(self, num_hidden: int) -> tuple[float, ...]:
        """Returns the scale of each hidden layer."""
        scale = getattr(self, self.law)
        return (scale,) * num_hidden if isinstance(scale, float) else scale


class Perturbation(Config):
    """Noise on a client's embeddings, and optionally inside its network.

    On the embedding it is Gaussian, inside the last activation where there is one.

    Either `std` (the noise's standard deviation, V-14), or a privacy target `mu`
    with the number of `releases` that it must last for: then the noise of each upload
    is the calibrated multiplier times the sensitivity of that upload.

    Source: VAFL, equations 10-11 and Theorem 6.
    """

    std: Annotated[float, Field(ge=0)] | None = None
    """Standard deviation of the noise."""
    hidden: HiddenNoise | None = None
    """Noise inside the layers before the last."""
    mu: Positive | None = None
    """Level of Gaussian differential privacy that the noise is calculated for."""
    releases: Annotated[int, Field(ge=1)] | None = None
    """Messages per client that `mu` covers; a run ends before one more."""
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


class Vafl(StoresEmbeddings, HasModels, NoisyMessages, Algorithm):
    """Vertical asynchronous federated learning.

    Source: Chen, Jin, Sun and Yin, VAFL, Algorithms 1 and 2.
    """

    kind: Literal["vafl"] = "vafl"
    server_step_size: StepSize | None = None
    """The server's own step size; by default the clients' (V-25)."""
    upload: Annotated[
        Literal["batch", "all", "current"],
        Rule(
            "batch (embeddings of the job's batch), all (of all samples) or current "
            "(as all, but the server always sees fresh ones: an ablation)",
            "batch",
        ),
    ]
    """Embeddings that a client uploads: of its `batch_size`, or of `all` samples (V-05:
    decides whether asynchrony wins in wall-clock time). `current` is no system but an
    ablation: as `all`, and the server sees every client's embeddings at its weights of
    that moment, so that a timeline is replayed without staleness."""
    client_order: Literal["upload_first", "query_first"] = "upload_first"
    """V-06: upload, query, update; or query, update, select, upload."""
    server_gradient: Literal["before", "after"] = "before"
    """V-08: a query is answered at the server model before its update, or after."""
    perturbation: Perturbation | None = None
    """Noise on the embeddings that are uploaded."""
    optimizer: Optimizer | None = None
    """Each party's own optimiser, and the server's of its model; their states are kept.
    By default plain SGD."""

    family: ClassVar[str] = "vertical"
    protocols: ClassVar[tuple[str, ...]] = (
        *("asynchronous", "bounded", "t_synchronous", "synchronous", "centralised"),
    )

    @property
    def uploads_batch(self) -> bool:
        return self.upload == "batch"

    @property
    def refreshes_all(self) -> bool:
        return self.upload == "all" and self.client_order == "upload_first"

    @property
    def models(self) -> frozenset[Models]:
        return frozenset({Models.PERTURBED} if self.perturbation else ())

    @property
    def calibrated(self) -> Calibrated | None:
        noise = self.perturbation
        if noise is None or noise.mu is None:
            return None
        key = "algorithm.perturbation.releases"
        return Calibrated(key, releases=noise.releases)

    @property
    def embedding_noise(self) -> Perturbation | None:
        return self.perturbation

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        refreshes = isinstance(protocol, RefreshesEmbeddings)
        if refreshes and self.client_order != "upload_first":
            raise LocatedError(
                "algorithm.client_order must be 'upload_first' with a bounded delay, "
                f"got {self.client_order!r}; with two batches in use, V-10 leaves "
                "open which ages are bounded",
            )
        noise = self.perturbation
        if noise is not None:
            self._check_noise(noise, problem)
        priced = noise is not None and noise.input_diameter is not None
        if priced and not problem.model.is_linear:
            raise LocatedError(
                "algorithm.perturbation.input_diameter must not be set for the model "
                f"{problem.model.kind!r}, whose sensitivity is unknown; remove it, "
                "and set std in place of mu",
            )

    def _check_noise(self, noise: Perturbation, problem: "Problem") -> None:
        """Refuses noise inside networks that do not have such layers."""
        inside = noise.hidden is not None or problem.server is not None
        if inside and self.client_order != "upload_first":
            raise LocatedError(
                f"algorithm.client_order must be 'upload_first' with noise inside a "
                f"network, got {self.client_order!r}; the noise of an upload belongs "
                f"to the gradient of the same job (V-17)",
            )
        if noise.hidden is None:
            return
        keys = ("algorithm", "perturbation", "hidden")
        layers = problem.model.num_layers
        if layers is None or layers == 1:
            why = "has one layer" if layers else "does not say where noise enters"
            raise LocatedError(
                f"{'.'.join(keys)} must not be set for the model "
                f"{problem.model.kind!r}, which {why}; remove it",
                keys,
            )
        given = len(noise.hidden.of_layers(layers - 1))
        if given != layers - 1:
            raise LocatedError(
                f"{'.'.join(keys)}.{noise.hidden.law} must have {layers - 1} numbers, "
                f"one for each layer of the model {problem.model.kind!r} but the last, "
                f"got {given}; change it, or give one number for all",
                (*keys, noise.hidden.law),
            )

    def structure(self) -> dict[str, object]:
        numbers = {"step_size", "server_step_size", "perturbation"}
        rest = self.model_dump(mode="json", exclude=numbers)
        noisy = self.perturbation is not None and self.perturbation.std != 0
        hidden = self.perturbation.hidden if self.perturbation is not None else None
        inside = {"hidden": hidden.law} if hidden is not None else {}
        return {**rest, **programs(self), "perturbed": noisy, **inside}

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        rows = shape.batch if self.upload == "batch" or common else shape.num_samples
        each = FLOAT_BYTES * shape.num_exchanged
        return {"up": each * rows, "down": each * shape.batch}

    def make(self, setup: "RunSetup", constants: "Constants") -> "VaflKernel":
        from .kernel import build

        return build(self, setup, constants)


SMOOTHED_GRADIENT_NORM_SQUARED = Metric(
    "smoothed_gradient_norm_squared",
    "stalesim.simulator.catalogue.algorithms.vafl.smoothed:gradient_norm_squared",
    meaning="squared norm of the gradient of F averaged over the noise; unbiased",
    label="Squared norm of the smoothed gradient",
    logarithmic=True,
    models=Models.PERTURBED,
)
