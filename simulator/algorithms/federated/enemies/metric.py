"""Success of a backdoor: how often a model finds its class in its pattern."""

from typing import Any

from jaxtyping import Float

from ....metrics import CLASSES, Metric, Models
from .poison import Trigger


def success(problem: Any, model: Any, trigger: Trigger) -> Float[Any, ""]:
    """Returns the part of the test rows that are found to be of the enemies' class.

    Of those of all other classes, each with the pattern in it. NaN if there are none.

    Source: Bagdasaryan et al., How To Backdoor Federated Learning (2020), section 5.
    """
    import jax.numpy as jnp

    from ....learning import losses
    from .poisoned import with_pattern

    logits = problem.model.apply(model, with_pattern(problem.x_test, trigger))
    outputs = losses.rows_first(problem.loss, logits)
    if outputs.shape == problem.y_test.shape:
        found = outputs > 0
    else:
        found = outputs.argmax(axis=-1)
    others = problem.y_test != trigger.target
    return jnp.mean(found == trigger.target, where=others, dtype=outputs.dtype)


BACKDOOR_ACCURACY = Metric(
    "backdoor_accuracy",
    f"{__name__}:success",
    meaning="of the test rows of other classes with the pattern of a backdoor, those "
    "found to be of its class",
    label="Success of the backdoor",
    unit="fraction",
    higher_is_better=False,
    bounds=(0.0, 1.0),
    models=Models.TRIGGERED,
    needs=(CLASSES,),
)
