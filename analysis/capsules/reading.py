"""Capsules read back: every file that the metadata names is there and unchanged."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.capsules import contents, metadata
from simulator.storage import limits
from simulator.trace import StudyError

NEEDED = (contents.SCENARIO, contents.MANIFEST, contents.RUNS)
MOST_BYTES = 2**30
"""Bytes of all files of a capsule, unpacked."""


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

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table of the capsule, empty cells as empty words.

        Raises:
            StudyError: It is no table.
        """
        try:
            file = io.BytesIO(self.files[name])
            return pd.read_csv(file, dtype=str, keep_default_na=False)
        except (ValueError, KeyError) as error:
            raise _damaged(self.path, f"{name} is no table") from error

    @property
    def modules(self) -> list[str]:
        """Paths of the code of plug-ins."""
        return [name for name in self.files if name.startswith(f"{contents.MODULES}/")]


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
    try:
        manifest = json.loads(files[contents.MANIFEST])
        runs = manifest["runs"]
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, f"{contents.MANIFEST} is no manifest") from error
    if not isinstance(runs, list):
        raise _damaged(path, f"{contents.MANIFEST} is no manifest")
    if contents.CLAIMS not in listed and not contents.is_played(manifest):
        raise _damaged(path, f"{contents.CLAIMS} is missing")
    return Capsule(path, {name: files[name] for name in listed}, manifest)


def _unpacked(path: Path) -> dict[str, bytes]:
    size = 0
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [each for each in archive.infolist() if not each.is_dir()]
            size = sum(each.file_size for each in inside)
            if size <= MOST_BYTES:
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
    most = limits.shown(MOST_BYTES)
    raise _damaged(path, f"it has {limits.shown(size)}, more than {most}")


def _listed(path: Path, text: bytes) -> dict[str, str]:
    """Returns the files that the metadata names, and the SHA-256 of each."""
    try:
        graph = json.loads(text)["@graph"]
        files = [each for each in graph if each.get("@type") == "File"]
        return {str(each["@id"]): str(each["sha256"]) for each in files}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, f"{metadata.NAME} is no metadata of a study") from error


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path}: the capsule is damaged, or none of stalesim's: {why}; get it again"
    )
