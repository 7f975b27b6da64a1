"""What a preference is, and the clients that it chooses from."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ...streams import Purpose
from ...timeline import JobSteps
from ..answers import Answers, Asking
from ..selection import Pool

if TYPE_CHECKING:
    from ..world import World

Choose = Callable[[int, float], list[int]]
"""Returns clients who are free: a number of them, or fewer, at a time of the clock."""


class Preference(Asking):
    """Which clients are selected, of those who are free: its options."""

    @property
    def varies_steps(self) -> bool:
        """Whether it gives those who are selected fewer local steps: never."""
        return False

    @abstractmethod
    def make(self, pool: "PreferringPool") -> Choose:
        """Returns what chooses in one run.

        Args:
            pool: The clients, and what is known of them.
        """


class PreferringPool(Pool):
    """The clients who wait to be selected; a preference chooses among them.

    Args:
        world: World of the clients; it knows the answers of the numerics.
        prefer: The preference.
        facts: As `Pool` takes them.
    """

    def __init__(self, world: "World", prefer: Preference, *facts: Any) -> None:
        super().__init__(*facts)
        self._world, self._position = world, 0
        self._choose = prefer.make(self)

    @property
    def answers(self) -> Answers:
        """What is known of the clients, if the preference asks."""
        answers = self._world.answers
        assert answers is not None
        return answers

    @property
    def samples(self) -> Float[np.ndarray, " K"]:
        """Samples of a job of each client."""
        samples = np.asarray(self._world.workload.samples_per_job, float)
        return np.broadcast_to(samples, self._world.num_clients)

    @property
    def most_steps(self) -> int:
        """Local steps of a job, by the algorithm."""
        return self._job_steps.most

    def give_steps(self, steps: dict[int, int]) -> None:
        """Gives the next jobs of some clients local steps, 1 to `most_steps`."""
        for client, own in steps.items():
            self._job_steps.next[client] = own

    @property
    def _job_steps(self) -> JobSteps:
        found = self._world.job_steps
        assert found is not None
        return found

    def uniforms(self, number: int) -> Float[np.ndarray, " N"]:
        """Returns the next numbers in (0, 1) of the run's selection."""
        first, self._position = self._position, self._position + -(-number // 4) * 4
        return self._streams.uniforms(Purpose.SELECT, 1, first, number)

    def draw(self, number: int, now: float) -> list[int]:
        """Returns different free clients, drawn by the scenario's chances.

        All who are free if these are fewer.
        """
        found: list[int] = []
        while len(found) < number and (client := super().take(now)) is not None:
            found.append(client)
        for client in found:
            self.give_back(client)
        return found

    def choose(self, number: int, now: float) -> list[int]:
        """Chooses some clients, or all who are there if these are fewer."""
        found = self._choose(number, now) if number > 0 else []
        for client in found:
            self.hold(client)
        return found

    def take(self, now: float) -> int | None:
        """Chooses a client who is not under way and is there; None if none is."""
        return next(iter(self.choose(1, now)), None)

    def ready(self, then: Callable[[int], None], argument: int) -> None:
        """Calls a function as soon as what the preference asks for is known."""
        if self._world.answers is None:
            then(argument)
        else:
            self._world.ask(then, argument)
