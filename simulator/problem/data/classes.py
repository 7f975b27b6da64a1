"""Choice of the classes to learn: all, two groups of them, or some."""

import math
from typing import Literal

import numpy as np
from jaxtyping import Int32, Shaped

from ...parts.errors import ScenarioError

Samples = tuple[Shaped[np.ndarray, "_ _"], Shaped[np.ndarray, " _ *L"]]
"""Features `[N, P]` and labels `[N]`, or `[N, L]` where rows have frames."""
Choice = Literal["even_odd", "lower_upper"] | tuple[int, ...] | None
"""The entry `classes` of a data set."""
UNUSED = 2**31 - 1
"""New number of a class whose rows are left out."""


def select(
    choice: Choice, name: str, train: Samples, test: Samples, num_classes: int
) -> tuple[str, Samples, Samples, int]:
    """Returns the rows of the chosen classes, renumbered from 0, in their old order.

    Args:
        choice: Entry `classes` of the scenario; None changes nothing.
        name: Name of the data set.
        train: Training rows.
        test: Test rows.
        num_classes: Number of classes before the choice.

    Returns:
        The name with the choice, training rows, test rows and the number of classes.

    Raises:
        ScenarioError: A class does not exist or has no training rows, or there are no
            test rows at all.
    """
    if choice is None:
        return name, train, test, num_classes
    number = _renumbered(choice, name, num_classes)
    train, test = _taken(number, train), _taken(number, test)
    num_kept = len(choice) if isinstance(choice, tuple) else 2
    counts = np.bincount(train[1], minlength=num_kept)
    if not counts.all():
        empty = int(counts.argmin())
        what = (
            f"class {choice[empty]}"
            if isinstance(choice, tuple)
            else f"group {empty} of {choice}"
        )
        raise ScenarioError(
            f"problem.data.classes must have training rows in every class, got none of "
            f"{name} in {what}; choose other classes"
        )
    if not len(test[1]):
        raise ScenarioError(
            f"problem.data.classes must have test rows, got none of {name} in "
            f"{shown(choice)}; choose other classes, or raise test_fraction"
        )
    return f"{name} ({shown(choice)})", train, test, num_kept


def shown(choice: Choice) -> str:
    """Returns a choice in the form of tables: `even_odd`, or `3, 8`."""
    return ", ".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)


def _renumbered(
    choice: Choice, name: str, num_classes: int
) -> Int32[np.ndarray, " old"]:
    """Returns the new number of every old class, `UNUSED` for those left out."""
    old = np.arange(num_classes, dtype=np.int32)
    if choice == "even_odd":
        return old % np.int32(2)
    if choice == "lower_upper":
        return (old >= math.ceil(num_classes / 2)).astype(np.int32)
    number = np.full(num_classes, UNUSED, np.int32)
    for new, label in enumerate(choice or ()):
        if not isinstance(label, int) or label >= num_classes:
            raise ScenarioError(
                f"problem.data.classes must be classes of {name}, from 0 to "
                f"{num_classes - 1}, got {label}; choose one of them"
            )
        number[label] = new
    return number


def _taken(number: Int32[np.ndarray, " old"], rows: Samples) -> Samples:
    """Returns the rows of the chosen classes, under their new numbers."""
    x, y = rows
    labels = number[y.astype(np.int64)]
    kept = labels != UNUSED
    return (x, labels) if kept.all() else (x[kept], labels[kept])
