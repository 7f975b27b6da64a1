"""The commands of `stalesim data`: which data sets exist, and getting them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..files.reading import files
from ..files.reading.published import SOURCE, Published, remedy
from ..parts.errors import DataError, counted, suggestion
from . import console, downloads
from .console import out

if TYPE_CHECKING:
    from ..problem.data.parts import Data

app = typer.Typer(
    help="Lists and downloads real data sets. No run ever downloads anything.",
    no_args_is_help=True,
)


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
    part: "type[Data]"
    published: Published

    @property
    def folder(self) -> Path:
        """Folder into which its files are downloaded."""
        return files.data_folder() / self.name

    def state(self) -> str:
        """Returns what is there of the set, in a few words."""
        try:
            read = [Path(path) for path in self.part().located_files() or ()]
        except DataError as error:
            return f"damaged: {error}"
        waiting = (self.folder / file.name for file in self.published.files)
        every = dict.fromkeys((*read, *(path for path in waiting if path.is_file())))
        found = [path for path in every if path.name != SOURCE]
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
    about = f"about {files.shown(size)}" if size else "size not known"
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
def path() -> None:
    """Prints the data folder, which the environment variable STALESIM_DATA names."""
    out.say(f"{files.data_folder()}")


def published_sets() -> dict[str, PublishedSet]:
    """Returns the published data sets by their names, plug-ins' sets as well."""
    from ..parts.base import described, tag
    from ..parts.catalogue import classes
    from ..problem.data.parts import Data

    return {
        tag(part): PublishedSet(tag(part), described(part), part, part.published)
        for part in classes("data", Data)
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


def shown_size(size: int | None) -> str:
    """Returns a file's size for a reader."""
    return "size not known" if size is None else files.shown(size)
