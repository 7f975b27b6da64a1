"""Plain (asynchronous) stochastic gradient descent on horizontally divided data."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from simulator.algorithms.base import (
    Algorithm,
    Context,
    Event,
    Info,
    norm,
    on_device,
)
from simulator.algorithms.step_rules import Schedule, resolve
from simulator.problems.horizontal import Horizontal
from simulator.scenario.algorithms import Sgd as SgdConfig
from simulator.timeline import NO_SAMPLE


class State(NamedTuple):
    """The server's model, and the versions that clients under way have read."""

    weights: Float[Array, "C P"]
    registers: Float[Array, "R C P"]


class Sgd(Algorithm):
    """Applies the mean of a row's gradients, each taken at what its client read.

    Source: Agarwal and Duchi, Distributed Delayed Stochastic Optimization (2011).
    """

    step_size: Schedule
    num_registers: int = eqx.field(static=True)

    def init(self, problem: Horizontal, key: Key[Array, ""]) -> State:
        """Starts at the model's start; version 0 stands in register 0."""
        del key
        weights = problem.model.init()
        registers = jnp.zeros((self.num_registers, *weights.shape), weights.dtype)
        return State(weights, registers.at[0].set(weights))

    def step(
        self, problem: Horizontal, state: State, event: Event
    ) -> tuple[State, Info]:
        """Applies one COMMIT."""
        present = event.present()
        W = event.worker.shape[0]
        samples = jnp.broadcast_to(event.samples, (W, event.samples.shape[1]))
        x = problem.x.at[samples].get(mode="fill", fill_value=0)
        y = problem.y.at[samples].get(mode="fill", fill_value=0)
        registers = state.registers.at[event.keep_slot].set(state.weights, mode="drop")
        read = registers.at[event.read_slot].get(mode="fill", fill_value=0)
        loss, gradient = jax.vmap(jax.value_and_grad(problem.batch_loss))(
            read, x, y, samples != NO_SAMPLE
        )
        gradient += problem.l2 * jnp.where(problem.regularised(), read, 0)
        share = present / jnp.maximum(present.sum(), 1)
        mean = jnp.einsum("w,wcp->cp", share.astype(gradient.dtype), gradient)
        step_size = self.step_size.at(event.version)
        weights = state.weights - step_size * mean
        info = {
            "loss": jnp.sum(share * loss),
            "gradient_norm": norm(mean),
            "step_size": step_size,
        }
        return State(weights, registers), info

    def read_out(self, state: State) -> Float[Array, "C P"]:
        """Returns the server's model."""
        return state.weights


def build(config: SgdConfig, context: Context) -> Sgd:
    """Builds the algorithm of a scenario."""
    step_size, _ = resolve(config.step_size, context.constants)
    return Sgd(step_size=on_device(step_size), num_registers=context.num_registers)
