"""The model outputs that a loss needs, for the targets of a data set. No JAX."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...parts.errors import DataError, ScenarioError
from ...parts.metrics import facts
from .base import Dataset

if TYPE_CHECKING:
    from ...scenario.scenario import Problem


class OutputForm(NamedTuple):
    """The outputs of a row that a loss takes.

    Attributes:
        loss: Name of the loss, or `"module:function"`; "" for a party's message.
        num_outputs: Outputs of a row, or of each of its positions.
        positions: Numbers of positions of a row, such as frames or tokens, each with a
            class; () where a row has one target.
        target: Shape of a row's target.
    """

    loss: str
    num_outputs: int
    positions: tuple[int, ...] = ()
    target: tuple[int, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether the loss is a function of the user's own."""
        return ":" in self.loss

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes that a model's outputs of a row may have, the first best.

        A sequence model may have more classes than the data. Outputs for a custom loss
        are not specified.
        """
        if facts(self.loss).targets == "numbers":
            # A target of one number may stand for itself, or in an axis of its own.
            one = self.num_outputs == 1
            return (self.target, *(((), (1,)) if one else ()))
        if self.num_outputs == 1 and self.loss:
            return (self.positions, (*self.positions, 1))
        return ((*self.positions, self.num_outputs),)

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Returns whether outputs of a row may have a shape."""
        more = facts(self.loss).per_class and bool(self.positions)
        if more and shape[:-1] == self.positions:
            return shape[-1] >= self.num_outputs
        return self.is_own or shape in self.shapes()


def loss(config: "Problem", data: Dataset) -> str:
    """Returns the loss that a problem names, or that its classes call for.

    Raises:
        DataError: The targets are no classes, and the loss is of classes.
        ScenarioError: The loss is one for two classes, and there are more.
    """
    named: str = config.loss
    part = facts(named)
    if named != "auto" and part.targets != "classes":
        if part.zeros_and_ones:
            _check_zeros_and_ones(named, data)
        return named
    if data.no_classes:
        raise DataError(data.no_classes)
    if part.two_classes and data.num_classes > 2:
        raise ScenarioError(
            f"problem.loss must be softmax for {data.num_classes} classes, "
            f"got {named}; leave it out"
        )
    if named != "auto":
        return named
    return "sigmoid" if data.num_classes == 2 else "softmax"


def form(config: "Problem", data: Dataset) -> OutputForm:
    """Returns the outputs that a problem's loss takes.

    One for each class, or one for two classes but with `softmax` or a loss of one's
    own; one for each number of a target that is no class.

    Raises:
        DataError: As in `loss`.
        ScenarioError: As in `loss`.
    """
    named, target = loss(config, data), data.y_train.shape[1:]
    part = facts(named)
    if part.targets == "numbers" or not data.num_classes:
        return OutputForm(named, math.prod(target), target=target)
    if part.targets != "classes":
        return OutputForm(named, data.num_classes, target, target)
    one = data.num_classes == 2 and not part.per_class
    return OutputForm(named, 1 if one else data.num_classes, target, target)


def _check_zeros_and_ones(named: str, data: Dataset) -> None:
    targets = np.concatenate([data.y_train.reshape(-1), data.y_test.reshape(-1)])
    if data.num_classes != 2 and not np.isin(targets, (0, 1)).all():
        raise DataError(
            f"y of {data.name} must hold zeros and ones for problem.loss {named}, got "
            f"others; take squared, or leave problem.loss out"
        )
