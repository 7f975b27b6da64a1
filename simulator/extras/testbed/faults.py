"""What is done to clients at given moments: killed, paused and slowed."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...config.errors import UserError

NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
FORMS = {
    "kill": (rf"(\d+)@{NUMBER}(?:\+{NUMBER})?", "CLIENT@TIME or CLIENT@TIME+AWAY"),
    "pause": (rf"(\d+)@{NUMBER}\+{NUMBER}", "CLIENT@TIME+LENGTH"),
    "slow": (rf"(\d+)@{NUMBER}x{NUMBER}", "CLIENT@TIMExFACTOR"),
}
"""How each is written, as a pattern and in words."""


class Fault(NamedTuple):
    """What happens to a client.

    Attributes:
        what: `kill`, `pause` or `slow`.
        client: Number of the client, from 0.
        time: Virtual seconds.
        amount: Virtual seconds for which it is away or paused, None for ever; or the
            factor of its computing time.
    """

    what: str
    client: int
    time: float
    amount: float | None


def parsed(what: str, written: Sequence[str], num_clients: int) -> list[Fault]:
    """Returns faults as an option has them.

    Args:
        what: `kill`, `pause` or `slow`.
        written: Such as `2@3.5+1`: client 2, at 3.5 virtual seconds, for one.
        num_clients: How many clients there are.

    Raises:
        UserError: One is written otherwise, or there is no such client.
    """
    pattern, form = FORMS[what]
    faults = []
    for text in written:
        found = re.fullmatch(pattern, text)
        if found is None or not 1 <= int(found[1]) <= num_clients:
            raise UserError(
                f"--{what} must be {form}, with a client from 1 to {num_clients}, got "
                f"{text!r}; correct it"
            )
        amount = None if found[3] is None else float(found[3])
        faults.append(Fault(what, int(found[1]) - 1, float(found[2]), amount))
    return faults
