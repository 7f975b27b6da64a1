"""The commands of `stalesim data`: which data sets exist, and getting them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files.reading import files
from ..files.reading.published import SOURCE, Published, remedy
from ..parts.errors import DataError, counted, suggestion
from . import console, downloads
from .console import out

if TYPE_CHECKING:
    from ..problem.data.parts import Data

app = typer.Typer(
    help="List and download data sets. Runs never download.",
    no_args_is_help=True,
)


def _published(part: "type[Data]") -> Published:
    assert part.published is not None  # `published_sets` has these
    return part.published


def _folder(name: str) -> Path:
    """Returns the folder into which the files of a set are downloaded."""
    return files.data_folder() / name


def _state(name: str, part: "type[Data]") -> str:
    """Returns what is there of a set, in a few words."""
    try:
        read = [Path(path) for path in part().located_files() or ()]
    except DataError as error:
        return f"damaged: {error}"
    published = _published(part)
    waiting = (_folder(name) / file.name for file in published.files)
    every = dict.fromkeys((*read, *(path for path in waiting if path.is_file())))
    found = [path for path in every if path.name != SOURCE]
    if read:
        folders = sorted({str(path.parent) for path in found})
        also = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
        return f"here: {counted(len(found), 'file')} in {folders[0]}{also}"
    within = f"comes with {published.bundled}" if published.bundled else ""
    if not published.files:
        return within
    if found:
        return f"incomplete: {counted(len(found), 'file')} there"
    return f"not here, but a part {within}" if within else "not here"


@app.command("list")
def list_() -> None:
    """List data sets: origin, licence, files, and which are here."""
    from ..parts.base import described

    for name, part in published_sets().items():
        published = _published(part)
        out.say(f"{name}: {described(part)}", style="bold")
        out.say(f"    state: {_state(name, part)}")
        if published.files:
            out.say(f"    get: {remedy(name, published)}")
        out.say(f"    origin: {published.origin}")
        out.say(f"    licence: {published.licence}")
        for file in published.files:
            checksum = file.checksum or "checksum not known"
            size = "size not known" if file.size is None else files.shown(file.size)
            out.say(f"    file: {file.name}, {size}, {checksum}")
        for its_name, copy in published.copies.items():
            out.say(f"    known copy: {its_name}, {copy.origin}")
    path()


@app.command()
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Names of data sets")
    ],
) -> None:
    """Download data sets and verify their checksums."""
    known = published_sets()
    for name in names:
        if name not in known:
            raise DataError(
                f"NAME must be one of {', '.join(known)}, got {name!r}; "
                f"{suggestion(name, known)}"
            )
    for name in dict.fromkeys(names):
        _get(name, _published(known[name]))


def _get(name: str, published: Published) -> None:
    wanted = published.downloads
    if not published.files:
        out.say(f"{name} comes with {published.bundled}: nothing to download")
        return
    if not wanted:
        raise DataError(f"{name} must be got by hand: {remedy(name, published)}")
    size = sum(file.size or 0 for file in wanted)
    about = f"about {files.shown(size)}" if size else "size not known"
    out.say(
        f"{name}: {counted(len(wanted), 'file')}, {about}; licence: {published.licence}"
    )
    for file in wanted:
        with console.progress(file.name) as hear:
            new = downloads.fetch(file, _folder(name), hear)
        out.say(f"    {file.name}: {'downloaded and verified' if new else 'is there'}")
    out.say(f"{name} is in {_folder(name)}")


@app.command()
def path() -> None:
    """Print the data folder (environment variable STALESIM_DATA)."""
    out.say(f"{files.data_folder()}")


def published_sets() -> "dict[str, type[Data]]":
    """Returns the published data sets by their names, plug-ins' sets as well."""
    from ..parts.base import tag
    from ..parts.catalogue import classes
    from ..problem.data.parts import Data

    found = classes("data", Data)
    return {tag(part): part for part in found if part.published is not None}
