"""The runner of studies as a discrete-event system: processes, kills, a clock.

The program's own code runs in greenlets, one for each process; every call of its disk
takes virtual time, so that processes interleave between any two calls. A seed decides
everything, and repeats it.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy
from greenlet import getcurrent, greenlet

from stalesim.simulator.files.study import StudyWarning, load
from stalesim.simulator.files.study.disk import LOCK
from stalesim.simulator.files.study.manifest import NAME
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.studies.executors import OnProgress, WorkerDiedError, work
from stalesim.simulator.studies.planning import LOCKS, Done, Task
from tests.unit.studies import fake_study
from tests.unit.studies.fake_disk import FakeDisk, Files, KilledError
from tests.unit.studies.fake_study import PATH

FULL = 28, "No space left on device"
MOST_SESSIONS = 60
"""Sessions after which a study that does not end is a defect."""


class Process:
    """A process of the play: a greenlet that gives way at every call of its disk.

    Args:
        play: that it is part of.
        body: what it does; is given its disk.
    """

    def __init__(self, play: "Play", body: Callable[[FakeDisk], Any]) -> None:
        self._play, self._fault = play, None
        self.disk = _PlayedDisk(play.files, self._before, play.rng.random())
        self.disk.give_way = self.wait
        self.alive, self.result = True, None
        self.over, self._killed = play.env.event(), play.env.event()
        self._greenlet = greenlet(lambda: body(self.disk), play.hub)
        play.processes.append(self)
        play.env.process(self._run())

    def _run(self) -> Iterator[Any]:
        """Goes from one call to the next."""
        while True:
            try:
                event = self._greenlet.switch()
            except (KilledError, KeyboardInterrupt, StudyError) as error:
                self.result = error
            else:
                if not self._greenlet.dead:
                    yield event | self._killed
                    continue
                self.result = event
            self.alive = False
            self._play.files.unlock(self.disk)
            self.over.succeed()
            return

    def _before(self, name: str) -> BaseException | None:
        """Lets time pass; then perhaps a fault."""
        if not self.alive:
            return KilledError()
        self._give_way(self._play.env.timeout(self._play.rng.exponential()))
        fault, self._fault = self._fault, None
        if not self.alive:
            return KilledError()
        if fault is None and self._play.full and name in ("write", "append", "make"):
            return OSError(*FULL)
        return fault

    def _give_way(self, event: simpy.Event | None = None) -> None:
        """Waits for an event, or a moment."""
        event = event or self._play.env.timeout(self._play.rng.exponential())
        self._play.hub.switch(event)

    def wait(self, event: simpy.Event | None = None) -> None:
        """Waits for something that another process does, or a moment."""
        self._give_way(event)
        if not self.alive:
            raise KilledError

    def kill(self) -> None:
        """Ends it at once, perhaps in the middle of a call."""
        self.alive = False
        self._play.files.unlock(self.disk)
        if not self._killed.triggered:
            self._killed.succeed()

    def interrupt(self) -> None:
        """Sends it what Ctrl-C sends."""
        self._fault = KeyboardInterrupt()


class _PlayedDisk(FakeDisk):
    give_way: Callable[[], None]

    def _wait(self) -> None:
        self.give_way()


class Workers:
    """Processes that execute the tasks of a runner.

    Args:
        play: that they are part of.
        runner: whom they work for.
    """

    def __init__(self, play: "Play", runner: Process) -> None:
        self._play, self._runner = play, runner

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields what tasks have left, as they end."""
        play = self._play
        others = [one for one in play.writing if one.alive and one is not self._runner]
        assert not others, "two runners write one folder"
        play.writing.append(self._runner)
        left, done = dict(tasks), simpy.Store(play.env)
        number = int(play.rng.integers(1, 4))
        pool = [self._start(left, done, folder) for _ in range(number)]
        for _ in tasks:
            found = done.get()
            self._runner.wait(found)
            kind, started, result = found.value
            if kind == "died":
                if play.rng.random() < 0.5:
                    for process in pool:
                        process.kill()
                raise WorkerDiedError(started)
            if isinstance(result, BaseException):
                raise result
            yield started[0], result

    def _start(self, left: dict[int, Task], done: simpy.Store, folder: Path) -> Process:
        started: list[int] = []

        def body(disk: FakeDisk) -> None:
            while left:
                index, task = left.popitem()
                started[:] = [index]
                try:
                    found: Any = work(task, folder, lambda *_: None, disk)
                except StudyError as error:
                    found = error
                done.put(("done", [index], found))
                started.clear()

        process = Process(self._play, body)

        def watch() -> Iterator[Any]:
            yield process.over
            if isinstance(process.result, KilledError):
                done.put(("died", list(started), None))

        self._play.env.process(watch())
        return process


class Play:
    """One history: a study is run, disturbed and resumed until it is complete.

    Args:
        seed: of everything.
        faults: expected number of them.
    """

    def __init__(self, seed: int, faults: float = 3) -> None:
        self.rng = np.random.default_rng(seed)
        self.env, self.files, self.hub = simpy.Environment(), Files(), getcurrent()
        self.processes: list[Process] = []
        self.runners: list[Process] = []
        self.writing: list[Process] = []
        self.full, self.complete, self.lossy = False, False, False
        self._faults = int(self.rng.poisson(faults))
        self.told: list[str] = []

    def run(self) -> None:
        """Plays the history to its end, which is a complete study."""
        self.env.process(self._user())
        self.env.process(self._fate())
        self.env.run()
        assert self.complete, "the study has not become complete"

    def _runner(self) -> Process:
        def body(disk: FakeDisk) -> None:
            fake_study.simulate(disk, Workers(self, process))

        process = Process(self, body)
        self.runners.append(process)
        return process

    def _user(self) -> Iterator[Any]:
        """Runs the study again until it is complete."""
        for _ in range(MOST_SESSIONS):
            runner = self._runner()
            yield runner.over
            if runner.result is None:
                # A task whose process was killed twice counts as its killer.
                runs = load(PATH, FakeDisk(self.files)).manifest["runs"]
                if all(run["stop"] == "commits" for run in runs):
                    self.complete = True
                    return
            elif not isinstance(runner.result, KilledError):
                self.told.append(str(runner.result))
                assert "\n" not in str(runner.result)
            yield self.env.timeout(self.rng.exponential(20))
            if self.rng.random() < 0.5:
                self.full = False

    def _fate(self) -> Iterator[Any]:
        """Kills, fills the disk, cuts the power, starts a second runner."""
        for _ in range(self._faults):
            yield self.env.timeout(self.rng.exponential(60))
            if self.complete:
                return
            self._happen(str(self.rng.choice(WHAT)))
            check_what_is_there(self.files)
        self.full = False

    def _happen(self, what: str) -> None:
        alive = [process for process in self.processes if process.alive]
        runners = [process for process in self.runners if process.alive]
        match what:
            case "kill" if alive:
                alive[self.rng.integers(len(alive))].kill()
            case "kill runner" if runners:
                runners[0].kill()
            case "interrupt" if runners:
                runners[0].interrupt()
            case "power":
                self.lossy = True
                for process in alive:
                    process.kill()
                self.files.lose_power(self.rng)
            case "rot":
                self.lossy |= self._flip_a_bit()
            case "full":
                self.full = not self.full
            case "second":
                self._runner()

    def _flip_a_bit(self) -> bool:
        """Damages a file of a table or the journal; returns whether there was one."""
        rotten = [
            inode
            for path, inode in sorted(self.files.names.items())
            if inode is not None and inode.data and ("/part-" in path or "log" in path)
        ]
        if not rotten:
            return False
        inode = rotten[self.rng.integers(len(rotten))]
        data = bytearray(inode.data)
        data[self.rng.integers(len(data))] ^= 1 << int(self.rng.integers(8))
        inode.data = bytes(data)
        return True


WHAT = (
    *("kill", "kill", "kill", "kill runner", "interrupt", "power", "rot", "full"),
    *("second", "second"),
)


def check_what_is_there(files: Files) -> None:
    """Whatever can be read is right; what cannot is said."""
    disk = FakeDisk(files)
    if not disk.exists(PATH / NAME):
        return
    study = load(PATH, disk)
    ended = {run["run"] for run in study.manifest["runs"] if run["stop"] == "commits"}
    for name, expected in EXPECTED.items():
        try:
            found = study.arrow(name)
        except StudyError:
            continue
        runs = found["run"].to_pylist()
        assert set(runs) == ended, "rows of other runs than those that ended"
        value = VALUES[name]
        pairs = sorted(zip(runs, found[value].to_pylist(), strict=True))
        assert pairs == sorted(pair for pair in expected if pair[0] in ended)


VALUES = {"commits": "loss", "evaluations": "test_accuracy"}
EXPECTED: dict[str, list[tuple[int, float]]] = {
    name: [
        (run.number, float(value))
        for run in fake_study.RUNS
        for value in fake_study.rows_of(run, name, run.number)[column]
    ]
    for name, column in VALUES.items()
}
"""The numbers of every run's rows, by table."""


def history(seed: int, faults: float = 3) -> Play:
    """Plays a history and asserts that it ends with the undisturbed study.

    What was noted is never repeated, unless the power was lost or a file damaged; and
    nothing is left that the study does not name.
    """
    play = Play(seed, faults)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", StudyWarning)
        play.run()
    assert play.lossy or not heard, [str(one.message) for one in heard]
    check_what_is_there(play.files)
    study = load(PATH, FakeDisk(play.files))
    assert study.complete
    assert all(run["stop"] == "commits" for run in study.manifest["runs"])
    named = {
        f"{PATH}/{table}/{file}" for table, mine in study.files.items() for file in mine
    }
    named |= {f"{PATH}/{name}" for name in (NAME, LOCK)}
    # A process of an earlier session may come later and find that the study is over.
    late = f"{PATH}/{LOCKS}/"
    files = (path for path, inode in play.files.names.items() if inode is not None)
    left = {path for path in files if not path.startswith(late)}
    assert left == named, left ^ named
    return play


def assert_repeated(history: Callable[..., Play]) -> None:
    """Asserts that a seed repeats a history."""
    one, other = history(3, faults=8), history(3, faults=8)
    assert one.env.now == other.env.now
    assert one.told == other.told
    assert len(one.processes) == len(other.processes) > 1


def every_kind(
    play: type[Play], history: Callable[[int], Play], number: int
) -> tuple[set[str], list[Play]]:
    """Plays some histories; returns what has happened in them, and the histories."""
    seen: set[str] = set()
    happen = play._happen

    def note(self: Play, what: str) -> None:
        seen.add(what)
        happen(self, what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(play, "_happen", note)
        return seen, [history(seed) for seed in range(number)]


def main(arguments: list[str], history: Callable[[int], Any] = history) -> int:
    """Plays many histories: FIRST NUMBER; says which seeds failed."""
    first, number = map(int, arguments)
    failed = []
    with pytest.MonkeyPatch.context() as patch:
        fake_study.fake_cheaply(patch)
        for seed in range(first, first + number):
            try:
                history(seed)
            except Exception as error:  # every defect is to be found
                failed.append(seed)
                sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            if (seed - first + 1) % 1_000 == 0:
                done = seed - first + 1
                sys.stdout.write(f"{done} histories, {len(failed)} failed\n")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
