"""Takers of one study: played under seeds, and as real processes that are stopped."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator import studies
from stalesim.simulator.extras.clusters import merging, takers
from stalesim.simulator.extras.clusters.claims import LOST, Claimed, Claims
from stalesim.simulator.extras.clusters.commands import seconds
from stalesim.simulator.files.study import COLUMNS, DISK, Study, load
from stalesim.simulator.parts.errors import StudyError, UserError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies.planning import (
    CHECKPOINTS,
    CLAIMS,
    LOCKS,
    claims_of,
    task_name,
)
from tests.commands import stalesim, wait_for
from tests.extras.clusters.play_takers import WHAT, Taker, TakersPlay, history
from tests.unit.studies import fake_study
from tests.unit.studies.play_runner import assert_repeated, every_kind
from tests.unit.studies.test_spread import TREE

SMALL: dict[str, Any] = TREE | {"replicates": 2, "stop": {"commits": 200}}
NUM_SLOW = 1_000
"""Histories that the long tests play."""


@pytest.fixture
def _cheaply(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake_cheaply(monkeypatch)


@pytest.mark.usefixtures("_cheaply")
def test_a_seed_repeats_a_history() -> None:
    assert_repeated(history)


@pytest.mark.usefixtures("_cheaply")
def test_histories_hold_every_kind_of_fault() -> None:
    seen, plays = every_kind(TakersPlay, history, 40)
    assert seen == {*WHAT}
    taken = [one for play in plays for one in play.processes if isinstance(one, Taker)]
    assert any(one.stops and isinstance(one.result, tuple) for one in taken)


@pytest.mark.long
@pytest.mark.usefixtures("_cheaply")
@pytest.mark.parametrize("block", range(10))
def test_many_histories(block: int) -> None:
    each = NUM_SLOW // 10
    for seed in range(block * each, (block + 1) * each):
        history(seed)


def assert_same(study: Study, whole: Study) -> None:
    """Asserts that the tables of two studies are the same, file by file."""
    own = {*fake_study.MADE_ANEW, "commit", "dirty", "command", "started", "runs"}
    told = [
        [{key: value for key, value in s.manifest.items() if key not in own}]
        + [{**run, "elapsed_s": None} for run in s.manifest["runs"]]
        for s in (study, whole)
    ]
    assert told[0] == told[1]
    for name in COLUMNS:
        files = [sorted((one.folder / name).glob("*")) for one in (study, whole)]
        assert [f.name for f in files[0]] == [f.name for f in files[1]]
        for mine, other in zip(*files, strict=True):
            assert mine.read_bytes() == other.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a study that is open to takers."""
    takers.begin(validated(SMALL), tmp_path / "s")
    return tmp_path / "s"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return studies.simulate(validated(SMALL), tmp_path_factory.mktemp("s") / "whole")


def test_a_taker_leaves_the_folder_of_a_single_process(
    whole: Study, folder: Path
) -> None:
    assert not load(folder).complete
    assert takers.take(validated(SMALL), folder) == (4, True)
    assert_same(load(folder), whole)
    assert {path.name for path in folder.iterdir()} == {
        path.name for path in whole.folder.iterdir()
    }
    assert takers.take(validated(SMALL), folder) == (0, True)


def test_results_can_be_read_before_the_study_ends(folder: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 100
        return now[0]

    # A run takes 100 s by this clock, and there is time for some of four.
    taken, in_time = takers.take(validated(SMALL), folder, for_s=700, clock=clock)
    assert not in_time
    assert 0 < taken < 4
    study = load(folder)
    ended = [run["run"] for run in study.manifest["runs"] if run["stop"] == "commits"]
    assert len(ended) == taken
    assert set(study.table("evaluations")["run"]) == set(ended)
    resumed = studies.resume(folder)
    assert resumed.complete
    assert not [*folder.glob(f"{CLAIMS}*")]


PROGRAM = """
import sys, time
from pathlib import Path
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.extras.clusters import takers
from stalesim.simulator.studies.running import scenario_of
folder, offset = Path(sys.argv[1]), float(sys.argv[2])
taken = takers.take(scenario_of(folder), folder, beat_s=0.05, lease_s=1.0,
                    clock=lambda: time.monotonic() + offset)
print(taken[0])
"""


def started(folder: Path, offset: float) -> subprocess.Popen[str]:
    """Starts a taker with a clock of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(offset)],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_takers_that_are_killed_and_stopped(whole: Study, folder: Path) -> None:
    place = claims_of(folder, 1)
    stopped = started(folder, 1e9)
    wait_for(lambda: [*place.glob("*.1")])
    os.kill(stopped.pid, signal.SIGSTOP)
    killed = started(folder, -1e9)
    wait_for(lambda: len([*place.glob("*.*")]) > 1)
    killed.kill()
    last = started(folder, 0.0)
    assert last.wait(120) == 0
    # The stopped process wakes after it was taken over, and after the study's end.
    os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.wait(120) == 0
    killed.wait()
    for each in (stopped, killed, last):
        assert each.stdout is not None
        each.stdout.close()
    assert_same(load(folder), whole)


ONE = """
import os, signal, sys
from pathlib import Path
from stalesim.simulator.extras.clusters import takers
from stalesim.simulator.studies import running
from stalesim.simulator.files.study import DISK
folder, stops = Path(sys.argv[1]), sys.argv[2] == "stops"
[task, *_] = takers._tasks(running.scenario_of(folder), folder, DISK, None).values()
def tell(*_):
    global stops
    if stops:
        stops = False
        os.kill(os.getpid(), signal.SIGSTOP)
takers.take_one(task, folder, tell)
"""


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    status = Path(f"/proc/{process.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


@pytest.mark.slow
@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
def test_who_takes_a_task_of_a_cluster_does_not_wait_for_a_stopped_worker(
    whole: Study, folder: Path, then: signal.Signals
) -> None:
    [task, *_] = takers._tasks(validated(SMALL), folder, DISK, None).values()
    call = [sys.executable, "-c", ONE, str(folder)]
    with subprocess.Popen([*call, "stops"]) as stopped:
        try:
            wait_for(lambda: is_stopped(stopped))
            subprocess.run([*call, "goes on"], check=True, timeout=120)
            [done] = (folder / LOCKS).glob("*.done")
            kept = done.read_bytes(), [*sorted(folder.glob("*/part-*"))]
        finally:
            stopped.send_signal(signal.SIGCONT)
            stopped.send_signal(then)
        assert stopped.wait(120) == (1 if then == signal.SIGCONT else -then)
    # It wakes after it was taken over, and changes nothing.
    assert kept == (done.read_bytes(), [*sorted(folder.glob("*/part-*"))])
    takers.take(validated(SMALL), folder)
    assert_same(load(folder), whole)
    with pytest.raises(StudyError, match="must be written by the process that runs"):
        takers.take_one(task, folder, lambda *_: None)
    assert not (folder / LOCKS).exists()


@pytest.mark.slow
def test_who_takes_a_task_of_a_cluster_does_not_wait_for_a_dead_worker(
    whole: Study, folder: Path
) -> None:
    [task, *_] = takers._tasks(validated(SMALL), folder, DISK, None).values()
    (claims_of(folder, 1) / f"{task_name(task.number)}.1").mkdir()
    done = takers.take_one(task, folder, lambda *_: None)
    assert {end["stop"] for end in done.ends.values()} == {"commits"}
    takers.take(validated(SMALL), folder)
    assert_same(load(folder), whole)


def test_who_was_taken_over_can_change_nothing(tmp_path: Path) -> None:
    place, file, now = tmp_path / "claims", tmp_path / "file", [0.0]
    place.mkdir()
    mine, other = (Claims(place, DISK, lambda: now[0], 60) for _ in range(2))
    name, claim = mine.any_of(["a"])
    assert claim is not None
    disk = Claimed(DISK, claim)
    disk.write(file, b"mine")
    assert other.any_of(["a"]) == (name, None)
    now[0] = 59
    assert other.any_of(["a"]) == (name, None)
    DISK.append(claim / "beat", b".")
    now[0] = 61
    assert other.any_of(["a"]) == (name, None)  # it has beaten since
    now[0] = 121
    _, theirs = other.any_of(["a"])
    assert theirs is not None
    assert theirs.name == "a.2"
    for change in (
        lambda: disk.write(file, b"late"),
        lambda: disk.append(file, b"late"),
        lambda: disk.remove(file),
        lambda: disk.remove_folder(tmp_path),
    ):
        with pytest.raises(OSError):  # noqa: PT011, which one is the system's
            change()
    assert file.read_bytes() == b"mine"
    assert not mine.give(claim, LOST)


def test_folders_of_one_study_are_merged(whole: Study, folder: Path) -> None:
    one, two = folder, folder.with_name("two")
    few = SMALL | {"variants": {"one": {}}}
    studies.simulate(validated(few), two)
    merged = merging.merge(one, two)
    assert not merged.complete
    ended = [run for run in merged.manifest["runs"] if run["stop"] == "commits"]
    assert {run["variant"] for run in ended} == {"one"}
    assert_same(studies.resume(one), whole)
    assert load(two).complete
    # The smaller one gets the runs of the larger.
    assert merging.merge(two, one).complete
    assert len(load(two).manifest["runs"]) == 4


def test_a_merge_that_ends_a_study_leaves_nothing_of_killed_takers(
    whole: Study, folder: Path
) -> None:
    takers.take(validated(SMALL), folder, for_s=1e-9)
    for name in (LOCKS, CHECKPOINTS):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "left").write_text("")
    assert merging.merge(folder, whole.folder).complete
    there = [{path.name for path in each.iterdir()} for each in (folder, whole.folder)]
    assert there[0] == there[1]


def test_another_study_is_not_merged(whole: Study, tmp_path: Path) -> None:
    other = studies.simulate(validated(SMALL | {"seed": 2}), tmp_path / "other")
    with pytest.raises(
        StudyError, match=r"or hold this very .*; leave .*out$"
    ) as error:
        merging.merge(other.folder, whole.folder)
    assert "--" not in str(error.value)
    assert load(other.folder).complete


@pytest.mark.costly
def test_commands_for_a_study_import_parts_of_ones_own(tmp_path: Path) -> None:
    def of(*command: str) -> str:
        return stalesim(*command, cwd=tmp_path, check=True).stdout

    of("new", "algorithm", "mine")
    part, study = tmp_path / "mine.py", ["mine.yaml", "-o", "s"]
    begun = of("--plugin", "mine.py", "cluster", "begin", *study)
    assert begun.endswith(f"stalesim --plugin {part} cluster work s\n")
    of("--plugin", "mine.py", "cluster", "work", "s")
    assert load(tmp_path / "s").complete


@pytest.mark.parametrize("text", ["", "50", "m", "-1m", "0m", "1.5h", "1y", "9" * 9])
def test_a_wall_time_is_a_number_and_a_unit(text: str) -> None:
    assert seconds("50m") == 3000
    with pytest.raises(UserError, match="must be a number and a unit"):
        seconds(text)
