"""Mean loss of the test rows, and its exponential."""

from typing import Any

from jaxtyping import Float

from ...metrics import LIKELIHOOD, OF_LOSS, Metric, Models


def loss(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the mean loss of the test rows; of cross-entropies in nats."""
    from .. import losses

    return losses.per_sample(problem.loss, logits, problem.y_test).mean()


def perplexity(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the exponential of the mean loss of the test rows.

    A model that gives each of n classes the chance 1 / n has a perplexity of n.
    """
    import jax.numpy as jnp

    return jnp.exp(loss(problem, model, logits))


TEST_LOSS = Metric(
    "test_loss",
    f"{__name__}:loss",
    meaning="mean over the test rows",
    label="Test loss",
    unit=OF_LOSS,
)
WORKER_LOSS = Metric(
    "worker_loss",
    f"{__name__}:loss",
    meaning="mean of the workers' own",
    unit=OF_LOSS,
    models=Models.EACH_WORKER,
)
TEST_PERPLEXITY = Metric(
    "test_perplexity",
    f"{__name__}:perplexity",
    meaning="exponential of the mean loss of the test rows",
    label="Test perplexity",
    unit="classes",
    needs=(LIKELIHOOD,),
)
