"""An algorithm: asynchronous SGD whose steps fade with staleness."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from pydantic import Field

from stalesim.simulator.engine import client_work, kernel
from stalesim.simulator.engine.algorithm import Algorithm, model_and_gradient
from stalesim.simulator.engine.step_rules import resolve


class MyPart(Algorithm):
    """Steps by a gradient, divided by 1 + fade s, where s is its staleness.

    Source: the paper, its section and equation.
    """

    kind: Literal["my_part"] = "my_part"
    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous",)
    fade: Annotated[float, Field(ge=0)] = 0.5
    """How much each commit of staleness shortens a step; 0 is plain SGD."""

    def messages(self, shape, *, common):
        return model_and_gradient(shape)

    def make(self, setup, constants):
        step_size, _ = resolve(self.step_size, constants)
        numbers = kernel.on_device(step_size), kernel.on_device(self.fade)
        return MyPartKernel(*numbers, setup.timeline.num_registers)


class State(NamedTuple):
    weights: Any
    registers: Any


class MyPartKernel(kernel.Kernel):
    step_size: Any
    fade: Any
    num_registers: int = eqx.field(static=True)

    def init(self, problem, key):
        weights = problem.start(key)
        return State(weights, problem.registers(self.num_registers, weights))

    def step(self, problem, state, event):
        registers = client_work.keep(state.registers, state.weights, event)
        seen = client_work.read(registers, event)[0]
        samples = client_work.samples_of(event, 1)[0, 0]
        loss, gradient = client_work.gradient_of(problem, seen, samples)
        fresh = self.step_size.at(event.version)
        step_size = fresh / (1 + self.fade * event.staleness[0])
        moved = state.weights - step_size * gradient
        # A row may be padding, which changes nothing.
        weights = jnp.where(event.present()[0], moved, state.weights)
        return State(weights, registers), {"loss": loss, "step_size": step_size}

    def read_out(self, state):
        return state.weights


STALESIM = {"algorithms": (MyPart,)}
