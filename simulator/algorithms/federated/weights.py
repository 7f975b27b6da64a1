"""How much a contribution counts, by its staleness: one swappable part."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...config.errors import ScenarioError
from ...config.expressions import per_client
from ...learning.constants import Constants, measured
from ...setup import RunSetup
from .staleness import (
    ConstantWeight,
    DelayAdaptiveWeight,
    DistanceWeight,
    HingeWeight,
    InverseShareWeight,
    InverseWeight,
    PolynomialWeight,
    RepeatWeight,
    StalenessWeight,
)


class Weight(eqx.Module):
    """A staleness weight.

    Attributes:
        kind: Kind of its configuration.
        numbers: Its parameters, in the order of its configuration.
        shares: Share of each client in all contributions, where the kind needs it and
            it is known.
    """

    kind: str = eqx.field(static=True)
    numbers: Float[Array, " 2"]
    shares: Float[Array, " K"] | None = None

    @property
    def counts(self) -> bool:
        """Whether clients' contributions so far are counted: of all, or of a round."""
        shared = self.kind == "inverse_share" and self.shares is None
        return shared or self.kind == "repeats"

    @property
    def measures(self) -> bool:
        """Whether the distance matters that the model has moved since a read."""
        return self.kind == "distance"

    def left(self, counts: Int[Array, " K"]) -> Int[Array, " K"]:
        """Returns what is left of the counts after a row: none of a round's at its end.

        Args:
            counts: Contributions of every client, those of the row included.
        """
        if self.kind != "repeats":
            return counts
        return jnp.where(counts.min() > 0, 0, counts).astype(counts.dtype)

    def of(
        self,
        staleness: Int[Array, " W"],
        step_size: Float[Array, ""],
        worker: Int[Array, " W"],
        counts: Int[Array, " K"] | None = None,
        moved: Float[Array, " W"] | None = None,
    ) -> Float[Array, " W"]:
        """Returns the factors that multiply contributions, >= 0.

        Args:
            staleness: versions between each read and now, >= 0.
            step_size: the server's, before weighting.
            worker: Clients of the contributions.
            counts: Contributions of every client so far, these included, if they count.
            moved: Distance of the model from what was read, if it is measured.
        """
        s = staleness.astype(self.numbers.dtype)
        first, second = self.numbers
        match self.kind:
            case "polynomial":
                return (1 + s) ** -first
            case "hinge":
                late = jnp.maximum(s - second, 0)
                return 1 / (first * late + 1)
            case "inverse":
                return first / jnp.maximum(s, first)
            case "inverse_share":
                shares = self.shares
                if shares is None:
                    assert counts is not None
                    shares = counts / jnp.maximum(counts.sum(), 1)
                own = shares.at[worker].get(mode="fill", fill_value=1)
                return 1 / (shares.shape[0] * own).astype(s.dtype)
            case "repeats":
                assert counts is not None
                own = counts.at[worker].get(mode="fill", fill_value=1)
                return 1 / (counts.shape[0] * first ** (own - 1).astype(s.dtype))
            case "distance":
                assert moved is not None
                return (moved <= first).astype(s.dtype)
            case "delay_adaptive":
                most = 1 / (4 * second * jnp.maximum(s * step_size, 1e-30))
                return jnp.where(s <= first, 1, jnp.minimum(1, most))
            case _:
                return jnp.ones_like(s)


def staleness_weight(
    config: StalenessWeight | None, setup: RunSetup, constants: Constants
) -> Weight:
    """Builds the weight of a scenario.

    Raises:
        ScenarioError: the smoothness is to come from the data and is not known.
    """
    numbers = (0.0, 0.0)
    match config:
        case PolynomialWeight():
            numbers = (config.exponent, 0.0)
        case HingeWeight():
            numbers = (config.slope, config.late)
        case DelayAdaptiveWeight():
            concurrency = config.concurrency
            if concurrency is None:
                concurrency = setup.shape.num_clients
            numbers = (float(concurrency), _smoothness(config, constants))
        case InverseWeight():
            numbers = (float(config.concurrency), 0.0)
        case RepeatWeight():
            numbers = (config.base, 0.0)
        case DistanceWeight():
            numbers = (config.largest, 0.0)
        case ConstantWeight() | InverseShareWeight() | None:
            pass
    kind = config.kind if config is not None else "constant"
    return Weight(kind, jnp.asarray(numbers, float), _shares(config, setup))


def _shares(
    config: StalenessWeight | None, setup: RunSetup
) -> Float[Array, " K"] | None:
    """Returns the share of each client in all contributions, if it is given."""
    if not isinstance(config, InverseShareWeight) or config.shares is None:
        return None
    given = per_client(
        config.shares, setup.shape.num_clients, "algorithm.weight.shares"
    )
    shares = jnp.asarray([float(share) for share in given], float)
    if not bool((shares > 0).all()):
        raise ScenarioError(
            f"algorithm.weight.shares must be > 0, got {float(shares.min()):g}; change "
            "them"
        )
    return shares / shares.sum()


def _smoothness(config: DelayAdaptiveWeight, constants: Constants) -> float:
    if config.smoothness != "data":
        return config.smoothness
    known = measured(constants.smoothness)
    if known is None:
        known = constants.estimates().smoothness
    if not known > 0:
        raise ScenarioError(
            f"algorithm.weight.smoothness must be > 0, got {known} from the data; "
            "give a number"
        )
    return known
