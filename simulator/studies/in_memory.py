"""Models, losses and arrays that a Python program hands over to `simulate`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalogue.data.arrays import by_name
from ..parts import functions
from ..parts.errors import ScenarioError
from ..scenario.reading import validated
from ..scenario.scenario import Scenario
from .paths import DATA

NAMES = ("x", "y", "x_test", "y_test")
"""Arrays, in the order of a tuple of them."""
Given = Mapping[str, Any] | Sequence[Any]
"""Arrays by their names, or in the order of `NAMES`; several inputs by name."""


def with_objects(
    scenario: Scenario,
    *,
    model: Any = None,
    loss: Any = None,
    server: Any = None,
    work: Any = None,
    weights: Any = None,
    evaluate: Any = None,
) -> Scenario:
    """Returns a scenario that names objects of this program.

    Args:
        scenario: The scenario, of which None leaves each entry.
        model: A model, or a function that makes one.
        loss: A function of outputs and targets, or the name of a loss.
        server: A model, or a function that makes one, over what parties send.
        work: Function that makes the clients' gradients in any framework.
        weights: Weights at the start, where the model is none of ours; by default the
            attribute of `work`.
        evaluate: Function that measures that model; by default the same.

    Raises:
        UserError: An object is missing, cannot be identified, or does not fit the
            scenario.
    """
    changes = _of_work(work, weights, evaluate)
    if model is not None and "model" in changes:
        raise ScenarioError(
            "model must be left out with weights, which take its place, got both; "
            "remove one of them"
        )
    if model is not None:
        named = functions.hand_over("model", model)
        changes["model"] = {"kind": "python", "build": named}
    if loss is not None:
        own = callable(loss)
        changes["loss"] = functions.hand_over("loss", loss) if own else loss
    if server is not None:
        had = scenario.problem.server
        if had is None:
            raise ScenarioError(
                "problem.server is missing; the model of a server needs problem.server "
                "in the scenario: {width: NUMBER}, what a party sends of a sample"
            )
        named = functions.hand_over("server", server)
        changes["server"] = {"width": had.width, "views": had.views, "build": named}
    if not changes:
        return scenario
    tree = scenario.model_dump(mode="json", exclude_unset=True)
    return validated({**tree, "problem": {**tree["problem"], **changes}})


def _of_work(work: Any, weights: Any, evaluate: Any) -> dict[str, Any]:
    """Returns the entries of a problem that name the functions of clients' work."""
    if weights is None:
        weights = getattr(work, "weights", None)
    if evaluate is None:
        evaluate = getattr(work, "evaluate", None)
    alone = work is None and weights is not None
    if alone or (weights is None) != (evaluate is None):
        raise ScenarioError(
            "work, weights and evaluate must be given together for a model that is "
            "none of the scenario's, or work alone; add what is missing"
        )
    if work is None:
        return {}
    found: dict[str, Any] = {"work": functions.hand_over("work", work)}
    if weights is not None:
        own = {"weights": weights, "evaluate": evaluate}
        named = {k: functions.hand_over(k, each) for k, each in own.items()}
        found["model"] = {"kind": "vector", **named}
    return found


def with_data(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a scenario as a mapping with an entry for data that take its place.

    What `problem.data` says of them without a kind, such as their scale, is kept.
    """
    problem = scenario.get("problem")
    if not isinstance(problem, Mapping):
        return scenario
    told = problem.get("data", {})
    if not isinstance(told, Mapping) or "kind" in told:
        return scenario
    data = {"kind": "npz", "path": DATA, **told}
    return {**scenario, "problem": {**problem, "data": data}}


def arrays(given: Given) -> dict[str, np.ndarray]:
    """Returns arrays by their names in a file, several inputs as `x/NAME`.

    Raises:
        ScenarioError: They are neither two nor four, or have other names.
    """
    if not isinstance(given, Mapping):
        if len(given) not in (2, 4):
            raise ScenarioError(
                f"data must be x and y, or {', '.join(NAMES)}, got {len(given)} "
                f"arrays; give them by name"
            )
        given = dict(zip(NAMES, given, strict=False))
    return by_name(given)
