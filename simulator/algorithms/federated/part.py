"""Asynchronous methods of the field on horizontally divided data. No JAX in here.

A client starts from the model that it read and makes Q local steps; what it sends is
the sum of its gradients (divided by nothing, so that one step is plain SGD). What
changes how much a contribution counts stands here; when or whether it counts is the
protocol's.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_serializer, model_validator

from ...config.base import Config, LocatedError, Quantity, Rule, without
from ...config.errors import ScenarioError
from ...config.expressions import per_client
from ...learning.sampler import Sampler
from ...learning.uneven import UnevenSampler
from ...models.parts import ModelCounts
from ...privacy.releases import Calibrated, Guarantee, Sampling
from ..optimizers.part import (
    LocalOptax,
    ServerOptimizer,
    programs,
    with_steps,
)
from ..part import (
    Algorithm,
    Message,
    ProblemShape,
    StepSize,
    model_and_gradient,
)
from .weights import AnyWeight, ConstantWeight, StalenessWeight

Positive = Annotated[float, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
ExpectedOr = Rule("a number > 0, or expected", "expected")
Weighting = Literal["equal", "samples"]
"""What the server weighs contributions by, before their staleness."""
YOUNGER = ("local_optimizer", "weighting", "divisor", "staleness_threshold", "speeds")
"""Options that finished studies do not have."""


class Compensation(Config):
    """First-order compensation of the delay: adds lambda g * g * (now - read).

    The moving average starts at zero, takes in this commit's mean of g * g first, and
    has 1e-7 added to it under the root.

    Source: Zheng et al., Asynchronous Stochastic Gradient Descent with Delay
    Compensation (2017), Algorithm 2 and DC-ASGD-a.
    """

    strength: Annotated[float, Field(ge=0)]
    """lambda_0."""
    adaptive: bool = False
    """Divides lambda_0 by the root of a moving average of g * g."""
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.95
    """m of that average."""


class NoiseBudget(Config):
    """A privacy budget from which the noise is calculated before the run.

    The run ends just before a client would exceed it, as by `privacy.budget`.
    """

    epsilon: Positive
    """Epsilon that a client may spend."""
    delta: Part = 1e-5
    """Delta that it holds with."""
    releases: Count
    """Messages of the client that draws the largest share of its samples; a client that
    draws less may send more."""
    accountant: Literal["rdp", "pld", "gdp", "basic", "advanced", "optimal"] = "rdp"
    """Who adds up what the messages release."""


class Mechanism(Config):
    """Clips every contribution and adds noise to it before it is sent.

    The noise's scale is a multiplier times the sensitivity when one sample is replaced:
    2 C / b where each sample's gradient is clipped to C, 2 C where whole contributions
    are.

    Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1;
    `contribution`: McMahan et al. (2018), Algorithm 1.
    """

    law: Literal["gaussian", "spherical_laplace"] = "gaussian"
    """Law of the noise."""
    clip_bound: Positive
    """C, l2 norm."""
    clip: Literal["sample", "contribution"] = "sample"
    """Object of the clipping: each sample's gradient, or all that a client sends."""
    multiplier: Annotated[float, Field(ge=0)] | None = None
    """Scale of the noise over the sensitivity."""
    budget: NoiseBudget | None = None
    """Budget from which the multiplier is calculated."""

    @model_validator(mode="after")
    def _one_way(self) -> "Mechanism":
        if (self.multiplier is None) == (self.budget is None):
            raise ValueError(
                "must have either multiplier or budget, not both or neither; remove "
                "one or add one"
            )
        return self

    def multiplier_at(
        self, sampling_ratio: float, sampling: Sampling = "uniform"
    ) -> float:
        """Returns the noise multiplier that is stated, or that the budget needs.

        Args:
            sampling_ratio: Share of its samples that a client draws, the largest of all
                clients, in (0, 1].
            sampling: how distinct samples are drawn.

        Returns:
            Noise scale over sensitivity, >= 0.

        Raises:
            UserError: no noise is enough, or the accountant has no such release.
        """
        if self.budget is None:
            return self.multiplier or 0.0
        from ...privacy.guarantees import calibrated  # SciPy

        numbers = self.budget.epsilon, self.budget.delta, self.budget.releases
        accountant = self.budget.accountant
        return calibrated(*numbers, accountant, self.law, sampling_ratio, sampling)


class Federated(Algorithm):
    """Common base of the methods: local steps, and noise on what is sent.

    A client that has fewer samples than `batch` takes all that it has.
    """

    local_steps: Count | None = 1
    """Q: steps that a client makes on its own copy, each on a batch of its own."""
    local_epochs: Count | None = None
    """E, in place of `local_steps`: passes over a client's own samples, each in an
    order of its own, with a last batch of what is left. Clients with more samples make
    more steps, which take longer with `clients.compute_per`."""
    speeds: Quantity | None = None
    """Speeds of the clients, up to a common factor: one of speed v makes floor(Q v /
    v_max) local steps, at least one (DyLU of asynchronous DiLoCo), which take their
    time with `clients.compute_per: step`; by default all make Q."""
    mechanism: Mechanism | None = None
    """Clipping and noise of what clients send; by default none."""
    local_optimizer: LocalOptax | None = None
    """The clients' optimiser of their local steps; by default plain SGD."""

    family: ClassVar[str] = "horizontal"
    keeps_statistics: ClassVar[bool] = True
    divided: ClassVar[bool] = True

    @model_serializer(mode="wrap")
    def _as_before(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        fields = type(self).model_fields
        usual = {name: fields[name].default for name in YOUNGER if name in fields}
        tree = without(dump(self), **usual, local_epochs=None)
        if self.local_epochs is not None:
            tree.pop("local_steps", None)
        return tree

    @property
    def steps_per_job(self) -> int:
        """Local steps of a job; with epochs those of a client of one batch."""
        return self.local_epochs or self.local_steps or 1

    @property
    def staleness_weight(self) -> StalenessWeight:
        """Weight of a contribution by its staleness; constant without an option."""
        return getattr(self, "weight", ConstantWeight())

    def biases(self, protocol: Any, num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others."""
        yield from self.staleness_weight.biases(protocol, num_clients)

    @property
    def shortens(self) -> bool:
        """Whether short batches are allowed: where no noise is for the full ones."""
        return not self.clips_samples

    @property
    def clips_samples(self) -> bool:
        """Whether the gradient of each sample is clipped by itself."""
        return self.mechanism is not None and self.mechanism.clip == "sample"

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Any
    ) -> Sampler:
        """Returns the minibatches of a run, of steps or of epochs."""
        size = self.batch_size(min(pool.size for pool in pools))
        if self.speeds is not None:
            own = self._own_steps(len(pools))
            return UnevenSampler(seed, pools, size, sampling=self.sampling, own=own)
        if self.local_epochs is None:
            return super().sampler(seed, pools, protocol)
        return UnevenSampler(seed, pools, size, epochs=self.local_epochs)

    def _own_steps(self, num_clients: int) -> Int[np.ndarray, " K"]:
        """Returns the local steps of each client, by its speed."""
        assert self.speeds is not None
        found = per_client(self.speeds, num_clients, "algorithm.speeds")
        if not min(found) > 0:
            raise LocatedError(
                f"algorithm.speeds must be > 0, got {float(min(found)):g}; change it",
                ("algorithm", "speeds"),
            )
        share = [Fraction(speed) / Fraction(max(found)) for speed in found]
        most = self.local_steps or 1
        return np.array([max(1, floor(most * each)) for each in share])

    @property
    def noise_law(self) -> str | None:
        """Law of the noise on what is sent, if there is any."""
        return None if self.mechanism is None else self.mechanism.law

    @property
    def calibrated(self) -> Calibrated | None:
        """Budget of the mechanism, if it has one."""
        budget = self.mechanism and self.mechanism.budget
        if not budget:
            return None
        return Calibrated(
            "algorithm.mechanism.budget",
            epsilon=budget.epsilon,
            delta=budget.delta,
            accountant=budget.accountant,
        )

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        """Returns what one message of each client releases; nothing without noise."""
        from ...privacy.guarantees import Drawing, of_clipped  # SciPy

        del num_weights
        if self.mechanism is None:
            return ()
        law, clip, drawing = self.mechanism.law, self.mechanism.clip, Drawing.of(self)
        ratio = batch / min(num_samples) if clip == "sample" else 1.0
        multiplier = self.mechanism.multiplier_at(ratio)
        return tuple(
            of_clipped(law, clip, multiplier, drawing, n, batch) for n in num_samples
        )

    def check(self, problem: Any, protocol: Any) -> None:
        """Refuses budgets for batches whose noise is not calculated."""
        super().check(problem, protocol)
        budgeted = self.mechanism is not None and self.mechanism.budget is not None
        if budgeted and self.sampling != "distinct":
            raise LocatedError(
                f"algorithm.mechanism.budget must be with sampling 'distinct', for "
                f"which noise is calculated, got {self.sampling!r}; give a multiplier",
                ("algorithm", "mechanism", "budget"),
            )

    def check_model(self, counts: ModelCounts) -> None:
        """Refuses mechanisms for models whose statistics would be sent as they are."""
        if counts.num_statistics and self.mechanism is not None:
            raise ScenarioError(
                f"algorithm.mechanism must be left out for a model that keeps "
                f"statistics of batches, got {counts.num_statistics} numbers, which "
                f"would be sent without noise; normalise layers or groups"
            )

    def structure(self) -> dict[str, Any]:
        """Returns all but the numbers that runs of one program may differ in."""
        found = self.model_dump(mode="json")
        for key in ("step_size", "local_step_size", "server_step_size", "mixing"):
            found.pop(key, None)
        for key in ("divisor", "staleness_threshold", "speeds"):
            if found.get(key) is not None:
                found[key] = "given"
        if self.mechanism is not None:
            found["mechanism"] = [self.mechanism.law, self.mechanism.clip]
        if "weight" in found:
            found["weight"] = self.staleness_weight.structure()
        return found | programs(self)

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns the messages of one contribution: the model down, as much up."""
        del common
        return model_and_gradient(shape)

    @model_validator(mode="after")
    def _own_steps_are_of_own_samples(self) -> "Federated":
        if self.speeds is None:
            return self
        clash = "local_epochs" if self.local_epochs is not None else ""
        clash = clash or ("samples" if self.samples == "common" else "")
        if clash:
            raise LocatedError(
                f"speeds must be left out with {clash}, got {self.speeds!r}; remove "
                f"one of them",
                ("speeds",),
            )
        return self

    @model_validator(mode="after")
    def _works_in_steps_or_epochs(self) -> "Federated":
        if self.local_epochs is None:
            return self
        if (self.local_steps or 1) > 1:
            raise LocatedError(
                f"local_epochs must not be set with local_steps, got both "
                f"{self.local_epochs} and {self.local_steps}; remove one of them",
                ("local_epochs",),
            )
        if self.sampling == "replacement" or self.samples == "common":
            key = "sampling" if self.sampling == "replacement" else "samples"
            raise LocatedError(
                f"{key} must be left out with local_epochs, which go through each "
                f"client's own samples, got {getattr(self, key)!r}; remove it",
                (key,),
            )
        return self

    @model_validator(mode="after")
    def _samples_are_clipped_in_one_step(self) -> "Federated":
        by_sample = self.clips_samples
        steps, epochs = self.local_steps or 1, self.local_epochs
        if by_sample and (steps > 1 or epochs is not None):
            given = f"local_steps {steps}" if epochs is None else "local_epochs"
            raise LocatedError(
                f"mechanism.clip must be contribution for local steps, got 'sample' "
                f"with {given}; a later step depends on all samples of the earlier "
                f"ones",
                ("mechanism", "clip"),
            )
        if by_sample and self.local_optimizer is not None:
            raise LocatedError(
                "mechanism.clip must be contribution with local_optimizer, which makes "
                "a step of the samples' gradients together, got 'sample'; change it",
                ("mechanism", "clip"),
            )
        return self


class Sgd(Federated):
    """Stochastic gradient descent: contributions taken at the model that was read.

    The server steps by the mean of a commit's contributions, each times its weight.
    With local steps it is asynchronous local SGD, or FedAvg where the protocol is
    synchronous.

    Source: Agarwal and Duchi, Distributed Delayed Stochastic Optimization (2011);
    Stich, Local SGD Converges Fast and Communicates Little (2019).
    """

    kind: Literal["sgd"] = "sgd"
    made_by: ClassVar[str] = "stalesim.simulator.algorithms.federated.presets:sgd"
    local_step_size: StepSize | None = None
    """Step size of the local steps; by default `step_size`, with which the server adds
    up what the clients moved."""
    weight: AnyWeight = ConstantWeight()
    """Weight of a contribution, by its staleness."""
    compensation: Compensation | None = None
    """First-order compensation of the delay; by default none."""
    divisor: Annotated[Positive | Literal["expected"], ExpectedOr] | None = None
    """Number by which the sum of a commit's contributions is divided, where the
    protocol gathers them; by default how many there are. `expected`: how many trials of
    a round are in time on average, by the clients' laws (MindFlayer)."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default the mean contribution is the direction. Where
    it is not linear, as signs or Adam, a commit's mean weight multiplies its step."""

    def biases(self, protocol: Any, num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others."""
        if getattr(protocol, "harmonic_mean", None) is not None:
            yield (
                "sgd with protocol.harmonic_mean steps by the mean over contributions, "
                "so that fast clients count more: malenia takes that over clients"
            )
        yield from super().biases(protocol, num_clients)

    def check(self, problem: Any, protocol: Any) -> None:
        """Refuses a divisor where nothing gathers."""
        super().check(problem, protocol)
        if self.divisor is not None and not protocol.gathers:
            raise LocatedError(
                "algorithm.divisor must be left out where contributions do not gather "
                f"before a commit, got {self.divisor!r}; take the protocol collect",
                ("algorithm", "divisor"),
            )
        if self.divisor == "expected" and not hasattr(protocol, "expected_batch"):
            raise LocatedError(
                "algorithm.divisor must be a number for this protocol, got 'expected'; "
                "take the protocol collect, with quota and allotted",
                ("algorithm", "divisor"),
            )

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        data = with_steps(
            data, optimizer="step_size", local_optimizer="local_step_size"
        )
        if isinstance(data, dict) and data.get("local_optimizer") is not None:
            return {"step_size": 1.0, **data}
        return data

    @model_validator(mode="after")
    def _gradients_are_compensated(self) -> "Sgd":
        if self.compensation is not None and self.local_optimizer is not None:
            raise LocatedError(
                "compensation must be left out with local_optimizer, whose moves are "
                "no gradients, got one; remove one of them",
                ("compensation",),
            )
        return self

    protocols: ClassVar[tuple[str, ...]] = (
        *("asynchronous", "t_synchronous", "synchronous", "cyclic", "centralised"),
        *("buffered", "collect", "routed"),
    )

    @property
    def step_sizes(self) -> tuple[StepSize | None, ...]:
        """The server's step size and that of local steps."""
        return (self.step_size, self.local_step_size, None)
