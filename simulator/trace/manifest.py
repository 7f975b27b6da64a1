"""The manifest of a study: how it is written, and where and with what it was made."""

import datetime as dt
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from simulator.scenario.errors import StudyError
from simulator.trace.commit import of_program


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a study, all of it or nothing.

    Raises:
        StudyError: the disk is full, or the folder cannot be written.
    """
    partial = folder / "manifest.json.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(manifest, indent=1, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / "manifest.json")
    except OSError as error:
        raise StudyError(
            f"{folder}: the study must be written, but {error.strerror or error}; make "
            f"room or choose another folder by --out"
        ) from error


def provenance(libraries: tuple[str, ...], **also: str) -> dict[str, Any]:
    """Returns where a study is made, with what and by which command, for its manifest.

    Args:
        libraries: distributions whose versions are noted.
        also: what else there is to say of the environment.
    """
    return {
        **of_program()._asdict(),
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


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None
