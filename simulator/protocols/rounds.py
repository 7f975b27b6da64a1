"""Rounds: an exchange between all parties, then local steps."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Rounds
from simulator.streams import Purpose
from simulator.world.cycle import Cycle
from simulator.world.world import World


def play(config: Rounds, world: World, recorder: Recorder) -> None:
    """Starts the rounds; a party downloads, makes its local steps and uploads.

    In parallel, a round is one row and as long as its slowest party. In sequence, it is
    one row per party, in their order, and each reads what those before it left; what
    all parties hold of a new batch is sent before the first one moves (F-02).

    A party whose job is lost begins it anew as soon as it is back; one that has left is
    waited for.

    Source: FedBCD, Algorithms 2 and 3; orders of events in docs/decisions.md.
    """
    if config.order == "parallel":
        _Parallel(world, recorder).start()
    else:
        _Sequential(world, recorder).start()


class _Parallel:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._env, self._recorder = world.env, recorder
        self._parties = tuple(range(world.num_clients))
        self._round, self._awaited = 0, 0
        arrive, lose = self._arrive, recorder.lose
        self._cycle = Cycle(world, self._read, arrive, lose, selects=False)

    def start(self) -> None:
        self._awaited = len(self._parties)
        for party in self._parties:
            self._cycle.begin(party)

    def _read(self, party: int) -> None:
        self._recorder.read(party, self._env.now)

    def _arrive(self, party: int) -> None:
        self._recorder.arrive(party, self._env.now)
        self._awaited -= 1
        if not self._awaited:
            self._recorder.commit(self._env.now, self._parties, self._round)
            self._round += 1
            self.start()


class _Sequential:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._env = world.env
        self._round, self._awaited = 0, 0
        arrive, lose = self._arrive, recorder.lose
        self._cycle = Cycle(world, self._read, arrive, lose, selects=False)

    def start(self) -> None:
        if self._world.is_plain:
            self._cycle.begin(0)
            return
        world, link = self._world, self._world.upload_link
        self._awaited = world.num_clients
        size = world.job.upload_bytes
        for party in range(world.num_clients):
            if link is None:
                world.call(world.transit(Purpose.UPLOAD, party), self._sent, party)
            else:
                latency = world.draw(Purpose.UPLOAD, party)
                world.call(latency, lambda p: link.send(p, size, self._sent), party)

    def _sent(self, party: int) -> None:
        del party
        self._awaited -= 1
        if not self._awaited:
            self._cycle.begin(0)

    def _read(self, party: int) -> None:
        self._recorder.read(party, self._env.now)

    def _arrive(self, party: int) -> None:
        self._recorder.commit(self._env.now, (party,), self._round)
        if party + 1 < self._world.num_clients:
            self._cycle.begin(party + 1)
        else:
            self._round += 1
            self.start()
