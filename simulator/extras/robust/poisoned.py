"""What runs of attacks on data: local steps on rows that enemies have changed."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Num

from ...algorithms.client_work import Work, gathered
from ...algorithms.federated.building import local_steps
from ...algorithms.federated.modules import LocalSteps
from ...algorithms.federated.stages import ChainStage, ClientJob
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...setup import RunSetup
from ...timeline import NO_SAMPLE
from .poison import PoisonPart, Trigger


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
