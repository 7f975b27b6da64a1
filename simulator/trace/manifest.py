"""The manifest of a study: how it is written, and where and with what it was made."""

import datetime as dt
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from simulator.scenario.errors import StudyError

FORMAT = 2
"""Of what a study's folder holds; 1 had no number, and its clients counted from 0."""


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a study, all of it or nothing.

    Raises:
        StudyError: the disk is full, or the folder cannot be written.
    """
    partial = folder / "manifest.json.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"format": FORMAT} | manifest, indent=1, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / "manifest.json")
    except OSError as error:
        raise StudyError(
            f"{folder}: the study must be written, but {error.strerror or error}; make "
            f"room or choose another folder by --out"
        ) from error


def check_format(manifest: Any, folder: Path) -> None:
    """Refuses a manifest of another format, whose tables would be misread.

    What is no manifest at all is left to those who look for its entries.

    Raises:
        StudyError: saying what to do.
    """
    found = manifest.get("format", 1) if isinstance(manifest, dict) else FORMAT
    if found == FORMAT:
        return
    what = "numbers its clients from 0" if found == 1 else "is not known here"
    raise StudyError(
        f"{folder}: must be a study of format {FORMAT}, got format {found!r}, which "
        f"{what}; run its scenario again, or read it with the stalesim that wrote it"
    )


def provenance(libraries: tuple[str, ...], **also: str) -> dict[str, Any]:
    """Returns where a study is made, with what and by which command, for its manifest.

    Args:
        libraries: distributions whose versions are noted.
        also: what else there is to say of the environment.
    """
    return {
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            **also,
            **{name: _version(name) for name in libraries},
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def git_commit() -> str | None:
    """Returns the git commit of the current folder, if it is in a repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None
