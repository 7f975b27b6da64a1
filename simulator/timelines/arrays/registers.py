"""Registers of versions, for many commits at once.

A version that is read has a register from when it is made until it is no longer current
and its last reader's job has ended. Registers that are free are taken in the order in
which they became so.
"""

import numpy as np
from jaxtyping import Int

from ...files.timeline import NO_SLOT

LATER = 2**62
"""Position of an end that is not known yet."""


class Registers:
    """Registers of one run.

    Args:
        number: How many there are.
    """

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
