"""The clients' world: a clock, and the stages of every client's cycle.

A client's cycle is idle, read, compute. A stage that is waited for is one bare SimPy
event with a callback, not a process: nothing else costs less per client.
"""

from array import array
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import simpy

from simulator.scenario.laws import Law as LawConfig
from simulator.scenario.scenario import Clients
from simulator.streams import Purpose, Streams
from simulator.world.laws import Draws, Law, Population, build, common_tick

Then = Callable[[int], None]
"""Called with a client when something has happened to it."""
MANY = 2000
"""Clients above which blocks of draws are small, to save memory."""
SMALL, LARGE = 32, 256
"""Draws in a block. It changes no draw, only how many are made at once."""


class Stage:
    """One stage of the cycle: successive durations of every client.

    Args:
        law: of the durations.
        purpose: keys the stage's draws.
        streams: of the run.
        num_clients: how many.
        tick: seconds of one tick, or None for a clock in seconds.
    """

    def __init__(
        self,
        law: Law,
        purpose: Purpose,
        streams: Streams,
        num_clients: int,
        tick: Fraction | None,
    ) -> None:
        self._law, self._purpose, self._streams = law, purpose, streams
        self._tick = tick
        self._size = SMALL if num_clients > MANY else LARGE
        self._position = array("q", bytes(8 * num_clients))
        self._block: list[Iterator[int | float]] = [iter(())] * num_clients

    def next(self, client: int) -> int | float:
        """Returns the client's next duration, in ticks or seconds."""
        for duration in self._block[client]:
            return duration
        position = self._position[client]
        self._position[client] = position + self._size
        uniform = self._streams.uniforms(self._purpose, client, position, self._size)
        values = self._law.draw(Draws(uniform, client, position), self._tick).tolist()
        self._block[client] = block = iter(values)
        return next(block)


class World:
    """A clock and the clients that live by it.

    Args:
        clients: the laws of the cycle; None for a world without clients.
        num_clients: how many.
        seed: of the run.
        step: law of a step without clients, for the centralised protocol.

    Raises:
        ScenarioError: a law that gives impossible durations.
    """

    def __init__(
        self,
        clients: Clients | None,
        num_clients: int,
        seed: int,
        step: LawConfig | None = None,
    ) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.num_clients = num_clients
        configs = {
            Purpose.IDLE: clients.idle if clients else None,
            Purpose.COMPUTE: clients.compute if clients else None,
            Purpose.STEP: step,
        }
        streams = Streams(seed)
        laws: dict[Purpose, Law] = {
            purpose: build(config, Population(num_clients, streams, 0, purpose.name))
            for purpose, config in configs.items()
            if config is not None
        }
        self.tick = common_tick(list(laws.values()))
        if Purpose.COMPUTE in laws:
            laws[Purpose.REFRESH] = laws[Purpose.COMPUTE]
        self._stages = {
            purpose: Stage(law, purpose, streams, num_clients, self.tick)
            for purpose, law in laws.items()
        }

    def seconds(self, times: list[int] | list[float]) -> np.ndarray:
        """Converts the clock's times to virtual seconds, float64."""
        if self.tick is None:
            return np.asarray(times, np.float64)
        ticks = np.asarray(times, np.int64)
        return ticks * self.tick.numerator / self.tick.denominator

    def duration(self, purpose: Purpose, client: int) -> int | float:
        """Returns the client's next duration of a stage, in the clock's unit."""
        return self._stages[purpose].next(client)

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns a function that lets a client pass a stage, and then calls `then`.

        A stage that takes no time is `then` itself.
        """
        if purpose not in self._stages:
            return then
        env, draw = self.env, self._stages[purpose].next

        def ended(event: simpy.Event) -> None:
            then(event._value)  # the property costs as much as the call

        def wait(client: int) -> None:
            event = simpy.Timeout(env, draw(client), client)
            event.callbacks.append(ended)  # pyright: ignore[reportOptionalMemberAccess]

        return wait
