"""Ends of a run."""

from typing import Annotated

from pydantic import Field, model_validator

from .base import Config, LocatedError

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Windowed(Config):
    """A diagnostic of commits whose mean over the last few falls below a value.

    Located to the row: the run ends with the first commit at which it does.
    """

    column: str = "loss"
    """Column of the table `commits`."""
    below: float
    """Value below which the mean ends the run."""
    commits: Count = 5
    """Successive commits that the mean is over."""


class Stop(Config):
    """The ends of a run; the first that comes about counts.

    An epoch is a pass of every client over its data on average (VAFL, V-28).
    """

    time: Seconds | None = None
    """Virtual seconds."""
    commits: Count | None = None
    """Versions of the model."""
    contributions: Count | None = None
    """Contributions that were applied."""
    rounds: Count | None = None
    """Rounds, of protocols that have any."""
    epochs: Annotated[float, Field(gt=0)] | None = None
    """Passes over the training data, of all clients together."""
    bytes: Count | None = None
    """Bytes of contributions, up and down, as in the table `evaluations`."""
    target: dict[str, float] | None = None
    """A metric and its value, looked at in evaluations; with one of the above."""
    windowed: Windowed | None = None
    """A diagnostic that is looked at in every commit; with one of the above."""

    @model_validator(mode="after")
    def _ends(self) -> "Stop":
        others = {"target", "windowed"}
        if all(end is None for name, end in self if name not in others):
            raise ValueError(
                "must have at least one of time, commits, contributions, rounds, "
                "epochs and bytes, or the run does not end; add one"
            )
        if self.target is not None and len(self.target) != 1:
            raise LocatedError(
                "target must be one metric and its value; write for example "
                "target: {test_accuracy: 0.9}"
            )
        return self
