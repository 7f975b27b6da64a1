"""Computes metrics of a model on the device, as their records say."""

from typing import Any

from jaxtyping import Array

from ..metrics import Takes, metric
from . import losses


def measure(
    problem: Any, model: Any, logits: Any, metrics: tuple[str, ...]
) -> dict[str, Array]:
    """Returns metrics of a model, by name.

    Args:
        problem: Problem with test targets, a loss and an objective.
        model: Model as the problem's objective takes it.
        logits: Outputs of the test rows, as the problem's model gives them.
        metrics: Names of the metrics.
    """
    found = {}
    for name in metrics:
        record = metric(name)
        if record.takes is Takes.OUTPUTS:
            outputs = losses.rows_first(problem.loss, logits)
            found[name] = record.function()(outputs, problem.y_test)
        else:
            found[name] = record.function()(problem, model, logits)
    return found
