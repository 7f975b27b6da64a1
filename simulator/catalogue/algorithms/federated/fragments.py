"""Streaming DiLoCo: fragments of the model meet in turn, and a few steps late.

No JAX is imported until a run needs it.
"""

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field

from ....engine.algorithm import FLOAT_BYTES, ProblemShape, StepSize
from ....files.timeline import NO_WORKER
from ....parts.lazy import Late
from ....problem.constants import Constants
from .chain import Chained, StagePart
from .clients import LocalWork
from .part import FedAvg
from .server import AsMoves, Mean, ServerStep, Weigh, Weighting
from .stage import AdjustPart, Count
from .stages import ClientJob, ServerRow, Step

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ....engine import client_work
    from ....engine.client_work import Work
    from ....engine.setup import RunSetup
    from ....problem.horizontal import HorizontalProblem
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    client_work = Late("....engine.client_work", __package__)
    Array = HorizontalProblem = RunSetup = Work = Any

Delay = Annotated[int, Field(ge=0)]


def _moved(weights: Array, fragments: int, since: Array, until: Array) -> Array:
    """Says which weights commits since + 1 to `until` move, one fragment each."""
    fragment = jnp.arange(weights.size).reshape(weights.shape) * fragments
    newest = until - (until - 1 - fragment // weights.size) % fragments
    return newest > since


class FragmentWork(LocalWork):
    """Local steps on a client's own model; contributes the move of one fragment.

    After `delay` steps the client takes over the fragments that the server has moved
    since it last did. Its other weights stay its own.
    """

    kind: Literal["fragment_work"] = "fragment_work"  # pyright: ignore
    local_epochs: ClassVar[None] = None  # pyright: ignore
    speeds: ClassVar[None] = None  # pyright: ignore
    proximal: ClassVar[None] = None  # pyright: ignore
    statistics_would_be: ClassVar[str] = "sent in turn, as weights are"
    fragments: Count
    """P: equal parts of the weights, of which each round synchronises the next one."""
    delay: Delay = 0
    """tau: local steps of the next round before clients take over the result."""

    @property
    def beyond_gradients(self) -> str:
        return "fragments"

    def fits(self, method: Chained) -> None:
        super().fits(method)
        if self.delay >= (steps := self.local_steps or 1):
            rule = f"must be less than the {steps} local steps of a round, got "
            raise method.refusal(self, "delay", f"{rule}{self.delay}; lower it")

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        """Returns the bytes of a message of one fragment."""
        return ceil(given / self.fragments)

    def answer_bytes(self, shape: ProblemShape) -> int:
        """Returns minus the bytes of the fragments that a client does not get."""
        model = FLOAT_BYTES * shape.num_weights
        return self.sent_bytes(model, shape) - model

    def overhead_s(self, shape: ProblemShape) -> float:
        """Returns 0: it takes no more time."""
        return 0.0

    def make(self, setup: RunSetup, constants: Constants, **facts: object) -> Self:
        own = {"fragments": self.fragments, "delay": self.delay}
        return super().make(setup, constants, **own | facts)

    def start(self, problem: HorizontalProblem, weights: Array) -> Any:
        return weights, jnp.int32(0), super().start(problem, weights)

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, object]:
        model, since, inner = state
        given, steps = job.problem.narrowed(job.read), job.samples.shape[0]
        loss, key = jnp.zeros((), given.dtype), job.training_key
        for first, last in ((0, self.delay), (self.delay, steps)):
            if first == self.delay:
                taken = _moved(given, self.fragments, since, job.version)
                model = jnp.where(taken, given, model)
            if first < last:
                work = client_work.local_steps(
                    *(job.problem, model, job.samples[first:last], job.step_size),
                    key=key if key is None else jax.random.fold_in(key, first),
                    rule=self._rule,
                    state=inner,
                    made=job.number * steps + first,
                )
                inner = work.optimizer
                model = (model - job.step_size * work.message).astype(given.dtype)
                loss += (last - first) / steps * work.loss
        due = _moved(given, self.fragments, job.version, job.version + 1)
        due &= job.worker != NO_WORKER  # an optimiser makes anything of padding
        move = jnp.where(due, (given - model) / job.step_size, 0).astype(given.dtype)
        after = model, job.version, inner if self._keeps else None
        return client_work.Work(loss, move, move, {}), after


class FragmentStep(AdjustPart):
    """Nesterov's momentum of a round's fragment; those of the others wait."""

    kind: Literal["fragment_step"] = "fragment_step"
    fragments: Count
    """P, as in `fragment_work`."""
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay of a fragment's momentum, at each of its own steps."""

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros_like(weights)

    def __call__(self, row: ServerRow, step: Step, state: Array) -> tuple[Step, Array]:
        version = row.event.version
        due = _moved(state, self.fragments, version, version + 1) & step.applies
        decay = cast("Array", self.decay).astype(state.dtype)
        after = jnp.where(due, decay * state + step.direction, state)
        direction = jnp.where(due, step.direction + decay * after, 0)
        return step._replace(direction=direction), after


class StreamingDiloco(FedAvg):
    """DiLoCo whose rounds synchronise one fragment of the model each, in turn.

    A round is `local_steps` steps, so each of P fragments meets after P times as many.
    The server steps with Nesterov's momentum by the clients' mean move of the fragment.
    Clients continue with their own models, and take over the fragment `delay` steps
    later: its exchange overlaps with these. A message is a P-th of the model. With one
    fragment and no delay it is DiLoCo.

    Source: Douillard et al., Streaming DiLoCo with Overlapping Communication: Towards a
    Distributed Free Lunch (2025), Algorithm 2 with alpha = 0 and without quantisation;
    the fragments' turns as pytorch/torchft has them (`local_sgd.DiLoCo`).
    """

    kind: Literal["streaming_diloco"] = "streaming_diloco"  # pyright: ignore
    server_step_size: StepSize = 0.7
    """Outer rate; `learning_rate` is the clients'."""
    weighting: Weighting = "equal"
    fragments: Count
    """P: equal parts of the weights, of which each round synchronises the next one."""
    delay: Delay = 0
    """tau: local steps of the next round before clients take over the result."""
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay of a fragment's outer momentum."""
    local_epochs: ClassVar[None] = None  # pyright: ignore
    speeds: ClassVar[None] = None  # pyright: ignore
    mechanism: ClassVar[None] = None  # pyright: ignore
    proximal: ClassVar[None] = None  # pyright: ignore
    optimizer: ClassVar[None] = None  # pyright: ignore

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        own = map(self.with_own, (FragmentWork, AsMoves, Weigh, Mean, FragmentStep))
        return (*own, ServerStep(step_size=self.server_step_size))
