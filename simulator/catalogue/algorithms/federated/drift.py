"""Methods against the drift of clients' own data: their options and stages.

No JAX is imported until a run needs it.
"""

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from jaxtyping import Float

from ....engine.algorithm import FLOAT_BYTES, ProblemShape, StepSize
from ....parts.base import tag
from ....parts.lazy import Late
from ....problem.constants import Constants
from .chain import Chained, StagePart
from .clients import LocalWork, Positive
from .part import FedAvg
from .server import AsMoves, Mean, ServerStep, Weigh
from .stage import AdjustPart, LocalOptions, ReceivePart, in_program
from .stages import ClientJob, Contributions, ServerRow, Step, divisor

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


class CorrectedWork(LocalWork):
    """Common base of plain local steps with a further term, which the client keeps."""

    local_optimizer: ClassVar[None] = None  # pyright: ignore

    @property
    def beyond_gradients(self) -> str:
        return tag(type(self))

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros_like(weights)


class OfSteps(ReceivePart):
    """Common base of what the server does by the local steps of each contribution."""

    _steps: int

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        return in_program(self, _steps=setup.sampler.steps)

    def steps_of(self, row: ServerRow, message: Array) -> Float[Array, "W ..."]:
        """Returns each job's steps, at least 1, of as many axes as the messages."""
        samples = client_work.samples_of(row.event, self._steps)
        steps = jnp.maximum(jax.vmap(client_work.steps_of)(samples), 1)
        return steps.astype(message.dtype).reshape(-1, *(1,) * (message.ndim - 1))


class ControlledWork(CorrectedWork):
    """Local steps by g - c_i + c; then c_i is the mean of g over them (SCAFFOLD).

    A client whose contribution is not applied keeps its c_i.
    """

    kind: Literal["controlled_work"] = "controlled_work"  # pyright: ignore

    def fits(self, method: Chained) -> None:
        super().fits(method)
        refuse_apart(method, self)

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Array]:
        assert job.along is not None
        drift = job.along - state
        work, _ = super().__call__(job._replace(drift=drift), None)
        steps = job.samples.shape[0] if job.taken is None else job.taken
        return work, work.message / jnp.maximum(steps, 1) - drift


class ControlVariate(OfSteps):
    """Keeps c, the mean of all clients' c_i, and sends it with the model (SCAFFOLD)."""

    kind: Literal["control_variate"] = "control_variate"

    def fits(self, method: Chained) -> None:
        refuse_apart(method, self)

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        """Returns the bytes of a message with the change of the client's c_i."""
        return given + FLOAT_BYTES * shape.num_weights

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros_like(weights)

    def along(self, state: Array) -> Array:
        """Returns c."""
        return state

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Array
    ) -> tuple[Contributions, Array]:
        message: Any = contributions.message
        steps = self.steps_of(row, message)
        changes = message / steps - contributions.along
        present = row.event.present().reshape(steps.shape)
        total = jnp.where(present, changes, 0).sum(axis=0)
        return contributions, state + total / row.problem.num_clients


def refuse_apart(method: Chained, stage: StagePart) -> None:
    """Refuses one of SCAFFOLD's two stages without the other next to it."""
    both = ControlledWork, ControlVariate
    if both not in [(type(a), type(b)) for a, b in pairwise(method.stages)]:
        raise method.refusal(
            stage,
            "",
            "must be in a chain with control_variate next after controlled_work, got "
            f"{tag(type(stage))!r} alone; add the other",
        )


class Normalise(OfSteps):
    """Divides each move by its local steps, times their mean over the round (FedNova).

    The mean, tau_eff, has the weights of the contributions.
    """

    kind: Literal["normalise"] = "normalise"
    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    def fits(self, method: Chained) -> None:
        for option in ("local_optimizer", "proximal"):
            if given := getattr(method.work, option, None):
                raise method.refusal(
                    method.work,
                    option,
                    "must be left out with normalise, which divides by numbers of "
                    f"plain steps, got {getattr(given, 'kind', given)!r}; remove it",
                )

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: None
    ) -> tuple[Contributions, None]:
        message: Any = contributions.message
        steps = self.steps_of(row, message)
        share = contributions.share.astype(message.dtype).reshape(steps.shape)
        mean = (share * steps).sum() / divisor(share.sum())
        return contributions._replace(message=mean / steps * message), state


class FedNova(FedAvg):
    """Averages clients' moves per local step, so that many steps do not weigh more.

    The server goes from x to x + tau_eff sum_i p_i (y_i - x) / tau_i, tau_i being the
    local steps of client i, p_i its weight, and tau_eff the sum of p_i tau_i. All else
    is as in `fed_avg`, with local steps of plain SGD.

    Source: Wang, Liu, Liang, Joshi and Poor, Tackling the Objective Inconsistency
    Problem in Heterogeneous Federated Optimization (2020), FedNova with plain SGD: a_i
    is a vector of ones.
    """

    kind: Literal["fed_nova"] = "fed_nova"  # pyright: ignore
    local_optimizer: ClassVar[None] = None  # pyright: ignore
    proximal: ClassVar[None] = None  # pyright: ignore

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        stages = super().stages
        place = next(i for i, one in enumerate(stages) if isinstance(one, AsMoves))
        return (*stages[:place], self.with_own(Normalise), *stages[place:])


class DynamicWork(CorrectedWork):
    """Local steps by g - h_i + mu (y - x); h_i falls by mu times the move (FedDyn)."""

    kind: Literal["dynamic_work"] = "dynamic_work"  # pyright: ignore
    proximal: Positive  # pyright: ignore
    """alpha: clients step on their loss plus half of it times the squared distance from
    the model read, less the product of h_i and the model."""

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Array]:
        work, _ = super().__call__(job._replace(drift=-state), None)
        pull = cast("Array", self.proximal) * job.step_size
        return work, state + pull.astype(state.dtype) * work.message


class DynamicStep(AdjustPart):
    """Adds to a round's mean move those of all rounds, over all clients (FedDyn).

    Its state is the server's h / mu.
    """

    kind: Literal["dynamic_step"] = "dynamic_step"
    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    def start(self, problem: HorizontalProblem, weights: Array) -> Array:
        return jnp.zeros_like(weights)

    def __call__(self, row: ServerRow, step: Step, state: Array) -> tuple[Step, Array]:
        share = row.event.present().sum() / row.problem.num_clients
        after = state + share.astype(state.dtype) * step.direction
        after = jnp.where(step.applies, after, state)
        return step._replace(direction=step.direction + after), after


class Scaffold(LocalOptions, Chained):
    """Corrects the local steps of clients by control variates, c - c_i.

    Clients step from x by g - c_i + c; the server goes to x + server_learning_rate
    times the mean of their moves. c_i becomes the mean of g over the client's steps
    and c the mean of all c_i. Messages are twice as large as those of `fed_avg`, both
    ways.

    Source: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated
    Learning (2020), Algorithm 1, option II.
    """

    kind: Literal["scaffold"] = "scaffold"
    server_step_size: StepSize = 1.0
    """eta_g; `learning_rate` is the clients' eta_l."""
    local_optimizer: ClassVar[None] = None  # pyright: ignore
    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        kinds = ControlledWork, ControlVariate, AsMoves, Weigh, Mean
        step = ServerStep(step_size=self.server_step_size)
        return (*map(self.with_own, kinds), step)


class FedDyn(LocalOptions, Chained):
    """Corrects clients by what they have moved so far, so that their optima agree.

    Client i makes local steps by g - h_i + mu (y - x) and moves h_i by -mu (y_i - x).
    The server goes to the mean of the y_i less h / mu, of which h moves by -mu times
    the sum of y_i - x over all clients' number.

    Source: Acar et al., Federated Learning Based on Dynamic Regularization (2021),
    Algorithm 1, with local steps in place of the exact minimum.
    """

    kind: Literal["fed_dyn"] = "fed_dyn"
    proximal: Positive
    """alpha."""
    local_optimizer: ClassVar[None] = None  # pyright: ignore
    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        kinds = DynamicWork, AsMoves, Weigh, Mean, DynamicStep
        return (*map(self.with_own, kinds), ServerStep(step_size=1.0))
