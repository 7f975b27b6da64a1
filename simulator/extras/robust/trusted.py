"""Filters of a server with data of its own: a message against its own gradient."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...algorithms.federated.chain import Chained, ReceivePart
from ...algorithms.federated.parts import Count
from ...models.parts import ModelCounts

NonNegative = Annotated[float, Field(ge=0)]


class TrustedPart(ReceivePart):
    """Common base: a message is applied if it goes with the server's own gradient.

    The server's is taken at its current model, on rows that it has drawn of all
    training data before the run, without replacement; clients have these as well. A
    message that it refuses makes a commit of weight 0, without a step.
    """

    made_by: ClassVar[str] = f"{__package__}.running:filtering"
    samples: Count
    """Rows of the server."""

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

    def check_model(self, method: Chained, counts: ModelCounts) -> None:
        method.refuse_statistics(self, counts, "lost")

    @abstractmethod
    def __call__(self, messages: Any, own: Any, step_size: Any) -> tuple[Any, Any]:
        """Returns the messages as they are applied, and which are.

        Args:
            messages: Messages, `[W, D]`.
            own: The server's gradient, `[D]`.
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

    def __call__(self, messages: Any, own: Any, step_size: Any) -> tuple[Any, Any]:
        """Returns the messages, and which are applied."""
        import jax.numpy as jnp  # only where a run needs it

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

    def __call__(self, messages: Any, own: Any, step_size: Any) -> tuple[Any, Any]:
        """Returns the scaled messages, and which are applied."""
        import jax.numpy as jnp  # only where a run needs it

        length = jnp.maximum(jnp.linalg.norm(messages, axis=1, keepdims=True), 1e-30)
        scaled = messages * (jnp.linalg.norm(own) / length)
        score = step_size * scaled @ own - self.rho * (scaled**2).sum(axis=1)
        return scaled, score >= -step_size * self.epsilon
