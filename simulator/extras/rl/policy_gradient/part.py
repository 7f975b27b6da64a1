"""Policy gradients of samples of older versions: options, prompts and metric.

No JAX in here.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator
from typing_extensions import override

from ....engine.algorithm import Algorithm, Batch, Bytes, ProblemShape
from ....engine.optimizers.part import Optimizer
from ....parts.base import LocatedError
from ....parts.metrics import CLASSES, LIKELIHOOD, Metric
from ....problem.sampler import Sampler, Sampling
from ....world.protocol import Protocol
from ..scenario import GenerateAndTrain

if TYPE_CHECKING:
    from jax import Array

    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....problem.horizontal import HorizontalProblem
    from ....scenario.scenario import Problem
    from .kernel import PolicyKernel

CAP = 2.0
EPSILON = 0.2
CLIPPED = ("clipped", "decoupled")
"""Corrections with PPO's clip."""
RATE = 0.003
"""Learning rate of the supervised start's Adam."""
ROWS = 64
"""Rows of one of its steps."""
LIKELIHOODS = ("auto", "softmax", "sigmoid")
"""Losses of models whose outputs are the logits of a policy."""


class PolicyGradient(Algorithm):
    """Gradients of the expected reward, of samples that older policies have generated.

    A prompt is a row of the data and an action one of its classes, which the version
    with which the sample began draws; its reward is 1 for the right class, else 0: a
    contextual bandit. Where rows have answers, as in `arithmetic`, the prompt is the
    part before; the answer is drawn token after token, and its reward is 1 if all of
    them are right, else 0. A step follows

        mean over the batch of w A grad log pi(a | x),    r = pi(a | x) / mu(a | x)

    where pi is the trainer's version and mu the sample's. For answers it is the mean
    over all tokens of the batch, where x is the prompt and the tokens before a; all
    tokens have their answer's A, and r is the token's own, not the answer's, so that
    `importance` is unbiased for classes alone. The weight w is 1 with `none`, r with
    `importance`, min(r, cap) with `truncated` and, with `clipped`, r or 0: the gradient
    of min(r A, clip(r, 1 - epsilon, 1 + epsilon) A). That is PPO's clip with mu in
    place of the policy before the batch ("bypass").

    `decoupled` is AReaL's objective, which has both: with p the policy before the batch
    and u = pi / p, w is p / mu times u or 0: the gradient of p / mu min(u A, clip(u)
    A). It needs several steps of the optimiser on a batch (`trainer.optimizer_steps`),
    each on an equal part of it; in the first u is 1 and w is that of `importance`.
    Samples that the queue masks or withholds count in A and have no gradient.

    Source: Williams (1992), REINFORCE; `clipped`: Schulman et al., Proximal Policy
    Optimization Algorithms (2017), eq. 7; `decoupled`: Fu et al., AReaL (2025), section
    5.2; of tokens Shao et al., DeepSeekMath (2024),
    eq. 3 (GRPO); `truncated`: Espeholt et al., IMPALA (2018), section 4.1, rho_t; of
    language models' tokens the truncated importance sampling (TIS) of Yao, Liu et al.
    (2025).
    """

    kind: Literal["policy_gradient"] = "policy_gradient"
    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("cap", "epsilon")
    protocols: ClassVar[tuple[str, ...]] = ("rollouts",)
    batch: Batch = 1
    """Rows of a sample, 1: its prompt. `protocol.trainer.samples` is a step's batch."""
    correction: Literal["none", "importance", "truncated", "clipped", "decoupled"] = (
        "none"
    )
    """Correction of the staleness of samples; the queue may drop them."""
    cap: Annotated[float, Field(gt=0)] | None = None
    """c of `truncated`, by default 2: largest weight of a sample."""
    epsilon: Annotated[float, Field(gt=0)] | None = None
    """Of `clipped` and `decoupled`, by default 0.2: distance of the ratio from 1 beyond
    which a sample no longer counts in its direction."""
    advantage: Literal["reward", "leave_one_out", "group"] = "leave_one_out"
    """A of a sample: its reward; less the mean of the others of its group (RLOO); or
    less the group's mean, over its standard deviation plus 1e-6 (GRPO). The deviation
    is that over G - 1 for a group of G, as in `torch.std` in verl."""
    optimizer: Optimizer | None = None
    """Optimiser of the trainer; by default the gradient is the direction."""
    supervised_steps: Annotated[int, Field(ge=0)] = 0
    """Steps on right classes or answers before version 0, as in fine-tuning before
    reinforcement: Adam at 0.003 on the mean log-likelihood of 64 training rows each.
    They are the same for all policies of a seed, and take no virtual time."""

    @model_validator(mode="after")
    def _limits_fit(self) -> "PolicyGradient":
        if self.batch != 1:
            raise LocatedError(
                f"batch must be 1, because a sample has one prompt, got {self.batch}; "
                "remove it, and set the samples per step by protocol.trainer.samples"
            )
        for name, of in (("cap", ("truncated",)), ("epsilon", CLIPPED)):
            if getattr(self, name) is not None and self.correction not in of:
                raise LocatedError(
                    f"{name} must be left out with the correction "
                    f"{self.correction!r}, got {getattr(self, name):g}; remove it, or "
                    f"take {' or '.join(of)}"
                )
        return self

    @property
    def limit(self) -> float:
        """The limit of ratios: `cap` or `epsilon`, if any."""
        if self.correction in CLIPPED:
            return EPSILON if self.epsilon is None else self.epsilon
        return CAP if self.cap is None else self.cap

    @override
    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        generation = world_of(protocol).generation
        whole = generation.complete and generation.group > 1
        if self.advantage != "reward" and not whole:
            raise LocatedError(
                f"algorithm.advantage must be reward where groups are of one sample, "
                f"or not complete, got {self.advantage!r}; change it, or set "
                f"protocol.generation.group"
            )
        steps = world_of(protocol).trainer.optimizer_steps
        if self.correction == "decoupled" and steps == 1:
            raise LocatedError(
                "algorithm.correction must be importance with one step of the "
                "optimiser on a batch, which is the same, got 'decoupled'; change it, "
                "or set protocol.trainer.optimizer_steps"
            )
        if problem.loss not in LIKELIHOODS or problem.model.shaped:
            raise LocatedError(
                f"problem.loss must be softmax or sigmoid, of a model of this package, "
                f"for the algorithm 'policy_gradient', whose policy is the chances of "
                f"classes, got {problem.loss!r} and the model {problem.model.kind!r}; "
                f"change them"
            )

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Protocol
    ) -> Sampler:
        """Returns the prompts of a run."""
        group = world_of(protocol).generation.group
        return PromptSampler(seed, pools[0], group, self.sampling)

    @override
    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return {}  # transfers of weights are the world's

    @override
    def make(self, setup: "RunSetup", constants: "Constants") -> "PolicyKernel":
        from .kernel import build

        return build(self, setup, constants)


def world_of(protocol: Protocol) -> GenerateAndTrain:
    """Returns the protocol, the only one of `protocols`."""
    assert isinstance(protocol, GenerateAndTrain)
    return protocol


class PromptSampler(Sampler):
    """One row of the data for each prompt, drawn as a pool's batches of one are.

    The number of a sample's job is `group` times its prompt's number plus its place in
    the group, so that prompts are the same in all worlds of a seed.
    """

    def __init__(
        self, seed: int, pool: Int[np.ndarray, " N"], group: int, sampling: Sampling
    ) -> None:
        super().__init__(seed, [pool], 1, sampling=sampling)
        self._group = group

    @override
    def _drawn(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j 1"]:
        return super()._drawn(np.zeros_like(client), job // self._group)


def expected_reward(
    problem: "HorizontalProblem", model: "Array", logits: "Array"
) -> "Array":
    """Returns the mean chance of the right class, or answer, of the test rows.

    An answer's is the product of the probabilities of its tokens, each given the prompt
    and the right tokens before it.
    """
    import jax.numpy as jnp

    from ....problem import losses

    each = losses.per_sample(problem.loss, logits, problem.y_test)
    if length := problem.answer:
        each = each.reshape(len(problem.x_test), -1)[:, -length:].sum(axis=1)
    return jnp.exp(-each).mean()


EXPECTED_REWARD = Metric(
    "expected_reward",
    f"{__name__}:expected_reward",
    meaning="of a policy that is rewarded for the right class, or answer: its exact "
    "mean over the test rows",
    label="Expected reward",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    needs=(CLASSES, LIKELIHOOD),
)
