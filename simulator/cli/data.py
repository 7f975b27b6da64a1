"""The commands of `stalesim data`: which data sets exist, and getting them."""

from typing import Annotated

import typer

from ..config.errors import DataError
from ..config.text import counted
from ..storage import files, limits
from . import console, datasets, downloads
from .console import err, out

app = typer.Typer(
    help="Lists, downloads and checks real data sets. No run ever downloads anything.",
    no_args_is_help=True,
)

DIFFERENT = 1
"""Exit status of `check`: a file is not what its name says."""


@app.command("list")
def list_() -> None:
    """Lists published data sets: origin, licence, files, and which are installed."""
    for one in datasets.every().values():
        out.say(f"{one.name}: {one.about}", style="bold")
        out.say(f"    state: {one.state()}")
        if remedy := one.remedy():
            out.say(f"    get: {remedy}")
        out.say(f"    origin: {one.published.origin}")
        out.say(f"    licence: {one.published.licence}")
        for file in one.published.files:
            checksum = file.checksum or "checksum not known"
            size = datasets.shown_size(file.size)
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
    for one in [datasets.named(name) for name in dict.fromkeys(names)]:
        _get(one)


def _get(one: datasets.PublishedSet) -> None:
    """Downloads the files of a set."""
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
    chosen = [*datasets.every().values()] if name is None else [datasets.named(name)]
    different = 0
    for one in chosen:
        found = one.located()
        if not found:
            _say_absent(one, demanded=name is not None)
        for verdict in (datasets.verdict(one, path) for path in found):
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


def _say_absent(one: datasets.PublishedSet, *, demanded: bool) -> None:
    """Says that nothing is there of a set."""
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
