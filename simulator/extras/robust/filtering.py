"""What runs of a filter: the server's own gradient, and the messages that it allows."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...algorithms import client_work
from ...algorithms.federated.stages import Contributions, OwnStage, ServerRow, own_stage
from ...config.errors import ScenarioError
from ...config.parts import tag
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...setup import RunSetup
from ...streams import Purpose, Streams
from .trusted import TrustedPart

NO_VERSION = 2**31 - 1
"""Version of a gradient before there is any."""


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
