"""What runs of enemies and of filters: messages, rows and gradients in their place."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from ...algorithms import client_work
from ...algorithms.base import broadcast_flags
from ...algorithms.client_work import Work, gathered
from ...algorithms.federated.building import local_steps
from ...algorithms.federated.modules import LocalSteps
from ...algorithms.federated.stages import (
    ChainStage,
    ClientJob,
    Contributions,
    OwnStage,
    ServerRow,
    own_stage,
)
from ...config.errors import ScenarioError
from ...config.parts import tag
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...setup import RunSetup
from ...streams import Purpose, Streams
from ...timeline import NO_SAMPLE
from .enemies import EnemyOptions, EnemyPart
from .poison import PoisonPart, Trigger
from .trusted import TrustedPart

NO_VERSION = 2**31 - 1
"""Version of a gradient before there is any."""


class Attack(OwnStage):
    """Puts what enemies send in the place of what they have computed.

    Attributes:
        enemies: Flags of the clients that it is an attack of.
        honest: Flags of the clients without any attack.
    """

    enemies: Bool[Array, " K"]
    honest: Bool[Array, " K"]

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Contributions, Any]:
        """Returns the contributions with the enemies' messages."""
        part, workers = self._own(), row.event.worker
        flags, honest = (
            each.at[workers].get(mode="fill", fill_value=False)
            for each in (self.enemies, self.honest)
        )
        state = part.after(row, contributions, honest, state)
        message: Any = contributions.message
        attacked = jax.lax.cond(
            flags.any(),
            lambda: jnp.where(
                broadcast_flags(flags, message),
                part(row, contributions, state),
                message,
            ),
            lambda: message,
        )
        return contributions._replace(message=attacked), state


def attack(part: EnemyPart, setup: RunSetup, _: Constants) -> Attack:
    """Returns an attack by the enemies of a run."""
    own, who = own_stage(part), set(EnemyOptions.model_fields)
    options = tuple(pair for pair in own.options if pair[0] not in who)
    method, of_run = setup.scenario.algorithm, (setup.shape.num_clients, setup.run.seed)
    enemies = part.among(method, *of_run)
    honest = np.array([not role for role in method.roles(*of_run)])
    return Attack(
        own.numbers, own.part, options, jnp.asarray(enemies), jnp.asarray(honest)
    )


class PoisonedSteps(ChainStage):
    """Local steps of all clients, on rows of which enemies have changed their own.

    Attributes:
        labels: Labels of all training rows.
        marked: Flags of the rows that bear the trigger; None without one.
        trigger: The pattern.
        scale: What each client's message is multiplied by; None for nothing.
        steps: The local steps.
    """

    labels: Num[Array, " N *L"]
    marked: Bool[Array, " N"] | None
    trigger: Trigger | None
    scale: Float[Array, " K"] | None
    steps: LocalSteps

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return self.steps.start(problem, weights)

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Any]:
        """Returns the contribution, and the state of the client's optimiser."""
        labels = self.labels.astype(job.problem.y.dtype)
        problem = eqx.tree_at(lambda p: p.y, job.problem, labels)
        job = self._triggered(job._replace(problem=problem))
        work, state = self.steps(job, state)
        if self.scale is not None:
            scale = self.scale.at[job.worker].get(mode="fill", fill_value=1)
            message = scale.astype(work.message.dtype) * work.message
            work = work._replace(message=message)
        return work, state

    def _triggered(self, job: ClientJob) -> ClientJob:
        """Returns the job on a problem of its rows alone, with the pattern in some."""
        if self.marked is None or self.trigger is None:
            return job
        samples = job.samples.reshape(-1)
        x, y, present = gathered(job.problem, samples)
        marked = self.marked.at[samples].get(mode="fill", fill_value=False)
        x = jnp.where(marked[:, None], with_pattern(x, self.trigger), x)
        problem = eqx.tree_at(lambda p: (p.x, p.y), job.problem, (x, y))
        own = jnp.where(present, jnp.arange(samples.size), NO_SAMPLE)
        samples = own.astype(samples.dtype).reshape(job.samples.shape)
        return job._replace(problem=problem, samples=samples)


def with_pattern(x: Float[Array, "S P"], trigger: Trigger) -> Float[Array, "S P"]:
    """Returns rows of a model's inputs, each with the pattern of a trigger.

    The columns of a data set are the first ones of all models' inputs.
    """
    return x.at[:, trigger.features].set(jnp.asarray(trigger.value, x.dtype))


def poisoned(part: PoisonPart, setup: RunSetup, constants: Constants) -> PoisonedSteps:
    """Returns the local steps of a run with enemies."""
    found, trigger, scale = part.poison(setup), part.trigger, None
    if part.trigger is not None:
        method, K = setup.scenario.algorithm, setup.shape.num_clients
        enemies = jnp.asarray(part.among(method, K, setup.run.seed))
        scale = jnp.where(enemies, jnp.asarray(part.scale, float), 1)
        trigger = Trigger(*map(jnp.asarray, part.trigger))
    return PoisonedSteps(
        labels=jnp.asarray(found.labels),
        marked=None if found.marked is None else jnp.asarray(found.marked),
        trigger=trigger,
        scale=scale,
        steps=local_steps(part, setup, constants),
    )


class Own(NamedTuple):
    """The server's gradient.

    Attributes:
        gradient: At the model of a version.
        version: The version.
    """

    gradient: Float[Array, "..."]
    version: Int[Array, ""]


class Filter(OwnStage):
    """Lets messages pass that go with the gradient of the server's own rows.

    Attributes:
        samples: The rows.
    """

    samples: Int[Array, " S"]

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Own:
        return Own(jnp.zeros_like(weights), jnp.int32(NO_VERSION))

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Own
    ) -> tuple[Contributions, Own]:
        """Returns the contributions, of which some count nothing."""
        message: Any = contributions.message
        own = jax.lax.cond(
            state.version == row.event.version,  # rows that gather change no model
            lambda: state.gradient,
            lambda: client_work.gradient_of(row.problem, row.weights, self.samples)[1],
        )
        state = Own(own, row.event.version)
        flat = message.reshape(message.shape[0], -1)
        taken, passes = self._own()(flat, own.reshape(-1), row.step_size)
        factor, share = contributions.factor, contributions.share
        return contributions._replace(
            message=taken.reshape(message.shape),
            factor=jnp.where(passes, factor, 0),
            share=jnp.where(passes, share, jnp.zeros_like(share)),
        ), state


def filtering(part: TrustedPart, setup: RunSetup, _: Constants) -> Filter:
    """Returns a filter, with the rows that the server has drawn.

    Raises:
        ScenarioError: There are fewer rows.
    """
    number = setup.shape.num_samples
    if part.samples > number:
        raise ScenarioError(
            f"algorithm.chain's {tag(type(part))!r} must have at most {number} "
            f"samples, the rows for training, got {part.samples}; lower it"
        )
    drawn = Streams(setup.run.seed).at(Purpose.TRUSTED, 0, 0)
    rows = drawn.choice(number, part.samples, replace=False)
    own = own_stage(part)
    return Filter(own.numbers, own.part, own.options, jnp.asarray(rows, jnp.int32))
