"""The folder of a study: the runs that it holds, and those still to be made."""

import contextlib
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from ..files import inputs
from ..files.inputs import Inputs
from ..files.study import (
    DISK,
    Disk,
    Files,
    StudyWarning,
    is_world,
    load,
    measured,
    parts,
)
from ..files.study.disk import LOCK, PARTIAL, explained
from ..files.study.manifest import NAME, Manifest, Provenance
from ..files.study.study import SHARED, journal_session
from ..parts.errors import StudyError
from ..parts.json_text import Tree
from ..scenario.scenario import Scenario
from ..scenario.study import Run
from . import origins, planning
from .planning import (
    CHECKPOINTS,
    CLAIMS,
    DATA,
    LOCKS,
    OPEN,
    UNFINISHED,
    WORDS,
    Done,
    Task,
    checkpoint_of,
    claims_of,
    difference,
    done_by,
    task_name,
)
from .session import StudySession


class StudyFolder(StudySession):
    """The folder of a study: the runs that it holds, and those still to be made.

    Args:
        path: Path of the folder, whose lock is held.
        disk: Disk of the folder.
        look: Whether to check the rows of finished runs.

    Attributes:
        is_new: Whether there was no study in it.
        repeated: Labels of runs whose rows are missing or damaged, by their numbers.
        inputs: Files and modules that the study's runs read.

    Raises:
        StudyError: there are files in it, but no study.
    """

    inputs: Inputs

    def __init__(self, path: Path, disk: Disk = DISK, *, look: bool = True) -> None:
        super().__init__(path, disk)
        self._entries: dict[int, Tree] = {}
        self.repeated: dict[int, str] = {}
        self._spoilt = False  # whether there is a file that cannot be read
        self.is_new = not disk.exists(path / NAME)
        if not self.is_new:
            study = load(path, disk)
            self.manifest = study.manifest
            self.manifest["parts"] = study.files
            if is_world(self.manifest):
                raise StudyError(
                    f"{path}: must be new or empty, but holds a timeline; choose "
                    f"another folder by --out"
                )
            self._entries = {entry["run"]: entry for entry in self.manifest["runs"]}
            if look:
                self._find_lost()
        else:
            refuse_others(path, disk)

    def _find_lost(self) -> None:
        """Marks runs as not ended of which rows are missing or damaged."""
        counts: Counter[tuple[int, str]] = Counter()
        for name, mine in self.manifest["parts"].items():
            for file, seal in mine.items():
                try:
                    table = parts.read(self.disk, self.path / name / file, seal)
                except StudyError:
                    self._spoilt = True
                    continue
                for pair in table.column("run").value_counts().to_pylist():
                    counts[pair["values"], name] += pair["counts"]
        for number, entry in self._entries.items():
            rows = entry.get("rows", {})
            names = {*rows, *(name for run, name in counts if run == number)}
            if any(counts[number, name] != rows.get(name, 0) for name in names):
                self.repeated[number] = entry["label"]
                entry |= UNFINISHED
        if self.repeated:
            first = next(iter(self.repeated.values()))
            warnings.warn(
                f"{self.path}: rows of {len(self.repeated)} runs ({first}, ...) are "
                f"missing or damaged; these runs are repeated",
                StudyWarning,
                stacklevel=2,
            )

    def read(self, found: Inputs) -> None:
        """Takes over the files that the runs of a scenario read, as the study's own.

        Raises:
            StudyError: a file holds something else than when the study was started.
        """
        if not self.is_new:
            origins.check_files(self.path, self.manifest, found)
        self.inputs = found

    def numbered(self, runs: list[Run]) -> list[Run]:
        """Returns the runs of a scenario with the numbers that they have here.

        New runs have the next numbers.

        Raises:
            StudyError: the folder holds a run that is none of them.
        """
        known = {planning.known_by(entry): entry for entry in self._entries.values()}
        following = max(self._entries, default=-1) + 1
        found = []
        for run in runs:
            entry = known.pop(planning.known_by(run.identity), None)
            if entry is None:
                found.append(run._replace(number=following))
                following += 1
                continue
            if entry["content"] != planning.content(run):
                raise self._other(entry, run.scenario)
            found.append(run._replace(number=entry["run"]))
        if known:
            raise self._other(next(iter(known.values())))
        return found

    def planned(self, runs: list[Run]) -> list[Task]:
        """Returns the tasks that were planned here, whether they have ended or not."""
        members: dict[int, list[Run]] = {}
        for run in runs:
            if (entry := self._entries.get(run.number)) is not None:
                members.setdefault(entry["task"], []).append(run)
        return [
            Task(self._entries[mine[0].number]["mode"], tuple(mine), number)
            for number, mine in sorted(members.items())
        ]

    def left(self, tasks: list[Task]) -> list[Task]:
        """Returns the tasks that have not ended, of those planned here.

        A task is repeated as it was planned, so that a resumed study is the one that
        was never interrupted.
        """
        return [
            task
            for task in tasks
            if any(self._entries[run.number]["stop"] in OPEN for run in task.runs)
        ]

    @property
    def num_tasks(self) -> int:
        """Tasks that were planned here so far."""
        return 1 + max((entry["task"] for entry in self._entries.values()), default=-1)

    def begin(
        self,
        scenario: Scenario,
        runs: list[Run],
        tasks: list[Task],
        regrouped: list[int] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """Writes the manifest of the runs, and removes the rows of unfinished tasks.

        Args:
            scenario: Scenario of the study.
            runs: All runs of the study, numbered.
            tasks: Tasks to execute.
            regrouped: Numbers of runs that a study of all these runs, run at once,
                would have executed together with others; by default those recorded
                before.
            shared: Whether any processes may take the tasks, by this folder alone.
        """
        known = None if self.is_new else self.manifest
        of_run = {run.number: task for task in tasks for run in task.runs}
        writers = {task_name(task.number) for task in tasks}
        files = self._kept(known, {*of_run}, writers) if known else {}
        planned = {
            run.number: planning.entry_of(run, of_run[run.number])
            for run in runs
            if run.number in of_run
        }
        self._entries = {
            run.number: planned.get(run.number) or self._entries[run.number]
            for run in runs
        }
        here = origins.of_this_program(self.inputs.libraries)
        first, session = known or here, known["session"] + 1 if known else 1
        read = inputs.manifest_entries(self.inputs)
        manifest: Manifest = {
            "commit": first.get("commit"),
            "dirty": first.get("dirty"),
            # A new variant may have own code that imports more libraries.
            "environment": here["environment"] | first["environment"],
            "command": first.get("command", []),
            "started": first.get("started", ""),
            "name": scenario.name,
            "source": scenario.source,
            "question": scenario.question,
            "status": "incomplete",
            "interrupted": False,
            "session": session,
            "scenario": scenario.model_dump(mode="json"),
            **read,
            "metrics": measured.facts_of(
                scenario.evaluate.metrics,
                [run.scenario.problem.model_dump(mode="json") for run in runs],
            ),
            "runs": [*self._entries.values()],
            "regrouped": regrouped or [],
            "parts": files,
        }
        if known:
            if regrouped is None:
                manifest["regrouped"] = known.get("regrouped", [])
            _continue(manifest, known, here)
        if shared:
            manifest[SHARED] = session
        with explained(self.path):
            # A loss of power may have taken a session's manifest and left these.
            for name in self.disk.names(self.path / LOCKS):
                if name.endswith(done_by(session)):
                    self.disk.remove(self.path / LOCKS / name)
        self.open(manifest)
        for name in self.disk.names(self.path):
            if name.startswith(CLAIMS):
                self.clear(name)
        if shared:
            with explained(self.path):
                self.disk.make(claims_of(self.path, session))
        kept = writers & {*self.disk.names(self.path / CHECKPOINTS)}
        self.tidy(kept)

    def _kept(self, known: Manifest, runs: set[int], writers: set[str]) -> Files:
        """Returns the files that stay where a study is continued.

        Rows of a task that is executed again would otherwise be counted twice.
        """
        self._end_sharing(known)
        files = known["parts"]
        if self.repeated or self._spoilt:
            self._forget(runs & {*self._entries}, files)
        for mine in files.values():
            for file in [file for file in mine if file.split("-")[1] in writers]:
                del mine[file]
        return files

    def _end_sharing(self, known: Manifest) -> None:
        """Ends a shared session, whose processes can change nothing from here on."""
        session = known["session"]
        if known.get(SHARED) != session:
            return
        claims = claims_of(self.path, session)
        with explained(self.path):
            if self.disk.exists(claims):
                self.disk.rename(claims, claims.with_name(f"{claims.name}.gone"))
        now = load(self.path, self.disk, quietly=True)
        if (now.manifest["session"], now.files) != (session, known["parts"]):
            raise StudyError(
                f"{self.path}: other processes have ended runs of the study since it "
                f"was read, which none does from now on; give the command again"
            )

    def _forget(self, runs: set[int], files: Files) -> None:
        """Removes the rows of runs that are repeated, and damaged files."""
        import pyarrow as pa

        for name, mine in files.items():
            left, changed = [], False
            for file, seal in parts.ordered(mine).items():
                try:
                    table = parts.read(self.disk, self.path / name / file, seal)
                except StudyError:
                    changed = True
                    continue
                others = ~np.isin(table.column("run").to_numpy(), sorted(runs))
                left.append(table.filter(pa.array(others)))
                changed |= left[-1].num_rows < table.num_rows
            if changed:
                files[name] = parts.rewrite(
                    self.disk, self.path, name, mine, left, self.note_joined
                )

    def note(self, done: Done) -> None:
        """Notes the result of a task."""
        for number, end in done.ends.items():
            self._entries[number].update(end)
        self.note_ends(done.ends, done.files)
        with explained(self.path):
            for task in {self._entries[run]["task"] for run in done.ends}:
                self.disk.remove(checkpoint_of(self.path, task))

    def clear(self, name: str) -> None:
        """Removes a folder that is needed while the study is run alone."""
        with contextlib.suppress(OSError):
            self.disk.remove_folder(self.path / name)

    def _other(self, entry: Tree, scenario: Scenario | None = None) -> StudyError:
        """Returns why a run of this folder is none of a scenario's."""
        files = origins.other_files(self.manifest, self.inputs, scenario)
        if files:
            return StudyError(
                f"{self.path}: must be continued with the files that it was started "
                f"with, but {files}"
            )
        what = "is none of the scenario's"
        if scenario is not None:
            now = scenario.model_dump(mode="json")
            told = difference(entry["scenario"], now, leaving=WORDS)
            what = f"differs: {told}" if told else "has another seed"
        run = f"replicate {entry['replicate']} of its run {entry['label']!r}"
        return StudyError(
            f"{self.path}: must be new or empty, or hold this very study, but {run} "
            f"{what}; choose another folder by --out, or replace "
            f"the study by --overwrite"
        )

    def check_versions(self) -> None:
        """Refuses to continue with another program, other libraries or modules."""
        if self._entries:
            origins.check_modules(self.path, self.manifest, self.inputs)
            origins.check_program(self.path, self.manifest, self.inputs)


def refuse_others(folder: Path, disk: Disk = DISK) -> None:
    """Refuses a folder that holds other things than a study, or the start of one."""
    try:
        if disk.exists(folder / NAME):
            return
        names = disk.names(folder)
    except OSError:  # writing the folder says so
        return
    if not all(map(_is_left, names)):
        raise StudyError(
            f"{folder}: must be new or empty, or hold a study, but holds other files; "
            f"choose another folder by --out"
        )


def _continue(manifest: Manifest, known: Manifest, here: Provenance) -> None:
    """Adds what a study's manifest has said so far, and who continues it."""
    for name in ("inputs", "modules"):
        manifest[name] |= known.get(name, {})
    manifest["working_folder"] = known.get("working_folder", "")
    again = {key: value for key, value in here.items() if key != "environment"}
    manifest["continued"] = [*known.get("continued", ()), again]


def _is_left(name: str) -> bool:
    """Says whether a file is what a kill leaves of a study's first moments."""
    known = name in (LOCK, DATA) or name.endswith(PARTIAL)
    return known or journal_session(name) is not None
