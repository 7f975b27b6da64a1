"""Accountants that a scenario may name, one record each.

A record says what others ask of an accountant before any release: the noise that it can
account for, and whose releases it counts. The class itself, which imports SciPy and
dp-accounting, is named as text. `parts/parts.csv` lists the records, and plug-ins
add theirs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..parts import catalogue
from ..parts.base import NamedPart, function_at
from ..parts.errors import UserError, suggestion

if TYPE_CHECKING:
    from .accountants import Accountant


@dataclass(frozen=True)
class AccountantPart(NamedPart):
    """Everything that is to be said of an accountant.

    Attributes:
        name: Name in `privacy.accountants`, and in the table `privacy`.
        made_by: Class as `"module:Class"`, a `simulator.privacy.accountants.Accountant`
            that needs no argument; it is imported when a run uses it.
        gaussian: Whether it accounts for Gaussian noise.
        pure: Whether it accounts for noise that has an epsilon at delta 0.
        counts_all: Whether it counts the releases of all clients together, each as if
            drawn from the data of all, and not a client's own.
        slow: Whether a result takes up to a second.
        meaning: Description in a few words.
    """

    made_by: str
    gaussian: bool = False
    pure: bool = False
    counts_all: bool = False
    slow: bool = False

    def accounts_for(self, law: str) -> bool:
        """Says whether it can account for noise of a law."""
        return self.gaussian if law == "gaussian" else self.pure

    def make(self) -> "Accountant":
        """Returns an accountant with nothing released.

        Raises:
            UserError: The record of a plug-in names no class.
        """
        own = self.made_by.startswith("stalesim.")
        return function_at(self.made_by, f"{self.name}.made_by", own=own)()


BASIC = AccountantPart(
    "basic",
    "stalesim.simulator.privacy.accountants:Basic",
    pure=True,
    meaning="sum of epsilons",
)
ADVANCED = AccountantPart(
    "advanced",
    "stalesim.simulator.privacy.accountants:Advanced",
    pure=True,
    meaning="advanced composition",
)
OPTIMAL = AccountantPart(
    "optimal",
    "stalesim.simulator.privacy.accountants:Optimal",
    pure=True,
    meaning="optimal composition of equal epsilons",
)
RDP = AccountantPart(
    "rdp",
    "stalesim.simulator.privacy.accountants:Rdp",
    gaussian=True,
    pure=True,
    meaning="Renyi divergences",
)
PLD = AccountantPart(
    "pld",
    "stalesim.simulator.privacy.accountants:Pld",
    gaussian=True,
    pure=True,
    slow=True,
    meaning="privacy loss distributions",
)
GDP = AccountantPart(
    "gdp",
    "stalesim.simulator.privacy.accountants:Gdp",
    gaussian=True,
    meaning="Gaussian differential privacy",
)
LEMMA2 = AccountantPart(
    "lemma2",
    "stalesim.simulator.privacy.accountants:Lemma2",
    gaussian=True,
    meaning="Lemmas 2 to 4 of A(DP)2SGD",
)
THEOREM2 = AccountantPart(
    "theorem2",
    "stalesim.simulator.privacy.accountants:Theorem2",
    gaussian=True,
    counts_all=True,
    meaning="Theorem 2 of A(DP)2SGD, never formal (A-05)",
)


def known() -> tuple[AccountantPart, ...]:
    """Returns all accountants: this package's, then those of plug-ins."""
    return catalogue.parts("accountants")


def accountant(name: str) -> AccountantPart:
    """Returns the record of an accountant.

    Raises:
        UserError: There is no such accountant.
    """
    found = next((part for part in known() if part.name == name), None)
    if found is None:
        names = [part.name for part in known()]
        raise UserError(
            f"accountant must be one of {', '.join(names)}, got {name!r}; "
            f"{suggestion(name, names) if name else 'try rdp'}"
        )
    return found


def make(name: str) -> "Accountant":
    """Returns an accountant with nothing released.

    Args:
        name: Name of its record.

    Raises:
        UserError: There is no such accountant.
    """
    return accountant(name).make()
