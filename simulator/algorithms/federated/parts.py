"""The stages of the package: their options, and those that compute by these alone.

No JAX is imported until a run needs it.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ...config.base import Config, LocatedError, Quantity, Rule
from ...models.parts import ModelCounts
from ...privacy.releases import Calibrated, Guarantee, Sampling
from ..optimizers.part import LocalOptax, Optax, ServerOptimizer
from ..part import StepSize
from .chain import (
    AdjustPart,
    AggregatePart,
    Chained,
    Passes,
    ReceivePart,
    SendPart,
    ServerPart,
    StagePart,
    WorkPart,
)
from .weights import AnyWeight, ConstantWeight

Positive = Annotated[float, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
ExpectedOr = Rule("a number > 0, or expected", "expected")
Divisor = Annotated[Positive | Literal["expected"], ExpectedOr]
Weighting = Literal["equal", "samples"]
"""What the server weighs contributions by, before their staleness."""
BUILDING = "stalesim.simulator.algorithms.federated.building"


class LocalOptions(Config):
    """Options of local steps, of a method or of a stage."""

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
    local_optimizer: LocalOptax | None = None
    """The clients' optimiser of their local steps; by default plain SGD."""

    @model_validator(mode="after")
    def _works_in_steps_or_epochs(self) -> "LocalOptions":
        if self.local_epochs is None:
            return self
        if (self.local_steps or 1) > 1:
            raise LocatedError(
                f"local_epochs must not be set with local_steps, got both "
                f"{self.local_epochs} and {self.local_steps}; remove one of them",
            )
        if self.speeds is not None:
            raise LocatedError(
                f"speeds must be left out with local_epochs, got {self.speeds!r}; "
                f"remove one of them",
            )
        return self


class LocalWork(LocalOptions, WorkPart):
    """Local steps; contributes the sum of their gradients, or directions."""

    kind: Literal["local_work"] = "local_work"
    made_by: ClassVar[str] = f"{BUILDING}:local_steps"
    proximal: Annotated[float, Field(ge=0)] | None = None
    """rho of FedAsync's clients, mu of FedProx: clients step on their loss plus half of
    it times the squared distance from what they read; by default on their loss."""

    @property
    def passes(self) -> Passes:
        return Passes(self.local_steps or 1, self.local_epochs, self.speeds)

    @property
    def beyond_gradients(self) -> str:
        if self.local_optimizer is not None:
            return "local_optimizer"
        several = self.passes.steps > 1 or self.local_epochs is not None
        return "proximal" if self.proximal and several else ""

    def structure(self) -> dict[str, Any]:
        """Returns its options without the learning rates."""
        found, rule = self.model_dump(mode="json"), self.local_optimizer
        found |= {"local_steps": self.passes.steps}
        return found if rule is None else found | {"local_optimizer": rule.program()}

    def fits(self, method: Chained) -> None:
        if self.speeds is not None and method.samples == "common":
            raise method.refusal(
                self,
                "speeds",
                f"must be left out with samples, got {self.speeds!r}; remove one of "
                f"them",
            )
        clash = "samples" if method.samples == "common" else ""
        clash = "sampling" if method.sampling == "replacement" else clash
        if self.local_epochs is not None and clash:
            raise LocatedError(
                f"{clash} must be left out with local_epochs, which go through each "
                f"client's own samples, got {getattr(method, clash)!r}; remove it",
                (clash,),
            )
        if self.local_optimizer is not None:
            _refuse_two_rates(method, self, "local_optimizer", method.local_rule)


class ClippedWork(WorkPart):
    """One step, for which the gradient of each sample is clipped."""

    kind: Literal["clipped_work"] = "clipped_work"
    clips_samples: ClassVar[bool] = True
    entry: ClassVar[tuple[str, ...]] = ("mechanism",)
    clip_bound: Positive
    """C, largest l2 norm of a sample's gradient."""

    def __call__(self, job: Any, state: Any) -> tuple[Any, Any]:
        """Returns the mean of the clipped gradients."""
        from ..client_work import clipped_per_sample  # JAX

        bound: Any = self.clip_bound
        key, batch = job.training_key, job.samples[0]
        clipped = clipped_per_sample(job.problem, job.read, batch, bound, key=key)
        return clipped, state


class Clip(SendPart):
    """Clips whole contributions.

    Source: McMahan et al., Learning Differentially Private Recurrent Language Models
    (2018), Algorithm 1.
    """

    kind: Literal["clip"] = "clip"
    clip_bound: Positive
    """C, largest l2 norm."""

    def __call__(self, job: Any, work: Any, state: Any) -> tuple[Any, Any]:
        """Returns the clipped contribution."""
        from ..client_work import clipped  # JAX

        bound: Any = self.clip_bound
        return clipped(work, bound), state


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
    draws less may send more. Of the server's noise: commits with one message of a
    client; one with m of them counts as m^2."""
    accountant: Literal["rdp", "pld", "gdp", "basic", "advanced", "optimal"] = "rdp"
    """Who adds up what the messages release."""

    def known(self, name: str) -> Calibrated:
        """Returns it as what noise is calculated for.

        Args:
            name: Dotted key of the stage that has the noise.
        """
        return Calibrated(
            f"{name}.budget",
            epsilon=self.epsilon,
            delta=self.delta,
            accountant=self.accountant,
        )


class NoiseOptions(Config):
    """Options of noise on what is sent."""

    law: Literal["gaussian", "spherical_laplace"] = "gaussian"
    """Law of the noise."""
    multiplier: Annotated[float, Field(ge=0)] | None = None
    """Scale of the noise over the sensitivity."""
    budget: NoiseBudget | None = None
    """Budget from which the multiplier is calculated."""

    @model_validator(mode="after")
    def _one_way(self) -> "NoiseOptions":
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


class SentNoise(NoiseOptions, SendPart):
    """Adds noise, in proportion to the sensitivity when one sample is replaced.

    The stage before it is one that clips, by whose bound C the sensitivity is known:
    2 C / b of `clipped_work`, 2 C of `clip`.

    Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1.
    """

    kind: Literal["noise"] = "noise"
    made_by: ClassVar[str] = f"{BUILDING}:noise"
    entry: ClassVar[tuple[str, ...]] = ("mechanism",)

    @property
    def noise_law(self) -> str:
        return self.law

    def structure(self) -> dict[str, Any]:
        return {"kind": self.kind, "law": self.law}

    def clip_before(self, method: Chained) -> ClippedWork | Clip:
        """Returns the stage of a method that bounds what the noise is added to.

        Raises:
            LocatedError: The stage before the noise does not clip.
        """
        place = next(i for i, stage in enumerate(method.stages) if stage == self)
        before = method.stages[place - 1]
        if not isinstance(before, ClippedWork | Clip):
            kind = getattr(before, "kind", "")
            raise method.refusal(
                self,
                "",
                f"must be next after a stage that clips, for noise is in proportion "
                f"to its bound, got 'noise' after {kind!r}; put clip before it",
            )
        return before

    def fits(self, method: Chained) -> None:
        """Refuses noise of unknown sensitivity, or of which only a part would count."""
        self.clip_before(method)
        if sum(stage.noise_law is not None for stage in method.stages) > 1:
            raise method.refusal(
                self,
                "",
                "must be the only noise, of which alone the privacy is known, got two "
                "stages of it; remove one",
            )
        if self.budget is not None and method.sampling != "distinct":
            raise method.refusal(
                self,
                "budget",
                f"must be with sampling 'distinct', for which noise is calculated, got "
                f"{method.sampling!r}; give a multiplier",
            )

    def check_model(self, method: Chained, counts: ModelCounts) -> None:
        method.refuse_statistics(self, counts, "sent without noise")

    def calibrated(self, name: str) -> Calibrated | None:
        return None if self.budget is None else self.budget.known(name)

    def guarantees(
        self, method: Chained, num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        from ...privacy.guarantees import Drawing, of_clipped  # SciPy

        clip = "sample" if method.clips_samples else "contribution"
        ratio = batch / min(num_samples) if method.clips_samples else 1.0
        drawing, multiplier = Drawing.of(method), self.multiplier_at(ratio)
        return tuple(
            of_clipped(self.law, clip, multiplier, drawing, n, batch)
            for n in num_samples
        )


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


class Compensate(Compensation, ReceivePart):
    """Adds lambda g * g * (now - read): first-order compensation of the delay.

    Source: Zheng et al., Asynchronous Stochastic Gradient Descent with Delay
    Compensation (2017), Algorithm 2 and DC-ASGD-a.
    """

    kind: Literal["compensate"] = "compensate"
    entry: ClassVar[tuple[str, ...]] = ("compensation",)

    def fits(self, method: Chained) -> None:
        """Refuses clients whose moves are no gradients."""
        if getattr(method.work, "local_optimizer", None) is not None:
            raise method.refusal(
                self,
                "",
                "must be left out with local_optimizer, whose moves are no gradients, "
                "got one; remove one of them",
            )

    def start(self, problem: Any, weights: Any) -> Any:
        import jax.numpy as jnp  # only where a run needs it

        return jnp.zeros_like(weights) if self.adaptive else None

    def __call__(self, row: Any, contributions: Any, state: Any) -> tuple[Any, Any]:
        """Returns compensated contributions, and the average with this row's mean."""
        import jax.numpy as jnp  # only where a run needs it

        message, strength = contributions.message, self.strength
        squared = message**2
        if self.adaptive:
            present = row.event.present()
            mean = jnp.tensordot(present.astype(squared.dtype), squared, 1)
            mean = mean / jnp.maximum(present.sum(), 1)
            after = self.decay * state + (1 - self.decay) * mean
            state = jnp.where(present.any(), after, state)
            strength = strength / jnp.sqrt(state + 1e-7)
        drift = row.weights[None] - contributions.read
        strength = jnp.broadcast_to(strength, drift.shape)
        message = message + strength * squared * drift
        return contributions._replace(message=message), state


class AsMoves(ReceivePart):
    """Takes sums of gradients as what clients moved: times their local step size."""

    kind: Literal["as_moves"] = "as_moves"
    keeps_bound: ClassVar[bool] = True
    takes_sums: ClassVar[bool] = True

    def __call__(self, row: Any, contributions: Any, state: Any) -> tuple[Any, Any]:
        """Returns the contributions as moves."""
        return contributions._replace(scale=row.local_step_size), state


class Weigh(StagePart):
    """What each contribution counts: by its staleness, and by its client."""

    kind: Literal["weigh"] = "weigh"
    made_by: ClassVar[str] = f"{BUILDING}:weighing"
    place: ClassVar[str] = "weight"
    weight: AnyWeight = ConstantWeight()
    """Weight of a contribution, by its staleness."""
    weighting: Weighting = "equal"
    """Mean over contributions alike, or in proportion to the samples of their
    clients."""

    def structure(self) -> dict[str, Any]:
        return self.model_dump(mode="json") | {"weight": self.weight.structure()}

    def biases(self, protocol: Any, num_clients: int) -> Iterator[str]:
        yield from self.weight.biases(protocol, num_clients)


class Mean(AggregatePart):
    """The weighted mean of a commit's contributions.

    It is over a row's, or over what has gathered where the protocol gathers them.
    """

    kind: Literal["mean"] = "mean"
    made_by: ClassVar[str] = f"{BUILDING}:gathering"
    divisor: Divisor | None = None
    """Number by which the sum of a commit's contributions is divided, where the
    protocol gathers them; by default how many there are. `expected`: how many trials of
    a round are in time on average, by the clients' laws (MindFlayer)."""

    def structure(self) -> dict[str, Any]:
        return {"kind": self.kind, "divisor": self.divisor is not None}

    def check(self, method: Chained, protocol: Any) -> None:
        """Refuses a divisor where nothing gathers."""
        if self.divisor is not None and not protocol.gathers:
            raise method.refusal(
                self,
                "divisor",
                "must be left out where contributions do not gather before a commit, "
                f"got {self.divisor!r}; take the protocol collect",
            )
        if self.divisor == "expected" and not hasattr(protocol, "expected_batch"):
            raise method.refusal(
                self,
                "divisor",
                "must be a number for this protocol, got 'expected'; take the protocol "
                "collect, with quota and allotted",
            )


class LimitByStaleness(AdjustPart):
    """Limits the step size to 1 / tau if tau, the largest staleness, is beyond tau_c.

    tau is over all contributions since the last commit.

    Source: Wang et al., FADAS (2024), as methods.md, section 12, has it.
    """

    kind: Literal["limit_by_staleness"] = "limit_by_staleness"
    staleness_threshold: Annotated[int, Field(ge=0)]
    """tau_c."""

    @property
    def numbers(self) -> dict[str, float]:
        return {"staleness_threshold": self.staleness_threshold}

    def start(self, problem: Any, weights: Any) -> Any:
        import jax.numpy as jnp  # only where a run needs it

        return jnp.int32(0)

    def __call__(self, row: Any, step: Any, state: Any) -> tuple[Any, Any]:
        """Returns the step, and the largest staleness since the last commit."""
        import jax.numpy as jnp  # only where a run needs it

        from ...timeline import Kind

        event, rate = row.event, step.rate
        here = jnp.where(event.present(), event.staleness, 0).max()
        oldest = jnp.maximum(state, here).astype(jnp.int32)
        tau = oldest.astype(rate.dtype)
        most = 1 / jnp.maximum(tau * rate, 1e-30)
        within = tau <= self.staleness_threshold
        share = jnp.where(within, 1, jnp.minimum(1, most)).astype(rate.dtype)
        after = jnp.where(event.kind == Kind.COMMIT, 0, oldest).astype(jnp.int32)
        step_size = share * step.step_size
        return step._replace(step_size=step_size, rate=share * rate), after


class ScaleByWeight(AdjustPart):
    """Multiplies the step, in place of the direction, by the mean staleness weight.

    For optimisers that are not linear: they would undo the factor of a direction.
    """

    kind: Literal["scale_by_weight"] = "scale_by_weight"

    def __call__(self, row: Any, step: Any, state: Any) -> tuple[Any, Any]:
        """Returns the step with its direction unweighted."""
        import jax.numpy as jnp  # only where a run needs it

        weight = step.weight.astype(step.direction.dtype)
        direction = step.direction / jnp.where(weight > 0, weight, 1)
        step_size = step.step_size * weight
        return step._replace(direction=direction, step_size=step_size), state


class Optimise(AdjustPart):
    """Takes the direction that an optimiser makes of the aggregate."""

    kind: Literal["optimise"] = "optimise"
    made_by: ClassVar[str] = f"{BUILDING}:optimising"
    optimizer: ServerOptimizer
    """The server's optimiser; one of optax has a learning rate, with which the server's
    step size is 1."""

    def structure(self) -> dict[str, Any]:
        return {"kind": self.kind, "optimizer": self.optimizer.program()}

    def fits(self, method: Chained) -> None:
        if isinstance(self.optimizer, Optax):
            _refuse_two_rates(method, self, "optimizer", method.server_rule)


class ServerStep(ServerPart):
    """The server steps against what contributions are aggregated to."""

    kind: Literal["step"] = "step"
    made_by: ClassVar[str] = f"{BUILDING}:stepping"
    aggregates: ClassVar[bool] = True
    step_size: StepSize | None = None
    """Step size of the server, which multiplies the direction; by default that of the
    clients' own steps."""

    @property
    def rule(self) -> StepSize | None:
        return self.step_size

    def structure(self) -> dict[str, Any]:
        return {"kind": self.kind}


class Mix(ServerPart):
    """Mixes a client's model into the server's: x <- (1 - a) x + a x_client.

    a is `mixing` times the contribution's weight.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019),
    Algorithm 1.
    """

    kind: Literal["mix"] = "mix"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic")
    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6
    """alpha."""

    def __call__(
        self, row: Any, contributions: Any, state: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Returns the mixture with the model of the row's only client."""
        import jax.numpy as jnp  # only where a run needs it

        from ..base import norm

        read, message, statistics, factor, *_ = contributions
        target = read[0] - row.local_step_size * message[0]
        share = (self.mixing * factor[0]).astype(target.dtype)
        if statistics is not None:
            target = target.at[-row.num_statistics :].set(statistics[0])
        mixed = (1 - share) * row.weights + share * target
        info = {"gradient_norm": norm(message), "mixing": share, "step_size": row.rate}
        present = row.event.present()[0]
        return jnp.where(present, mixed, row.weights), state, info


def _refuse_two_rates(
    method: Chained, stage: StagePart, key: str, step_size: StepSize
) -> None:
    """Refuses a step size besides the learning rate of one of optax's optimisers."""
    if step_size != 1:
        raise method.refusal(
            stage,
            key,
            f"must be with the step size 1, whose place its learning rate takes, got "
            f"{step_size!r}; write step_size: 1",
        )
