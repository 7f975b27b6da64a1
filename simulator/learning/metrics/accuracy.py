"""Accuracy of the test rows: of the model that is read out, and of workers' own."""

from typing import Any

from jaxtyping import Float, Num

from ...metrics import CLASSES, Metric, Models, Takes


def accuracy(
    outputs: Float[Any, " S *C"], targets: Num[Any, " S *T"]
) -> Float[Any, ""]:
    """Returns the fraction of targets that are found.

    A class is found by the largest of its row's outputs; one of two classes by the sign
    of its output, where there are as many outputs as targets.
    """
    import jax.numpy as jnp

    if outputs.shape == targets.shape:
        right = (outputs > 0) == (targets == 1)
    else:
        right = outputs.argmax(axis=-1) == targets.reshape(outputs.shape[:-1])
    return jnp.mean(right, dtype=outputs.dtype)


TEST_ACCURACY = Metric(
    "test_accuracy",
    f"{__name__}:accuracy",
    meaning="of the test rows",
    label="Test accuracy",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(CLASSES,),
)
WORKER_ACCURACY = Metric(
    "worker_accuracy",
    f"{__name__}:accuracy",
    meaning="mean of the workers' own",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    models=Models.EACH_WORKER,
    takes=Takes.OUTPUTS,
    needs=(CLASSES,),
)
