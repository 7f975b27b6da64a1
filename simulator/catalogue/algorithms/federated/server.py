"""Stages of the server: received contributions, weights, aggregation, its step.

No JAX is imported until a run needs it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from jaxtyping import Float, Int
from pydantic import Field

from ....engine.algorithm import StepSize
from ....engine.optimizers.part import Optax, ServerOptimizer
from ....files.timeline import NO_SAMPLE, Kind
from ....parts.base import Config, Rule
from ....parts.lazy import Late
from ....problem.constants import Constants
from .chain import Chained, refuse_two_rates
from .clients import Positive
from .stage import (
    AdjustPart,
    AggregatePart,
    ReceivePart,
    ServerPart,
    WeightPart,
    in_program,
)
from .stages import (
    Contributions,
    ServerRow,
    Step,
    divisor,
    placed,
    statistics,
    summed,
)
from .weights import AnyWeight, ConstantWeight, StalenessWeight, Weighed

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ....engine import kernel
    from ....engine.kernel import Info
    from ....engine.optimizers import rule as optimizing
    from ....engine.optimizers.arrays import UpdateRule
    from ....engine.setup import RunSetup
    from ....problem.horizontal import HorizontalProblem
    from ....world.protocol import Protocol
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    kernel = Late("....engine.kernel", __package__)
    optimizing = Late("....engine.optimizers.rule", __package__)
    Array = HorizontalProblem = RunSetup = Info = UpdateRule = Any

ExpectedOr = Rule("a number > 0, or expected", "expected")
Divisor = Annotated[Positive | Literal["expected"], ExpectedOr]
Weighting = Literal["equal", "samples", "processed"]
"""The server's weights of contributions, before their staleness."""


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

    def fits(self, method: Chained) -> None:
        if getattr(method.work, "local_optimizer", None) is not None:
            raise method.refusal(
                self,
                "",
                "must be left out with local_optimizer, because its moves are no "
                "gradients, got one; remove one of them",
            )

    def start(self, problem: HorizontalProblem, weights: Array) -> Array | None:
        return jnp.zeros_like(weights) if self.adaptive else None

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Array | None
    ) -> tuple[Contributions, Array | None]:
        """Returns compensated contributions, and the average with this row's mean."""
        message = contributions.message
        assert message is not None
        squared, strength = message**2, self.strength
        if state is not None:
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
    """Takes sums of gradients as clients' moves: times their local step size."""

    kind: Literal["as_moves"] = "as_moves"
    keeps_bound: ClassVar[bool] = True
    takes_sums: ClassVar[bool] = True

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: None
    ) -> tuple[Contributions, None]:
        return contributions._replace(scale=row.local_step_size), state


class EffectiveSize(ReceivePart):
    """Measures how many contributions of equal weight a commit's are worth.

    The diagnostic `effective_contributions` is (sum w)^2 / sum w^2 over the weights of
    a commit's contributions: their number with equal weights, near 1 where one has
    nearly all. Where the protocol gathers contributions, it is over those so far.

    Source: Kish, Survey Sampling (1965), section 11.7: effective sample size.
    """

    kind: Literal["effective_size"] = "effective_size"
    takes_sums: ClassVar[bool] = True
    keeps_bound: ClassVar[bool] = True

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros(2, weights.dtype)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Array
    ) -> tuple[Contributions, Array]:
        """Returns the contributions, and the sums, of nothing after a COMMIT."""
        weight = contributions.weight.astype(state.dtype)
        sums = state + jnp.stack([weight.sum(), (weight**2).sum()])
        size = sums[0] ** 2 / jnp.where(sums[1] > 0, sums[1], 1)
        info = contributions.info | {"effective_contributions": size}
        after = jnp.where(row.event.kind == Kind.COMMIT, 0, sums)
        return contributions._replace(info=info), after


class Cosine(ReceivePart):
    """Measures the angle between successive contributions.

    The diagnostic `contribution_cosine` is the cosine of a row's contribution, or the
    weighted sum of its several, and of the row before it that had one: above 0 they
    pull in one direction, below it against each other. NaN of the first, and where
    either is 0. The server keeps one more vector of the model's size.
    """

    kind: Literal["cosine"] = "cosine"
    takes_sums: ClassVar[bool] = True
    keeps_bound: ClassVar[bool] = True

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros_like(weights)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Array
    ) -> tuple[Contributions, Array]:
        # Of moves the scale is positive, and no cosine depends on it.
        total, mass = summed(contributions._replace(scale=None))
        norms = kernel.norm(total) * kernel.norm(state)
        dot = jnp.vdot(total, state).astype(norms.dtype)
        cosine = jnp.where(norms > 0, dot / jnp.where(norms > 0, norms, 1), jnp.nan)
        info = contributions.info | {"contribution_cosine": cosine}
        return contributions._replace(info=info), jnp.where(mass > 0, total, state)


class Weigh(WeightPart):
    """The weight of each contribution: by its staleness, and by its client."""

    kind: Literal["weigh"] = "weigh"
    weight: AnyWeight = ConstantWeight()
    """Weight of a contribution, by its staleness."""
    weighting: Weighting = "equal"
    """Mean over contributions with equal weights, or in proportion to the clients'
    samples (`samples`), or to those that all steps of a job have processed
    (`processed`): by tokens, where all sequences have as many (Decoupled DiLoCo)."""
    _rule: type[StalenessWeight]
    _counts: bool
    _numbers: dict[str, Array]
    _shares: Array | None
    _processed: bool

    def structure(self) -> dict[str, object]:
        return {**self.model_dump(mode="json"), "weight": self.weight.structure()}

    def biases(self, protocol: "Protocol", num_clients: int) -> Iterator[str]:
        """Yields those of the staleness weight."""
        yield from self.weight.biases(protocol, num_clients)

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        weight, shares = self.weight, None
        if self.weighting == "samples":
            sizes = jnp.asarray(setup.shares.num_samples, float)
            shares = sizes / sizes.mean()
        numbers = weight.numbers(setup, constants)
        return in_program(
            self,
            (),
            _rule=type(weight),
            _counts=weight.counts,
            _numbers={k: jnp.asarray(v, float) for k, v in numbers.items()},
            _shares=shares,
            _processed=self.weighting == "processed",
        )

    def start(self, problem: HorizontalProblem, weights: Array) -> Array | None:
        return jnp.zeros(problem.num_clients, jnp.int32) if self._counts else None

    def __call__(
        self, row: ServerRow, read: Array, state: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Returns factors and shares, 0 for padding, and the counts after the row."""
        event, present, rule = row.event, row.event.present(), self._rule
        counts = state
        if counts is not None:
            counts = counts.at[event.worker].add(1, mode="drop")
        distance = kernel.norms_of(row.weights[None] - read) if rule.measures else None
        seen = Weighed(
            staleness=event.staleness.astype(float),
            step_size=row.rate,
            worker=event.worker,
            counts=counts,
            distance=distance,
        )
        factor = present * rule.factor(seen, **self._numbers)
        share = present
        if self._shares is not None:
            own = self._shares.at[event.worker].get(mode="fill", fill_value=0)
            share = present * own
        if self._processed:
            taken = (event.samples != NO_SAMPLE).sum(axis=1)
            share = present * (taken / event.samples.shape[1])
        return factor, share, counts if counts is None else rule.kept(counts)


class Gathered(NamedTuple):
    """Sums over the contributions since the last commit.

    Attributes:
        total: Of weighted contributions.
        number: Number of them.
        mass: Sum of their weights.
        weight: Of their weights.
    """

    total: Float[Array, "..."]
    number: Int[Array, ""]
    mass: Float[Array, ""]
    weight: Float[Array, ""]


class WeightedMean(AggregatePart):
    """Common base of weighted means: of a row, or of the contributions of a commit."""

    takes_sums: ClassVar[bool] = True
    _gathers: bool
    _divisor: Array | None = None

    def start(self, problem: HorizontalProblem, weights: Array) -> Gathered | None:
        if not self._gathers:
            return None
        zero = jnp.zeros((), weights.dtype)
        return Gathered(jnp.zeros_like(weights), jnp.int32(0), zero, zero)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Gathered | None
    ) -> tuple[Step, Gathered | None, Info]:
        """Returns the mean, which a COMMIT empties where contributions gather."""
        total, mass = summed(contributions)
        measured = statistics(row, contributions)
        if state is None:
            direction = total / divisor(mass)
            info = {"gradient_norm": kernel.norm(direction)}
            direction = placed(direction, measured, mass)
            weight = contributions.weight.sum() / divisor(mass)
            return row.step(direction, mass > 0, weight), None, info
        total_before, number, mass_before, weight = state
        info = {"gradient_norm": kernel.norm(total)}
        total = total_before + placed(total, measured, jnp.int32(1))
        number = number + row.event.present().sum(dtype=jnp.int32)
        mass = mass_before + mass
        weight = weight + contributions.weight.sum(dtype=weight.dtype)
        if self._divisor is None:
            direction = total / divisor(mass)
        else:
            kept = total[-row.num_statistics :] if row.num_statistics else None
            direction = placed(total / self._divisor, kept, number)
        applies = row.event.kind == Kind.COMMIT
        sums = Gathered(total, number, mass, weight)
        after = jax.tree.map(lambda x: jnp.where(applies, 0, x).astype(x.dtype), sums)
        step = row.step(direction, applies, weight / divisor(mass))
        return step, after, info | {"buffered": number}


class Mean(WeightedMean):
    """The weighted mean of a commit's contributions.

    It is over a row's, or over the gathered ones where the protocol gathers them.
    """

    kind: Literal["mean"] = "mean"
    divisor: Divisor | None = None
    """Number by which the sum of a commit's contributions is divided, where the
    protocol gathers them; by default how many there are. `expected`: how many trials of
    a round are in time on average, by the clients' laws (MindFlayer)."""

    def structure(self) -> dict[str, object]:
        return {"kind": self.kind, "divisor": self.divisor is not None}

    def check(self, method: Chained, protocol: "Protocol") -> None:
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

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        scenario, divisor = setup.scenario, self.divisor
        if divisor == "expected":
            world = scenario.clients, setup.shape.num_clients, setup.run.seed
            protocol: Any = scenario.protocol
            divisor = protocol.expected_batch(*world)
        divisor = None if divisor is None else jnp.asarray(divisor, float)
        return in_program(
            self, (), _gathers=scenario.protocol.gathers, _divisor=divisor
        )


class LimitByStaleness(AdjustPart):
    """Limits the step size to 1 / tau if tau, the largest staleness, is beyond tau_c.

    tau is over all contributions since the last commit.

    Source: Wang et al., FADAS (2024).
    """

    kind: Literal["limit_by_staleness"] = "limit_by_staleness"
    staleness_threshold: Annotated[int, Field(ge=0)]
    """tau_c."""

    @property
    def numbers(self) -> dict[str, float]:
        """Options in which runs of one program may differ."""
        return {"staleness_threshold": self.staleness_threshold}

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.int32(0)

    def __call__(self, row: ServerRow, step: Step, state: Array) -> tuple[Step, Array]:
        """Returns the step, and the largest staleness since the last commit."""
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

    def __call__(self, row: ServerRow, step: Step, state: None) -> tuple[Step, None]:
        weight = step.weight.astype(step.direction.dtype)
        direction = step.direction / jnp.where(weight > 0, weight, 1)
        step_size = step.step_size * weight
        return step._replace(direction=direction, step_size=step_size), state


class Optimise(AdjustPart):
    """Takes the direction that an optimiser makes of the aggregate."""

    kind: Literal["optimise"] = "optimise"
    optimizer: ServerOptimizer
    """The server's optimiser; one of optax has a learning rate, with which the server's
    step size is 1."""
    _rule: UpdateRule

    def structure(self) -> dict[str, object]:
        return {"kind": self.kind, "optimizer": self.optimizer.program()}

    def fits(self, method: Chained) -> None:
        if isinstance(self.optimizer, Optax):
            refuse_two_rates(method, self, "optimizer", method.server_rule)

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        method = setup.scenario.algorithm
        assert isinstance(method, Chained)
        key = method.key_of(self, "optimizer")
        return in_program(self, (), _rule=optimizing.rule_of(self.optimizer, key))

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        return optimizing.start(self._rule, problem, weights)

    def scaled(self, step_size: Array, version: Array) -> Array:
        """Returns the step size with the optimiser's learning rate."""
        return self._rule.scaled(step_size, version)

    def ahead(self, weights: Array, state: object, step_size: Array) -> Array:
        """Returns the model, or where the optimiser leads it."""
        return self._rule.ahead(weights, state, step_size)

    def __call__(
        self, row: ServerRow, step: Step, state: object
    ) -> tuple[Step, object]:
        direction, state = optimizing.directed(
            *(self._rule, row.problem, step.direction, state),
            *(row.weights, row.event.version, step.applies),
        )
        return step._replace(direction=direction), state


class ServerStep(ServerPart):
    """The server steps against the aggregate of contributions."""

    kind: Literal["step"] = "step"
    aggregates: ClassVar[bool] = True
    step_size: StepSize | None = None
    """Step size of the server, which multiplies the direction; by default the clients'
    step size."""

    @property
    def rule(self) -> StepSize | None:
        return self.step_size

    def structure(self) -> dict[str, object]:
        return {"kind": self.kind}

    def __call__(
        self, row: ServerRow, step: Step, state: None
    ) -> tuple[Array, None, Info]:
        weights = row.weights - step.step_size * step.direction
        return weights, state, {"step_size": step.rate}


class Mix(ServerPart):
    """Mixes a client's model into the server's: x <- (1 - a) x + a x_client.

    a is `mixing` times the contribution's weight.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019),
    Algorithm 1.
    """

    kind: Literal["mix"] = "mix"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic", "prescribed")
    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6
    """alpha."""

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: None
    ) -> tuple[Array, None, Info]:
        message = contributions.message
        assert message is not None
        target = contributions.read[0] - row.local_step_size * message[0]
        share = (self.mixing * contributions.factor[0]).astype(target.dtype)
        if contributions.statistics is not None:
            kept = contributions.statistics[0]
            target = target.at[-row.num_statistics :].set(kept)
        mixed = (1 - share) * row.weights + share * target
        info = {
            "gradient_norm": kernel.norm(message),
            "mixing": share,
            "step_size": row.rate,
        }
        present = row.event.present()[0]
        return jnp.where(present, mixed, row.weights), state, info
