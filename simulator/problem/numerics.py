"""A problem on the device: its network and loss, and constants and work of these."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from ..parts.functions import UserFunction
from ..parts.metrics import MINIMUM, facts, metric
from . import convex, horizontal, losses, own_functions, vertical
from .constants import Constants, remembered
from .data.base import Dataset
from .horizontal import HorizontalProblem
from .keys import key_of
from .models.base import Embedding
from .models.parts import Shapes
from .models.party import PartyNetwork, party_network

if TYPE_CHECKING:
    from .learning import Learning

BLOCK = 64
"""Number of samples whose gradients are in memory at once."""
ITERATIONS = 50
"""Iterations of the power method."""
MOST_ROWS = 1024
"""Largest number of training samples in the Hessian."""


class Estimates(NamedTuple):
    """Measured constants of a problem.

    Attributes:
        smoothness: Smoothness L, largest absolute eigenvalue of the objective's
            Hessian, on the first 1,024 samples.
        deviation: Deviation sigma, root of the mean squared distance of a sample's
            gradient from the mean gradient.
        bound: Bound G, largest norm of a sample's gradient.
    """

    smoothness: float
    deviation: float
    bound: float


def estimate(problem: HorizontalProblem, key: Key[Array, ""]) -> Estimates:
    """Measures the constants of a problem, the regulariser included.

    Source: the definitions of MAPA, section 1 (M-25).
    """
    weights = problem.start(key)
    shares = np.array_split(np.arange(problem.x.shape[0]), -(-len(problem.y) // BLOCK))
    moments = [_moments(problem, weights, jnp.asarray(share)) for share in shares]
    total = sum(first for first, _ in moments)
    norms = np.concatenate([np.asarray(norm) for _, norm in moments]).astype(np.float64)
    mean = np.asarray(total, np.float64) / norms.size
    variance = float(np.mean(norms**2) - np.sum(mean**2))
    return Estimates(
        smoothness=float(_largest_eigenvalue(problem, weights)),
        deviation=max(variance, 0.0) ** 0.5,
        bound=float(norms.max()),
    )


@eqx.filter_jit
def _moments(
    problem: HorizontalProblem, weights: Float[Array, "..."], rows: Array
) -> tuple[Float[Array, "..."], Float[Array, " S"]]:
    """Returns the sum of some samples' gradients, and the norm of each."""
    one = jnp.ones(1, bool)

    def gradient(x: Array, y: Array) -> Array:
        loss = jax.grad(problem.batch_loss)(weights, x[None], y[None], one)
        return loss + problem.penalised(weights)

    each = jax.vmap(gradient)(problem.x[rows], problem.y[rows])
    flat = each.reshape(each.shape[0], -1)
    return each.sum(axis=0), jnp.sqrt(jnp.sum(flat**2, axis=1))


@eqx.filter_jit
def _largest_eigenvalue(
    problem: HorizontalProblem, weights: Float[Array, "..."]
) -> Float[Array, ""]:
    x, y = problem.x[:MOST_ROWS], problem.y[:MOST_ROWS]
    present = jnp.ones(y.shape[:1], bool)

    def slope(weights: Array) -> Array:
        loss = jax.grad(problem.batch_loss)(weights, x, y, present)
        return loss + problem.penalised(weights)

    def times(vector: Array) -> Array:
        return jax.jvp(slope, (weights,), (vector,))[1]

    def once(_: int, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        image = times(carried[0])
        length = jnp.sqrt(jnp.sum(image**2))
        return image / jnp.maximum(length, jnp.finfo(image.dtype).tiny), length

    begin = jax.random.normal(jax.random.key(0), weights.shape, weights.dtype)
    begin = begin / jnp.sqrt(jnp.sum(begin**2))
    start = begin, jnp.zeros((), begin.dtype)
    return jax.lax.fori_loop(0, ITERATIONS, once, start)[1]


DeviceProblem = horizontal.HorizontalProblem | vertical.VerticalProblem
"""A problem on the device: both have `start`, `objective` and `evaluate`."""


class Numerics:
    """A problem on the device; each part is made when it is first used."""

    def __init__(self, learning: "Learning") -> None:
        self.config, self.precision = learning.config, learning.precision
        self.data, self.form, self._learning = learning.data, learning.form, learning

    def problem(
        self, metrics: Sequence[str] = (), *, bias: bool = True
    ) -> DeviceProblem:
        """Returns the problem on the device, whose arrays all runs share.

        Args:
            metrics: Names of the metrics that are evaluated; one may need the least
                value of the objective.
            bias: Whether that objective's model has a bias.
        """
        if not any(MINIMUM in metric(name).needs for name in metrics):
            return self._plain
        least = jnp.asarray(self._minimum(bias=bias), self.precision)
        return replace(self._plain, minimum=least)

    @remembered
    def check_functions(self, metrics: tuple[str, ...]) -> None:
        """Refuses functions of a user's own that cannot be used.

        They are called with the first rows alone, which is quick.

        Raises:
            ScenarioError: As `own_functions.check`.
        """
        if self.config.has_own(metrics):
            own_functions.check(self.config, self._few, metrics)

    @cached_property
    def coupling(self) -> UserFunction | None:
        """The reason why rows of a batch depend on each other, if they do."""
        if not self.config.own_functions:
            return None
        return own_functions.coupling(self.config, self._few)

    @cached_property
    def arrays(self) -> Shapes:
        """Shapes of the arrays of a model of rows, in the order of its weights."""
        model = _of_rows(self._few).model
        for name in ("shapes", "leaf_shapes"):
            if found := getattr(model, name, None):
                return found
        return (jax.eval_shape(model.init, jax.random.key(0)).shape,)

    @cached_property
    def _plain(self) -> DeviceProblem:
        return self._built(self.data)

    @cached_property
    def _few(self) -> DeviceProblem:
        return self._built(own_functions.first_rows(self.data))

    def _built(self, data: Dataset) -> DeviceProblem:
        """Builds the problem of some data, without the least value of its objective."""
        config, form, precision = self.config, self.form, self.precision
        loss = losses.of_form(form, as_given=config.gives_rows)
        if config.partition.family == "horizontal":
            return horizontal.build(
                data,
                config.model.of_rows(data, form),
                config.partition.num_clients,
                loss=loss,
                reduction=config.reduction,
                l2=config.l2,
                dtype=precision,
            )
        columns = self._learning.columns
        of_parties, server, pieces = self.embedding([c.size for c in columns]), None, 1
        if isinstance(of_parties, PartyNetwork):
            server = config.server and config.server.make(len(columns), form)
            pieces = of_parties.views * (config.model.num_frames or 1)
        found = vertical.build(
            data,
            columns,
            of_parties,
            loss=loss,
            reduction=config.reduction,
            l2=config.l2,
            dtype=precision,
            server=server,
            pieces=pieces,
        )
        if config.transfer is None:
            return found
        common = jnp.asarray(self._learning.common)
        return vertical.TransferProblem.of(found, common, config.transfer.alpha)

    def embedding(self, sizes: Sequence[int]) -> Embedding:
        """Builds the network of parties, whose outputs they add up or send to a server.

        Raises:
            ScenarioError: The columns do not fit the model.
        """
        config, num_outputs = self.config, self.form.num_outputs
        model, chosen = config.model, config.server
        if chosen is None and "vertical" in model.families:
            family = "transfer" if config.transfer else "vertical"
            return model.make(num_outputs, max(sizes), family)
        return party_network(
            model,
            sizes,
            width=chosen.width if chosen else num_outputs,
            views=chosen.views if chosen else 1,
            last=chosen is not None,
        )

    def constants(
        self, *, bias: bool, commits_per_epoch: float, seed: int
    ) -> Constants:
        """Returns the known and the measurable facts of a convex objective."""
        config, loss = self.config, self.form.loss
        known = Constants(
            num_clients=config.partition.num_clients,
            commits_per_epoch=commits_per_epoch,
        )
        if config.partition.family == "horizontal":
            known = known._replace(
                num_first_layer=lambda: _of_rows(self._plain).model.num_noised,
                estimates=lambda: self._estimates(seed),
            )
        if config.model.is_diagonal and loss == "squared":
            L, mu, _ = self._diagonal
            return known._replace(smoothness=L, strong_convexity=mu)
        if not config.is_linear or facts(loss).curvature is None:
            return known
        return known._replace(
            smoothness=lambda: self._smoothness(bias=bias),
            strong_convexity=config.l2 or None,
            of_parties=lambda: self._smoothness_of_parties,
        )

    @cached_property
    def _diagonal(self) -> tuple[float, float, float]:
        data = self.data
        return convex.diagonal(data.x_train, data.y_train, self.config.l2)

    @remembered
    def _minimum(self, *, bias: bool) -> float:
        config, form, data = self.config, self.form, self.data
        if config.model.is_diagonal:
            return self._diagonal[2]
        return convex.minimum(
            *(data.x_train, data.y_train, form.loss, form.num_outputs, config.l2),
            bias=bias,
        )

    @remembered
    def _smoothness(self, *, bias: bool) -> float:
        x, l2 = self.data.x_train, self.config.l2
        return convex.smoothness(x, self.form.loss, l2, bias=bias)

    @cached_property
    def _smoothness_of_parties(self) -> tuple[float, ...]:
        """L_k of each party's block; nothing where there are no parties."""
        config = self.config
        if config.partition.family != "vertical":
            return ()
        x, columns = self.data.x_train, self._learning.columns
        return convex.smoothness_of_parties(x, columns, self.form.loss, config.l2)

    @remembered
    def _estimates(self, seed: int) -> Estimates:
        """Measures a horizontal problem's constants where a run of this seed starts."""
        coupled = self.coupling
        if coupled is not None:
            raise coupled.refused(
                f"must give each row a loss of its own where smoothness, sigma or "
                f"clip_bound are taken from the data, got {coupled}, by which rows "
                f"look at each other; give these numbers"
            )
        return estimate(_of_rows(self._plain), key_of(seed))


def _of_rows(problem: DeviceProblem) -> HorizontalProblem:
    assert isinstance(problem, HorizontalProblem)
    return problem
