"""What a run would amount to, counted before memory and time are taken for it."""

from ..parts.errors import ScenarioError
from .scenario import Scenario

MOST_EVALUATIONS = 1_000_000
"""Evaluations of a run."""
MOST_SAMPLES = 50_000_000
"""Samples of the jobs that one commit takes: 3 GB of numbers in the smallest buffer."""


def check(scenario: Scenario, samples: int, width: int) -> None:
    """Refuses a run that would amount to too much, as far as that can be foreseen.

    Args:
        scenario: Scenario of the run.
        samples: Samples of a job, all its steps together.
        width: Most jobs of a commit.

    Raises:
        ScenarioError: one line with the entry, what it would be and the remedy.
    """
    every, stop = scenario.evaluate.every, scenario.stop
    for entry, period in every:
        end = getattr(stop, entry)
        if period is not None and end is not None:
            check_evaluations(entry, end / period)
    if samples * width > MOST_SAMPLES:
        raise ScenarioError(
            f"algorithm must leave at most {MOST_SAMPLES:,} samples of the {width} "
            f"jobs of a commit, got {samples * width:,}; take fewer local_steps, or a "
            f"smaller batch"
        )


def check_evaluations(entry: str, number: float) -> None:
    """Refuses more evaluations of a run than `MOST_EVALUATIONS`.

    Args:
        entry: Unit of `evaluate.every`.
        number: How many there would be.
    """
    if number > MOST_EVALUATIONS:
        raise ScenarioError(
            f"evaluate.every.{entry} must leave at most {MOST_EVALUATIONS:,} "
            f"evaluations of a run, got {number:,.0f}; evaluate less often"
        )
