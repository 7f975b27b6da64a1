"""CSGD, ASGD, AUDP and MAPA as chains: gradients, clipping and noise by stages.

Source: Li, Yang, Ren and Zhao, Algorithm 1 and Table II; decisions (M-) are in
evidence/pages/decisions.md.
"""

from typing import ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ....engine import client_work
from ....engine.client_work import Work
from ....engine.kernel import Info, norm, on_device
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....parts.errors import ScenarioError
from ....problem.constants import Constants, measured
from ....problem.horizontal import HorizontalProblem
from ..federated.kernel import Chain, StepSizes, of_run
from ..federated.stage import SendPart, ServerPart, WorkPart, in_program
from ..federated.stages import ClientJob, Contributions, ServerRow
from .part import EdgeCloud, NoisyEdgeCloud
from .stages import MOST_STAGES, stages


class TableSteps(StepSizes):
    """Step sizes of Table II: those of the stage that a commit is in.

    Attributes:
        last: Last iteration of each stage.
        curvature: Constant term of each stage's inverse step size.
        spread: Factor of the root of commits in it; see `stages.Stage`.
        shift: Commits added under that root; see `stages.Stage`.
    """

    last: Int[Array, " G"]
    curvature: Float[Array, " G"]
    spread: Float[Array, " G"]
    shift: Float[Array, " G"]

    def at(self, commits: Int[Array, ""]) -> Float[Array, ""]:
        stage = jnp.searchsorted(self.last, commits + 1)
        grown = jnp.sqrt((commits + 1).astype(self.spread.dtype) + self.shift[stage])
        return 1 / (self.curvature[stage] + self.spread[stage] * grown)


class StagedNoise(eqx.Module):
    """Clipping, then noise, with a sensitivity that depends on the stage.

    Attributes:
        last: Last iteration of each stage; as many for every run, so that runs of one
            program may differ in their stages.
        sensitivity: Delta S of each stage.
        epsilon: Privacy level of each client.
        batch: b.
        law: Law of the noise.
        per_sample: Whether each sample's gradient is clipped.
        first_layer: Whether only the first layer is clipped and gets noise.
    """

    last: Int[Array, " G"]
    sensitivity: Float[Array, " G"]
    epsilon: Float[Array, " K"]
    batch: Float[Array, ""]
    law: str = eqx.field(static=True)
    per_sample: bool = eqx.field(static=True)
    first_layer: bool = eqx.field(static=True)

    def size(self, problem: HorizontalProblem) -> int | None:
        """Returns how many of the first numbers are clipped; None for all."""
        return problem.model.num_noised if self.first_layer else None

    def of_job(self, job: ClientJob) -> Float[Array, ""]:
        """Returns the sensitivity that came with the client's model (M-18)."""
        made_by = jnp.maximum(job.version, 1)
        return self.sensitivity[jnp.searchsorted(self.last, made_by)]


class Gradient(WorkPart):
    """The gradient of one batch; samples are clipped one by one if so set."""

    _noise: StagedNoise | None

    def __call__(self, job: ClientJob, state: None) -> tuple[Work, None]:
        problem, samples, noise = job.problem, job.samples[0], self._noise
        drawn = job.training_key
        if noise is None or not noise.per_sample:
            loss, gradient = client_work.gradient_of(problem, job.read, samples, drawn)
            return Work(loss, gradient, gradient, {}), None
        bound = noise.batch * noise.of_job(job) / 2
        return client_work.clipped_per_sample(
            problem, job.read, samples, bound, noise.size(problem), key=drawn
        ), None


class SentGradient(SendPart):
    """The gradient as it is sent: clipped, unless its samples were, and with noise."""

    draws: ClassVar[bool] = True
    _noise: StagedNoise | None

    def __call__(self, job: ClientJob, work: Work, state: None) -> tuple[Work, None]:
        noise = self._noise
        work = work._replace(info=work.info | {"gradient_norm": norm(work.gradient)})
        if noise is None:
            return work, None
        sensitivity, size = noise.of_job(job), noise.size(job.problem)
        if not noise.per_sample:
            work = client_work.clipped(work, noise.batch * sensitivity / 2, size)
        assert job.key is not None
        own = jax.random.fold_in(jax.random.fold_in(job.key, job.worker), job.number)
        epsilon = noise.epsilon.at[job.worker].get(mode="fill", fill_value=1)
        scale = sensitivity / epsilon
        return client_work.noised(work, noise.law, own, scale, size), None


class Descent(ServerPart):
    """The server steps against each gradient; it may keep the mean of all iterates."""

    averaged: bool
    _noise: StagedNoise | None

    def start(self, problem: HorizontalProblem, weights: Array) -> Array | None:
        return weights if self.averaged else None

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Array | None
    ) -> tuple[Array, Array | None, Info]:
        """Returns the model after the step, the mean of all iterates, and info."""
        event, message = row.event, contributions.message
        assert message is not None
        there = event.present()[0]
        moved = row.weights - row.step_size * message[0]
        weights = jnp.where(there, moved, row.weights)
        info = {"step_size": row.step_size}
        if self._noise is not None:
            now = jnp.searchsorted(self._noise.last, event.version + 1)
            info |= {"stage": now + 1, "sensitivity": self._noise.sensitivity[now]}
        if state is not None:
            # x_1 is the start: version v is iterate v + 1.
            share = 1 / (event.version + 2).astype(weights.dtype)
            state = jnp.where(there, state + share * (weights - state), state)
        return weights, state, info

    def read_out(self, weights: Array, state: object) -> Array:
        return weights if state is None else cast("Array", state)


def build(config: EdgeCloud, setup: RunSetup, constants: Constants) -> Chain:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: not one privacy level for each client, or a constant cannot be
            taken from the data.
    """
    config = _with_numbers(config, constants)
    noisy = isinstance(config, NoisyEdgeCloud)
    first_layer = noisy and config.noised == "first_convolution"
    size, clients = setup.shape.num_weights, setup.shape.num_clients
    if first_layer:
        size = measured(constants.num_first_layer)
    made = stages(config, setup.shape.batch, clients, size)
    made += [made[-1]] * (MOST_STAGES - len(made))
    ends, *columns = zip(*made, strict=True)
    last = jnp.asarray(ends, jnp.int32)
    sensitivity, *steps = (jnp.asarray(column, float) for column in columns)
    noise = None
    if noisy:
        noise = StagedNoise(
            last=last,
            sensitivity=sensitivity,
            epsilon=jnp.asarray(config.epsilons(clients), float),
            batch=jnp.asarray(setup.shape.batch, float),
            law=config.noise,
            per_sample=config.clip == "sample",
            first_layer=first_layer,
        )
    step_size: Schedule | Steps | TableSteps = TableSteps(last, *steps)
    if config.step_size is not None:
        step_size = on_device(resolve(config.step_size, constants)[0])
    return of_run(
        setup,
        step_size=step_size,
        local_step_size=step_size,
        work=in_program(Gradient.model_construct(), _noise=noise),
        sent=(in_program(SentGradient.model_construct(), _noise=noise),),
        server=in_program(
            Descent.model_construct(averaged=config.averaged), _noise=noise
        ),
    )


def _with_numbers(config: EdgeCloud, constants: Constants) -> EdgeCloud:
    """Returns the configuration with what it takes from the data (M-25)."""
    found: dict[str, float] = {}
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
