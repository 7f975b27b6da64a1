"""An algorithm: steps by the signs of gradients, which are all that clients send."""

from math import ceil
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from simulator.algorithms import base, client_work
from simulator.algorithms.part import Algorithm, Message
from simulator.algorithms.step_rules import resolve


class MyPart(Algorithm):
    """Steps by the signs of a gradient.

    Source: Bernstein et al., signSGD (2018), Algorithm 1.
    """

    kind: Literal["my_part"] = "my_part"
    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous",)

    def messages(self, shape, *, common):
        return (
            Message("signs", "up", ceil(shape.num_weights / 8)),
            Message("model", "down", 4 * shape.num_weights),
        )

    def make(self, setup, constants):
        step_size, _ = resolve(self.step_size, constants)
        return MyPartKernel(base.on_device(step_size), setup.timeline.num_registers)


class State(NamedTuple):
    weights: Any
    registers: Any


class MyPartKernel(base.Kernel):
    step_size: Any
    num_registers: int = eqx.field(static=True)

    def init(self, problem, key):
        weights = problem.start(key)
        return State(weights, problem.registers(self.num_registers, weights))

    def step(self, problem, state, event):
        registers = client_work.keep(state.registers, state.weights, event)
        seen = client_work.read(registers, event)[0]
        samples = client_work.samples_of(event, 1)[0, 0]
        loss, gradient = client_work.gradient_of(problem, seen, samples)
        step_size = self.step_size.at(event.version)
        moved = state.weights - step_size * jnp.sign(gradient)
        # A row may be padding, which changes nothing.
        weights = jnp.where(event.present()[0], moved, state.weights)
        return State(weights, registers), {"loss": loss, "step_size": step_size}

    def read_out(self, state):
        return state.weights


STALESIM = {"algorithms": (MyPart,)}
