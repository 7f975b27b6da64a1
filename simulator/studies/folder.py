"""The folder of a study while it is written: one writer, and what is finished.

The manifest is written when the runs are known and again at the end. In between the end
of every task is a line of a journal: a kill loses no task that was finished, and the
cost of writing does not grow with the number of runs.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from simulator.scenario.errors import StudyError
from simulator.scenario.study import Run
from simulator.studies.planning import Task
from simulator.trace import (
    JOURNAL,
    Study,
    compact,
    load,
    provenance,
    recover,
    remove_parts,
    write_manifest,
)
from simulator.trace.manifest import git_commit

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "simpy", "equinox", "stalesim")
LOCK = ".lock"
DATA, PARTIAL_DATA = "data.npz", ".partial.npz"
"""Arrays that were given in place of a data set; and while they are written."""
SAME = ("stalesim", "jax", "jaxlib", "numpy")
"""Libraries that must not change within a study."""
WORDS = ("name", "source", "question", "claims", "replicates", "seed", "looks")
"""Entries of a scenario that a run's numbers do not depend on; it has its own seed."""
MADE = ("commit", "environment", "command", "started")
"""Entries of a manifest that stay when the study is continued."""
OPEN = ("incomplete", "failed")
"""Ends of runs that are still to be made."""

Ends = dict[int, dict[str, Any]]
"""What is to be known of the ends of runs, by their numbers."""


def content(run: Run) -> str:
    """Returns a hash of everything that a run's numbers depend on."""
    tree = run.scenario.model_dump(mode="json")
    parts = {key: value for key, value in tree.items() if key not in WORDS}
    text = json.dumps({"seed": run.seed, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder, and keeps others from writing it until the end.

    Raises:
        StudyError: it cannot be made, or another process writes it.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise StudyError(
            f"{folder}: must be written by one process at a time, but another one is "
            f"at it; wait for it, or choose another folder by --out"
        ) from None
    except OSError as error:
        raise StudyError(
            f"{folder}: must be a folder that can be written, but "
            f"{error.strerror or error}; choose another by --out"
        ) from None
    try:
        yield
    finally:
        _remove_if_empty(folder)
        lock.release()


def _remove_if_empty(folder: Path) -> None:
    """Removes a folder in which nothing was begun, for want of a valid scenario."""
    if [file.name for file in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()


class Folder:
    """What a study's folder holds, and what is still to be run in it.

    Args:
        path: of the folder, whose lock is held.

    Raises:
        StudyError: there are files in it, but no study.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[int, dict[str, Any]] = {}
        self.manifest: dict[str, Any] = {}
        if (path / "manifest.json").exists():
            self.manifest = load(path).manifest
            if self.manifest.get("kind") == "timeline":
                raise StudyError(
                    f"{path}: must be new or empty, but holds a timeline; choose "
                    f"another folder by --out"
                )
            if any("content" not in entry for entry in self.manifest["runs"]):
                raise StudyError(
                    f"{path}: must hold a study of this version, but was written by an "
                    f"older one, which did not note what its runs depend on; choose "
                    f"another folder by --out"
                )
            self._entries = {entry["run"]: entry for entry in self.manifest["runs"]}
        elif any(
            file.name not in (LOCK, DATA, PARTIAL_DATA) for file in path.iterdir()
        ):
            raise StudyError(
                f"{path}: must be new or empty, or hold a study, but holds other "
                f"files; choose another folder by --out"
            )

    def numbered(self, runs: list[Run]) -> list[Run]:
        """Returns the runs of a scenario with the numbers that they have here.

        Those that are new have numbers beyond.

        Raises:
            StudyError: the folder holds a run that is none of them.
        """
        known = {self._name(entry): entry for entry in self._entries.values()}
        following = max(self._entries, default=-1) + 1
        found = []
        for run in runs:
            entry = known.pop((run.variant, _text(run.parameters), run.replicate), None)
            if entry is None:
                found.append(run._replace(number=following))
                following += 1
                continue
            if entry["content"] != content(run):
                raise self._other(entry["label"])
            found.append(run._replace(number=entry["run"]))
        if known:
            raise self._other(next(iter(known.values()))["label"])
        return found

    def open_tasks(self, runs: list[Run]) -> tuple[list[Task], list[Run]]:
        """Returns tasks that were planned here and have not ended, and the new runs.

        A task is repeated as it was planned, so that a resumed study is the one that
        nobody interrupted.

        Args:
            runs: numbered.

        Raises:
            StudyError: they were planned by other versions of the libraries.
        """
        planned: dict[int, list[Run]] = {}
        for run in runs:
            if (entry := self._entries.get(run.number)) is not None:
                planned.setdefault(entry["task"], []).append(run)
        tasks = []
        for number, members in sorted(planned.items()):
            entries = [self._entries[run.number] for run in members]
            if any(entry["stop"] in OPEN for entry in entries):
                tasks.append(Task(entries[0]["mode"], tuple(members), number))
        new = [run for run in runs if run.number not in self._entries]
        if (tasks or new) and self._entries:
            self._check_versions()
        return tasks, new

    @property
    def num_tasks(self) -> int:
        """Tasks that were planned here so far."""
        return 1 + max((entry["task"] for entry in self._entries.values()), default=-1)

    def begin(self, scenario: Any, runs: list[Run], tasks: list[Task]) -> None:
        """Writes what will be run, and removes what unfinished tasks left.

        Args:
            scenario: of the study.
            runs: all of it, numbered.
            tasks: that are to be executed.
        """
        recover(self.path)
        remove_parts(self.path, {task_name(task.number) for task in tasks})
        of_run = {run.number: task for task in tasks for run in task.runs}
        entries = []
        for run in runs:
            task = of_run.get(run.number)
            entries.append(
                self._entries[run.number] if task is None else _entry(run, task)
            )
        self._entries = {entry["run"]: entry for entry in entries}
        begun, here = self.manifest, {"commit": git_commit(), **_provenance()}
        self.manifest = {
            **here,
            "name": scenario.name,
            "source": scenario.source,
            "question": scenario.question,
            "status": "incomplete",
            "interrupted": False,
            "scenario": scenario.model_dump(mode="json"),
            "runs": entries,
            **{key: begun[key] for key in MADE if key in begun},
        }
        if begun:
            again = {key: here[key] for key in ("command", "started")}
            self.manifest["continued"] = [*begun.get("continued", ()), again]
        write_manifest(self.path, self.manifest)
        (self.path / JOURNAL).unlink(missing_ok=True)

    def note(self, ends: Ends) -> None:
        """Notes the ends of a task's runs.

        Raises:
            StudyError: the disk is full, or the folder cannot be written.
        """
        for number, end in ends.items():
            self._entries[number].update(end)
        try:
            with (self.path / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(ends, allow_nan=False) + "\n")
        except OSError as error:
            raise StudyError(
                f"{self.path}: the study must be written, but "
                f"{error.strerror or error}; make room, then stalesim resume "
                f"{self.path}"
            ) from error

    def interrupt(self) -> None:
        """Notes that the user interrupted the study."""
        self.manifest["interrupted"] = True
        self._write()

    def end(self) -> Study:
        """Joins the tables' parts and says that nothing is left to be run."""
        compact(self.path)
        self.manifest["status"] = "complete"
        self._write()
        return load(self.path)

    def _write(self) -> None:
        write_manifest(self.path, self.manifest)
        (self.path / JOURNAL).unlink(missing_ok=True)

    def _name(self, entry: dict[str, Any]) -> tuple[str, str, int]:
        return entry["variant"], _text(entry["parameters"]), entry["replicate"]

    def _other(self, label: str) -> StudyError:
        return StudyError(
            f"{self.path}: must be new or empty, or hold this very study, but its run "
            f"{label!r} is none of the scenario's; choose another folder by --out"
        )

    def _check_versions(self) -> None:
        here, then = _provenance()["environment"], self.manifest["environment"]
        for name in SAME:
            if here.get(name) != then.get(name):
                raise StudyError(
                    f"{self.path}: must be continued with {name} {then.get(name)}, "
                    f"with which it was begun, got {here.get(name)}; install that, or "
                    f"choose another folder by --out"
                )


def task_name(number: int) -> str:
    """Returns the name of a task's parts among those of the study."""
    return f"{number:05d}"


def _text(parameters: dict[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _entry(run: Run, task: Task) -> dict[str, Any]:
    """Returns what the manifest says of a run beforehand."""
    return {
        **run.identity,
        "content": content(run),
        "task": task.number,
        "mode": task.mode,
        "protocol": run.scenario.protocol.kind,
        "algorithm": run.scenario.algorithm.kind,
        "num_clients": run.scenario.num_clients,
        "stop_reason": "the run has not ended",
        "stop": "incomplete",
        "scenario": run.scenario.model_dump(mode="json"),
    }


def _provenance() -> dict[str, Any]:
    import jax

    return provenance(
        LIBRARIES,
        device=str(jax.devices()[0].device_kind),
        backend=jax.default_backend(),
    )
