"""A study while it is written: one writer, and the finished runs.

The manifest is written when the runs are known and again at the end. In between, each
end is a line of a journal: a kill loses no finished run, and the cost of writing does
not grow with the number of runs.
"""

from collections import Counter
from collections.abc import Container, Hashable, Mapping
from pathlib import Path

from ..files.study import DISK, Disk, Files, Study, load, parts, write_manifest
from ..files.study.disk import PARTIAL, Ends, explained, journal_line
from ..files.study.manifest import NAME, Manifest
from ..files.study.study import journal_of, journal_session
from ..parts.errors import StudyError


class StudySession:
    """A session in which the study of a folder is written.

    Attributes:
        manifest: Manifest of the study, once it is opened.
    """

    manifest: Manifest

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path, self.disk = path, disk
        self._place: Hashable = None

    def open(self, manifest: Manifest) -> None:
        """Begins a session: writes the manifest of the study."""
        self.manifest = manifest
        with explained(self.path):
            self.disk.write(journal_of(self.path, manifest["session"]), b"")
        self._write(but=manifest["session"])

    def _write(self, but: int | None = None) -> None:
        # The new journal is there before the manifest that names its session, and the
        # old ones go after it: a kill in between leaves a readable study.
        write_manifest(self.path, self.manifest, self.disk)
        self._place = self.disk.identity(self.path / NAME)
        with explained(self.path):
            for name in self.disk.names(self.path):
                if journal_session(name) not in (None, but):
                    self.disk.remove(self.path / name)

    def note_ends(self, ends: Ends, files: Files) -> None:
        """Notes that runs have ended, and the files that hold their rows."""
        if self.disk.identity(self.path / NAME) != self._place:
            raise StudyError(
                f"{self.path}: must stay in place while its study is run, but was "
                f"removed or replaced; run the scenario again into a new folder"
            )
        for name, mine in files.items():
            self.manifest["parts"].setdefault(name, {}).update(mine)
        self._append({"ends": ends, "parts": files})

    def note_joined(self, files: Files) -> None:
        """Notes that a file replaces all others of its table, which then go."""
        self._append({"ends": {}, "joined": files})
        with explained(self.path):
            self.disk.sync(journal_of(self.path, self.manifest["session"]))
            self.disk.sync(self.path)

    def _append(self, record: Mapping[str, object]) -> None:
        with explained(self.path):
            path = journal_of(self.path, self.manifest["session"])
            self.disk.append(path, journal_line(record))

    def undo(self) -> None:
        """Removes what opening the session has written."""
        self.disk.remove(self.path / NAME)
        self.disk.remove(journal_of(self.path, self.manifest["session"]))

    def interrupt(self) -> None:
        """Notes that the user interrupted the study."""
        self.manifest["interrupted"] = True
        self._close()

    def end(self) -> Study:
        """Joins the tables' parts and records that no run is left."""
        rows: Counter[str] = Counter()
        for entry in self.manifest["runs"]:
            rows.update(entry.get("rows", {}))
        files = self.manifest["parts"]
        parts.compact(self.disk, self.path, files, rows, self.note_joined)
        for name, mine in files.items():
            parts.sync(self.disk, self.path, name, mine)
        self.tidy()
        self.manifest["status"] = "complete"
        self._close()
        return load(self.path, self.disk)

    def tidy(self, writers: Container[str] = ()) -> None:
        """Removes what nothing names: a kill left it before it was noted.

        Args:
            writers: Writers whose parts stay, because they may continue.
        """
        files = self.manifest["parts"]
        parts.remove_parts(self.disk, self.path, files, lambda of: of not in writers)
        with explained(self.path):
            for name in self.disk.names(self.path):
                if name.endswith(PARTIAL):
                    self.disk.remove(self.path / name)

    def _close(self) -> None:
        self.manifest["session"] += 1  # what its journal says is in the manifest now
        self.manifest.pop("shared", None)
        self._write()
