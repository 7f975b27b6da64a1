"""The commands of `stalesim data`: which data sets exist, and getting them."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..files.reading import files, limits
from ..files.reading.published import SOURCE, Published, checksums, is_published, remedy
from ..parts.errors import DataError
from ..parts.text import counted, suggestion
from . import console, downloads
from .console import err, out

app = typer.Typer(
    help="Lists, downloads and checks real data sets. No run ever downloads anything.",
    no_args_is_help=True,
)

DIFFERENT = 1
"""Exit status of `check`: a file is not what its name says."""


class PublishedSet(NamedTuple):
    """A data set of the catalogue.

    Attributes:
        name: Name by which scenarios choose it.
        about: What it is, in a line.
        part: Its class.
        published: What is known of it.
    """

    name: str
    about: str
    part: Any
    published: Published

    @property
    def folder(self) -> Path:
        """Folder into which its files are downloaded."""
        return files.data_folder() / self.name

    def located(self) -> list[Path]:
        """Returns the files that a run would read, and others in the set's folder.

        Raises:
            DataError: A list of files among them is damaged.
        """
        return self._with_others(self._read())

    def _read(self) -> list[Path]:
        """Returns the files that a run would read; to recognise them takes time."""
        return [Path(path) for path in self.part().located_files() or ()]

    def _with_others(self, read: list[Path]) -> list[Path]:
        waiting = [self.folder / file.name for file in self.published.files]
        others = [path for path in waiting if path.is_file()]
        return [*dict.fromkeys(p for p in (*read, *others) if p.name != SOURCE)]

    def state(self) -> str:
        """Returns what is there of the set, in a few words."""
        try:
            read = self._read()
        except DataError as error:
            return f"damaged: {error}"
        found = self._with_others(read)
        if read:
            folders = sorted({str(path.parent) for path in found})
            also = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
            return f"here: {counted(len(found), 'file')} in {folders[0]}{also}"
        comes = self.published.bundled
        within = f"comes with {comes}" if comes else ""
        if not self.published.files:
            return within
        partly = f"incomplete: {counted(len(found), 'file')} there" if found else ""
        within = f"not here, but a part {within}" if within else "not here"
        return partly or within

    def remedy(self) -> str:
        """Returns how the set can be got, in a line; "" if nothing needs to be."""
        if not self.published.files:
            return ""
        return remedy(self.name, self.published)


class CheckedFile(NamedTuple):
    """What the checksum of a file says.

    Attributes:
        path: Path of the file.
        fine: Whether the file is what it should be, or may be.
        says: What it is, in a few words.
    """

    path: Path
    fine: bool
    says: str


@app.command("list")
def list_() -> None:
    """Lists published data sets: origin, licence, files, and which are installed."""
    for one in published_sets().values():
        out.say(f"{one.name}: {one.about}", style="bold")
        out.say(f"    state: {one.state()}")
        if remedy := one.remedy():
            out.say(f"    get: {remedy}")
        out.say(f"    origin: {one.published.origin}")
        out.say(f"    licence: {one.published.licence}")
        for file in one.published.files:
            checksum = file.checksum or "checksum not known"
            size = shown_size(file.size)
            out.say(f"    file: {file.name}, {size}, {checksum}")
        for copy in one.published.copies:
            out.say(f"    known copy: {copy.name}, {copy.origin}")
    path()


@app.command()
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="names of data sets")
    ],
) -> None:
    """Downloads data sets into the data folder and verifies their checksums."""
    for one in [published_set(name) for name in dict.fromkeys(names)]:
        _get(one)


def _get(one: PublishedSet) -> None:
    wanted = one.published.downloads
    if not one.published.files:
        out.say(f"{one.name} comes with {one.published.bundled}: nothing to download")
        return
    if not wanted:
        raise DataError(f"{one.name} must be got by hand: {one.remedy()}")
    size = sum(file.size or 0 for file in wanted)
    about = f"about {limits.shown(size)}" if size else "size not known"
    out.say(
        f"{one.name}: {counted(len(wanted), 'file')}, {about}; licence: "
        f"{one.published.licence}"
    )
    for file in wanted:
        with console.progress(file.name) as hear:
            new = downloads.fetch(file, one.folder, hear)
        out.say(f"    {file.name}: {'downloaded and verified' if new else 'is there'}")
    out.say(f"{one.name} is in {one.folder}")


@app.command()
def check(
    name: Annotated[
        str | None, typer.Argument(help="name of a data set; by default all of them")
    ] = None,
) -> None:
    """Compares installed files with the published checksums.

    Exit status 1 if one is truncated, damaged, or another copy that no record knows.
    """
    chosen = [*published_sets().values()] if name is None else [published_set(name)]
    different = 0
    for one in chosen:
        found = one.located()
        if not found:
            _say_absent(one, demanded=name is not None)
        for verdict in (checked(one, path) for path in found):
            different += not verdict.fine
            style = None if verdict.fine else "red"
            out.say(f"{one.name}: {verdict.path}: {verdict.says}", style=style)
    if different:
        err.say(
            f"stalesim: {counted(different, 'file')} must be moved away and got again, "
            f"or is a copy that runs call `NAME (other copy)` unless a file SOURCE "
            "names it",
            style="red",
        )
        raise SystemExit(DIFFERENT)


def _say_absent(one: PublishedSet, *, demanded: bool) -> None:
    state, remedy = one.state(), one.remedy()
    if demanded and remedy:
        raise DataError(
            f"{one.name} must be in {files.data_folder()} to be checked, got nothing "
            f"of it; get it: {remedy}"
        )
    out.say(f"{one.name}: {state}", style="dim")


@app.command()
def path() -> None:
    """Prints the data folder, which the environment variable STALESIM_DATA names."""
    out.say(f"{files.data_folder()}")


def published_sets() -> dict[str, PublishedSet]:
    """Returns the published data sets by their names, plug-ins' sets as well."""
    from ..parts.catalogue import parts
    from ..parts.parts import described, tag

    return {
        tag(part): PublishedSet(tag(part), described(part), part, part.published)
        for part in parts("data")
        if part.published is not None
    }


def published_set(name: str) -> PublishedSet:
    """Returns the data set of a name.

    Raises:
        DataError: There is none.
    """
    known = published_sets()
    if name not in known:
        raise DataError(
            f"NAME must be one of {', '.join(known)}, got {name!r}; "
            f"{suggestion(name, known)}"
        )
    return known[name]


def checked(one: PublishedSet, path: Path) -> CheckedFile:
    """Compares a file of a set with the checksums that are known."""
    listed = [file for file in one.published.files if file.checksum]
    found = checksums(path, [file.checksum for file in listed])
    if found & {file.checksum for file in listed}:
        return CheckedFile(path, True, f"published, {min(found)}")
    for copy in one.published.copies:
        if checksums(path, copy.checksums) & set(copy.checksums):
            return CheckedFile(path, True, f"known copy, {copy.name}: {copy.origin}")
    if listed and is_published(path, "", one.published):
        return CheckedFile(path, True, "published, unpacked")
    # Zipped or not, a file has the same name, but not the same size.
    plain = path.name.removesuffix(".gz")
    alike = (f for f in one.published.files if f.name.removesuffix(".gz") == plain)
    expected = next(alike, None)
    if expected is None or not (expected.checksum or expected.size):
        return CheckedFile(path, True, "no checksum of it is known")
    size = expected.size if expected.name == path.name else None
    if expected.checksum or size != path.stat().st_size:
        return CheckedFile(path, False, _differs(path, size, expected.checksum))
    return CheckedFile(path, True, "no checksum of it is known; its size is right")


def _differs(path: Path, size: int | None, checksum: str) -> str:
    """Says how a file differs from the published one of its name."""
    have = path.stat().st_size
    if size is not None and have < size:
        return f"truncated or another copy: {have:,} of {size:,} bytes"
    if size is not None and have != size:
        return f"another copy: {have:,} instead of {size:,} bytes"
    unlike = f"not {checksum}" if checksum else "not known"
    return f"damaged or another copy: its checksum is {unlike}"


def shown_size(size: int | None) -> str:
    """Returns a file's size for a reader."""
    return "size not known" if size is None else limits.shown(size)
