"""The kernel of policy gradients: samples of older versions, drawn when trained."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree
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
from .part import RATE, ROWS, PolicyGradient, generation_of
from .policies import policy_of

OF_ACTIONS = 2**31 - 3
"""Number of the keys by which actions are drawn, each by its job's number."""
OF_ROWS = 2**31 - 4
"""Number of the keys by which rows of the supervised start are drawn, each by its
step's number."""


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
    optimizer: UpdateRule | None
    correction: str = eqx.field(static=True)
    advantage: str = eqx.field(static=True)
    group: int = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)
    supervised_steps: int = eqx.field(static=True)

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

        def surrogate(weights: Array) -> tuple[Array, tuple[Array, Array, Array]]:
            own = policy.log_chance(weights, x, actions)
            ratio = jnp.exp(jax.lax.stop_gradient(own) - of_sample)
            limit = self.limit.astype(own.dtype)
            weight, limited = policies.weighted(
                self.correction, limit, ratio, advantage
            )
            return -jnp.mean(weight * advantage * own), (weight, ratio, limited)

        graded = jax.value_and_grad(surrogate, has_aux=True)
        (loss, (weight, ratio, limited)), gradient = graded(state.weights)
        gradient = gradient + problem.penalised(state.weights)
        step_size = self.step_size.at(event.version)
        applies = event.present()[0]
        direction, moments = optimizing.directed(
            *(self.optimizer, problem, gradient, state.optimizer),
            *(state.weights, event.version, applies),
        )
        moved = state.weights - (step_size * direction).astype(gradient.dtype)
        if self.optimizer is not None:
            step_size = self.optimizer.scaled(step_size, event.version)
        total, squares = weight.sum(), (weight**2).sum()
        info = {
            "loss": loss,
            "step_size": step_size,
            "gradient_norm": norm(gradient),
            "reward": reward.mean(),
            "ratio_max": ratio.max(),
            "limited_fraction": limited.mean(dtype=reward.dtype),
            "effective_fraction": total**2
            / jnp.maximum(squares * weight.size, policies.SMALL),
        }
        return state._replace(
            weights=jnp.where(applies, moved, state.weights),
            registers=registers,
            optimizer=moments,
        ), info

    @override
    def read_out(self, state: PolicyState) -> Float[Array, "..."]:
        return state.weights


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
    return PolicyKernel(
        step_size=on_device(step_size),
        limit=jnp.asarray(config.limit, float),
        optimizer=rule_of(config.optimizer),
        correction=config.correction,
        advantage=config.advantage,
        group=generation_of(setup.scenario.protocol).group,
        num_registers=setup.timeline.num_registers,
        supervised_steps=config.supervised_steps,
    )
