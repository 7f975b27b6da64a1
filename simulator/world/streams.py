"""Keyed randomness of the world: a draw depends on its purpose, never on call order.

Every number is a function of (seed, purpose, client, position), so that changing the
algorithm, adding a client or enlarging the population changes no other draws, and
numbers can be drawn one client at a time or for a million clients at once. One
counter-based generator (Philox 4x64, Salmon et al., 2011) serves all clients: its
counter is set to the key, which costs 3 microseconds and no memory per client.
"""

from enum import IntEnum

import numpy as np
from jaxtyping import Float, Int, UInt64

SEEK = 64
"""Numbers of a client for which setting the generator's counter is worth its time."""
CACHED = 8192
"""Counters that are worked on at once, as many as stay in a core's cache."""


class Purpose(IntEnum):
    """The purpose of a stream of draws; part of every key."""

    IDLE = 0
    COMPUTE = 1
    REFRESH = 2
    STEP = 3
    SAMPLES = 4
    PARTITION = 5
    READ = 6
    UPLOAD = 7
    DOWNLOAD = 8
    SERVICE = 9
    PARAMETER = 10
    AVAILABLE = 11
    UNAVAILABLE = 12
    UP = 13
    DOWN = 14
    NORMAL = 15
    SLOW = 16
    SLOWEST = 17
    LOSS = 18
    DUPLICATE = 19
    SELECT = 20
    GRAPH = 21
    PARTNER = 22
    AVERAGE = 23
    REGIME = 24
    RESTART = 25
    ROUTE = 26
    TOKENS = 27
    DIFFICULTY = 28
    TRAIN = 29
    LOAD = 30
    EDGE_UP = 31
    EDGE_DOWN = 32
    ROOM = 33
    SHOCK = 34
    ARRIVAL = 35
    ROLE = 40
    ACCOUNT = 42
    EVALUATION = 50


class Streams:
    """Random numbers keyed by purpose, client and position.

    Args:
        seed: Seed of the run, >= 0.
    """

    def __init__(self, seed: int) -> None:
        self._key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=self._key)
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state

    def at(self, purpose: Purpose, client: int, block: int) -> np.random.Generator:
        """Returns the generator of one block; valid until the next call.

        For draws that are no uniforms, such as permutations. In a run, a purpose is
        used with this method or with the others, not with both.
        """
        self._seek(0, block, client, purpose)
        return self._generator

    def uniforms(
        self, purpose: Purpose, client: int, first: int, n: int
    ) -> Float[np.ndarray, " n"]:
        """Returns `n` successive numbers in (0, 1) of a client.

        Args:
            purpose: Purpose of the draws.
            client: Number of the client, from 0.
            first: Position of the first number, a multiple of 4.
            n: How many numbers.
        """
        self._seek(first // 4, 0, client, purpose)
        return _unit(self._bits.random_raw(n))

    def scattered(
        self,
        purpose: Purpose,
        client: Int[np.ndarray, " n"] | int,
        position: Int[np.ndarray, " n"],
        turn: int = 0,
    ) -> Float[np.ndarray, " n"]:
        """Returns one number in (0, 1) for each pair of client and position.

        The same numbers as `uniforms`, at 0.3 microseconds each; in later turns others,
        for draws that must be made again.
        """
        position = np.asarray(position, np.uint64)
        four = (
            (position >> np.uint64(2)) + np.uint64(1),
            np.full_like(position, turn),
            np.broadcast_to(np.asarray(client, np.uint64), position.shape),
            np.full_like(position, purpose),
        )
        words = np.stack(_philox(four, self._key))
        lane = (position & np.uint64(3)).astype(np.int64)
        return _unit(words[lane, np.arange(position.size)])

    def rectangle(
        self,
        purpose: Purpose,
        clients: Int[np.ndarray, " C"],
        first: Int[np.ndarray, " C"],
        n: int,
    ) -> Float[np.ndarray, "C n"]:
        """Returns `n` successive numbers in (0, 1) of each of some clients.

        The same numbers as `uniforms`, from any position on.
        """
        skip = first % 4
        if n >= SEEK:
            words = np.empty((clients.size, n), np.uint64)
            for row, (client, at, left) in enumerate(
                zip(clients.tolist(), first.tolist(), skip.tolist(), strict=True)
            ):
                self._seek(at // 4, 0, client, purpose)
                words[row] = self._bits.random_raw(left + n)[left:]
            return _unit(words)
        fours = (n + int(skip.max(initial=0)) + 3) // 4
        at = (first // 4)[:, None] + np.arange(1, fours + 1)
        who = np.repeat(clients, fours).astype(np.uint64)
        counter = at.ravel().astype(np.uint64)
        found = np.empty((counter.size, 4), np.uint64)
        for start in range(0, counter.size, CACHED):
            part = counter[start : start + CACHED]
            zeros = np.zeros_like(part)
            owner = who[start : start + CACHED]
            key = (part, zeros, owner, np.full_like(part, purpose))
            for lane, words in enumerate(_philox(key, self._key)):
                found[start : start + CACHED, lane] = words
        lanes = found.reshape(clients.size, 4 * fours)
        if clients.size and (skip == skip[0]).all():
            return _unit(lanes[:, skip[0] : skip[0] + n])
        return _unit(np.take_along_axis(lanes, skip[:, None] + np.arange(n), axis=1))

    def _seek(self, *counter: int) -> None:
        state = self._state
        state["state"]["counter"][:] = counter
        state["buffer_pos"] = 4
        state["has_uint32"] = 0
        state["uinteger"] = 0
        self._bits.state = state


def _unit(words: UInt64[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Returns the middles of 2**52 intervals that divide (0, 1)."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


_ROUNDS = 10
_FACTORS = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)


def _philox(
    counter: tuple[np.ndarray, ...], key: UInt64[np.ndarray, " 2"]
) -> tuple[np.ndarray, ...]:
    """Returns the four words of Philox 4x64 with 10 rounds for many counters.

    Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3
    (SC 2011); equals numpy.random.Philox.
    """
    first, second, third, fourth = counter
    keys = [int(word) for word in key]
    for _ in range(_ROUNDS):
        high, low = _product(first, _FACTORS[0])
        other_high, other_low = _product(third, _FACTORS[1])
        first, third = (
            other_high ^ second ^ np.uint64(keys[0]),
            high ^ fourth ^ np.uint64(keys[1]),
        )
        second, fourth = other_low, low
        keys = [(k + s) % 2**64 for k, s in zip(keys, _STEPS, strict=True)]
    return first, second, third, fourth


def _product(
    words: UInt64[np.ndarray, " n"], factor: np.uint64
) -> tuple[UInt64[np.ndarray, " n"], UInt64[np.ndarray, " n"]]:
    """Returns the high and the low word of 128-bit products."""
    high, low = words >> _HALF, words & _LOW
    factor_high, factor_low = factor >> _HALF, factor & _LOW
    lowest = low * factor_low
    middle = high * factor_low + (lowest >> _HALF)
    other = low * factor_high + (middle & _LOW)
    return high * factor_high + (middle >> _HALF) + (other >> _HALF), words * factor
