"""Expected reward of a policy on the test rows."""

from typing import Any

from jaxtyping import Float

from ...metrics import CLASSES, LIKELIHOOD, Metric


def expected_reward(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the mean chance of the right class, or answer, of the test rows.

    That of an answer is the product of the chances of its tokens, each given the prompt
    and the right tokens before it.
    """
    import jax.numpy as jnp

    from .. import losses

    del model
    each = losses.per_sample(problem.loss, logits, problem.y_test)
    if length := getattr(problem, "answer", 0):
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
