"""Filters of a server with data of its own: a message against its own gradient."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from pydantic import Field

from ...catalogue.algorithms.federated.chain import Chained, ReceivePart
from ...catalogue.algorithms.federated.clients import Count
from ...catalogue.algorithms.federated.stages import Contributions, ServerRow
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...parts.parts import tag
from ...problem.constants import Constants
from ...world.streams import Purpose, Streams

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ...engine import client_work
    from ...engine.setup import RunSetup
    from ...problem.horizontal import HorizontalProblem
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    client_work = Late("...engine.client_work", __package__)
    Array = HorizontalProblem = RunSetup = Any

NonNegative = Annotated[float, Field(ge=0)]
NO_VERSION = 2**31 - 1
"""Version of a gradient before there is any."""


class Own(NamedTuple):
    """The server's gradient.

    Attributes:
        gradient: At the model of a version.
        version: The version.
    """

    gradient: Float[Array, "..."]
    version: Int[Array, ""]


class TrustedPart(ReceivePart):
    """Common base: a message is applied if it goes with the server's own gradient.

    The server's is taken at its current model, on rows that it has drawn of all
    training data before the run, without replacement; clients have these as well. A
    message that it refuses makes a commit of weight 0, without a step.
    """

    statistics_would_be: ClassVar[str] = "lost"
    samples: Count
    """Rows of the server."""
    _rows: Int[Array, " S"]

    def fits(self, method: Chained) -> None:
        """Refuses moves, which the server's gradient is no measure of."""
        passes, rule = method.work.passes, getattr(method.work, "local_optimizer", None)
        if passes.steps > 1 or passes.epochs is not None or rule is not None:
            raise method.refusal(
                self,
                "",
                "must be with one local step without local_optimizer, for it compares "
                "gradients, got another work; change one of them",
            )

    def make(self, setup: RunSetup, constants: Constants) -> Any:
        """Returns a filter, with the rows that the server has drawn.

        Raises:
            ScenarioError: There are fewer rows.
        """
        number = setup.shape.num_samples
        if self.samples > number:
            raise ScenarioError(
                f"algorithm.chain's {tag(type(self))!r} must have at most {number} "
                f"samples, the rows for training, got {self.samples}; lower it"
            )
        drawn = Streams(setup.run.seed).at(Purpose.TRUSTED, 0, 0)
        rows = drawn.choice(number, self.samples, replace=False)
        return self.in_program(_rows=jnp.asarray(rows, jnp.int32))

    def start(self, problem: HorizontalProblem, weights: Array) -> Own:
        return Own(jnp.zeros_like(weights), jnp.int32(NO_VERSION))

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Own
    ) -> tuple[Contributions, Own]:
        """Returns the contributions, of which some count nothing."""
        message: Any = contributions.message
        own = jax.lax.cond(
            state.version == row.event.version,  # rows that gather change no model
            lambda: state.gradient,
            lambda: client_work.gradient_of(row.problem, row.weights, self._rows)[1],
        )
        state = Own(own, row.event.version)
        flat = message.reshape(message.shape[0], -1)
        taken, passes = self.passed(flat, own.reshape(-1), row.step_size)
        factor, share = contributions.factor, contributions.share
        return contributions._replace(
            message=taken.reshape(message.shape),
            factor=jnp.where(passes, factor, 0),
            share=jnp.where(passes, share, jnp.zeros_like(share)),
        ), state

    @abstractmethod
    def passed(
        self,
        messages: Float[Array, "W D"],
        own: Float[Array, " D"],
        step_size: Float[Array, ""],
    ) -> tuple[Float[Array, "W D"], Bool[Array, " W"]]:
        """Returns the messages as they are applied, and which are.

        Args:
            messages: Messages.
            own: The server's gradient.
            step_size: The server's step size.
        """


class AflGuard(TrustedPart):
    """Applies a message whose distance from the server's g is at most lambda |g|.

    g is that of all trusted rows at the model of every commit; how old the paper lets
    it be was not checked.

    Source: Fang et al., AFLGuard: Byzantine-robust Asynchronous Federated Learning
    (2022), Algorithm 1. The paper was not at hand: two programs that others have
    published take a message by this rule, with g of the present model.
    """

    kind: Literal["afl_guard"] = "afl_guard"
    tolerance: Annotated[float, Field(gt=0)]
    """lambda."""

    def passed(
        self, messages: Array, own: Array, step_size: Array
    ) -> tuple[Array, Array]:
        apart = jnp.linalg.norm(messages - own[None], axis=1)
        return messages, apart <= self.tolerance * jnp.linalg.norm(own)


class ZenoPlusPlus(TrustedPart):
    """Scales a message g to the length of the server's v; applies it if it descends.

    That is if gamma <v, g> - rho |g|^2 >= -gamma epsilon, gamma being the server's step
    size. v is of all trusted rows at the model of every commit, where the paper takes a
    batch of them and allows v to be some commits old.

    Source: Xie, Koyejo and Gupta, Zeno++: Robust Fully Asynchronous SGD (2020),
    Algorithm 1. The paper was not at hand. Of three programs that others have published
    all have this score with v of the present model; two scale g to the length of v,
    but apply it as it was sent, and have |v| in place of its square.
    """

    kind: Literal["zeno_plus_plus"] = "zeno_plus_plus"
    rho: NonNegative
    """rho, the price of a step's square."""
    epsilon: NonNegative = 0.0
    """epsilon, ascent that is tolerated."""

    def passed(
        self, messages: Array, own: Array, step_size: Array
    ) -> tuple[Array, Array]:
        length = jnp.maximum(jnp.linalg.norm(messages, axis=1, keepdims=True), 1e-30)
        scaled = messages * (jnp.linalg.norm(own) / length)
        score = step_size * scaled @ own - self.rho * (scaled**2).sum(axis=1)
        return scaled, score >= -step_size * self.epsilon
