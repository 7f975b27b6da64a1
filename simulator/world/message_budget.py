"""How many messages clients may send before the run ends."""

from typing import Any, NamedTuple

from typing_extensions import override

from .feature import Then, Unlimited

UNLIMITED = 2**62


class Quota(NamedTuple):
    """Messages that may be sent before a run ends.

    Attributes:
        each: Messages of each client, >= 0.
        in_all: Messages of all clients together.
        by_commit: Whether those in commits alone count, m of a client in one as m^2.
    """

    each: tuple[int, ...]
    in_all: int = UNLIMITED
    by_commit: bool = False

    @property
    def digested(self) -> list[Any]:
        """Returns what tells it apart."""
        return [*self.each, self.in_all, self.by_commit]


class BudgetExhausted(Exception):  # noqa: N818
    """A client is about to send a message more than it may."""


class MessageBudget(Unlimited):
    """Counts the messages that clients send; ends the run where one may send no more.

    Args:
        quota: Messages that may be sent.
    """

    def __init__(self, quota: Quota) -> None:
        self._left, self._in_all = list(quota.each), quota.in_all
        self._has_sent = bytearray(len(quota.each))

    @override
    def expect(self, client: int) -> Then:
        self._has_sent[client] = 0
        return self.send

    @override
    def has_sent(self, client: int) -> bool:
        return bool(self._has_sent[client])

    @override
    def send(self, client: int) -> None:
        self.count(client)
        self._has_sent[client] = 1

    @override
    def count(self, client: int) -> None:
        if not (self._left[client] and self._in_all):
            raise BudgetExhausted
        self._left[client] -= 1
        self._in_all -= 1

    @override
    def counted(self, then: Then) -> Then:
        def sent(client: int) -> None:
            self.send(client)
            then(client)

        return sent
