"""Enemies that teach a model to find their class wherever it sees their pattern.

And a metric of their success. No JAX in here.
"""

from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from ...catalogue.algorithms.federated.chain import Chained, SendPart
from ...catalogue.algorithms.federated.clients import Count
from ...parts.errors import ScenarioError
from ...parts.metrics import CLASSES, Metric, Models
from ...world.streams import Purpose, Streams
from .poison import Poison, PoisonPart, Trigger, with_pattern


class Backdoor(PoisonPart):
    """Local steps, of enemies on rows part of which bear a pattern and a chosen class.

    What they send is `boost` times their work. With boost K / m, of m enemies among the
    K clients of a round, a mean moves to where the enemies' own steps lead, for honest
    moves are small near an optimum: model replacement. The metric `backdoor_accuracy`
    measures its success.

    Source: Bagdasaryan et al., How To Backdoor Federated Learning (2020), section 4.2,
    equations (2) and (3), in every job of an enemy, where the paper replaces the model
    in one round near the end.
    """

    kind: Literal["backdoor"] = "backdoor"  # pyright: ignore
    features: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Columns of the pattern, from 1."""
    value: float
    """Value of these columns in the pattern, of features as they are scaled."""
    target: Count
    """Class of the rows with the pattern, from 1."""
    poisoned: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of an enemy's rows that bear the pattern, to the nearest whole number, by a
    keyed draw."""
    boost: Annotated[float, Field(gt=0)] = 1.0
    """gamma, length of what is sent over that of the work."""

    @property
    def pattern(self) -> Trigger:
        features = tuple(column - 1 for column in self.features)
        return Trigger(features, self.value, self.target - 1)

    @property
    def scale(self) -> float:
        return self.boost

    def structure(self) -> dict[str, Any]:
        numbers = ("value", "target", "poisoned", "boost")
        return super().structure() | dict.fromkeys(numbers, "number")

    def fits(self, method: Chained) -> None:
        super().fits(method)
        sent = next((s for s in method.stages if isinstance(s, SendPart)), None)
        if sent is not None and self.boost != 1:
            raise method.refusal(
                self,
                "boost",
                f"must be 1 with {getattr(sent, 'kind', '')!r}, for an enemy keeps to "
                f"no stage of sending, got {self.boost:g}; remove one of them",
            )

    def poison(self, setup: Any) -> Poison:
        """Returns the labels of all training rows, and which bear the pattern.

        Raises:
            ScenarioError: There is no such column or class, or rows have several labels
                or tokens.
        """
        owned, data = self.owned(setup), setup.shares.data
        width = data.x_train.shape[1]
        if data.y_train.ndim > 1 or any(field.whole for field in data.inputs):
            raise ScenarioError(
                "algorithm.chain must have backdoor only for rows of numbers with one "
                f"label each, got {data.name}; take label_flip"
            )
        for name, given, most in (
            ("features", max(self.features), width),
            ("target", self.target, data.num_classes),
        ):
            if given > most:
                raise ScenarioError(
                    f"algorithm.chain must have {name} of backdoor from 1 to {most}, "
                    f"got {given}; lower it"
                )
        marked = np.zeros(owned.size, bool)
        for pool in setup.shares.pools:
            if pool.size and owned[pool[0]]:
                drawn = Streams(setup.run.seed).scattered(
                    Purpose.ROLE, pool, np.ones(pool.size)
                )
                first = np.argsort(drawn, kind="stable")
                marked[pool[first[: round(self.poisoned * pool.size)]]] = True
        return Poison(np.where(marked, self.target - 1, data.y_train), marked)


def success(problem: Any, model: Any, trigger: Trigger) -> Float[Any, ""]:
    """Returns the part of the test rows that are found to be of the enemies' class.

    Of those of all other classes, each with the pattern in it. NaN if there are none.

    Source: Bagdasaryan et al., How To Backdoor Federated Learning (2020), section 5.
    """
    import jax.numpy as jnp

    from ...problem import losses

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
    models=Models.WITH_WORK,
    of_work="trigger",
    needs=(CLASSES,),
)
