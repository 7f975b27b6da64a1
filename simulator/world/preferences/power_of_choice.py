"""Power of choice: the largest losses among some candidates."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from .base import Choose, Preference, PreferringPool


class PowerOfChoice(Preference):
    """Of some candidates, those whose last loss was largest.

    Candidates are drawn without replacement by the selection's chances (`by`: shares of
    the data in the paper); at least as many as are to be chosen. A client that has not
    worked yet counts as the largest loss of all; of equal losses the one that was drawn
    first is taken.

    Source: Cho, Wang and Joshi, Client Selection in Federated Learning: Convergence
    Analysis and Power-of-Choice Selection Strategies (2020), the variant rpow-d, which
    takes the losses of clients' last jobs and sends nothing for it.
    """

    kind: Literal["power_of_choice"] = "power_of_choice"
    asks: ClassVar[tuple[str, ...]] = ("losses",)
    candidates: Annotated[int, Field(ge=2)]
    """d, of which the selection's number, or one in the place of another, is taken."""

    def make(self, pool: PreferringPool) -> Choose:
        """Returns what chooses in one run."""

        def choose(number: int, now: float) -> list[int]:
            drawn = pool.draw(max(self.candidates, number), now)
            losses = pool.answers.losses[drawn]
            losses[np.isnan(losses)] = np.inf
            first = np.argsort(-losses, kind="stable")[:number]
            return [drawn[place] for place in first]

        return choose
