"""CSGD, ASGD, AUDP and MAPA: gradients, clipping, noise and stages.

Source: Li, Yang, Ren and Zhao, Algorithm 1 and Table II; decisions (M-) are in
evidence/pages/decisions.md.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.client_work import Divided, Work
from ....engine.kernel import Event, Info, Probeable, norm, on_device
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....parts.errors import ScenarioError
from ....problem.constants import Constants, measured
from ....problem.horizontal import HorizontalProblem
from .part import EdgeCloud, NoisyEdgeCloud
from .stages import MOST_STAGES, stages


class EdgeCloudState(NamedTuple):
    """The server's state, and the versions that clients under way have read.

    Attributes:
        weights: Weights of the server's model.
        registers: versions of it.
        average: Mean of all iterates so far, the start included; None if not asked
            for.
        key: Key of the noise.
    """

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    average: Float[Array, "..."] | None
    key: Key[Array, ""]


SentGradient = tuple[Float[Array, "W ..."], Info]
"""A row's message, and its diagnostics, the loss among them."""


class DelayedSgd(
    Divided[HorizontalProblem, EdgeCloudState, Float[Array, "W ..."], SentGradient],
    Probeable[HorizontalProblem, EdgeCloudState],
):
    """Applies clipped and noisy gradients, each taken at what its client read.

    Attributes:
        last: last iteration of each stage; as many for every run, so that runs of one
            program may differ in their stages.
        sensitivity: Delta S of each stage.
        curvature: Constant term of each stage's inverse step size.
        spread: Factor of the root of commits in it; see `stages.Stage`.
        shift: Commits added under that root; see `stages.Stage`.
        epsilon: Privacy level of each client.
        override: step sizes in place of the stages'.
        batch: b.
        noise: law of the noise, "" for none; then nothing is clipped either.
        per_sample: whether each sample's gradient is clipped.
        averaged: whether the average of all iterates is evaluated.
        first_layer: whether only the first layer is clipped and gets noise.
        num_registers: Registers of the timeline.
    """

    last: Int[Array, " G"]
    sensitivity: Float[Array, " G"]
    curvature: Float[Array, " G"]
    spread: Float[Array, " G"]
    shift: Float[Array, " G"]
    epsilon: Float[Array, " K"]
    override: Schedule | Steps | None
    batch: Float[Array, ""]
    noise: str = eqx.field(static=True)
    per_sample: bool = eqx.field(static=True)
    first_layer: bool = eqx.field(static=True)
    averaged: bool = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> EdgeCloudState:
        """Starts at the model's start; version 0 stands in register 0."""
        weights = problem.start(key)
        registers = problem.registers(self.num_registers, weights)
        average = weights if self.averaged else None
        return EdgeCloudState(weights, registers, average, key)

    def opened(
        self, problem: HorizontalProblem, state: EdgeCloudState, event: Event
    ) -> EdgeCloudState:
        registers = client_work.keep(state.registers, state.weights, event)
        return state._replace(registers=registers)

    def given(self, state: EdgeCloudState, event: Event) -> Float[Array, "W ..."]:
        return client_work.read(state.registers, event)

    def work_inputs(
        self, problem: HorizontalProblem, event: Event, given: Float[Array, "W ..."]
    ) -> tuple[Float[Array, "W ..."], Float[Array, ""]]:
        now = self._stage(event.version + 1)
        return problem.narrowed(given), self._step_size(now, event.version)

    def computed(
        self,
        problem: HorizontalProblem,
        key: Key[Array, ""] | None,
        event: Event,
        given: Float[Array, "W ..."],
        made: Work | None = None,
    ) -> SentGradient:
        assert key is not None
        alone = jax.tree.map(lambda value: value[0], made)
        work = self._work(problem, key, given[0], event, alone)
        info = {"loss": work.loss, "gradient_norm": norm(work.gradient)} | work.info
        return jax.tree.map(lambda value: value[None], (work.message, info))

    def apply(
        self,
        problem: HorizontalProblem,
        state: EdgeCloudState,
        event: Event,
        sent: SentGradient,
    ) -> tuple[EdgeCloudState, Info]:
        message, info = jax.tree.map(lambda value: value[0], sent)
        now = self._stage(event.version + 1)
        step_size = self._step_size(now, event.version)
        moved = state.weights - step_size * message
        weights = jnp.where(event.present()[0], moved, state.weights)
        info |= {"step_size": step_size}
        if self.noise:
            info |= {"stage": now + 1, "sensitivity": self.sensitivity[now]}
        average = state.average
        if average is not None:
            # x_1 is the start: version v is iterate v + 1.
            share = 1 / (event.version + 2).astype(weights.dtype)
            moved = average + share * (weights - average)
            average = jnp.where(event.present()[0], moved, average)
        return EdgeCloudState(weights, state.registers, average, state.key), info

    def read_out(self, state: EdgeCloudState) -> Float[Array, "..."]:
        return state.weights if state.average is None else state.average

    def reveal(
        self, problem: HorizontalProblem, state: EdgeCloudState, event: Event
    ) -> dict[str, Array]:
        """Returns the row's message, the gradient in it, and where from."""
        read = self.given(self.opened(problem, state, event), event)
        work = self._work(problem, state.key, read[0], event)
        return {
            "message": work.message[None],
            "gradient": work.gradient[None],
            "state": problem.narrowed(read),
        }

    def _work(
        self,
        problem: HorizontalProblem,
        key: Key[Array, ""],
        read: Float[Array, "..."],
        event: Event,
        made: Work | None = None,
    ) -> Work:
        """Returns the client's message; its gradient is made here, unless it was."""
        samples = client_work.samples_of(event, 1)[0, 0]
        worker, job = event.worker[0], event.job[0]
        drawn = client_work.training_key(problem, key, worker, job)
        if made is None and not self.per_sample:
            loss, gradient = client_work.gradient_of(problem, read, samples, drawn)
            made = Work(loss, gradient, gradient, {})
        if not self.noise:
            assert made is not None
            return made
        sensitivity = self._of_job(event)
        bound = self.batch * sensitivity / 2
        size = problem.model.num_noised if self.first_layer else None
        if made is None:
            work = client_work.clipped_per_sample(
                problem, read, samples, bound, size, key=drawn
            )
        else:
            work = client_work.clipped(made, bound, size)
        own = jax.random.fold_in(jax.random.fold_in(key, worker), job)
        epsilon = self.epsilon.at[worker].get(mode="fill", fill_value=1)
        return client_work.noised(work, self.noise, own, sensitivity / epsilon, size)

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


def build(config: EdgeCloud, setup: RunSetup, constants: Constants) -> DelayedSgd:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: not one privacy level for each client, or a constant cannot be
            taken from the data.
    """
    config = _with_numbers(config, constants)
    noisy = isinstance(config, NoisyEdgeCloud)
    clients = setup.shape.num_clients
    epsilon = config.epsilons(clients) if noisy else (1.0,) * clients
    first_layer = noisy and config.noised == "first_convolution"
    size = setup.shape.num_weights
    if first_layer:
        size = measured(constants.num_first_layer)
    made = stages(config, setup.shape.batch, clients, size)
    made += [made[-1]] * (MOST_STAGES - len(made))
    override = None
    if config.step_size is not None:
        override, _ = resolve(config.step_size, constants)
        override = on_device(override)
    _, *numbers = (jnp.asarray(column, float) for column in zip(*made, strict=True))
    return DelayedSgd(
        jnp.asarray([stage.last for stage in made], jnp.int32),
        *numbers,
        epsilon=jnp.asarray(epsilon, float),
        override=override,
        batch=jnp.asarray(setup.shape.batch, float),
        noise=config.noise if noisy else "",
        per_sample=noisy and config.clip == "sample",
        first_layer=first_layer,
        averaged=config.averaged,
        num_registers=setup.timeline.num_registers,
    )


def _with_numbers(config: EdgeCloud, constants: Constants) -> EdgeCloud:
    """Returns the configuration with what it takes from the data (M-25)."""
    found: dict[str, Any] = {}
    if config.smoothness == "data":
        known = measured(constants.smoothness)
        found["smoothness"] = known or constants.estimates().smoothness
    if config.sigma == "data":
        found["sigma"] = constants.estimates().deviation
    if getattr(config, "clip_bound", None) == "data":
        found["clip_bound"] = constants.estimates().bound
    for name, value in found.items():
        if not value > 0:
            raise ScenarioError(
                f"algorithm.{name} must be > 0, got {value} from the data; give a "
                "number"
            )
    return config.model_copy(update=found)
