"""CSGD, ASGD, AUDP and MAPA: gradients, clipping, noise and stages.

Source: Li, Yang, Ren and Zhao, Algorithm 1 and Table II; decision numbers (M-) are
those of its specification.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from simulator.algorithms.base import (
    Algorithm,
    Context,
    Event,
    Info,
    norm,
    on_device,
)
from simulator.algorithms.stages import stages
from simulator.algorithms.step_rules import Schedule, resolve
from simulator.privacy import mechanisms
from simulator.problems.horizontal import Horizontal
from simulator.scenario.edge_cloud import Audp, EdgeCloud, Mapa
from simulator.scenario.errors import ScenarioError
from simulator.timeline import NO_SAMPLE

NOISE = {
    "radial_exponential": mechanisms.radial_exponential,
    "spherical_laplace": mechanisms.spherical_laplace,
    "laplace": mechanisms.laplace,
}


class State(NamedTuple):
    """The server's model, the versions that clients under way have read, and a key."""

    weights: Float[Array, "C P"]
    registers: Float[Array, "R C P"]
    key: Key[Array, ""]


class DelayedSgd(Algorithm):
    """Applies clipped and noisy gradients, each taken at what its client read.

    Attributes:
        last: last iteration of each stage.
        sensitivity: Delta S of each stage.
        curvature: with `spread` and `shift`, each stage's inverse step size.
        spread: see `stages.Stage`.
        shift: see `stages.Stage`.
        epsilon: of each client.
        override: step sizes in place of the stages'.
        batch: b.
        noise: law of the noise, "" for none; then nothing is clipped either.
        per_sample: whether each sample's gradient is clipped.
        num_registers: of the timeline.
    """

    last: Int[Array, " G"]
    sensitivity: Float[Array, " G"]
    curvature: Float[Array, " G"]
    spread: Float[Array, " G"]
    shift: Float[Array, " G"]
    epsilon: Float[Array, " K"]
    override: Schedule | None
    batch: int = eqx.field(static=True)
    noise: str = eqx.field(static=True)
    per_sample: bool = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    def init(self, problem: Horizontal, key: Key[Array, ""]) -> State:
        """Starts at the model's start; version 0 stands in register 0."""
        weights = problem.model.init()
        registers = jnp.zeros((self.num_registers, *weights.shape), weights.dtype)
        return State(weights, registers.at[0].set(weights), key)

    def step(
        self, problem: Horizontal, state: State, event: Event
    ) -> tuple[State, Info]:
        """Applies one COMMIT of one contribution."""
        worker, job = event.worker[0], event.job[0]
        present = event.present()[0]
        samples = event.samples[0]
        valid = samples != NO_SAMPLE
        x = problem.x.at[samples].get(mode="fill", fill_value=0)
        y = problem.y.at[samples].get(mode="fill", fill_value=0)
        registers = state.registers.at[event.keep_slot].set(state.weights, mode="drop")
        read = registers.at[event.read_slot[0]].get(mode="fill", fill_value=0)
        loss, gradient, info = self._gradient(problem, read, x, y, valid, event)
        if self.noise:
            key = jax.random.fold_in(jax.random.fold_in(state.key, worker), job)
            epsilon = self.epsilon.at[worker].get(mode="fill", fill_value=1)
            scale = self._of_job(event) / epsilon
            noised = NOISE[self.noise](key, gradient.reshape(-1), scale)
            gradient = noised.value.reshape(gradient.shape)
            info |= {"noise_norm": noised.noise_norm}
        now = self._stage(event.version + 1)
        step_size = self._step_size(now, event.version)
        weights = jnp.where(
            present, state.weights - step_size * gradient, state.weights
        )
        info |= {"loss": loss, "step_size": step_size, "gradient_norm": norm(gradient)}
        if self.noise:
            info |= {"stage": now + 1, "sensitivity": self.sensitivity[now]}
        return State(weights, registers, state.key), info

    def read_out(self, state: State) -> Float[Array, "C P"]:
        """Returns the server's model."""
        return state.weights

    def _gradient(
        self,
        problem: Horizontal,
        weights: Float[Array, "C P"],
        x: Float[Array, "S P"],
        y: Int[Array, " S"],
        valid: Bool[Array, " S"],
        event: Event,
    ) -> tuple[Float[Array, ""], Float[Array, "C P"], Info]:
        """Returns the loss, the regularised and perhaps clipped gradient, and how."""
        penalty = problem.l2 * jnp.where(problem.regularised(), weights, 0)
        graded = jax.value_and_grad(problem.batch_loss)
        if not self.noise:
            loss, gradient = graded(weights, x, y, valid)
            return loss, gradient + penalty, {}
        bound = self.batch * self._of_job(event) / 2
        if self.per_sample:
            one = jax.vmap(
                lambda x, y, v: graded(weights, x[None], y[None], v[None]),
                in_axes=0,
            )
            losses, gradients = one(x, y, valid)
            mean = mechanisms.clip_samples(gradients + penalty, bound, valid)
            loss = jnp.sum(losses * valid) / jnp.maximum(valid.sum(), 1)
            return loss, mean.value, {"clipped_fraction": mean.fraction}
        loss, gradient = graded(weights, x, y, valid)
        flat = (gradient + penalty).reshape(-1)
        clipped = mechanisms.clip(flat, bound)
        fraction = clipped.clipped.astype(flat.dtype)
        value = clipped.value.reshape(gradient.shape)
        return loss, value, {"clipped_fraction": fraction}

    def _stage(self, iteration: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.searchsorted(self.last, iteration)

    def _of_job(self, event: Event) -> Float[Array, ""]:
        """Returns the sensitivity that came with what the client read (M-18)."""
        made_by = jnp.maximum(event.version - event.staleness[0], 1)
        return self.sensitivity[self._stage(made_by)]

    def _step_size(
        self, stage: Int[Array, ""], commits: Int[Array, ""]
    ) -> Float[Array, ""]:
        if self.override is not None:
            return self.override.at(commits)
        grown = jnp.sqrt((commits + 1).astype(self.spread.dtype) + self.shift[stage])
        return 1 / (self.curvature[stage] + self.spread[stage] * grown)


def build(config: EdgeCloud, context: Context) -> DelayedSgd:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: not one privacy level for each client.
    """
    private = isinstance(config, Audp | Mapa)
    clients = context.num_clients
    epsilon = config.epsilon if private else 1.0
    if isinstance(epsilon, tuple) and len(epsilon) != clients:
        raise ScenarioError(
            f"algorithm.epsilon must have one entry per client ({clients}), got "
            f"{len(epsilon)}; make it as long, or give one number"
        )
    made = stages(config, context.batch, clients, context.num_weights)
    override = None
    if config.step_size is not None:
        override, _ = resolve(config.step_size, context.constants)
        override = on_device(override)
    _, *numbers = (jnp.asarray(column, float) for column in zip(*made, strict=True))
    return DelayedSgd(
        jnp.asarray([stage.last for stage in made], jnp.int32),
        *numbers,
        epsilon=jnp.asarray(np.broadcast_to(epsilon, clients), float),
        override=override,
        batch=context.batch,
        noise=config.noise if private else "",
        per_sample=private and config.clip == "sample",
        num_registers=context.num_registers,
    )
