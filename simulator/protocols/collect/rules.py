"""When a round has gathered enough."""

from abc import ABC, abstractmethod
from fractions import Fraction


class Enough(ABC):
    """The rule that ends a round, fed with its trials one by one."""

    @abstractmethod
    def begin(self) -> None:
        """Begins a round: nothing has been tried yet."""

    @abstractmethod
    def tried(self, client: int, *, arrived: bool) -> bool:
        """Counts a trial of a client.

        Args:
            client: Number of the client, from 0.
            arrived: Whether a contribution came of it.

        Returns:
            Whether the round is over.
        """

    def goes_on(self, client: int) -> bool:
        """Whether a client has another trial in this round."""
        del client
        return True


class Count(Enough):
    """So many contributions, from whatever clients."""

    def __init__(self, count: int) -> None:
        self._count, self._left = count, count

    def begin(self) -> None:
        """Begins a round."""
        self._left = self._count

    def tried(self, client: int, *, arrived: bool) -> bool:
        """Counts a contribution."""
        del client
        self._left -= arrived
        return self._left <= 0


class HarmonicMean(Enough):
    """Counts of the clients whose harmonic mean is large enough.

    The condition is n / sum(1 / b_i) >= h. The sum is kept in floating point, and
    worked out exactly where rounding could decide.

    Args:
        least: h, >= 1.
        asked: The clients that are asked, n of them.

    Source: Tyurin and Richtarik (2023), Method 6 (Malenia SGD).
    """

    def __init__(self, least: float, asked: list[int]) -> None:
        self._most = Fraction(len(asked)) / Fraction(repr(least))
        self._asked = asked
        self.begin()

    def begin(self) -> None:
        """Begins a round."""
        self._counts = dict.fromkeys(self._asked, 0)
        self._missing, self._inverse = len(self._asked), 0.0

    def tried(self, client: int, *, arrived: bool) -> bool:
        """Counts a contribution."""
        if not arrived:
            return False
        count = self._counts[client]
        self._counts[client] = count + 1
        if count == 0:
            self._missing -= 1
            self._inverse += 1.0
        else:
            self._inverse -= 1 / (count * (count + 1))
        if self._missing:
            return False
        most = float(self._most)
        if abs(self._inverse - most) > 1e-9 * most:
            return self._inverse < most
        exact = sum(Fraction(1, count) for count in self._counts.values())
        return exact <= self._most


class Quotas(Enough):
    """So many trials of each client, all of them."""

    def __init__(self, quotas: list[int], asked: list[int]) -> None:
        self._quotas = {client: quotas[client] for client in asked}
        self.begin()

    def begin(self) -> None:
        """Begins a round."""
        self._left, self._all = dict(self._quotas), sum(self._quotas.values())

    def tried(self, client: int, *, arrived: bool) -> bool:
        """Counts a trial."""
        del arrived
        self._left[client] -= 1
        self._all -= 1
        return self._all <= 0

    def goes_on(self, client: int) -> bool:
        """Whether a client has trials left."""
        return self._left[client] > 0


class AfterSeconds(Enough):
    """Nothing but the clock ends the round."""

    def begin(self) -> None:
        """Begins a round."""

    def tried(self, client: int, *, arrived: bool) -> bool:
        """Counts nothing."""
        del client, arrived
        return False
