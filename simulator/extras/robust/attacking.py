"""What runs of an attack: enemies' messages in place of their work."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from ...algorithms.base import broadcast_flags
from ...algorithms.federated.stages import Contributions, OwnStage, ServerRow, own_stage
from ...learning.constants import Constants
from ...setup import RunSetup
from .enemies import EnemyOptions, EnemyPart


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
