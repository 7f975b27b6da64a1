"""Takers of one folder as a discrete-event system: killed, stopped, with any clocks.

As in `play_runner`, the program's own code runs in greenlets, and every call of a disk
takes virtual time. A taker has a clock of its own, with any start and up to a tenth
faster or slower than others, and a thread that beats. One that is stopped makes no call
until it wakes, long after its lease.
"""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import simpy

from stalesim.simulator.extras.clusters import takers
from stalesim.simulator.extras.clusters.claims import BEAT
from stalesim.simulator.files.study import Disk, Study, StudyWarning, load
from stalesim.simulator.files.study.disk import LOCK
from stalesim.simulator.files.study.manifest import NAME
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.studies.planning import CHECKPOINTS, CLAIMS, LOCKS
from tests.unit.studies import fake_study
from tests.unit.studies.fake_disk import FakeDisk, KilledError
from tests.unit.studies.fake_study import PATH
from tests.unit.studies.play_runner import Play, Process, check_what_is_there, main

BEAT_S, LEASE_S = 5, 60
"""In virtual seconds, of which a call of a disk takes one on average."""
MOST_TAKERS = 60


class Taker(Process):
    """A process that takes tasks.

    Args:
        play: that it is part of.
    """

    def __init__(self, play: "TakersPlay") -> None:
        self._offset, self._rate = (
            play.rng.uniform(-1e6, 1e6),
            play.rng.uniform(0.9, 1.1),
        )
        self.awake: simpy.Event | None = None
        self.stops = 0
        super().__init__(play, self._take)

    def _take(self, disk: FakeDisk) -> tuple[int, bool]:
        env = self._play.env

        def wait(seconds: float) -> None:
            self.wait(env.timeout(seconds / self._rate))

        return takers.take(
            fake_study.SCENARIO,
            PATH,
            beat_s=BEAT_S,
            lease_s=LEASE_S,
            disk=disk,
            clock=lambda: self._offset + self._rate * env.now,
            wait=wait,
            beat=self._beat,
        )

    @contextlib.contextmanager
    def _beat(self, disk: Disk, claim: Path, beat_s: float) -> Iterator[None]:
        """Beats in a process of the play, as a thread would."""
        env, over = self._play.env, [False]
        plain = FakeDisk(self._play.files)

        def thread() -> Iterator[Any]:
            while True:
                yield env.timeout(beat_s / self._rate)
                if self.awake is not None:
                    yield self.awake
                if over[0] or not self.alive:
                    return
                with contextlib.suppress(OSError):
                    plain.append(claim / BEAT, b".")

        env.process(thread())
        try:
            yield
        finally:
            over[0] = True

    def _before(self, name: str) -> BaseException | None:
        fault = super()._before(name)
        while self.awake is not None and self.alive:
            self._give_way(self.awake)
        return fault if self.alive else KilledError()

    def stop(self, seconds: float) -> None:
        """Stops it, as SIGSTOP does, for a while."""
        if self.awake is not None:
            return
        self.awake = self._play.env.event()
        self.stops += 1

        def wake() -> Iterator[Any]:
            yield self._play.env.timeout(seconds)
            event, self.awake = self.awake, None
            assert event is not None
            event.succeed()

        self._play.env.process(wake())


class TakersPlay(Play):
    """One history: takers come, are killed and stopped, until the study is complete."""

    def __init__(self, seed: int, faults: float = 4) -> None:
        super().__init__(seed, faults)
        self.num_takers = int(self.rng.integers(1, 5))
        self.executed: list[int] = []

    def run(self) -> None:
        """Plays the history to its end, which is a complete study."""
        self.env.process(self._fate())
        self.env.run(until=self.env.process(self._user()))
        assert self.complete, "the study has not become complete"

    def _user(self) -> Iterator[Any]:
        """Begins the study, and starts takers until it is complete."""
        takers.begin(fake_study.SCENARIO, PATH, FakeDisk(self.files))
        self.files.safe = dict(self.files.names)
        for _ in range(self.num_takers):
            self._start()
        for _ in range(MOST_TAKERS):
            yield self.env.timeout(self.rng.exponential(300))
            working = [one for one in self.processes if one.alive]
            for one in self.processes:
                assert one.alive or isinstance(
                    one.result, KilledError | tuple | StudyError | Study
                ), one.result
            if not working:
                if load(PATH, FakeDisk(self.files)).complete:
                    self.complete = True
                    return
                self._start()

    def _start(self) -> None:
        Taker(self)

    def _happen(self, what: str) -> None:
        alive = [one for one in self.processes if one.alive]
        one = alive[self.rng.integers(len(alive))] if alive else None
        match what:
            case "kill" if one:
                one.kill()
            case "stop" if isinstance(one, Taker):
                one.stop(float(self.rng.exponential(300)))
            case "another":
                self._start()
            case "rot":
                self.lossy |= self._flip_a_bit()
            case "power":
                self.lossy = True
                for each in alive:
                    each.kill()
                self.files.lose_power(self.rng)
            case "runner" if self.rng.random() < 0.3:
                self.lossy = True  # it may read what a taker is joining
                Process(self, fake_study.simulate)

    def _fate(self) -> Iterator[Any]:
        for _ in range(self._faults):
            yield self.env.timeout(self.rng.exponential(60))
            if load(PATH, FakeDisk(self.files)).complete:
                return
            self._happen(str(self.rng.choice(WHAT)))
            check_what_is_there(self.files)


WHAT = ("kill", "kill", "stop", "stop", "stop", "another", "rot", "power", "runner")


def history(seed: int, faults: float = 4) -> TakersPlay:
    """Plays a history and asserts that it ends with the undisturbed study."""
    play = TakersPlay(seed, faults)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", StudyWarning)
        play.run()
    assert play.lossy or not heard, [str(one.message) for one in heard]
    check_what_is_there(play.files)
    study = load(PATH, FakeDisk(play.files))
    assert all(run["stop"] == "commits" for run in study.manifest["runs"])
    named = {
        f"{PATH}/{table}/{file}" for table, mine in study.files.items() for file in mine
    }
    left = {path for path, inode in play.files.names.items() if inode is not None}
    # Who is killed between the end of the study and its own leaves no more than these.
    late = tuple(f"{PATH}/{name}" for name in (CLAIMS, LOCKS, CHECKPOINTS, "journal-"))
    left = {path for path in left if not path.startswith(late)}
    assert left - named <= {f"{PATH}/{NAME}", f"{PATH}/{LOCK}"}, left - named
    assert named <= left
    return play


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], history))
