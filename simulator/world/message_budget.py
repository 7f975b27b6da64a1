"""How many messages each client may send before the run ends."""

from collections.abc import Callable, Sequence


class BudgetExhausted(Exception):  # noqa: N818
    """A client is about to send a message more than it may."""


class MessageBudget:
    """Counts the messages that clients send; ends the run where one may send no more.

    Args:
        most: Messages of each client, >= 0.
    """

    def __init__(self, most: Sequence[int]) -> None:
        self._left = list(most)
        self._has_sent = bytearray(len(most))

    def begin(self, client: int) -> None:
        """Notes that a client is at a job whose message is not sent yet."""
        self._has_sent[client] = 0

    def has_sent(self, client: int) -> bool:
        """Says whether the client has sent the message of its job."""
        return bool(self._has_sent[client])

    def send(self, client: int) -> None:
        """Counts a message that is about to be sent.

        Raises:
            BudgetExhausted: the client may send no more.
        """
        if not self._left[client]:
            raise BudgetExhausted
        self._left[client] -= 1
        self._has_sent[client] = 1

    def counted(self, then: Callable[[int], None]) -> Callable[[int], None]:
        """Returns a function that counts a client's message before `then`."""

        def sent(client: int) -> None:
            self.send(client)
            then(client)

        return sent
