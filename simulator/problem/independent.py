"""Batches that do not depend on each other, drawn for thousands of jobs at once.

Each job has numbers of its own in its client's stream: position `job * words` and
those after it. A number becomes one of `n` samples as the integer part of `u * n`,
where `u` has 52 random bits, so that chances differ by less than n / 2**52 of 1 / n.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..world.streams import SEEK, Purpose, Streams

ORDERED = 4
"""Pools of at most this number of batches are shuffled as a whole."""
AT_ONCE = 2**17
"""Numbers that are worked on at once, as many as stay in a core's cache."""


class Independent(NamedTuple):
    """The way to draw batches.

    Attributes:
        streams: Random numbers of the run.
        size: Number of samples of a local batch.
        steps: Number of local batches of a job.
        distinct: Whether the samples of a batch differ.
        common: Whether all clients have the same batches.
    """

    streams: Streams
    size: int
    steps: int
    distinct: bool
    common: bool

    def places(
        self,
        client: Int[np.ndarray, " j"],
        job: Int[np.ndarray, " j"],
        n: Int[np.ndarray, " j"],
    ) -> Int[np.ndarray, "j S"]:
        """Returns the batches of some jobs, in any order and with repeats.

        Args:
            client: Client of each job.
            job: Number of each job of its client.
            n: Number of samples that its client has.

        Returns:
            Places in the clients' samples, from 0 to n - 1.
        """
        if self.common:
            # A common batch has a stream of its own, apart from every client's.
            client = np.full(job.shape, 2**32)
        keys = np.stack([n, client, job], axis=1, dtype=np.int64)
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        new = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
        drawn = self._of_different(keys[new])
        found = np.empty((job.size, self.steps * self.size), np.int64)
        found[order] = drawn[np.cumsum(new) - 1]
        return found

    def _of_different(self, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Returns the batches of jobs that are sorted by pool, client and number."""
        found = np.empty((keys.shape[0], self.steps * self.size), np.int64)
        whole = keys[:, 0] <= ORDERED * self.size if self.distinct else keys[:, 0] < 0
        # The pools that are put into order are first; those of one size go together.
        sizes, counts = np.unique(keys[whole, 0], return_counts=True)
        start = 0
        for n, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            for part in _parts(start, start + count, n * self.steps):
                found[part] = self._ordered(n, keys[part])
            start += count
        for part in _parts(start, keys.shape[0], self.steps * self.size):
            found[part] = self._drawn(keys[part])
        return found

    def _ordered(self, n: int, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Draws batches as the beginnings of whole pools in random order.

        The order of independent numbers is uniform; two of them are equal with a
        chance below n**2 / 2**53.
        """
        numbers = self._numbers(keys, n * self.steps)
        order = np.argsort(numbers.reshape(-1, n), axis=1)
        return order[:, : self.size].reshape(keys.shape[0], -1)

    def _drawn(self, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Draws every sample by itself, and repeats again until there are none.

        All samples are treated alike, so the law of the batch is invariant under their
        relabelling: all sequences of different samples are equally likely.
        """
        n = keys[:, :1]
        width = self.steps * self.size
        ids = (self._numbers(keys, width) * n).astype(np.int64)
        if not self.distinct:
            return ids
        batches = ids.reshape(-1, self.size)
        left = np.arange(batches.shape[0])  # batches that may have repeats
        turn = 0
        while (repeats := _repeats(batches[left]))[0].size:
            turn += 1
            batch, column = left[repeats[0]], repeats[1]
            own = keys[batch // self.steps]
            position = own[:, 2] * _words(width)
            position += batch % self.steps * self.size + column
            again = self.streams.scattered(Purpose.SAMPLES, own[:, 1], position, turn)
            batches[batch, column] = (again * own[:, 0]).astype(np.int64)
            left = np.unique(batch)
        return ids

    def _numbers(
        self, keys: Int[np.ndarray, "j 3"], width: int
    ) -> Float[np.ndarray, "j width"]:
        """Returns each job's own numbers in (0, 1).

        Successive jobs of a client are one stretch of its stream.
        """
        words = _words(width)
        client, job = keys[:, 1], keys[:, 2]
        goes_on = (client[1:] == client[:-1]) & (job[1:] == job[:-1] + 1)
        starts = np.flatnonzero(np.append(True, ~goes_on))
        lengths = np.diff(starts, append=job.size)
        found = np.empty((job.size, words))
        long = lengths * words >= SEEK
        for at, length in zip(starts[long], lengths[long], strict=True):
            found[at : at + length] = self.streams.uniforms(
                Purpose.SAMPLES, int(client[at]), int(job[at]) * words, length * words
            ).reshape(length, words)
        short = np.repeat(~long, lengths)
        if short.any():
            found[short] = self.streams.rectangle(
                Purpose.SAMPLES, client[short], job[short] * words, words
            )
        return found[:, :width]


def _repeats(
    batches: Int[np.ndarray, "b size"],
) -> tuple[Int[np.ndarray, " r"], Int[np.ndarray, " r"]]:
    """Returns batch and column of the samples that an earlier one of theirs equals."""
    # Sorting numbers is three times as fast as sorting their places.
    bits = int(batches.shape[1]).bit_length()
    ordered = np.sort((batches << bits) | np.arange(batches.shape[1]), axis=1)
    ids = ordered >> bits
    batch, after = np.nonzero(ids[:, 1:] == ids[:, :-1])
    return batch, ordered[batch, after + 1] & ((1 << bits) - 1)


def _parts(start: int, stop: int, width: int) -> list[slice]:
    """Returns pieces of jobs whose numbers fit the cache."""
    size = max(1, AT_ONCE // width)
    return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


def _words(width: int) -> int:
    """Returns the numbers that a job is given: whole fours, for `Streams.uniforms`."""
    return -(-width // 4) * 4
