"""Capsules as zip files: written, the same bytes for the same study, read, compared."""

import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pandas as pd

from ....analysis import claims
from ....analysis.facts import Entry
from ....analysis.files import replaced, written
from ....analysis.frames import Study
from ....analysis.markup import no_formulas
from ...files.reading import files
from ...files.study import StudyError, is_world
from ...files.study.manifest import parsed
from ...parts.errors import shown
from ...scenario.setting import NAME_RULE, is_study_name
from . import contents
from .anonymous import check, identities, nameless, without_hidden_texts
from .contents import PackedFile, entries, readme

NAME = "capsule.zip"
"""Name of the capsule in a study's folder."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files, the first that zip knows: times of packing are no content."""
NEEDED = (contents.SCENARIO, contents.MANIFEST, contents.RUNS)
MOST_BYTES = 2**30
"""Bytes of all files of a capsule, unpacked."""
MODULE = re.compile(rf"{contents.MODULES}/[A-Za-z_]\w*\.py", re.ASCII)
RUN = ("group", "replicate", "sha256")
"""Columns by which runs are compared."""
CLAIM = ("claim", "says", "origin", "verdict")
"""Columns by which verdicts are compared."""


class Capsule(NamedTuple):
    """A capsule in memory."""

    path: Path
    files: Mapping[str, bytes]
    manifest: Entry

    def table(self, name: str, columns: Sequence[str] = ()) -> pd.DataFrame:
        """Returns a table of the capsule, empty cells as empty words.

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
        """Names of the study's inputs that the capsule lacks."""
        return [*contents.left_out(self.manifest, self.files)]


def write(
    study: Study,
    file: str | Path | None = None,
    licence: str | None = None,
    *,
    anonymous: bool = False,
    allowed: Sequence[str] = (),
) -> Path:
    """Writes a study as a capsule, without the data that it read.

    Args:
        study: Study that is complete.
        file: Path that ends in .zip; by default `capsule.zip` in the study's folder.
        licence: SPDX identifier of the licence of scenario and results.
        anonymous: Whether commit, command, folders, and figures whose texts cannot be
            searched are left out, and a capsule that names an author is refused.
        allowed: Names that are no author's.

    Returns:
        Path of the capsule.

    Raises:
        StudyError: The study cannot be packed, names an author where it must not, or
            the file cannot be written.
    """
    path = study.folder / NAME if file is None else Path(file)
    if path.suffix != ".zip":
        raise StudyError(
            f"--out must be a file that ends in .zip, got {path}; rename it"
        )
    told = nameless(study) if anonymous else study
    found = entries(study, told)
    if anonymous:
        found = [*without_hidden_texts(found)]
    found.insert(0, readme(told.manifest, found, licence))
    if anonymous:
        check(found, identities(study, allowed))
    remedy = "choose another file by --out, in a folder that exists"
    with written(path, "the capsule", remedy), replaced(path) as new:
        new.write_bytes(_packed(found))
        read(new)  # what could not be repeated is not packed
    return path


def read(path: str | Path) -> Capsule:
    """Reads a capsule into memory, and checks it.

    Nothing is unpacked to the disk, and nothing of it executed.

    Raises:
        StudyError: It is none, is damaged, or not of a study.
    """
    path = Path(path)
    files = _unpacked(path)
    for name in NEEDED:
        if name not in files:
            raise _damaged(path, f"{name} is missing")
    capsule = Capsule(path, files, _manifest(path, files[contents.MANIFEST]))
    _check_contents(capsule)
    return capsule


def _packed(found: list[PackedFile]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in found:
            about = zipfile.ZipInfo(entry.path, EPOCH)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = 0o644 << 16
            archive.writestr(about, entry.content)
    return file.getvalue()


def _manifest(path: Path, data: bytes) -> Entry:
    try:
        manifest = parsed(Path(contents.MANIFEST), data)
    except StudyError as error:
        why = f"{contents.MANIFEST} is no manifest ({error})"
        raise _damaged(path, why) from error
    if not is_study_name(manifest["name"]):
        raise _damaged(
            path,
            f"name in {contents.MANIFEST} must be {NAME_RULE}, got "
            f"{shown(manifest['name'])}",
        )
    return manifest


def _check_contents(capsule: Capsule) -> None:
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
        most = min(most, files.limit(path.stat().st_size))
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
    raise _damaged(path, f"it has {files.shown(size)}, more than {files.shown(most)}")


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path}: the capsule is damaged, or none of stalesim's: {why}; get it again"
    )


SAME = ("claim", "says", "origin")
"""Columns that identify a verdict's claim."""


class Repetition(NamedTuple):
    """Equalities and differences of a repetition here.

    Attributes:
        verdicts: Column claim, and `then` and `now`, verdicts; a row per claim.
        same_runs: Runs whose traces are equal to the last bit.
        runs: All runs of the capsule.
        other_runs: Group and replicate of a run that differs, as text.
        environment: Name of each library, or property of the machine, that differs,
            with the former and the present value.
        inputs: Files that the study reads and that hold something else.
    """

    verdicts: pd.DataFrame
    same_runs: int
    runs: int
    other_runs: list[str]
    environment: dict[str, tuple[str, str]]
    inputs: list[str]

    @property
    def same_verdicts(self) -> bool:
        """Whether all verdicts are as they were."""
        return bool((self.verdicts["then"] == self.verdicts["now"]).all())

    @property
    def same(self) -> bool:
        """Whether all verdicts are as they were; without any, all traces."""
        return self.same_verdicts and (
            len(self.verdicts) > 0 or self.same_runs == self.runs
        )


def compare(capsule: Capsule, study: Study) -> Repetition:
    """Compares a study with the capsule that it repeats.

    Raises:
        StudyError: A table of either is damaged.
    """
    then, now = {}, {}
    if not is_world(capsule.manifest):
        then = _by_claim(capsule.table(contents.CLAIMS))
        now = _by_claim(no_formulas(claims.evaluate(study).astype(str), SAME))
    names = [*dict.fromkeys([*then, *now])]
    rows = [(key[0], then.get(key, "none"), now.get(key, "none")) for key in names]
    before = _by_run(capsule.table(contents.RUNS))
    after = _by_run(no_formulas(contents.digests(study).astype(str), ["group"]))
    others = [key for key in {**before, **after} if after.get(key) != before.get(key)]
    return Repetition(
        verdicts=pd.DataFrame(rows, columns=pd.Index(["claim", "then", "now"])),
        same_runs=len({**before, **after}) - len(others),
        runs=len({**before, **after}),
        other_runs=[f"{group} (replicate {number})" for group, number in others],
        environment=_environment(capsule.manifest, study.manifest),
        inputs=_inputs(capsule.manifest, study.manifest),
    )


def _by_claim(table: pd.DataFrame) -> dict[tuple[str, ...], str]:
    keys = zip(*(table[name] for name in SAME), strict=True)
    return dict(zip(keys, table["verdict"], strict=True))


def _by_run(table: pd.DataFrame) -> dict[tuple[str, str], str]:
    keys = zip(table["group"], table["replicate"], strict=True)
    return dict(zip(keys, table["sha256"], strict=True))


def _environment(then: Entry, now: Entry) -> dict[str, tuple[str, str]]:
    old, new = (each.get("environment") or {} for each in (then, now))
    names = [*dict.fromkeys([*old, *new])]
    return {
        name: (str(old.get(name, "none")), str(new.get(name, "none")))
        for name in names
        if old.get(name) != new.get(name)
    }


def _inputs(then: Entry, now: Entry) -> list[str]:
    old, new = (each.get("inputs") or {} for each in (then, now))
    names = dict.fromkeys([*old, *new])
    return [
        name
        for name in names
        if (old.get(name) or {}).get("sha256") != (new.get(name) or {}).get("sha256")
    ]
