"""The identity of this program: its code, and the commit of its own repository."""

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2]
"""Folder of the simulator."""
PARTS = ("simulator", "analysis", "pyproject.toml")
"""Files of the program in its repository."""
KINDS = {".py", ".bz2", ".gz"}
"""Endings of code, and of data that come with it."""
APART = {"cli", "extras"}
"""Folders that the core never imports. Of extras, those count that a study uses."""
TIMEOUT_S = 10


class Commit(NamedTuple):
    """A state of the program.

    Attributes:
        commit: Hexadecimal; None where the program is in no repository, as a wheel.
        dirty: Whether the program's files differ from it, new ones included; None where
            there is none.
    """

    commit: str | None
    dirty: bool | None


def of_program() -> Commit:
    """Returns the commit of the repository in which this package lies.

    Another repository, in which an environment with this package happens
    to lie, does not have the package's files under version control, and is not meant.
    """
    package = PACKAGE
    parts = [str(package.parent / name) for name in PARTS]
    try:
        git(package, "ls-files", "--error-unmatch", package / "__init__.py")
        told = git(package, "status", "--porcelain=v2", "--branch", "--", *parts)
    except (OSError, subprocess.SubprocessError):
        return Commit(None, None)
    heads = [line.split()[2] for line in told if line.startswith("# branch.oid ")]
    if not heads or heads[0] == "(initial)":
        return Commit(None, None)
    return Commit(heads[0], any(not line.startswith("#") for line in told))


def code() -> str:
    """Returns the SHA-256 of the files of this package that numbers pass through.

    They count by name and content. The command line and extras do not, so that an
    unfinished study continues after a change of them (see `extra_code`).
    It tells programs apart that have no repository, such as two wheels of one version.
    """
    return _code(PACKAGE)


def extra_code(name: str) -> str:
    """Returns the SHA-256 of an extra's files; of none where it is not installed."""
    return _code(PACKAGE / "extras" / name)


@cache
def _code(package: Path) -> str:
    """Returns the digest of a package, as its files were when it was first asked for.

    A process keeps the modules that it has imported, whatever becomes of them.
    """
    found = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package).as_posix()
        if path.suffix in KINDS and name.split("/")[0] not in APART:
            body = path.read_bytes()
            found.update(f"{name} {len(body)}\n".encode())
            found.update(body)
    return found.hexdigest()


def git(folder: Path, *words: str | Path) -> list[str]:
    """Returns the output of git on a folder, line by line.

    Raises:
        OSError: there is no git.
        subprocess.SubprocessError: it fails, or does not answer.
    """
    # Variables such as GIT_DIR, in a hook, name another repository.
    own = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    found = subprocess.run(
        ["git", "--no-optional-locks", "-C", folder, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        env=own,
    )
    return found.stdout.splitlines()
