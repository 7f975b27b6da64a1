"""The kernel of policy gradients: samples of older versions, drawn when trained."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree
from typing_extensions import override

from ....engine import client_work
from ....engine.kernel import Event, Info, Kernel, broadcast_flags, norm, on_device
from ....engine.optimizers import rule as optimizing
from ....engine.optimizers.arrays import UpdateRule
from ....engine.optimizers.rule import rule_of
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....parts.errors import ScenarioError
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from . import policies
from .part import RATE, ROWS, PolicyGradient, world_of
from .policies import SMALL, OfClasses, policy_of

OF_ACTIONS = 2**31 - 3
"""Number of the keys by which actions are drawn, each by its job's number."""
OF_ROWS = 2**31 - 4
"""Number of the keys by which rows of the supervised start are drawn, each by its
step's number."""


NEVER = 2**31 - 1
"""Greatest age of samples where none is too old."""


class DrawnBatch(NamedTuple):
    """Samples of a batch, or a part of them; B of them, of answers each with L tokens.

    Attributes:
        x: Features of their prompts.
        actions: What their own policies drew.
        of_sample: Logarithms of the chances of that, by their own policies.
        proximal: The same by the policy that the ratio is to.
        advantage: Of each; of answers with an axis of one.
        real: Which are no padding.
        trains: Which have a gradient.
    """

    x: Float[Array, "B P"]
    actions: Int[Array, " B *L"]
    of_sample: Float[Array, " B *L"]
    proximal: Float[Array, " B *L"]
    advantage: Float[Array, " B *one"]
    real: Bool[Array, " B"]
    trains: Bool[Array, " B"]


class PartInfo(NamedTuple):
    """Diagnostics of a part: weights, ratios to samples' policies, which are cut."""

    weight: Float[Array, " B *L"]
    ratio: Float[Array, " B *L"]
    limited: Bool[Array, " B *L"]


class PolicyState(NamedTuple):
    """The trainer's policy, and the versions that samples may be of."""

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    optimizer: PyTree
    key: Key[Array, ""]


class PolicyKernel(Kernel):
    """Steps by the samples of a batch, each drawn by the version that it is of.

    A sample that is never trained is never drawn: its content changes nothing.
    """

    step_size: Schedule | Steps
    limit: Float[Array, ""]
    max_age: Int[Array, ""]
    optimizer: UpdateRule | None
    correction: str = eqx.field(static=True)
    advantage: str = eqx.field(static=True)
    group: int = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)
    supervised_steps: int = eqx.field(static=True)
    optimizer_steps: int = eqx.field(static=True)

    @override
    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> PolicyState:
        weights = problem.start(key)
        if self.supervised_steps:  # then version 0 is what has come of them
            weights = started(problem, weights, self.supervised_steps, key)
        return PolicyState(
            weights=weights,
            registers=problem.registers(self.num_registers, weights),
            optimizer=optimizing.start(self.optimizer, problem, weights),
            key=jax.random.fold_in(key, OF_ACTIONS),
        )

    @override
    def step(
        self, problem: HorizontalProblem, state: PolicyState, event: Event
    ) -> tuple[PolicyState, Info]:
        registers = client_work.keep(state.registers, state.weights, event)
        behaviour = client_work.read(registers, event)
        x, y, _ = client_work.gathered(problem, event.samples[:, 0])
        policy = policy_of(problem)
        # By the number of its job, a sample is the same under all policies of a world.
        keys = jax.vmap(jax.random.fold_in, (None, 0))(state.key, event.job)
        actions, of_sample = jax.vmap(policy.draw)(behaviour, x, keys)
        reward = policy.reward(actions, y, state.weights.dtype)
        advantage = policies.advantages(self.advantage, reward, self.group)
        advantage = broadcast_flags(advantage, of_sample)
        proximal, real = of_sample, event.present()
        if self.correction == "decoupled":
            proximal = policy.log_chance(state.weights, x, actions)
        trains = real & (event.staleness <= self.max_age)
        batch = DrawnBatch(x, actions, of_sample, proximal, advantage, real, trains)
        step_size = self.step_size.at(event.version)
        weights, moments, parts = state.weights, state.optimizer, []
        graded = jax.value_and_grad(self._surrogate, argnums=2, has_aux=True)
        size = len(real) // self.optimizer_steps
        first = event.version * self.optimizer_steps
        for number in range(self.optimizer_steps):
            place = slice(number * size, (number + 1) * size)
            part = DrawnBatch(*(column[place] for column in batch))
            (loss, found), gradient = graded(policy, part, weights)
            gradient = gradient + problem.penalised(weights)
            direction, moments = optimizing.directed(
                *(self.optimizer, problem, gradient, moments),
                *(weights, first + number, real[0]),
            )
            weights = weights - (step_size * direction).astype(gradient.dtype)
            parts.append((loss, norm(gradient), *found))
        if self.optimizer is not None:
            step_size = self.optimizer.scaled(step_size, first)
        loss, length, *found = map(jnp.stack, zip(*parts, strict=True))
        share = jnp.maximum(real.mean(), SMALL)
        info = {
            "loss": loss.mean(),
            "step_size": step_size,
            "gradient_norm": length.mean(),
            "reward": jnp.where(real, reward, 0).mean() / share,
            **_diagnosed(PartInfo(*found), share),
        }
        return state._replace(
            weights=jnp.where(real[0], weights, state.weights),
            registers=registers,
            optimizer=moments,
        ), info

    def _surrogate(
        self, policy: OfClasses, part: DrawnBatch, weights: Float[Array, "..."]
    ) -> tuple[Float[Array, ""], PartInfo]:
        """Returns a loss with the gradient of a step, the mean over what is trained."""
        own = policy.log_chance(weights, part.x, part.actions)
        fixed = jax.lax.stop_gradient(own)
        weight, limited = policies.weighted(
            *(self.correction, self.limit.astype(own.dtype)),
            *(jnp.exp(fixed - part.proximal), part.advantage),
        )
        if self.correction == "decoupled":
            weight = weight * jnp.exp(part.proximal - part.of_sample)
        trains = part.trains * (part.trains.size / jnp.maximum(part.trains.sum(), 1))
        weight = weight * broadcast_flags(trains.astype(own.dtype), own)
        real = broadcast_flags(part.real, own)
        ratio = jnp.where(real, jnp.exp(fixed - part.of_sample), 0)
        found = PartInfo(weight, ratio, limited & real)
        return -jnp.mean(weight * part.advantage * own), found

    @override
    def read_out(self, state: PolicyState) -> Float[Array, "..."]:
        return state.weights


def _diagnosed(found: PartInfo, share: Float[Array, ""]) -> Info:
    """Returns columns of a batch's parts, of which a share is no padding."""
    weight, ratio, limited = found
    total, squares = weight.sum(), (weight**2).sum()
    return {
        "ratio_max": ratio.max(),
        "limited_fraction": limited.mean(dtype=weight.dtype) / share,
        "effective_fraction": total**2
        / jnp.maximum(squares * weight.size * share, SMALL),
    }


def started(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    steps: int,
    key: Key[Array, ""],
) -> Float[Array, "..."]:
    """Returns weights after steps of Adam on the mean likelihood of right tokens."""
    import optax  # 0.1 s: only where a run needs it

    policy, rule = policy_of(problem), optax.adam(RATE)
    own = jax.random.fold_in(key, OF_ROWS)

    def once(number: Array, carried: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        weights, state = carried
        drawing = jax.random.fold_in(own, number)
        rows = jax.random.randint(drawing, (ROWS,), 0, len(problem.x))
        x, right = problem.x[rows], policy.right(problem.y[rows])
        loss = jax.grad(lambda w: -policy.log_chance(w, x, right).mean())
        moved: PyTree
        moved, state = rule.update(loss(weights), state)
        return weights + moved, state

    return jax.lax.fori_loop(0, steps, once, (weights, rule.init(weights)))[0]


def build(
    config: PolicyGradient, setup: RunSetup, constants: Constants
) -> PolicyKernel:
    """Builds the algorithm of a scenario.

    Raises:
        ScenarioError: The data have neither a class nor an answer for each row.
    """
    data = setup.shares.data
    if not data.num_classes or (data.y_train.ndim > 1 and not data.answer):
        raise ScenarioError(
            f"problem.data must have a class or an answer for each row for the "
            f"algorithm 'policy_gradient', whose reward it decides, got {data.name}; "
            f"take others, such as digits or arithmetic"
        )
    step_size, _ = resolve(config.step_size, constants)
    protocol = world_of(setup.scenario.protocol)
    oldest = protocol.queue.max_age
    return PolicyKernel(
        step_size=on_device(step_size),
        limit=jnp.asarray(config.limit, float),
        max_age=jnp.int32(NEVER if oldest is None else oldest),
        optimizer=rule_of(config.optimizer),
        correction=config.correction,
        advantage=config.advantage,
        group=protocol.generation.group,
        num_registers=setup.timeline.num_registers,
        supervised_steps=config.supervised_steps,
        optimizer_steps=protocol.trainer.optimizer_steps,
    )
