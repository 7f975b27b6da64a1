"""The modules of stages that take facts of the run, but those of aggregation.

In the order of a chain: local steps, noise on what is sent, the weights of
contributions, and the server's step with its optimiser.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...learning.horizontal import HorizontalProblem
from ...timeline import NO_WORKER
from .. import client_work
from ..base import Info, norms_of
from ..client_work import LocalRule, Work
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from .aggregation import placed
from .stages import (
    ChainStage,
    ClientJob,
    Contributions,
    ServerRow,
    Step,
    StepStage,
)
from .weights import StalenessWeight, Weighed


class LocalSteps(ChainStage):
    """Local steps; contributes the sum of their gradients, or directions.

    Attributes:
        proximal: rho of FedAsync's clients, mu of FedProx; None without.
        optimizer: The clients' optimiser; None for plain SGD.
        steps: Q, the most of a client where they are uneven.
        uneven: Whether clients' jobs have steps, or samples, of their own.
        keeps: Whether each client keeps the state of its optimiser.
    """

    proximal: Float[Array, ""] | None
    optimizer: UpdateRule | None
    steps: int = eqx.field(static=True)
    uneven: bool = eqx.field(static=True)
    keeps: bool = eqx.field(static=True)

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        if not self.keeps:
            return None
        return optimizing.start(self.optimizer, problem, weights)

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Any]:
        """Returns the contribution, and the state of the client's optimiser."""
        taken = client_work.steps_of(job.samples) if self.uneven else None
        of_job = self.steps if taken is None else taken
        rule = self.optimizer
        work = client_work.local_steps(
            job.problem,
            job.read,
            job.samples,
            job.step_size,
            self.proximal,
            job.training_key,
            rule and LocalRule(rule, state, job.number * of_job),
            taken=taken,
        )
        after = work.optimizer if self.keeps else None
        if rule is not None:
            # An optimiser may make anything of the zeros that padding has read.
            message = jnp.where(job.worker != NO_WORKER, work.message, 0)
            work = work._replace(message=message, optimizer=None)
        return work, after


class AddNoise(ChainStage):
    """Adds noise in proportion to the sensitivity when one sample is replaced.

    Attributes:
        bound: C that samples, or contributions, are clipped to.
        multiplier: AddNoise scale over sensitivity.
        law: Law of the noise.
        samples: Samples whose mean was clipped one by one; 1 of a contribution.
    """

    bound: Float[Array, ""]
    multiplier: Float[Array, ""]
    law: str = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, job: ClientJob, work: Work, state: Any) -> tuple[Work, Any]:
        """Returns the contribution with noise, drawn by client and job."""
        assert job.key is not None
        key = jax.random.fold_in(jax.random.fold_in(job.key, job.worker), job.number)
        scale = self.multiplier * 2 * self.bound / self.samples
        return client_work.noised(work, self.law, key, scale), state


class Weighing(ChainStage):
    """Factors by a staleness weight, and shares in the average.

    Attributes:
        numbers: Numbers of the staleness weight, by name.
        shares: What a client's contribution counts by, of mean 1; None where all count
            alike.
        rule: Class of the staleness weight.
        counts: Whether the clients' contributions are counted.
    """

    numbers: dict[str, Array]
    shares: Float[Array, " K"] | None
    rule: type[StalenessWeight] = eqx.field(static=True)
    counts: bool = eqx.field(static=True)

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return jnp.zeros(problem.num_clients, jnp.int32) if self.counts else None

    def __call__(
        self,
        row: ServerRow,
        read: Float[Array, "W ..."],
        state: Int[Array, " K"] | None,
    ) -> tuple[
        Float[Array, " W"],
        Float[Array, " W"] | Bool[Array, " W"],
        Int[Array, " K"] | None,
    ]:
        """Returns factors and shares, 0 for padding, and the counts after the row."""
        event, present = row.event, row.event.present()
        counts = state
        if counts is not None:
            counts = counts.at[event.worker].add(1, mode="drop")
        seen = Weighed(
            staleness=event.staleness.astype(float),
            step_size=row.rate,
            worker=event.worker,
            counts=counts,
            distance=norms_of(row.weights[None] - read) if self.rule.measures else None,
        )
        of_rule: Any = self.rule.factor
        factor = present * of_rule(seen, **self.numbers)
        share = present
        if self.shares is not None:
            own = self.shares.at[event.worker].get(mode="fill", fill_value=0)
            share = present * own
        return factor, share, counts if counts is None else self.rule.kept(counts)


class Optimising(StepStage):
    """Takes the direction that an optimiser makes of the aggregate.

    Attributes:
        rule: The optimiser.
    """

    rule: UpdateRule

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return optimizing.start(self.rule, problem, weights)

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        return self.rule.scaled(step_size, version)

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        return self.rule.ahead(weights, state, step_size)

    def __call__(self, row: ServerRow, step: Step, state: Any) -> tuple[Step, Any]:
        """Returns the step in the optimiser's direction."""
        direction, state = optimizing.directed(
            *(self.rule, row.problem, step.direction, state),
            *(row.weights, row.event.version, step.applies),
        )
        return step._replace(direction=direction), state


class Stepping(StepStage):
    """Steps against what contributions are aggregated to.

    Attributes:
        aggregation: Stage of contributions.
        adjusted: What becomes of a step before it is made, in this order; nothing for
            plain SGD.
    """

    aggregation: ChainStage
    adjusted: tuple[StepStage, ...] = ()

    @property
    def draws(self) -> bool:
        return any(stage.draws for stage in (self.aggregation, *self.adjusted))

    @property
    def takes_sums(self) -> bool:
        return self.aggregation.takes_sums

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        stages = (self.aggregation, *self.adjusted)
        return tuple(stage.start(problem, weights) for stage in stages)

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        for stage in self.adjusted:
            step_size = stage.scaled(step_size, version)
        return step_size

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        """Returns what clients read: the model, or where an optimiser leads it."""
        for stage, own in zip(self.adjusted, state[1:], strict=True):
            weights = stage.ahead(weights, own, step_size)
        return weights

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Float[Array, "..."], Any, Info]:
        """Returns the model after the step, if it is made."""
        found, first, info = self.aggregation(row, contributions, state[0])
        direction, statistics, count = found.direction, None, row.num_statistics
        if count:  # statistics are means, not steps
            statistics = direction[-count:]
            direction = direction.at[-count:].set(0)
        step = Step(direction, row.step_size, row.rate, found.applies, found.weight)
        after = [first]
        for stage, own in zip(self.adjusted, state[1:], strict=True):
            step, own = stage(row, step, own)
            after.append(own)
        moved = row.weights - step.step_size * step.direction
        moved = placed(moved, statistics, jnp.int32(1))
        weights = jnp.where(step.applies, moved, row.weights)
        return weights, tuple(after), info | {"step_size": step.rate}
