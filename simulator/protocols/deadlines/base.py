"""What a deadline learns of a run's rounds, and what it decides."""

from abc import ABC, abstractmethod

from ...config.parts import Part


class Watch(ABC):
    """Watches the rounds of one run; seconds count from when a client was asked."""

    @abstractmethod
    def begin(self) -> float | None:
        """Begins a round; returns after how many seconds it ends, if that is known."""

    @abstractmethod
    def arrived(self, seconds: float) -> float | None:
        """Takes up a response in this round.

        Args:
            seconds: How long it took.

        Returns:
            Seconds from the round's begin after which it ends, where that is known
            from now on.
        """

    def late(self, seconds: float) -> None:
        """Takes up a response after its round.

        Args:
            seconds: How long it took; infinite where it was stopped.
        """
        del seconds


class Deadline(Part):
    """How long rounds are, by what has arrived: its options."""

    @abstractmethod
    def make(self) -> Watch:
        """Returns what watches one run."""
