"""Studies over several real processes: killed, resumed, two at once."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from stalesim.analysis import tables
from stalesim.simulator import studies
from stalesim.simulator.files.study import load
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies import executors
from stalesim.simulator.studies.planning import Task
from stalesim.simulator.studies.progress import StudyProgress
from tests.commands import WAIT_S, stalesim, started, wait_for
from tests.unit.studies.small import SMALL

TREE: dict[str, Any] = SMALL | {
    "name": "spread",
    "replicates": 4,
    "stop": {"commits": 2000},
    "evaluate": {"every": {"commits": 500}},
    "engine": {"mode": "compiled"},
    "variants": {"one": {}, "two": {"algorithm": {"step_size": 0.2}}},
}


def scenario(folder: Path, **changes: Any) -> Path:
    path = folder / "spread.yaml"
    path.write_text(yaml.safe_dump(TREE | changes))
    return path


def finished_tasks(folder: Path) -> int:
    journal = folder / "journal-1.log"
    return len(journal.read_bytes().splitlines()) if journal.exists() else 0


KEPT = re.compile(r"(\d+) of (\d+) runs complete, (\d+) to run")


def closing(folder: Path) -> pd.DataFrame:
    return tables.plain(tables.results(load(folder)))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return studies.simulate(TREE, tmp_path_factory.mktemp("whole") / "s").folder


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_study_killed_in_the_middle_is_resumed_to_the_same_summary(
    jobs: int, undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    nobody = subprocess.DEVNULL  # children that are left would hold a pipe open
    call = ("run", scenario(tmp_path), "-o", folder, "-j", jobs, "--no-plots")
    process = started(*call, stdout=nobody, stderr=nobody)
    wait_for(lambda: finished_tasks(folder) >= 2)
    process.kill()  # -9, of this process alone
    process.wait(timeout=60)
    assert not load(folder).complete
    done = stalesim("resume", folder, "-j", jobs, "--no-plots")
    assert done.returncode == 0, done.stderr
    kept, runs, left = map(int, KEPT.findall(done.stdout)[0])
    assert kept + left == runs == len(load(folder).manifest["runs"])
    assert kept >= 2
    pd.testing.assert_frame_equal(closing(folder), closing(undisturbed))
    for table in ("commits", "evaluations"):
        one, other = load(folder).table(table), load(undisturbed).table(table)
        pd.testing.assert_frame_equal(one, other)


def test_studies_without_a_folder_find_one_each(tmp_path: Path) -> None:
    path = scenario(tmp_path, replicates=1, stop={"commits": 500})
    both = [
        started("run", path, "-j", "1", "--no-plots", cwd=tmp_path) for _ in range(2)
    ]
    for process in both:
        _, told = process.communicate(timeout=300)
        assert process.returncode == 0, told
    folders = sorted((tmp_path / "runs").iterdir())
    assert [folder.name for folder in folders] == ["spread", "spread-2"]
    assert all(load(folder).complete for folder in folders)


def children(pid: int) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def is_fork_server(pid: int) -> bool:
    try:
        return b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # It has ended since it was listed, as git's process does.
        return False


def copies(pid: int) -> list[int]:
    """Returns the processes that execute the runs of a study."""
    return [
        copy
        for child in children(pid)
        if is_fork_server(child)
        for copy in children(child)
    ]


def test_a_killed_process_is_replaced(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    process = started("run", scenario(tmp_path), "-o", folder, "-j", 2, "--no-plots")
    wait_for(lambda: finished_tasks(folder) >= 1)
    os.kill(copies(process.pid)[0], signal.SIGKILL)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    pd.testing.assert_frame_equal(closing(folder), closing(undisturbed))


def dying(place: int, index: int, task: Task, folder: Path, shared: Path) -> Any:
    """Stands for tasks of which the first takes more memory than there is."""
    import os
    import signal

    import numpy as np

    from stalesim.simulator.studies.planning import Done

    np.memmap(shared, np.float64, "r+")[place] = 1e-9
    if task.number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return index, Done({run.number: {"stop": "commits"} for run in task.runs}, {})


def test_a_task_that_kills_its_process_is_the_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tasks = studies.planned(validated(TREE | {"replicates": 2}))
    monkeypatch.setattr(dying, "__module__", "__main__")  # is sent as it stands here
    monkeypatch.setattr(executors, "_work_elsewhere", dying)
    ends: dict[int, Any] = {}
    heard: list[StudyProgress] = []
    workers = executors.Processes(2)
    for done in executors.execute(tasks, tmp_path, workers, heard.append):
        ends |= done.ends
    assert sorted(ends) == [0, 1, 2, 3]
    failed = {run: end for run, end in ends.items() if end["stop"] == "failed"}
    assert set(failed) == {tasks[0].runs[0].number}
    assert {end["stop_reason"] for end in failed.values()} == {executors.KILLED}
    assert (heard[-1].ended, heard[-1].failed) == (4, 1)
    assert heard[-1].counted() == "4 of 4 runs, 1 failed"
    assert max(now.failed - now.ended for now in heard) <= 0


def test_one_of_each_variant_is_started_first() -> None:
    _, tasks = studies.planned(validated(TREE | {"replicates": 2}))
    names = [task.runs[0].variant for task in executors.in_order(tasks)]
    assert names == ["one", "two", "one", "two"]


def test_a_study_that_continues_counts_all_of_its_runs(tmp_path: Path) -> None:
    """After `resume` it said 1 of 2 runs, where it had said 2 of 4."""
    folder, heard = tmp_path / "s", list[StudyProgress]()
    studies.simulate(TREE | {"replicates": 1}, folder)
    grown = TREE | {"replicates": 2}
    study = studies.simulate(grown, folder, progress=heard.append)
    all_runs = len(study.manifest["runs"])
    assert {now.runs for now in heard} == {all_runs}
    assert heard[0].ended == all_runs // 2
    assert heard[-1].ended == all_runs


def test_processes_do_not_outlive_the_one_that_started_them(tmp_path: Path) -> None:
    whole = scenario(tmp_path, stop={"commits": 10**6})
    process = started("run", whole, "-o", tmp_path / "s", "-j", 2, "--no-plots")
    wait_for(lambda: len(copies(process.pid)) == 2)
    left = copies(process.pid)
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


SCRIPT = """\
import os, sys, yaml
from stalesim.simulator import studies
print("the script runs", flush=True)
tree = yaml.safe_load(open(sys.argv[1]))
study = studies.simulate(tree, sys.argv[2], jobs=2)
print(study.complete)
"""


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "s"
    script.write_text(SCRIPT)
    whole = scenario(tmp_path, replicates=1, stop={"commits": 100})
    done = subprocess.run(
        [sys.executable, script, whole, folder],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["the script runs", "True"]
    assert done.stderr == ""
