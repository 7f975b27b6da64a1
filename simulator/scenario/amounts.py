"""What a run would amount to, counted before memory and time are taken for it."""

from collections.abc import Iterator
from typing import NamedTuple

from simulator.config.errors import ScenarioError
from simulator.scenario.scenario import Scenario

MOST_EVALUATIONS = 1_000_000
"""Evaluations of a run."""
MOST_SAMPLES = 50_000_000
"""Samples of the jobs that one commit takes, drawn by their numbers: 3 GB in a buffer
of the fewest rows."""


class Amount(NamedTuple):
    """Something that a run would have.

    Attributes:
        entry: Entry that decides on it.
        number: How many.
        most: How many are allowed.
        things: What they are.
        remedy: What to do about too many.
    """

    entry: str
    number: float
    most: int
    things: str
    remedy: str


def check(scenario: Scenario, samples: int, width: int) -> None:
    """Refuses a run that would amount to too much, as far as that can be foreseen.

    Args:
        scenario: Scenario of the run.
        samples: Samples of a job, all its steps together.
        width: Most jobs of a commit.

    Raises:
        ScenarioError: one line with the entry, what it would be and the remedy.
    """
    for each in _amounts(scenario, samples, width):
        if each.number > each.most:
            raise too_many(each)


def too_many(amount: Amount) -> ScenarioError:
    """Returns the error that a run has too much of something."""
    return ScenarioError(
        f"{amount.entry} must leave at most {amount.most:,} {amount.things}, got "
        f"{amount.number:,.0f}; {amount.remedy}"
    )


def evaluations(entry: str, number: float) -> Amount:
    """Returns the evaluations of a run as an amount."""
    things = "evaluations of a run"
    return Amount(
        f"evaluate.every.{entry}",
        number,
        MOST_EVALUATIONS,
        things,
        "evaluate less often",
    )


def _amounts(scenario: Scenario, samples: int, width: int) -> Iterator[Amount]:
    every, stop = scenario.evaluate.every, scenario.stop
    for entry in type(every).model_fields:
        period, end = getattr(every, entry), getattr(stop, entry)
        if period is not None and end is not None:
            yield evaluations(entry, end / period)
    yield Amount(
        "algorithm",
        samples * width,
        MOST_SAMPLES,
        f"samples of the {width} jobs of a commit",
        "take fewer local_steps, or a smaller batch",
    )
