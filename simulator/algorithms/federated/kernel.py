"""Methods of the field: SGD with its variants, FedAvg, FedAsync and FedBuff."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ...learning.horizontal import HorizontalProblem
from ...timeline import Kind
from .. import client_work
from ..base import (
    Event,
    Info,
    Probeable,
    broadcast_flags,
    norm,
    norms_of,
)
from ..client_work import LocalRule, Privatiser, Work
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from ..step_rules import Schedule, Steps
from .part import Compensation
from .weights import Weight


class FederatedState(NamedTuple):
    """The server's state, and the versions that clients under way have read.

    Attributes:
        weights: Weights of the server's model, of any shape.
        registers: versions of it.
        buffer: sum of weighted contributions; None where nothing is buffered.
        buffered: how many.
        mass: Sum of what they count by, where that is not their number.
        squares: moving average of squared gradients, for adaptive compensation.
        optimizer: state of the server's optimizer; None without one.
        key: Key of the noise and of what training draws; None without any.
        local: State of every client's own optimizer, each array `[K, ...]`; None where
            none is kept.
        counts: Contributions of every client; None where they do not matter.
        oldest: Largest staleness in the buffer; None where it does not matter.
        weighed: Sum of the buffer's weights; None where they scale contributions alone.
    """

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    buffer: Float[Array, "..."] | None
    buffered: Int[Array, ""] | None
    mass: Float[Array, ""] | None
    squares: Float[Array, "..."] | None
    optimizer: Any
    key: Key[Array, ""] | None
    local: Any = None
    counts: Int[Array, " K"] | None = None
    oldest: Int[Array, ""] | None = None
    weighed: Float[Array, ""] | None = None


class FederatedKernel(Probeable):
    """Applies contributions, each taken at what its client read, weighted by staleness.

    Attributes:
        step_size: the server's, or eta_g of a buffer.
        local_step_size: Step size of a client's own steps.
        mixing: alpha of FedAsync; None where gradients are applied, not models mixed.
        proximal: rho of FedAsync's clients, mu of FedProx.
        shares: What a client's contribution counts by, of mean 1; None where all count
            alike.
        weight: Weight of a contribution, by its staleness.
        divisor: Number by which what has gathered is divided; None for its count.
        threshold: tau_c of FADAS; None where the server's steps are whole.
        strength: lambda_0 of the compensation, and the decay of its average.
        privatiser: Clipping and noise of a contribution before it is sent.
        optimizer: the server's; None for plain SGD.
        local_optimizer: the clients', of their local steps; None for plain SGD.
        local_steps: Q, the most of a client where they are uneven.
        uneven: Whether clients' jobs have steps, or samples, of their own.
        moves: Whether the server steps by what clients moved, not by their gradients.
        buffers: whether contributions gather before they are applied.
        compensation: Compensation of the delay.
        keeps_local: whether each client keeps the state of its optimizer.
        num_registers: Registers of the timeline.
    """

    step_size: Schedule | Steps
    local_step_size: Schedule | Steps
    mixing: Float[Array, ""] | None
    proximal: Float[Array, ""] | None
    shares: Float[Array, " K"] | None
    weight: Weight
    divisor: Float[Array, ""] | None
    threshold: Float[Array, ""] | None
    strength: Float[Array, " 2"] | None
    privatiser: Privatiser | None
    optimizer: UpdateRule | None
    local_optimizer: UpdateRule | None
    local_steps: int = eqx.field(static=True)
    uneven: bool = eqx.field(static=True)
    moves: bool = eqx.field(static=True)
    buffers: bool = eqx.field(static=True)
    compensation: Compensation | None = eqx.field(static=True)
    keeps_local: bool = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> FederatedState:
        """Starts at the model's start; version 0 stands in register 0."""
        weights = problem.start(key)
        adapts = self.compensation is not None and self.compensation.adaptive
        local = None
        if self.keeps_local:
            start = optimizing.start(self.local_optimizer, problem, weights)
            local = optimizing.table(start, problem.num_clients)
        return FederatedState(
            weights=weights,
            registers=problem.registers(self.num_registers, weights),
            buffer=jnp.zeros_like(weights) if self.buffers else None,
            buffered=jnp.int32(0) if self.buffers else None,
            mass=jnp.zeros((), weights.dtype) if self._has_mass else None,
            squares=jnp.zeros_like(weights) if adapts else None,
            optimizer=optimizing.start(self.optimizer, problem, weights),
            key=key if self.privatiser or problem.takes_key else None,
            local=local,
            counts=jnp.zeros(problem.num_clients, jnp.int32)
            if self.weight.counts
            else None,
            oldest=None if self.threshold is None else jnp.int32(0),
            weighed=jnp.zeros((), weights.dtype)
            if self.buffers and self._weighs_steps
            else None,
        )

    def step(
        self, problem: HorizontalProblem, state: FederatedState, event: Event
    ) -> tuple[FederatedState, Info]:
        """Applies a COMMIT, or buffers a CONTRIBUTE."""
        state = self._kept(state, event)
        wide = client_work.read(state.registers, event)
        work = self._work(problem, state, wide, event)
        if self.keeps_local:
            local = optimizing.written(state.local, event.worker, work.optimizer)
            state = state._replace(local=local)
        read = problem.narrowed(wide)
        present = event.present()
        server_step = step_size = self.step_size.at(event.version)
        if self.optimizer is not None:
            step_size = self.optimizer.scaled(server_step, event.version)
        counts = state.counts
        if counts is not None:
            counts = counts.at[event.worker].add(1, mode="drop")
            state = state._replace(counts=self.weight.left(counts))
        moved = norms_of(state.weights[None] - read) if self.weight.measures else None
        of_staleness = event.staleness, step_size, event.worker, counts, moved
        weight = present * self.weight.of(*of_staleness)
        if self.threshold is not None:
            share_of_step, state = self._share_of_step(state, event, step_size)
            server_step = share_of_step * server_step
            step_size = share_of_step * step_size
        count = present.sum(dtype=jnp.int32)
        info = {
            "loss": _mean(present, work.loss),
            "step_size": step_size,
            "weight": _mean(present, weight),
        } | {name: _mean(present, value) for name, value in work.info.items()}
        if self.mixing is not None:
            target = read[0] - self.local_step_size.at(event.version) * work.message[0]
            share = (self.mixing * weight[0]).astype(target.dtype)
            if work.statistics is not None:
                learned = target.size - problem.model.num_statistics
                target = target.at[learned:].set(work.statistics[0])
            mixed = (1 - share) * state.weights + share * target
            info |= {"gradient_norm": norm(work.message), "mixing": share}
            kept = jnp.where(present[0], mixed, state.weights)
            return state._replace(weights=kept), info
        message = work.message
        if self.local_optimizer is not None:
            # An optimiser may make anything of the zeros that padding has read.
            message = jnp.where(broadcast_flags(present, message), message, 0)
        state, message = self._compensated(state, read, message, present)
        mass, share, blend = count, present, weight
        if self.shares is not None:
            own = self.shares.at[event.worker].get(mode="fill", fill_value=0)
            share = present * own
            weight, mass = weight * share, share.sum(dtype=message.dtype)
        statistics = self._statistics(problem, state, work, blend, share)
        total = jnp.tensordot(weight.astype(message.dtype), message, 1)
        if self.moves:
            total = self.local_step_size.at(event.version) * total
        if state.buffer is None or state.buffered is None:
            direction = total / _divisor(mass)
            info |= {"gradient_norm": norm(direction)}
            direction = _placed(direction, statistics, mass)
            applies = count > 0
            step = server_step, direction, applies, weight.sum() / _divisor(mass)
            return self._moved(problem, state, event, *step), info
        gradient_norm = norm(total)
        total = _placed(total, statistics, jnp.int32(1))
        buffer, buffered = state.buffer + total, state.buffered + count
        applies, weight_of_step = event.kind == Kind.COMMIT, None
        mass = buffered if state.mass is None else state.mass + mass
        if state.mass is not None:
            direction = buffer / _divisor(mass)
            state = state._replace(mass=jnp.where(applies, 0, mass).astype(mass.dtype))
        elif self.divisor is not None:
            kept = None if statistics is None else buffer[-statistics.size :]
            direction = _placed(buffer / self.divisor, kept, buffered)
        else:
            direction = buffer / _divisor(buffered)
        if state.weighed is not None:
            weighed = state.weighed + weight.sum(dtype=state.weighed.dtype)
            weight_of_step = weighed / _divisor(mass)
            weighed = jnp.where(applies, 0, weighed).astype(weighed.dtype)
            state = state._replace(weighed=weighed)
        info |= {"gradient_norm": gradient_norm, "buffered": buffered}
        state = state._replace(
            buffer=jnp.where(applies, 0, buffer).astype(buffer.dtype),
            buffered=jnp.where(applies, 0, buffered),
        )
        step = server_step, direction, applies, weight_of_step
        return self._moved(problem, state, event, *step), info

    @property
    def _weighs_steps(self) -> bool:
        """Whether staleness weights scale steps, as an optimiser would undo others."""
        nonlinear = self.optimizer is not None and not self.optimizer.is_linear
        return nonlinear and self.weight.kind != "constant"

    @property
    def _has_mass(self) -> bool:
        return self.buffers and self.shares is not None

    def _share_of_step(
        self, state: FederatedState, event: Event, step_size: Float[Array, ""]
    ) -> tuple[Float[Array, ""], FederatedState]:
        """Returns what a step is multiplied by because of the buffer's staleness.

        The state then knows the buffer's largest staleness so far.

        Source: Wang et al., FADAS (2024), as methods.md, section 12, has it.
        """
        assert self.threshold is not None
        assert state.oldest is not None
        here = jnp.where(event.present(), event.staleness, 0).max()
        oldest = jnp.maximum(state.oldest, here).astype(jnp.int32)
        tau = oldest.astype(step_size.dtype)
        most = 1 / jnp.maximum(tau * step_size, 1e-30)
        share = jnp.where(tau <= self.threshold, 1, jnp.minimum(1, most))
        left = jnp.where(event.kind == Kind.COMMIT, 0, oldest).astype(jnp.int32)
        return share.astype(step_size.dtype), state._replace(oldest=left)

    def _statistics(
        self,
        problem: HorizontalProblem,
        state: FederatedState,
        work: Work,
        weight: Float[Array, " W"],
        share: Float[Array, " W"] | Bool[Array, " W"],
    ) -> Float[Array, " Q"] | None:
        """Returns the sum, by shares, of what clients make of running statistics.

        Each sends its own, of which the server takes the part that the contribution
        counts by, all of it at most, and keeps the rest of its own: a mean of those is
        one of statistics, however stale they are. None of a model without any.
        """
        if work.statistics is None:
            return None
        mine = state.weights[-problem.model.num_statistics :][None]
        counts = jnp.minimum(weight, 1).astype(mine.dtype)[:, None]
        blended = mine + counts * (work.statistics - mine)
        shares = share.astype(mine.dtype)[:, None]
        return jnp.where(shares > 0, shares * blended, 0).sum(axis=0)

    def read_out(self, state: FederatedState) -> Float[Array, "..."]:
        """Returns the server's model."""
        return state.weights

    def reveal(
        self, problem: HorizontalProblem, state: FederatedState, event: Event
    ) -> dict[str, Array]:
        """Returns the row's messages, the gradients in them, and where from."""
        state = self._kept(state, event)
        read = client_work.read(state.registers, event)
        work = self._work(problem, state, read, event)
        return {
            "message": work.message,
            "gradient": work.gradient,
            "state": problem.narrowed(read),
        }

    def _kept(self, state: FederatedState, event: Event) -> FederatedState:
        offered = state.weights
        if self.optimizer is not None:
            step_size = self.step_size.at(event.version)
            offered = self.optimizer.ahead(offered, state.optimizer, step_size)
        registers = client_work.keep(state.registers, offered, event)
        return state._replace(registers=registers)

    def _work(
        self,
        problem: HorizontalProblem,
        state: FederatedState,
        read: Float[Array, "W ..."],
        event: Event,
    ) -> Work:
        samples = client_work.samples_of(event, self.local_steps)
        local = self.local_step_size.at(event.version)
        kept = optimizing.of_workers(state.local, event.worker)

        def of_worker(
            read: Array, samples: Array, worker: Array, job: Array, kept: Any
        ) -> Work:
            rule = self.local_optimizer
            taken = client_work.steps_of(samples) if self.uneven else None
            of_job = self.local_steps if taken is None else taken
            steps = rule and LocalRule(rule, kept, job * of_job)
            drawn = client_work.training_key(problem, state.key, worker, job)
            per_sample = self.privatiser is not None and self.privatiser.per_sample
            if per_sample:
                assert self.privatiser is not None
                work = client_work.clipped_per_sample(
                    problem, read, samples[0], self.privatiser.bound, key=drawn
                )
            else:
                work = client_work.local_steps(
                    *(problem, read, samples, local, self.proximal, drawn, steps),
                    taken=taken,
                )
            if self.privatiser is None:
                return work
            assert state.key is not None
            key = jax.random.fold_in(jax.random.fold_in(state.key, worker), job)
            return self.privatiser.apply(key, work)

        if read.shape[0] > 1:
            return jax.vmap(of_worker)(read, samples, event.worker, event.job, kept)
        # With an axis of one, XLA would write the batch a second time, transposed.
        first = (read, samples, event.worker, event.job, kept)
        alone = of_worker(*jax.tree.map(lambda value: value[0], first))
        return jax.tree.map(lambda value: value[None], alone)

    def _compensated(
        self,
        state: FederatedState,
        read: Float[Array, "W ..."],
        message: Float[Array, "W ..."],
        present: Bool[Array, " W"],
    ) -> tuple[FederatedState, Float[Array, "W ..."]]:
        if self.strength is None or self.compensation is None:
            return state, message
        squared = message**2
        strength: Array = self.strength[0]
        if state.squares is not None:
            decay = self.strength[1]
            mean = jnp.tensordot(present.astype(squared.dtype), squared, 1)
            mean = mean / jnp.maximum(present.sum(), 1)
            squares = decay * state.squares + (1 - decay) * mean
            squares = jnp.where(present.any(), squares, state.squares)
            state = state._replace(squares=squares)
            strength = strength / jnp.sqrt(squares + 1e-7)
        drift = state.weights[None] - read
        return state, message + jnp.broadcast_to(
            strength, drift.shape
        ) * squared * drift

    def _moved(
        self,
        problem: HorizontalProblem,
        state: FederatedState,
        event: Event,
        step_size: Float[Array, ""],
        direction: Float[Array, "..."],
        applies: Bool[Array, ""],
        weight: Float[Array, ""] | None,
    ) -> FederatedState:
        """Steps against a direction, or what an optimiser makes of it.

        Args:
            problem: Problem.
            state: State before.
            event: Row.
            step_size: Server's step size.
            direction: Mean of the contributions, each times its weight.
            applies: Whether the step is made.
            weight: Mean weight of the contributions, if it is known.
        """
        count = problem.model.num_statistics
        statistics = direction[-count:] if count else None
        direction = direction.at[-count:].set(0) if count else direction
        if self._weighs_steps:
            assert weight is not None
            weight = weight.astype(direction.dtype)
            direction = direction / jnp.where(weight > 0, weight, 1)
            step_size = step_size * weight
        direction, moments = optimizing.directed(
            *(self.optimizer, problem, direction, state.optimizer),
            *(state.weights, event.version, applies),
        )
        state = state._replace(optimizer=moments)
        moved = state.weights - step_size * direction
        moved = _placed(moved, statistics, jnp.int32(1))
        return state._replace(weights=jnp.where(applies, moved, state.weights))


def _divisor(count: Int[Array, ""] | Float[Array, ""]) -> Array:
    """Returns what a sum is divided by for its mean; that of nothing is 0."""
    if jnp.issubdtype(count.dtype, jnp.integer):
        return jnp.maximum(count, 1)
    return jnp.where(count > 0, count, 1)


def _placed(
    vector: Float[Array, "..."],
    statistics: Float[Array, " Q"] | None,
    count: Int[Array, ""] | Float[Array, ""],
) -> Float[Array, "..."]:
    """Returns a vector that ends with the mean of the statistics, if any."""
    if statistics is None:
        return vector
    mean = statistics / _divisor(count).astype(statistics.dtype)
    return vector.at[-statistics.size :].set(mean)


def _mean(present: Bool[Array, " W"], values: Array) -> Float[Array, ""]:
    share = present / jnp.maximum(present.sum(), 1)
    return jnp.sum(share * values)
