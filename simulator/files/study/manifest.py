"""The manifest of a study: written with a checksum, and checked when read."""

import contextlib
import datetime as dt
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Annotated, Literal, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict

from ...parts import json_text
from ...parts.errors import StudyError
from ...parts.json_text import Tree
from .disk import DISK, Disk, explained, replace

PACKAGE = Path(__file__).resolve().parents[2]
"""Folder of the simulator."""
PARTS = ("simulator", "analysis", "pyproject.toml")
"""Files of the program in its repository."""
KINDS = {".py", ".bz2", ".gz"}
"""Endings of code, and of data that come with it."""
APART = {"cli", "extras"}
"""Folders that the core never imports. Of extras, those count that a study uses."""
TIMEOUT_S = 10


def of_program() -> tuple[str | None, bool | None]:
    """Returns the commit of this package's repository, and whether files differ.

    None of both where the program is in no repository, as a wheel.

    Another repository, with an environment that contains this package, does not have
    the package's files under version control, and is not meant.
    """
    package = PACKAGE
    parts = [str(package.parent / name) for name in PARTS]
    try:
        git(package, "ls-files", "--error-unmatch", package / "__init__.py")
        told = git(package, "status", "--porcelain=v2", "--branch", "--", *parts)
    except (OSError, subprocess.SubprocessError):
        return None, None
    heads = [line.split()[2] for line in told if line.startswith("# branch.oid ")]
    if not heads or heads[0] == "(initial)":
        return None, None
    return heads[0], any(not line.startswith("#") for line in told)


@cache
def code(package: Path = PACKAGE) -> str:
    """Returns the SHA-256 of the files of a package that affect numbers.

    They count by name and content, as they were at the first call: a process keeps the
    modules that it has imported. Of this one the command line and extras do not count,
    so that an unfinished study continues after a change of them. It distinguishes
    programs without a repository, such as two wheels of one version.
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


NAME = "manifest.json"
FORMAT = 2
"""Version of the folder. 1: no number, clients counted from 0. 2: checksums of all
files, numbers of rows, a journal per session."""
CHECKSUM = "checksum"
CODE = 16
EXTRA = "extras."
"""Begins the name of an extra among libraries."""
"""Digits of the program's own SHA-256 that are noted."""


Count = Annotated[int, Field(ge=1)]
PartName = Annotated[str, Field(pattern=r"^part-[A-Za-z0-9_]+-[0-9]+\.parquet$")]
Seal = Annotated[list[int], Field(min_length=2, max_length=2)]


def _checked(shape: type) -> GetPydanticSchema:
    """Lets a tree be checked for the entries that a reader needs."""
    return GetPydanticSchema(lambda _, schema_of: schema_of(shape))


def _rising(looks: list[int]) -> list[int]:
    if looks != sorted({*looks}):
        raise ValueError(f"must rise, got {looks}")
    return looks


@with_config(ConfigDict(strict=True))
class _Run(TypedDict):
    """The entries of a run that a reader needs."""

    run: int
    label: str
    variant: str
    parameters: dict[str, object]
    replicate: int
    seed: int
    stop: str
    stop_reason: str
    scenario: dict[str, object]
    rows: NotRequired[dict[str, int]]


@with_config(ConfigDict(strict=True))
class _Told(TypedDict):
    """The entry of a file or of a module: where it was, and its digest."""

    sha256: str


@with_config(ConfigDict(strict=True))
class _Scenario(TypedDict):
    """The entries of a scenario that are read without the scenario itself."""

    replicates: NotRequired[Count]
    looks: NotRequired[Annotated[list[Count], AfterValidator(_rising)]]
    claims: NotRequired[list[dict[str, object]]]
    evaluate: NotRequired[dict[str, object]]
    stop: NotRequired[dict[str, object]]
    sweep: NotRequired[dict[str, object]]
    variants: NotRequired[dict[str, object]]


@with_config(ConfigDict(strict=True))
class _Metric(TypedDict):
    """The entry of a metric."""

    unit: str
    higher_is_better: bool
    label: str
    logarithmic: bool
    meaning: str
    bounds: list[float | None] | None


RunEntry = Annotated[Tree, _checked(_Run)]
"""Entry of a run: its identity, its scenario, and its end."""


@with_config(ConfigDict(strict=True))
class Provenance(TypedDict):
    """The program, the machine and the command that began a study."""

    commit: NotRequired[str | None]
    dirty: NotRequired[bool | None]
    environment: Tree
    command: NotRequired[list[str]]
    started: NotRequired[str]


@with_config(ConfigDict(strict=True))
class Read(TypedDict, total=False):
    """Inputs of the runs of a study: files, modules, and logs of worlds."""

    inputs: dict[str, Annotated[Tree, _checked(_Told)]]
    modules: dict[str, Annotated[Tree, _checked(_Told)]]
    working_folder: str
    fits: list[Tree]
    """Laws of a world of samples that were fitted to a log."""
    remarks: list[str]
    """Remarks on that log."""


@with_config(ConfigDict(strict=True))
class Manifest(Provenance, Read):
    """The manifest of a study; a reader needs those entries that are required."""

    format: NotRequired[int]
    checksum: NotRequired[str]
    kind: NotRequired[str]
    name: str
    source: NotRequired[str]
    question: NotRequired[str]
    status: Literal["complete", "incomplete"]
    interrupted: NotRequired[bool]
    session: int
    shared: NotRequired[int]
    """Session in which any processes may take tasks."""
    scenario: Annotated[Tree, _checked(_Scenario)]
    metrics: NotRequired[dict[str, Annotated[Tree, _checked(_Metric)]]]
    runs: list[RunEntry]
    regrouped: NotRequired[list[int]]
    """Runs that a study of all runs at once had executed together with others."""
    parts: dict[str, dict[PartName, Seal]]
    continued: NotRequired[list[Tree]]
    """Provenance of the sessions that continued it, without their environments."""


_SHAPE = TypeAdapter(Manifest)


def is_world(manifest: Mapping[str, object]) -> bool:
    """Returns whether a manifest is of a world alone, without training.

    Its `kind` is `timeline`, a world of clients, or the kind of an extra's world;
    studies with training have none.
    """
    return manifest.get("kind") is not None


def write_manifest(
    folder: Path, manifest: Mapping[str, object], disk: Disk = DISK
) -> None:
    """Writes the manifest of a study, all of it or nothing, with its checksum."""
    sealed = {"format": FORMAT, **manifest, CHECKSUM: None}
    sealed[CHECKSUM] = _checksum(sealed)
    text = "{\n" + ",\n".join(map(_entry_text, sealed.items())) + "\n}\n"
    remedy = "make room, or choose another folder by --out"
    with explained(folder, remedy):
        replace(disk, folder / NAME, text.encode())


def read_manifest(folder: Path, disk: Disk = DISK) -> Manifest:
    """Returns the manifest of a study as it was written.

    Raises:
        StudyError: there is none, it is damaged, or another version has written it.
    """
    path = folder / NAME
    try:
        data = disk.read(path)
    except (FileNotFoundError, NotADirectoryError):
        fault = f"has no {NAME}" if disk.exists(folder) else "there is no such folder"
        raise StudyError(
            f"{folder}: must be the folder of a study, but {fault}; give the folder "
            f"that `stalesim run` printed, or run the scenario again"
        ) from None
    except OSError as error:
        raise StudyError(
            f"{path}: must be readable, but {error.strerror or error}; mend that first"
        ) from None
    manifest = parsed(path, data)
    if manifest.get("checksum") != _checksum(manifest):
        raise _damaged(path, "its checksum differs")
    return manifest


def parsed(path: Path, data: bytes) -> Manifest:
    """Returns a manifest that has the entries that a reader needs, of their types.

    Raises:
        StudyError: It is none, it is damaged, or another version has written it.
    """
    try:
        manifest: Manifest = json_text.loads(data)
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    found = manifest.get("format", 1) if isinstance(manifest, dict) else FORMAT
    if found != FORMAT:
        raise StudyError(
            f"{path}: must have format {FORMAT}, got {found!r:.40}; read it with the "
            f"version of stalesim that wrote it, or run its scenario again"
        )
    try:
        _SHAPE.validate_python(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise _damaged(path, f"{where}: {first['msg']}") from None
    return manifest


def _entry_text(entry: tuple[str, object]) -> str:
    """Returns an entry as a line, and lists of several with a line for each item.

    With indentation, JSON is written by Python and takes ten times as long.
    """
    key, value = entry
    text = json.dumps(value, allow_nan=False)
    if isinstance(value, list) and len(value) > 1:
        items = (json.dumps(item, allow_nan=False) for item in value)
        text = "[\n  " + ",\n  ".join(items) + "\n ]"
    return f" {json.dumps(key)}: {text}"


def _checksum(manifest: Mapping[str, object]) -> str:
    rest = {key: value for key, value in manifest.items() if key != CHECKSUM}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path}: must be as stalesim wrote it, but {why}; restore it from a copy, or "
        f"run the scenario again into another folder; its tables are Parquet files "
        f"that pandas can read"
    )


MACHINE = ("platform", "cores", "device", "backend", "products")
"""Entries of the environment that are no software."""


def provenance(libraries: tuple[str, ...], **also: str) -> Provenance:
    """Returns a manifest's entries on the program, the machine and the command."""
    commit, dirty = of_program()
    return {
        "commit": commit,
        "dirty": dirty,
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            **also,
            **program(libraries),
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def program(libraries: tuple[str, ...]) -> dict[str, str | None]:
    """Returns the versions of libraries, and the digest of this program's own code."""
    return {**{name: _version(name) for name in libraries}, "code": code()[:CODE]}


@cache
def _version(name: str) -> str | None:
    """Returns the version of a distribution, or of the one that has a module.

    Of an extra it is the digest of its code.
    """
    if name.startswith(EXTRA):
        return code(PACKAGE / "extras" / name.removeprefix(EXTRA))[:CODE]
    with contextlib.suppress(ModuleNotFoundError):
        return version(name)
    # Slow, as every installed file is looked at: for names such as sklearn alone.
    found = packages_distributions().get(name)
    return version(found[0]) if found else None
