"""Accountants that a scenario may name, one record each.

A record has an accountant's properties before any release: the noise that it can
account for, and whose releases it counts. The class itself, which imports SciPy and
dp-accounting, is a name in text. `parts/parts.csv` lists the records, and plug-ins add
theirs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..parts import catalogue
from ..parts.base import NamedPart, function_at
from ..parts.errors import UserError, suggestion

if TYPE_CHECKING:
    from .accountants import Accountant


@dataclass(frozen=True)
class AccountantPart(NamedPart):
    """The full description of an accountant.

    Attributes:
        name: Name in `privacy.accountants`, and in the table `privacy`.
        made_by: Class as `"module:Class"`, a `simulator.privacy.accountants.Accountant`
            that needs no argument; it is imported when a run uses it.
        gaussian: Whether it accounts for Gaussian noise.
        pure: Whether it accounts for noise that has an epsilon at delta 0.
        counts_all: Whether it counts the releases of all clients together, each as if
            drawn from the data of all, and not a client's own.
        slow: Whether a result takes up to a second.
        condition: What it needs beyond a scenario, if it counts a server's draws.
        meaning: Description in a few words.
    """

    made_by: str
    gaussian: bool = False
    pure: bool = False
    counts_all: bool = False
    slow: bool = False
    condition: str = ""

    def accounts_for(self, law: str) -> bool:
        """Returns whether it can account for noise of a law."""
        return self.gaussian if law == "gaussian" else self.pure

    def make(self) -> "Accountant":
        """Returns an accountant with nothing released.

        Raises:
            UserError: The record of a plug-in names no class.
        """
        return function_at(self.made_by, f"{self.name}.made_by")()


def _own(name: str, made_by: str, meaning: str, **facts: Any) -> AccountantPart:
    module = "stalesim.simulator.privacy.accountants"
    return AccountantPart(name, f"{module}:{made_by}", meaning=meaning, **facts)


BASIC = _own("basic", "Basic", "sum of epsilons", pure=True)
ADVANCED = _own("advanced", "Advanced", "advanced composition", pure=True)
OPTIMAL = _own("optimal", "Optimal", "optimal composition of equal epsilons", pure=True)
RDP = _own("rdp", "Rdp", "Renyi divergences", gaussian=True, pure=True)
PLD = _own(
    *("pld", "Pld", "privacy loss distributions"), gaussian=True, pure=True, slow=True
)
GDP = _own("gdp", "Gdp", "Gaussian differential privacy", gaussian=True)
LEMMA2 = _own("lemma2", "Lemma2", "Lemmas 2 to 4 of A(DP)2SGD", gaussian=True)
THEOREM2 = _own(
    *("theorem2", "Theorem2", "Theorem 2 of A(DP)2SGD, never formal (A-05)"),
    gaussian=True,
    counts_all=True,
)


SECRET_COHORT = _own(
    *("secret_cohort", "SecretCohort", "secret draws of m of n clients, proved"),
    gaussian=True,
    condition="if the draws stay secret",
)
SECRET_POISSON = _own(
    *("secret_poisson", "SecretPoisson", "the field's convention, never formal"),
    gaussian=True,
    condition="if the draws stay secret, and as if each client were drawn by itself "
    "with chance m / n",
)


def known() -> tuple[AccountantPart, ...]:
    """Returns all accountants: this package's, then those of plug-ins."""
    return catalogue.records("accountants", AccountantPart)


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

    Raises:
        UserError: There is no such accountant.
    """
    return accountant(name).make()
