"""The name of a model of a user's own in a scenario. No JAX here."""

from typing import NamedTuple

from simulator.config.errors import ScenarioError


class ModelName(NamedTuple):
    """What a scenario calls a model.

    Attributes:
        text: `"module:name"`, or the name of an object that was handed over.
        entry: Entry that holds it, for messages.
    """

    text: str
    entry: str = "problem.model.build"

    def __str__(self) -> str:
        """Returns the name in quotes, for messages."""
        return repr(self.text)

    def refused(self, rule: str) -> ScenarioError:
        """Returns the error that an entry breaks a rule: "must ..., got ..."."""
        return ScenarioError(f"{self.entry} {rule}")
