"""What runs of the server's noise: a mean, and noise where it is applied."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...algorithms.base import Info
from ...algorithms.federated.aggregation import AtOnce, Buffer, divisor
from ...algorithms.federated.building import gathering
from ...algorithms.federated.parts import Mean
from ...algorithms.federated.stages import (
    Aggregate,
    ChainStage,
    Contributions,
    ServerRow,
)
from ...capabilities import LimitsGathering
from ...config.errors import ScenarioError
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...privacy import mechanisms
from ...setup import RunSetup
from ...timeline import NO_COMMIT
from .part import NoisyMean

CHUNK = 65_536
"""Rows of a chunk of a timeline that is played for the size of its commits."""


class NoisySum(ChainStage):
    """Adds noise to the sum of a commit.

    Attributes:
        mean: What is summed, and divided by the number of contributions.
        scale: Standard deviation of the sum's noise, for a sum of messages.
        least: Contributions below which nothing is applied.
    """

    mean: AtOnce | Buffer
    scale: Float[Array, ""]
    least: Int[Array, ""]

    @property
    def draws(self) -> bool:
        return True

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return self.mean.start(problem, weights)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Aggregate, Any, Info]:
        """Returns the mean with noise, drawn by version, what gathers, and info."""
        found, after, info = self.mean(row, contributions, state)
        count = row.event.present().sum(dtype=jnp.int32)
        count += 0 if state is None else state.number
        applies = found.applies & (count >= self.least)
        zero = jnp.zeros(found.direction.size, found.direction.dtype)
        noise = jax.lax.cond(
            applies,
            lambda: mechanisms.gaussian(row.server_key, zero, self.scale).value,
            lambda: zero,
        )
        noise = contributions.scaled(noise / divisor(count).astype(zero.dtype))
        direction = found.direction + noise.reshape(found.direction.shape)
        found = found._replace(direction=direction, applies=applies)
        return found, after, info | {"noise_norm": jnp.sqrt(jnp.sum(noise**2))}


def noisy_mean(part: NoisyMean, setup: RunSetup, constants: Constants) -> NoisySum:
    """Returns a mean with noise of the scale that its clipping and a budget give it.

    Raises:
        ScenarioError: Secure aggregation is for fewer members than commits have, or no
            commit has as many as it needs.
    """
    method, secure = setup.scenario.algorithm, part.secure
    if secure is not None:
        key = ".".join(map(str, ("algorithm", *method.keys_of(part), "secure")))
        most, what = _most_applied(setup), "the contributions that a commit may have"
        if most > secure.group:
            raise ScenarioError(
                f"{key}.group must be at least {most}, {what}, got {secure.group}; "
                f"raise it"
            )
        if most < secure.least:
            raise ScenarioError(
                f"{key}.least must be at most {most}, {what}, or every commit is lost, "
                f"got {secure.least}; lower it"
            )
    scale = part.clip_of(method).clip_bound * part.multiplier_at(1.0)
    least = jnp.int32(1 if secure is None else secure.least)
    mean = gathering(Mean(), setup, constants)
    return NoisySum(mean, jnp.asarray(scale, float), least)


def _most_applied(setup: RunSetup) -> int:
    """Returns the most contributions of a commit.

    Where the protocol does not limit them, or a recording may be of other options, the
    timeline is played to know, which depends on no numerics.
    """
    protocol = setup.scenario.protocol
    if not protocol.gathers:
        return setup.timeline.width
    limits = isinstance(protocol, LimitsGathering)
    known = protocol.most_gathered(setup.shape.num_clients) if limits else None
    if known is not None and not setup.scenario.replays:
        return known
    commits = [chunk.jobs.commit for chunk in setup.timeline.chunks(CHUNK)]
    commit = np.concatenate(commits)
    counts = np.unique(commit[commit != NO_COMMIT], return_counts=True)[1]
    return int(counts.max(initial=0))
