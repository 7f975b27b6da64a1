"""Dask clusters that go wrong: other programs, deaths, silence, nobody there."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from stalesim import simulator
from stalesim.simulator import studies
from stalesim.simulator.cli.commands import app
from stalesim.simulator.engine import processes
from stalesim.simulator.extras.clusters import Cluster, dask
from stalesim.simulator.files.study import DISK, StudyWarning, load
from stalesim.simulator.parts.errors import StudyError, UserError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies import executors, origins, running
from stalesim.simulator.studies.planning import Task
from stalesim.simulator.studies.progress import StudyProgress
from tests.commands import wait_for
from tests.unit.studies.small import SMALL
from tests.unit.studies.test_spread import TREE as SPREAD
from tests.unit.studies.test_spread import closing
from tests.unit.studies.watched import WATCHED

distributed = pytest.importorskip("distributed")
TREE: dict[str, Any] = SMALL | {
    "replicates": 4,
    "stop": {"commits": 100},
    "evaluate": {"every": {"commits": 100}},
}
HERE = Path(simulator.__file__).parent
APART = """\
import sys
class Apart:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "stalesim":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Apart())
"""
"""A process in which the package is not installed, however it is."""


@contextmanager
def process(kind: str, *words: object, before: str = "", **env: str) -> Iterator[Any]:
    """A scheduler or a worker as a process of its own."""
    script = f"{before}\nfrom distributed.cli.dask_{kind} import main\nmain()"
    made = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield made
    finally:
        made.kill()
        made.wait()


@contextmanager
def scheduler(folder: Path, before: str = "") -> Iterator[tuple[str, Any]]:
    """A scheduler that answers, and its address."""
    file = folder / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard")
    with process("scheduler", *words, "--scheduler-file", file, before=before) as made:
        # To connect until it listens may, within a machine, connect a port with itself.
        wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"], made


@contextmanager
def local_cluster(num_workers: int) -> Iterator[str]:
    """Workers of this machine, and the address of their scheduler."""
    with distributed.LocalCluster(
        n_workers=num_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
    ) as here:
        yield here.scheduler_address


def edited(folder: Path) -> Path:
    """Returns a folder whose program is this one, but for one law."""
    package = folder / "stalesim"
    package.mkdir()
    (package / "__init__.py").write_text("")
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE, package / "simulator", ignore=leave)
    law = package / "simulator" / "world" / "laws" / "distributions.py"
    law.write_text(law.read_text() + "\n# another law\n")
    return folder


def begun(folder: Path) -> list[Task]:
    folder.mkdir(exist_ok=True)
    return running.started(validated(TREE), folder, DISK)[1]


def ended(folder: Path) -> list[str]:
    return [run["stop"] for run in load(folder).manifest["runs"]]


WORDS = ("--nthreads", 1, "--no-nanny", "--no-dashboard")


@pytest.mark.slow
def test_a_worker_of_another_program_executes_nothing(tmp_path: Path) -> None:
    other, folder = edited(tmp_path), tmp_path / "s"
    with scheduler(tmp_path) as (at, _), process("worker", at, *WORDS):
        with (
            distributed.Client(at, timeout=60) as client,
            process("worker", at, *WORDS, PYTHONPATH=str(other)) as other_one,
        ):
            client.wait_for_workers(2, timeout=60)
            with (
                pytest.raises(StudyError, match=r"digest of its simulator/ is") as no,
                Cluster(at),
            ):
                studies.simulate(TREE, folder)
            assert "\n" not in str(no.value)
            assert f"process {other_one.pid}:" in str(no.value)
            assert "incomplete" in ended(folder)
        with Cluster(at):
            assert studies.resume(folder).complete


@pytest.mark.parametrize("name", ["numpy", "code"])
def test_a_process_of_another_program_executes_nothing(
    name: str, tmp_path: Path
) -> None:
    tasks = begun(tmp_path / "s")
    assert set(origins.LIBRARIES) < set(tasks[0].program)
    other = tasks[0]._replace(program={**tasks[0].program, name: "0"})
    with pytest.raises(StudyError, match=r"must have the program .* not 0; start it"):
        executors._work_elsewhere(0, 0, other, tmp_path / "s", tmp_path / "progress")
    assert not list((tmp_path / "s").glob("*/part-*"))


def dying(topic: str, index: int, task: Task, folder: Path) -> Any:
    """Stands for tasks of which the first takes more memory than there is."""
    import os
    import signal
    import time

    from stalesim.simulator.studies.planning import Done

    time.sleep(0.3)  # the worker holds another one by then
    if task.number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return Done({run.number: {"stop": "commits"} for run in task.runs}, {})


@pytest.mark.slow
def test_a_task_that_kills_its_worker_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dask import config

    folder = tmp_path / "s"
    tasks = begun(folder)
    monkeypatch.setattr(dying, "__module__", "__main__")  # is sent as it stands here
    monkeypatch.setattr(dask, "_work_on_cluster", dying)
    ends: dict[int, Any] = {}
    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        local_cluster(1) as at,
    ):
        for done in executors.execute(tasks, folder, Cluster(at)):
            ends |= done.ends
    failed = {run: end["stop_reason"] for run, end in ends.items() if len(end) > 1}
    assert len(ends) == 4
    assert failed == {tasks[0].runs[0].number: executors.KILLED}


@pytest.mark.slow
def test_a_scheduler_that_ends_is_one_line(tmp_path: Path) -> None:
    with scheduler(tmp_path) as (at, made), process("worker", at, *WORDS):

        def hear(now: StudyProgress) -> None:
            made.kill()

        with distributed.Client(at, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
        with (
            pytest.raises(UserError, match="must run until the study has") as no,
            Cluster(at),
        ):
            studies.simulate(TREE, tmp_path / "s", progress=hear)
    assert "\n" not in str(no.value)
    assert "incomplete" in ended(tmp_path / "s")


def test_a_scheduler_without_the_package_is_one_line(tmp_path: Path) -> None:
    with scheduler(tmp_path, APART) as (at, _), process("worker", at, *WORDS):
        with distributed.Client(at, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
        with (
            pytest.raises(UserError, match=r"must have .* named 'stalesim'") as no,
            Cluster(at),
        ):
            studies.simulate(TREE, tmp_path / "s")
    assert "\n" not in str(no.value)


@pytest.mark.parametrize("address", ["tls://127.0.0.1:9", "ucx://a:1", "silent"])
def test_an_address_of_no_scheduler_is_one_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = address.replace("silent", f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(UserError, match="must be the address of a running") as no:
            Cluster(at).__enter__()
    assert "\n" not in str(no.value)


def test_a_command_that_finds_no_scheduler_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "CONNECT_S", 0.5)
    run = "run", "quickstart", "-o", str(tmp_path / "s")
    found = CliRunner().invoke(app, ["cluster", "dask", "tcp://127.0.0.1:9", *run])
    told = str(found.exception)
    assert "ADDRESS must be the address of a running Dask scheduler" in told
    assert "\n" not in told
    assert not (tmp_path / "s").exists()


def test_a_cluster_of_processes_gives_the_same_study(tmp_path: Path) -> None:
    heard: list[StudyProgress] = []
    with local_cluster(2) as at, Cluster(at):
        study = studies.simulate(SPREAD, tmp_path / "s", progress=heard.append)
    assert study.complete
    assert heard[-1].fraction == pytest.approx(1)
    assert heard[-1].ended == heard[-1].runs == len(study.manifest["runs"])
    alone = studies.simulate(SPREAD, tmp_path / "alone")
    pd.testing.assert_frame_equal(closing(tmp_path / "s"), closing(alone.folder))


@pytest.mark.slow
def test_another_commands_runs_are_executed_by_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither processes of this machine nor this one execute any."""
    for name in ("Here", "Processes"):
        monkeypatch.delattr(executors, name)
    path, folder = tmp_path / "s.yaml", tmp_path / "s"
    path.write_text(json.dumps(TREE))
    run = "run", str(path), "-o", str(folder), "--no-plots"
    with local_cluster(1) as at:
        found = CliRunner().invoke(app, ["cluster", "dask", at, *run])
        assert found.exit_code == 0, found.output
        more = "run", str(path), "-o", str(folder), "--no-plots", "-s", "replicates=5"
        found = CliRunner().invoke(app, ["cluster", "dask", at, *more])
        assert found.exit_code == 0, found.output
    assert ended(folder) == ["commits"] * 5
    assert processes.others() is None


@pytest.mark.long
def test_a_clusters_tasks_say_how_far_they_are(tmp_path: Path) -> None:
    heard: list[StudyProgress] = []
    longer = {**WATCHED, "stop": {"commits": 150_000}}
    with local_cluster(1) as at, Cluster(at):
        studies.simulate(longer, tmp_path / "s", progress=heard.append)
    assert any(0.05 < now.fraction < 0.95 for now in heard)
    made = [now.commits for now in heard]
    assert made == sorted(made)
    assert heard[-1].fraction == pytest.approx(1)


def quick(topic: str, index: int, task: Task, folder: Path) -> Any:
    """Stands for tasks that take no time."""
    import time

    from stalesim.simulator.studies.planning import Done

    time.sleep(0.3)
    return Done({run.number: {"stop": "commits"} for run in task.runs}, {})


@pytest.mark.slow
def test_a_study_waits_for_workers_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is there at the start, and the first is gone once it has begun."""
    monkeypatch.setattr(quick, "__module__", "__main__")  # is sent as it stands here
    monkeypatch.setattr(dask, "_work_on_cluster", quick)
    monkeypatch.setattr(dask, "LOOK_S", 0.2)
    monkeypatch.setattr(dask, "RESTART_S", 0.2)
    said: list[str] = []
    made: list[Any] = []
    ends: dict[int, Any] = {}
    with scheduler(tmp_path) as (at, _), ExitStack() as stack:

        def warn(message: str, category: Any = None, **_: Any) -> None:
            if category is StudyWarning:
                said.append(message)
                made.append(stack.enter_context(process("worker", at, *WORDS)))

        monkeypatch.setattr(dask.warnings, "warn", warn)
        folder = tmp_path / "s"
        for done in executors.execute(begun(folder), folder, Cluster(at)):
            ends |= done.ends
            if len(ends) == 1:
                made[0].kill()
    assert len(ends) == 4
    waits = f"{at} has no workers; the study waits until one is started, by `dask"
    assert [each.startswith(waits) for each in said] == [True, True]
