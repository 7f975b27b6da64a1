"""Computes the direction of a gradient, which a step size multiplies; its states."""

from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from ...parts.errors import ScenarioError
from ...problem.horizontal import HorizontalProblem
from ...problem.models.flat import split
from ...problem.models.parts import size
from . import part
from .arrays import NO_HIDDEN, ModelArrays, UpdateRule, Vector, arrays_of_rows
from .part import DelayedNesterov, Direction, Optax, RateSchedule

if TYPE_CHECKING:
    import optax

Tree = TypeVar("Tree")
"""A tree of arrays: the states of an optimiser, or of several."""
Options = tuple[tuple[str, bool | int | float], ...]


class DirectionRule(UpdateRule):
    """A direction alone, which a step size multiplies.

    Attributes:
        config: Its options.
    """

    config: Direction = eqx.field(static=True)

    def init(self, weights: Vector, arrays: ModelArrays | None) -> PyTree:
        return transformation(self.config).init(weights)

    def update(
        self,
        gradient: Vector,
        state: PyTree,
        weights: Vector,
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Vector, PyTree]:
        update: Any = transformation(self.config).update
        return update(gradient, state)


class OptaxRule(UpdateRule):
    """An optimiser of optax with its learning rate.

    Attributes:
        learning_rate: Learning rate; None where a schedule has it.
        clip_norm: Largest norm of a gradient; None for any.
        kind: Optax's name of it.
        options: Its other options.
        schedule: Optax's name of the schedule, and its options.
        matrices: Matrices that Muon moves, `hidden` or `all`; None of others.
    """

    learning_rate: Float[Array, ""] | None
    clip_norm: Float[Array, ""] | None
    kind: str = eqx.field(static=True)
    options: Options = eqx.field(static=True)
    schedule: tuple[str, Options] | None = eqx.field(static=True)
    matrices: str | None = eqx.field(static=True, default=None)

    def scaled(self, step_size: Array, count: Int[Array, "*W"]) -> Array:
        return step_size * self._rate(count)

    def init(self, weights: Vector, arrays: ModelArrays | None) -> PyTree:
        split_up = self._arrays(weights, arrays)
        return self._transformation(jnp.int32(0), arrays).init(split_up)

    def update(
        self,
        gradient: Vector,
        state: PyTree,
        weights: Vector,
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Vector, PyTree]:
        if self.clip_norm is not None:
            import optax  # 0.1 s: only where a run needs it

            clip: Any = optax.clip_by_global_norm(self.clip_norm)
            gradient, _ = clip.update(gradient, clip.init(gradient))
        rule = self._transformation(count, arrays)
        moved, after = rule.update(
            self._arrays(gradient, arrays), state, self._arrays(weights, arrays)
        )
        leaves = jax.tree.leaves(moved)
        flat = [self._turned(leaf, arrays).reshape(-1) for leaf in leaves]
        whole = (jnp.concatenate(flat) if len(flat) > 1 else flat[0]).astype(
            weights.dtype
        )
        return -whole.reshape(weights.shape), after

    def _rate(self, count: Int[Array, "*W"]) -> Float[Array, "*W"]:
        """Returns the learning rate after some updates."""
        if self.schedule is None:
            assert self.learning_rate is not None
            return self.learning_rate
        name, options = self.schedule
        return jnp.asarray(part.schedules()[name](**dict(options))(count), float)

    def _transformation(
        self, count: Int[Array, ""], arrays: ModelArrays | None
    ) -> "optax.GradientTransformation":
        make = part.optimisers()[self.kind]
        options: dict[str, object] = dict(self.options)
        if self.matrices == "hidden" and arrays is not None:
            options |= part.muon_of(arrays.hidden())
        return make(learning_rate=self._rate(count), **options)

    def _arrays(self, weights: Vector, arrays: ModelArrays | None) -> PyTree:
        """Returns weights as the optimiser takes them: in one, or array by array."""
        shapes = None if arrays is None else arrays.shapes
        if self.kind not in part.BY_ARRAY:
            return weights
        if weights.ndim != 1:
            if self.matrices == "hidden":  # its one layer is the first and the last
                raise ScenarioError(NO_HIDDEN)
            return self._turned(weights, arrays)
        if shapes is None or size(shapes) != weights.size:
            raise ScenarioError(
                f"algorithm's optimizer must be one that moves numbers one by one, or "
                f"for a model with `shapes`, got {self.kind!r}; take another, such as "
                f"adamw"
            )
        return tuple(self._turned(each, arrays) for each in split(weights, shapes))

    def _turned(self, array: Vector, arrays: ModelArrays | None) -> Vector:
        """Returns a matrix as Muon takes it: `[inputs, outputs]`, and the other way."""
        if self.kind != "muon" or array.ndim != 2:
            return array
        return array if arrays is not None and arrays.inputs_first else array.T


def transformation(config: Direction) -> "optax.GradientTransformation":
    """Returns the `optax.GradientTransformation` that makes a direction.

    Source: Reddi et al., Adaptive Federated Optimization (2021), Algorithm 2.
    """
    import optax  # 0.1 s: only where a run needs it

    first, second, small = config.decay, config.second_decay, config.small
    match config.kind:
        case "momentum":
            return optax.trace(decay=first)
        case "adam":
            return optax.scale_by_adam(b1=first, b2=second, eps=small)
        case "yogi":
            return optax.scale_by_yogi(b1=first, b2=second, eps=small)
        case "adagrad":
            return optax.scale_by_rss(initial_accumulator_value=0.0, eps=small)
        case "rmsprop":
            return optax.scale_by_rms(decay=second, eps=small)


class DelayedNesterovRule(UpdateRule):
    """Steps of 1 / N of each gradient, and of the momentum by the shares of a period.

    Its state is the momentum m, and the sum of this period's gradients.

    Attributes:
        config: Its options.

    Source: Liu et al., Asynchronous Local-SGD Training for Language Modeling (2024),
    Algorithm 3.
    """

    config: DelayedNesterov = eqx.field(static=True)

    def init(
        self, weights: Vector, arrays: ModelArrays | None
    ) -> tuple[Vector, Vector]:
        return jnp.zeros_like(weights), jnp.zeros_like(weights)

    def update(
        self,
        gradient: Vector,
        state: tuple[Vector, Vector],
        weights: Vector,
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Vector, tuple[Vector, Vector]]:
        config = self.config
        period, decay, spread = config.period, config.decay, config.spread
        last = (count + 1) % period == 0
        before, buffer = state
        buffer = buffer + gradient
        renewed = decay * before + buffer / period
        momentum = jnp.where(last, renewed, before)
        share = jnp.where(last, 1 - spread * (period - 1), spread)
        direction = (share * decay).astype(momentum.dtype) * momentum
        left = jnp.where(last, jnp.zeros_like(buffer), buffer)
        return direction + gradient / period, (momentum, left)

    def ahead(
        self, weights: Vector, state: tuple[Vector, Vector], step_size: Float[Array, ""]
    ) -> Vector:
        if not self.config.look_ahead:
            return weights
        momentum, _ = state
        step = (step_size * self.config.decay).astype(weights.dtype)
        return weights - step * momentum


def rule_of(
    config: Direction | DelayedNesterov | Optax | None, key: str = "algorithm.optimizer"
) -> UpdateRule | None:
    """Builds the optimiser of a scenario, if there is one.

    Args:
        config: Its options.
        key: Dotted entry of the options, for messages.

    Raises:
        ScenarioError: Optax does not have its name.
    """
    if config is None or isinstance(config, Direction):
        return config and DirectionRule(config)
    if isinstance(config, DelayedNesterov):
        return DelayedNesterovRule(config)
    part.check_options(config, key)
    rate, schedule = config.learning_rate, None
    if isinstance(rate, RateSchedule):
        schedule = (rate.schedule, tuple(sorted(rate.parameters.items())))
        rate = None
    return OptaxRule(
        learning_rate=None if rate is None else jnp.asarray(rate, float),
        clip_norm=(
            None if config.clip_norm is None else jnp.asarray(config.clip_norm, float)
        ),
        kind=config.kind,
        options=tuple(sorted(config.parameters.items())),
        schedule=schedule,
        matrices=config.matrices,
    )


def start(
    rule: UpdateRule | None, problem: HorizontalProblem, weights: Vector
) -> PyTree:
    """Returns the initial state of a horizontal model's optimiser; None without one."""
    if rule is None:
        return None
    return rule.init(weights, arrays_of_rows(problem))


def directed(
    rule: UpdateRule | None,
    problem: HorizontalProblem,
    gradient: Vector,
    state: PyTree,
    weights: Vector,
    count: Int[Array, ""],
    applies: Bool[Array, ""],
) -> tuple[Vector, PyTree]:
    """Returns an optimiser's direction in place of a gradient, and its state.

    Args:
        rule: Optimiser; without one the direction is the gradient.
        problem: Problem, whose clients hold rows.
        gradient: Gradient.
        state: State before; None without an optimiser.
        weights: Weights that it moves.
        count: Updates that were made.
        applies: Whether the update is made; else the state stays as it is.
    """
    if rule is None:
        return gradient, state
    arrays = arrays_of_rows(problem)
    direction, after = rule.update(gradient, state, weights, count, arrays)
    return direction, kept(applies, after, state)


def kept(applies: Bool[Array, "*W"], new: Tree, old: Tree) -> Tree:
    """Returns one state or the other; of several workers, each by its own flag."""

    def one_of(new: Array, old: Array) -> Array:
        flags = applies.reshape(*applies.shape, *(1,) * (new.ndim - applies.ndim))
        return jnp.where(flags, new, old)

    return jax.tree.map(one_of, new, old)


def table(start: Tree, num_workers: int) -> Tree:
    """Returns the states of all workers, each of which has one at its start."""
    return jax.tree.map(
        lambda leaf: jnp.tile(leaf, (num_workers, *(1,) * leaf.ndim)), start
    )


def of_workers(table: Tree, workers: Int[Array, "*W"]) -> Tree:
    """Returns the states of some workers from a table of all; zeros for padding."""
    return jax.tree.map(
        lambda leaf: leaf.at[workers].get(mode="fill", fill_value=0), table
    )


def written(table: Tree, workers: Int[Array, "*W"], states: Tree) -> Tree:
    """Returns a table in which some workers have new states; padding has none."""
    return jax.tree.map(
        lambda leaf, new: leaf.at[workers].set(new, mode="drop"), table, states
    )
