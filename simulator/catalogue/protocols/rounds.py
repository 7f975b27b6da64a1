"""Rounds: an exchange between all parties, then local steps."""

from fractions import Fraction
from typing import ClassVar, Literal, cast

import numpy as np
from jaxtyping import Int

from ...world.cycle import Cycle
from ...world.protocol import Cadence, LockStep, Protocol, Traits
from ...world.protocol_abilities import CountsMessages
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World


class Rounds(CountsMessages, Protocol):
    """An exchange between all parties, then local steps, round after round.

    How many local steps there are is the algorithm's matter; `clients.compute_per:
    step` makes them take their time one by one. The last party holds the labels; where
    its messages to itself take no time, it is a group of clients without links.

    Source: FedBCD, Algorithms 2 and 3.
    """

    kind: Literal["rounds"] = "rounds"
    traits: ClassVar[Traits] = Traits(
        common_batch=True, batch_per_round=True, everyone_works=True
    )
    order: Literal["parallel", "sequential"] = "parallel"
    """All parties at once, or one after the other, each with the outputs of those
    before it (FedBCD-p, FedBCD-s)."""
    exchange: Literal["star", "pairwise"] = "star"
    """Every party with the one that holds the labels, or with every other."""

    def messages_per_exchange(self, num_parties: int) -> int:
        """Returns the number of messages of an exchange between all parties.

        Source: FedBCD, section 3: 2 (K - 1) or K^2 - K.
        """
        others = num_parties - 1
        return 2 * others if self.exchange == "star" else num_parties * others

    def messages_per_round(self, num_parties: int) -> tuple[int, int]:
        """Returns the number of embeddings and of replies in a round."""
        of_parties = [self.messages_of(m, num_parties) for m in range(num_parties)]
        embeddings, replies = zip(*of_parties, strict=True)
        return sum(embeddings), sum(replies)

    def messages_of(self, party: int, num_parties: int) -> tuple[int, int]:
        """Returns the number of embeddings and replies of a party per round.

        In a star, the last party sends itself nothing. In sequence, what all parties
        hold of a new batch is sent before the first one moves (F-02), and that
        exchange needs no replies; those of single parties amount to one of all.
        """
        times = 2 if self.order == "sequential" else 1
        if self.exchange == "pairwise":
            return times * (num_parties - 1), 0
        return (0, 0) if party == num_parties - 1 else (times, 1)

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        return num_clients

    def messages_per_job(self, num_clients: int) -> Int[np.ndarray, "K 2"]:
        n = num_clients
        return np.array([self.messages_of(m, n) for m in range(n)], np.int64)

    @property
    def free_rule(self) -> LockStep | None:
        return LockStep() if self.order == "parallel" else None

    def described(self, num_clients: int) -> dict[str, object]:
        found = super().described(num_clients)
        stages = {
            "local steps" if name == "compute" else name: entry
            for name, entry in cast("dict[str, str]", found["stages"]).items()
        }
        waits = "parties that are done wait for the end of the round"
        return found | {"stages": stages, "queues": [waits]}

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns the pattern of rows: one per round, or one per party in sequence.

        A party's share of a round's messages need not be whole.
        """
        n = num_clients
        embeddings, replies = self.messages_per_round(n)
        parallel = self.order == "parallel"
        return Cadence(
            width=n if parallel else 1,
            num_registers=in_flight + 1,
            contributions_per_commit=n if parallel else 1,
            commits_per_round=1 if parallel else n,
            turns_per_round=1 if parallel else n,
            messages=(Fraction(embeddings, n), Fraction(replies, n)),
        )

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts the rounds; a party downloads, makes its local steps and uploads.

        In parallel, a round is one row and as long as its slowest party. In sequence,
        it is one row per party, in their order, and each reads what those before it
        left; what all parties hold of a new batch is sent before the first one moves
        (F-02).

        A party whose job is lost begins it again as soon as it is back; one that has
        left is waited for.

        Source: for the order of events, evidence/pages/decisions.md.
        """
        if self.order == "parallel":
            _Parallel(world, recorder).start()
        else:
            _Sequential(world, recorder).start()


class _Parallel:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._recorder = recorder
        self._parties = tuple(range(world.num_clients))
        self._round, self._awaited = 0, 0
        read, lose = recorder.read, recorder.lose
        self._cycle = Cycle(world, read, self._arrive, lose, selects=False)

    def start(self) -> None:
        self._awaited = len(self._parties)
        for party in self._parties:
            self._cycle.begin(party)

    def _arrive(self, party: int) -> None:
        self._recorder.arrive(party)
        self._awaited -= 1
        if not self._awaited:
            self._recorder.commit(self._parties, self._round)
            self._round += 1
            self.start()


class _Sequential:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._round, self._awaited = 0, 0
        read, lose = recorder.read, recorder.lose
        self._cycle = Cycle(world, read, self._arrive, lose, selects=False)

    def start(self) -> None:
        if self._world.is_plain:
            self._cycle.begin(0)
            return
        world = self._world
        self._awaited = world.num_clients
        send = world.at(Purpose.UPLOAD, self._sent)
        for party in range(world.num_clients):
            world.call(world.transit(Purpose.UPLOAD, party), send, party)

    def _sent(self, party: int) -> None:
        self._awaited -= 1
        if not self._awaited:
            self._cycle.begin(0)

    def _arrive(self, party: int) -> None:
        self._recorder.commit((party,), self._round)
        if party + 1 < self._world.num_clients:
            self._cycle.begin(party + 1)
        else:
            self._round += 1
            self.start()
