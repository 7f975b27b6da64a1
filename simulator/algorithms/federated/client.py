"""The client's work: local steps."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...learning.horizontal import HorizontalProblem
from ...timeline import NO_WORKER
from .. import client_work
from ..client_work import LocalRule, Work
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from .stages import ChainStage, ClientJob


class LocalSteps(ChainStage):
    """Local steps; contributes the sum of their gradients, or directions.

    Attributes:
        proximal: rho of FedAsync's clients, mu of FedProx; None without.
        optimizer: The clients' optimiser; None for plain SGD.
        steps: Q, the most of a client where they are uneven.
        uneven: Whether clients' jobs have steps, or samples, of their own.
        keeps: Whether each client keeps the state of its optimiser.
    """

    proximal: Float[Array, ""] | None
    optimizer: UpdateRule | None
    steps: int = eqx.field(static=True)
    uneven: bool = eqx.field(static=True)
    keeps: bool = eqx.field(static=True)

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        if not self.keeps:
            return None
        return optimizing.start(self.optimizer, problem, weights)

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Any]:
        """Returns the contribution, and the state of the client's optimiser."""
        taken = client_work.steps_of(job.samples) if self.uneven else None
        of_job = self.steps if taken is None else taken
        rule = self.optimizer
        work = client_work.local_steps(
            job.problem,
            job.read,
            job.samples,
            job.step_size,
            self.proximal,
            job.training_key,
            rule and LocalRule(rule, state, job.number * of_job),
            taken=taken,
        )
        after = work.optimizer if self.keeps else None
        if rule is not None:
            # An optimiser may make anything of the zeros that padding has read.
            message = jnp.where(job.worker != NO_WORKER, work.message, 0)
            work = work._replace(message=message, optimizer=None)
        return work, after
