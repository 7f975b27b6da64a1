"""The kernel of pipelined SGD: each stage has its own version."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.kernel import Event, Info, Kernel, norm, on_device
from ....engine.optimizers import rule as optimizing
from ....engine.optimizers.arrays import UpdateRule, shapes_of
from ....engine.optimizers.rule import rule_of
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....files.timeline import NO_SLOT
from ....parts.errors import ScenarioError
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from ....problem.models.parts import Shapes
from .part import Pipelined


class PipelinedState(NamedTuple):
    """The model, and the versions that minibatches under way have read.

    Attributes:
        weights: Weights of the model, a flat vector.
        ahead: The model with its look-ahead, which is read.
        registers: Versions of that.
        places: Register of each of the last versions, by its number modulo their count.
        optimizer: State of the optimiser; None without one.
        key: Random key of training; None without any.
    """

    weights: Float[Array, " P"]
    ahead: Float[Array, " P"]
    registers: Float[Array, "R P"]
    places: Int[Array, " D"]
    optimizer: object
    key: Key[Array, ""] | None


class PipelinedKernel(Kernel[HorizontalProblem, PipelinedState]):
    """Steps by gradients whose components belong to different versions.

    Attributes:
        step_size: Step size of a stage without delay.
        delay_power: Power of the delay that divides a stage's step.
        look_ahead: Part of the last move that is added before reading.
        optimizer: The optimiser; None for plain SGD.
        delays: Delay of each stage, steps.
        num_registers: Registers of the timeline.
    """

    step_size: Schedule | Steps
    delay_power: Float[Array, ""]
    look_ahead: Float[Array, ""]
    optimizer: UpdateRule | None
    delays: tuple[int, ...] = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> PipelinedState:
        weights = problem.start(key)
        return PipelinedState(
            weights=weights,
            ahead=weights,
            registers=problem.registers(self.num_registers, weights),
            places=jnp.zeros(max(self.delays) + 1, jnp.int32),
            optimizer=optimizing.start(self.optimizer, problem, weights),
            key=key if problem.takes_key else None,
        )

    def step(
        self, problem: HorizontalProblem, state: PipelinedState, event: Event
    ) -> tuple[PipelinedState, Info]:
        registers = client_work.keep(state.registers, state.ahead, event)
        places = self._noted(state.places, event)
        shapes = shapes_of(problem.model)
        assert shapes is not None
        delay = np.array(self.delays)[stage_of(shapes, len(self.delays))]
        read = self._read(registers, places, event.version, delay)
        samples = client_work.samples_of(event, 1)[0, 0]
        drawn = client_work.training_key(
            problem, state.key, event.worker[0], event.job[0]
        )
        loss, gradient = client_work.gradient_of(problem, read, samples, drawn)
        step_size = self.step_size.at(event.version)
        applies = event.present()[0]
        if self.optimizer is not None:
            step_size = self.optimizer.scaled(step_size, event.version)
        direction, moments = optimizing.directed(
            *(self.optimizer, problem, gradient, state.optimizer),
            *(state.weights, event.version, applies),
        )
        own = self.step_size.at(event.version) / jnp.maximum(1, delay) ** jnp.asarray(
            self.delay_power, state.weights.dtype
        )
        weights = state.ahead - (own * direction).astype(state.weights.dtype)
        ahead = weights + self.look_ahead * (weights - state.weights)
        info = {"loss": loss, "step_size": step_size, "gradient_norm": norm(gradient)}
        return PipelinedState(
            weights=jnp.where(applies, weights, state.weights),
            ahead=jnp.where(applies, ahead.astype(weights.dtype), state.ahead),
            registers=registers,
            places=places,
            optimizer=moments,
            key=state.key,
        ), info

    def read_out(self, state: PipelinedState) -> Float[Array, " P"]:
        return state.weights

    def _noted(self, places: Int[Array, " D"], event: Event) -> Int[Array, " D"]:
        """Notes the register of the version before a row."""
        at = event.version % places.size
        slot = jnp.where(event.keep_slot == NO_SLOT, places[at], event.keep_slot)
        return places.at[at].set(slot)

    def _read(
        self,
        registers: Float[Array, "R P"],
        places: Int[Array, " D"],
        version: Int[Array, ""],
        delay: Int[np.ndarray, " P"],
    ) -> Float[Array, " P"]:
        """Returns the model of which each stage has the version that it lags by."""
        # Weights of a stage are successive: each number is read once.
        ends = [*np.flatnonzero(np.diff(delay)) + 1, delay.size]
        parts, start = [], 0
        for end in map(int, ends):
            slot = places[jnp.maximum(version - delay[start], 0) % places.size]
            place = (slot, jnp.int32(start))
            parts.append(lax.dynamic_slice(registers, place, (1, end - start))[0])
            start = end
        return jnp.concatenate(parts)


def stage_of(shapes: Shapes, stages: int) -> Int[np.ndarray, " P"]:
    """Returns the stage of each number of a flat vector, from 0.

    A stage has successive matrices, each with the arrays of one axis that follow it.

    Args:
        shapes: Shapes of the arrays, in their order.
        stages: How many stages there are, at most as many as matrices.
    """
    matrix = np.cumsum([len(shape) > 1 for shape in shapes]) - 1
    matrix = np.maximum(matrix, 0)
    parts = np.array_split(np.arange(matrix[-1] + 1), stages)
    of_matrix = np.repeat(np.arange(stages), [part.size for part in parts])
    return np.repeat(of_matrix[matrix], [math.prod(shape) for shape in shapes])


def build(config: Pipelined, setup: RunSetup, constants: Constants) -> PipelinedKernel:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: The model has fewer matrices than the pipeline has stages.
    """
    scenario, learned = setup.scenario, setup.learning
    protocol: Any = scenario.protocol
    delays = protocol.delays
    network = scenario.problem.model.of_rows(learned.data, learned.form)
    shapes = shapes_of(network)
    if shapes is None:
        raise ScenarioError(
            f"problem.model must be one whose layers have an order for the protocol "
            f"'pipeline', got {scenario.problem.model.kind!r}, which does not say "
            f"which of its arrays is of which stage; take another, such as dense or "
            f"transformer"
        )
    matrices = sum(len(shape) > 1 for shape in shapes)
    if matrices < len(delays):
        raise ScenarioError(
            f"protocol.stages must be at most the number of the model's matrices "
            f"({matrices}), got {len(delays)}; lower it, or take a deeper model, such "
            f"as dense or transformer"
        )
    step_size, _ = resolve(config.step_size, constants)
    return PipelinedKernel(
        step_size=on_device(step_size),
        delay_power=jnp.asarray(config.delay_power, float),
        look_ahead=jnp.asarray(config.look_ahead, float),
        optimizer=rule_of(config.optimizer),
        delays=delays,
        num_registers=setup.timeline.num_registers,
    )
