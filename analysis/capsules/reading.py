"""Capsules read back: every file that the metadata names is there and unchanged."""

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pandas as pd

from ...simulator.config import json_text
from ...simulator.config.study_names import RULE, is_name
from ...simulator.config.text import shown
from ...simulator.storage import limits
from ...simulator.trace import StudyError, is_world
from ...simulator.trace.manifest import parsed
from . import contents, metadata

NEEDED = (contents.SCENARIO, contents.MANIFEST, contents.RUNS)
MOST_BYTES = 2**30
"""Bytes of all files of a capsule, unpacked."""
MOST_LISTED = 1_000_000
"""Values of the metadata, which lists files and no runs."""
MODULE = re.compile(rf"{contents.MODULES}/[A-Za-z_]\w*\.py", re.ASCII)
RUN = ("group", "replicate", "sha256")
"""Columns by which runs are compared."""
CLAIM = ("claim", "says", "origin", "verdict")
"""Columns by which verdicts are compared."""


class Capsule(NamedTuple):
    """A capsule in memory.

    Attributes:
        path: Path of its file.
        files: Content of the files that its metadata names, by their paths in it.
        manifest: Manifest of the study.
    """

    path: Path
    files: Mapping[str, bytes]
    manifest: Mapping[str, Any]

    def table(self, name: str, columns: Sequence[str] = ()) -> pd.DataFrame:
        """Returns a table of the capsule, empty cells as empty words.

        Args:
            name: Path of it in the capsule.
            columns: Columns that it must have.

        Raises:
            StudyError: It is no table, or lacks a column.
        """
        try:
            file = io.BytesIO(self.files[name])
            found = pd.read_csv(file, dtype=str, keep_default_na=False)
        except (ValueError, KeyError) as error:
            raise _damaged(self.path, f"{name} is no table") from error
        for column in columns:
            if column not in found:
                raise _damaged(self.path, f"{name} has no column {column}")
        return found

    @property
    def modules(self) -> list[str]:
        """Paths of the user's own code."""
        return [name for name in self.files if name.startswith(f"{contents.MODULES}/")]

    @property
    def named(self) -> list[str]:
        """Paths of the code that the study names; the rest is imported by it."""
        names = {*self.manifest.get("modules", {})}
        names |= {name.partition(":")[0] for name in self.manifest.get("inputs", {})}
        return [name for name in self.modules if PurePosixPath(name).stem in names]

    @property
    def left_out(self) -> list[str]:
        """Names of what the study read and the capsule does not hold."""
        return [*contents.left_out(self.manifest, self.files)]


def read(path: str | Path) -> Capsule:
    """Reads a capsule into memory, and checks it.

    Nothing is unpacked to the disk, and nothing of it executed.

    Args:
        path: File that `stalesim capsule` wrote.

    Raises:
        StudyError: It is none, is damaged, or not of a study.
    """
    path = Path(path)
    files = _unpacked(path)
    if metadata.NAME not in files:
        raise _damaged(path, f"it has no {metadata.NAME}")
    listed = _listed(path, files[metadata.NAME])
    for name, sha256 in listed.items():
        if name not in files:
            raise _damaged(path, f"{name} is missing")
        if hashlib.sha256(files[name]).hexdigest() != sha256:
            raise _damaged(path, f"{name} is not what it was when it was packed")
    for name in NEEDED:
        if name not in listed:
            raise _damaged(path, f"{name} is missing")
    manifest = _manifest(path, files[contents.MANIFEST])
    capsule = Capsule(path, {name: files[name] for name in listed}, manifest)
    _check_contents(capsule)
    return capsule


def _manifest(path: Path, data: bytes) -> dict[str, Any]:
    """Returns the manifest of a capsule, whose name can be that of a folder."""
    try:
        manifest = parsed(Path(contents.MANIFEST), data)
    except StudyError as error:
        why = f"{contents.MANIFEST} is no manifest ({error})"
        raise _damaged(path, why) from error
    if not is_name(manifest["name"]):
        raise _damaged(
            path,
            f"name in {contents.MANIFEST} must be {RULE}, got "
            f"{shown(manifest['name'])}",
        )
    return manifest


def _check_contents(capsule: Capsule) -> None:
    """Refuses a capsule with which no repetition could be compared.

    Raises:
        StudyError: A table lacks columns or rows, or a file is not what it is called.
    """
    path, manifest = capsule.path, capsule.manifest
    for name in capsule.modules:
        if not MODULE.fullmatch(name):
            raise _damaged(path, f"{shown(name)} is no name of a module")
    if len(capsule.table(contents.RUNS, RUN)) != len(manifest["runs"]):
        raise _damaged(path, f"{contents.RUNS} has not a row for each run")
    if not manifest["runs"]:
        raise _damaged(path, "it has no runs, which could be repeated")
    if not is_world(manifest):
        if contents.CLAIMS not in capsule.files:
            raise _damaged(path, f"{contents.CLAIMS} is missing")
        rows, claims = capsule.table(contents.CLAIMS, CLAIM), manifest["scenario"]
        if rows.empty and claims.get("claims"):
            raise _damaged(path, f"{contents.CLAIMS} has no verdicts on the claims")
    try:
        capsule.files[contents.SCENARIO].decode()
    except ValueError as error:
        raise _damaged(path, f"{contents.SCENARIO} is no text") from error


def _unpacked(path: Path) -> dict[str, bytes]:
    size, most = 0, MOST_BYTES
    try:
        most = min(most, limits.limit(path.stat().st_size))
        with zipfile.ZipFile(path) as archive:
            inside = [each for each in archive.infolist() if not each.is_dir()]
            size = sum(each.file_size for each in inside)
            if size <= most:
                return {each.filename: archive.read(each) for each in inside}
    except OSError as error:
        raise StudyError(
            f"{path} must be a capsule that can be read, got: "
            f"{error.strerror or error}; check its name"
        ) from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        ValueError,
    ) as error:
        raise _damaged(path, "it is no whole zip file") from error
    raise _damaged(path, f"it has {limits.shown(size)}, more than {limits.shown(most)}")


def _listed(path: Path, text: bytes) -> dict[str, str]:
    """Returns the files that the metadata names, and the SHA-256 of each."""
    try:
        graph = json_text.loads(text, MOST_LISTED)["@graph"]
        files = [each for each in graph if each.get("@type") == "File"]
        return {str(each["@id"]): str(each["sha256"]) for each in files}
    except (TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, f"{metadata.NAME} is no metadata of a study") from error
    except ValueError as error:
        raise _damaged(path, f"{metadata.NAME} {error}") from error


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path}: the capsule is damaged, or none of stalesim's: {why}; get it again"
    )
