"""What becomes of a contribution before it is sent: noise."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .. import client_work
from ..client_work import Work
from .stages import ChainStage, ClientJob


class AddNoise(ChainStage):
    """Adds noise in proportion to the sensitivity when one sample is replaced.

    Attributes:
        bound: C that samples, or contributions, are clipped to.
        multiplier: AddNoise scale over sensitivity.
        law: Law of the noise.
        samples: Samples whose mean was clipped one by one; 1 of a contribution.
    """

    bound: Float[Array, ""]
    multiplier: Float[Array, ""]
    law: str = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, job: ClientJob, work: Work, state: Any) -> tuple[Work, Any]:
        """Returns the contribution with noise, drawn by client and job."""
        assert job.key is not None
        key = jax.random.fold_in(jax.random.fold_in(job.key, job.worker), job.number)
        scale = self.multiplier * 2 * self.bound / self.samples
        return client_work.noised(work, self.law, key, scale), state
