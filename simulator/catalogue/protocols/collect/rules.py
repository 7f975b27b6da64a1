"""When a round has gathered enough."""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar


class Enough(ABC):
    """The rule that ends a round, fed with its trials one by one."""

    watches: ClassVar[bool] = False
    """Whether it needs the durations of jobs."""

    def took(self, client: int, seconds: float) -> None:  # noqa: B027 (most ignore it)
        """Takes up the job of a client that has arrived, and its virtual seconds."""

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
        return True


class Count(Enough):
    """A number of contributions, from whatever clients.

    Args:
        count: Returns the number of a round that begins.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self._count, self._left = count, 1

    def begin(self) -> None:
        self._left = self._count()

    def tried(self, client: int, *, arrived: bool) -> bool:
        self._left -= arrived
        return self._left <= 0


class HarmonicMean(Enough):
    """Counts of the clients whose harmonic mean is large enough.

    The condition is n / sum(1 / b_i) >= h. The sum is kept in floating point, and
    worked out exactly where rounding could decide.

    Args:
        least: h, >= 1.
        chosen: The selected clients, n of them.

    Source: Tyurin and Richtarik (2023), Method 6 (Malenia SGD).
    """

    def __init__(self, least: float, chosen: list[int]) -> None:
        self._most = Fraction(len(chosen)) / Fraction(repr(least))
        self._chosen = chosen
        self.begin()

    def begin(self) -> None:
        self._counts = dict.fromkeys(self._chosen, 0)
        self._missing, self._inverse = len(self._chosen), 0.0

    def tried(self, client: int, *, arrived: bool) -> bool:
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
    """A number of trials of each client, all of them."""

    def __init__(self, quotas: list[int], chosen: list[int]) -> None:
        self._quotas = {client: quotas[client] for client in chosen}
        self.begin()

    def begin(self) -> None:
        self._left, self._all = dict(self._quotas), sum(self._quotas.values())

    def tried(self, client: int, *, arrived: bool) -> bool:
        self._left[client] -= 1
        self._all -= 1
        return self._all <= 0

    def goes_on(self, client: int) -> bool:
        return self._left[client] > 0


class AllottedJobs(Quotas):
    """A number of jobs a round, allotted by lower bounds of the clients' mean times.

    Each job goes to the client whose bound times its number of jobs would be least with
    it. A client without a finished job has the bound 0, so each is tried; of equal
    clients, the one with fewer jobs, then the one with fewer finished jobs, comes
    first.

    Args:
        jobs: B.
        spread: alpha, virtual seconds.
        chosen: The clients of the round.

    Source: Maranjyan, Saad, Richtarik and Orabona, ATA: Adaptive Task Allocation for
    Efficient Resource Management in Distributed Machine Learning (2025), by its
    authors' code (`ATA` of vectozavr/ringmaster-lmo), where bounds below 0 count as 0
    too (`uniform`); it draws the order of clients that were never seen.
    """

    watches: ClassVar[bool] = True

    def __init__(self, jobs: int, spread: float, chosen: list[int]) -> None:
        self._jobs, self._spread = jobs, spread
        self._seen = dict.fromkeys(chosen, 0)
        self._total = dict.fromkeys(chosen, 0.0)
        self._round = 0

    def begin(self) -> None:
        self._left, self._all = self.allotted(), self._jobs
        self._round += 1

    def took(self, client: int, seconds: float) -> None:
        self._seen[client] += 1
        self._total[client] += seconds

    def allotted(self) -> dict[int, int]:
        """Returns each client's jobs of a next round, whose longest bound is least."""
        found = dict.fromkeys(self._seen, 0)
        bounds = {client: self.bound(client) for client in found}
        first = [(bounds[c], 0, seen, c) for c, seen in self._seen.items()]
        heapq.heapify(first)
        for _ in range(self._jobs):
            _, number, seen, client = first[0]
            found[client] = number + 1
            then = ((number + 2) * bounds[client], number + 1, seen, client)
            heapq.heapreplace(first, then)
        return found

    def bound(self, client: int) -> float:
        """Returns the lower bound of a client's mean seconds by the rounds so far."""
        seen = self._seen[client]
        if not seen:
            return 0.0
        part = math.log(2 * self._round**2) / seen
        width = 4 * math.e * self._spread * (math.sqrt(part) + part)
        return max(self._total[client] / seen - width, 0.0)


class AfterSeconds(Enough):
    """Nothing but the clock ends the round."""

    def begin(self) -> None:
        """Begins a round."""

    def tried(self, client: int, *, arrived: bool) -> bool:
        return False
