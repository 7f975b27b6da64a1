"""Jobs as arrays, the draws of their durations, and the registers that they read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...files.timeline import NO_SLOT
from ...world.laws.base import Draws, Durations
from ...world.streams import Purpose

if TYPE_CHECKING:
    from ...world.world import World

NOT_READ = -1
"""`read_version` of a job that has not started."""


class JobArrays(NamedTuple):
    """Jobs, one client's after another's, each in order.

    Times are in the clock's unit. Columns without meaning in a world are None.

    Attributes:
        client: Number of the client.
        job: Number of the job.
        read: Time of its read.
        end: Time of its arrival, or of its loss.
        read_version: Version that it has read, or `NOT_READ`.
        read_slot: Register of that version.
        own: Whether the read is a separate event; None where none is.
        request: Time of an event before the read, at which it requests work.
        requests: Whether there is such an event.
        started: Time at which it began to compute; None where it does so at its read.
        computed: Time at which it had computed, and sent its message; None where it
            arrives at once.
        sends: Messages that it sends, repeats included; None where that is one.
        twice: Whether the last of them arrives twice.
        outcome: `APPLIED`, or why nothing comes of it, an `Outcome`; None where
            something always does.
    """

    client: Int[np.ndarray, " J"]
    job: Int[np.ndarray, " J"]
    read: Shaped[np.ndarray, " J"]
    end: Shaped[np.ndarray, " J"]
    read_version: Int[np.ndarray, " J"]
    read_slot: Int[np.ndarray, " J"]
    own: Bool[np.ndarray, " J"] | None = None
    request: Shaped[np.ndarray, " J"] | None = None
    requests: Bool[np.ndarray, " J"] | None = None
    started: Shaped[np.ndarray, " J"] | None = None
    computed: Shaped[np.ndarray, " J"] | None = None
    sends: Int[np.ndarray, " J"] | None = None
    twice: Bool[np.ndarray, " J"] | None = None
    outcome: Int[np.ndarray, " J"] | None = None

    def at(self, where: np.ndarray) -> "JobArrays":
        """Returns some of the jobs, by a mask or by places."""
        if where.dtype == bool:
            where = np.flatnonzero(where)
        return JobArrays._make(None if c is None else c.take(where) for c in self)


def together(parts: Sequence[JobArrays]) -> JobArrays:
    """Returns the jobs of several pieces of one world."""
    return JobArrays._make(
        None if column[0] is None else np.concatenate(column)
        for column in zip(*parts, strict=True)
    )


LATER = 2**62
"""Position of an end that is not known yet."""


class Registers:
    """Registers of one run."""

    def __init__(self, number: int) -> None:
        self._readers = np.zeros(number, np.int64)
        self._free = np.arange(1, number)
        self._current = 0

    def assign(
        self,
        made: Int[np.ndarray, " n"],
        read: Int[np.ndarray, " r"],
        read_end: Int[np.ndarray, " r"],
        old: Int[np.ndarray, " o"],
        old_end: Int[np.ndarray, " o"],
    ) -> Int[np.ndarray, " n+1"]:
        """Gives registers to successive versions.

        Positions are of a common count of events. The last version has a register
        whether it is read by these jobs or not, for later ones may.

        Args:
            made: Positions at which versions are made, in order.
            read: Version that each new reader reads: 0 is the current one at first, the
                others are those made, from 1.
            read_end: Position at which the reader's job ends, or `LATER`.
            old: Register that an earlier reader has read.
            old_end: Position at which its job ends.

        Returns:
            Registers of the current version and of those made; `NO_SLOT` without.
        """
        n, slots = made.size, self._readers.size
        # Places of versions: registers in use, then what is made here.
        place = np.where(read == 0, self._current, slots + read - 1)
        readers = np.concatenate([self._readers, np.zeros(n, np.int64)])
        readers += np.bincount(place, minlength=slots + n)
        over = read_end < LATER
        places = np.concatenate([place[over], old])
        readers -= np.bincount(places, minlength=slots + n)
        last = np.full(slots + n, -1)
        np.maximum.at(last, places, np.concatenate([read_end[over], old_end]))
        kept = np.zeros(n + 1, bool)
        kept[read] = True
        kept[0] = kept[n] = True
        if n:
            current = np.concatenate([[self._current], np.arange(slots, slots + n - 1)])
            last[current] = np.maximum(last[current], made)
        if n:
            last[slots + n - 1] = -1  # it is current still
        else:
            last[self._current] = -1
        known = np.concatenate([np.ones(slots, bool), kept[1:]])
        leaves = np.flatnonzero((readers == 0) & (last >= 0) & known)
        leaves = leaves[np.argsort(last[leaves], kind="stable")]
        taken = np.flatnonzero(kept[1:])
        ready = self._free.size
        enough = np.searchsorted(last[leaves], made[taken], side="right") + ready
        if (enough <= np.arange(taken.size)).any():
            raise AssertionError("a timeline needs more registers than it says")
        # The i-th version that needs a register takes the i-th that is free.
        queue = np.concatenate([self._free, leaves])
        places = list(range(slots + n))
        for version, source in zip(
            (slots + taken).tolist(), queue[: taken.size].tolist(), strict=True
        ):
            places[version] = places[source]
        register = np.array(places)
        found = np.full(n + 1, NO_SLOT)
        found[0] = self._current
        found[1:][taken] = register[slots + taken]
        self._free = register[queue[taken.size :]]
        self._readers = np.zeros(slots, np.int64)
        left = np.flatnonzero(readers)
        self._readers[register[left]] = readers[left]
        self._current = int(found[n])
        return found


class StageDraws:
    """Successive durations of one stage of every client."""

    def __init__(self, world: "World", purpose: Purpose) -> None:
        self._world, self._purpose = world, purpose
        self._laws = [group.laws.get(purpose) for group in world.groups]
        self._firsts = [group.population.first for group in world.groups]
        if purpose in world.delays.shared:
            self._laws, self._firsts = [world.delays.shared[purpose]], [0]
        self._tick = world.tick
        self._position = np.zeros(world.num_clients, np.int64)
        self.exists = any(self._laws)
        """Whether the stage takes time in any group."""

    def next(
        self, clients: Int[np.ndarray, " C"], counts: Int[np.ndarray, " C"] | int
    ) -> Durations:
        """Returns the next durations of some clients, one client's after another's."""
        world = self._world
        dtype = np.float64 if self._tick is None else np.int64
        if len(self._laws) == 1:
            return self._draw(0, clients, counts).astype(dtype, copy=False)
        each = np.broadcast_to(counts, clients.shape)
        group_of = world.groups.of[clients]
        found = np.zeros(int(each.sum()), dtype)
        owner = np.repeat(group_of, each)
        for group, law in enumerate(self._laws):
            mine = group_of == group
            if law is not None and mine.any():
                own = counts if isinstance(counts, int) else counts[mine]
                found[owner == group] = self._draw(group, clients[mine], own)
        return found

    def _draw(
        self, group: int, clients: np.ndarray, counts: np.ndarray | int
    ) -> np.ndarray:
        law, world, first = self._laws[group], self._world, self._firsts[group]
        position = self._position[clients]
        self._position[clients] += counts
        if isinstance(counts, int):
            uniform = world.streams.rectangle(self._purpose, clients, position, counts)
            at = (position[:, None] + np.arange(counts)).ravel()
            who = np.repeat(clients, counts)
            uniform = uniform.ravel()
        else:
            ends = np.cumsum(counts)
            who = np.repeat(clients, counts)
            at = np.arange(who.size) + np.repeat(position - ends + counts, counts)
            uniform = world.streams.scattered(self._purpose, who, at)
        assert law is not None
        return law.draw(Draws(uniform, who - first, at), self._tick)
