"""Methods whose server keeps a vector of each client. No JAX in here.

The server's table has a row for each client; every commit applies a mean over the
clients, whatever their speeds are. It takes as much memory as K models.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ....engine.algorithm import (
    Algorithm,
    Message,
    ProblemShape,
    StepSize,
    model_and_gradient,
)
from ....parts.base import LocatedError

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .base import TableKernel

Count = Annotated[int, Field(ge=1)]


class TableMethod(Algorithm):
    """Common base of the methods: local steps, and messages like those of `sgd`."""

    local_steps: Count = 1
    """Q: steps that a client makes on its own copy, each on a batch of its own; it
    sends the sum of their gradients."""
    local_step_size: StepSize | None = None
    """Step size of the local steps; by default `step_size`."""

    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("local_step_size",)

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        return model_and_gradient(shape)


class Ia2sgd(TableMethod):
    """Steps by the mean of every client's newest contribution, at each arrival.

    x <- x - step_size * (1/K) sum_j g_j, g_i being replaced first. Also known as ACE,
    all-client engagement; with `max_age`, ACED, the mean is over the clients whose
    contribution is at most that number of commits old.

    Source: Wang et al., Tackling Data Heterogeneity in Asynchronous Federated Learning
    (2025), ACE and ACED; methods.md, section 6.
    """

    kind: Literal["ia2sgd"] = "ia2sgd"
    max_age: Annotated[int, Field(ge=0)] | None = None
    """Commits since the read of a contribution up to which it counts."""
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous",)

    def check(self, problem: "Problem", protocol: Any) -> None:
        super().check(problem, protocol)
        if not protocol.gathers:
            raise LocatedError(
                "protocol.warm_up must be true with ia2sgd, whose table needs a "
                "contribution of each client before the first commit, got false; "
                "set it",
            )

    def make(self, setup: "RunSetup", constants: "Constants") -> "TableKernel":
        from .ia2sgd import Ia2sgdKernel

        return Ia2sgdKernel.of(self, setup, constants, max_age=self.max_age)


class Malenia(TableMethod):
    """Steps by the mean over clients of each one's mean contribution.

    x <- x - step_size * (1/K) sum_i (1/b_i) sum of client i's b_i contributions, all
    taken at x. The K clients are all that are asked, each of which a round waits for.

    Source: Tyurin and Richtarik, Optimal Time Complexities of Parallel Stochastic
    Optimization Methods Under a Fixed Computation Model (2023), Method 6.
    """

    kind: Literal["malenia"] = "malenia"
    protocols: ClassVar[tuple[str, ...]] = ("collect",)

    def check(self, problem: "Problem", protocol: Any) -> None:
        super().check(problem, protocol)
        if protocol.harmonic_mean is None:
            raise LocatedError(
                "protocol.harmonic_mean must be given for malenia, whose steps are "
                "means over all clients, got a rule that may end a round without some; "
                "write harmonic_mean: 1",
            )

    def make(self, setup: "RunSetup", constants: "Constants") -> "TableKernel":
        from .malenia import MaleniaKernel

        return MaleniaKernel.of(self, setup, constants)


class Ringleader(TableMethod):
    """Steps by the mean over clients of means that stay for a round.

    Each client's contributions of a round are averaged, and K commits follow, in which
    each client's next arrival is added to its own mean; what comes besides is for the
    next round.

    Source: Maranjyan and Richtarik, Ringleader ASGD (2025), Algorithm 1.
    """

    kind: Literal["ringleader"] = "ringleader"
    protocols: ClassVar[tuple[str, ...]] = ("phases",)

    def make(self, setup: "RunSetup", constants: "Constants") -> "TableKernel":
        from .ringleader import RingleaderKernel

        return RingleaderKernel.of(self, setup, constants)


class Ca2fl(TableMethod):
    """Buffers contributions less each client's former one, and adds the mean of these.

    v = h + (1/M) sum (D_i - h_i) over the M contributions of the buffer, h being the
    mean of all clients' former ones at the last commit; x <- x - step_size * v. D_i is
    what a client moved, divided by -1: the sum of its local steps.

    Source: Wang et al., Tackling the Data Heterogeneity in Asynchronous Federated
    Learning with Cached Update Calibration (2024), Algorithm 2; methods.md, section 6.
    """

    kind: Literal["ca2fl"] = "ca2fl"
    protocols: ClassVar[tuple[str, ...]] = ("buffered",)

    def make(self, setup: "RunSetup", constants: "Constants") -> "TableKernel":
        from .ca2fl import Ca2flKernel

        return Ca2flKernel.of(self, setup, constants)
