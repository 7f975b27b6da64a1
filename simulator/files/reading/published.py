"""Facts on a published data set: its files, their origin, its licence.

A set is called by its bare name only where its files are the published ones, byte for
byte, as far as checksums are known.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...parts.errors import DataError, printable
from . import files

SOURCE = "SOURCE"
"""Name of a text file that lists the names of the files in its folder."""
LONGEST_NAME = 60
"""Characters of a name in a file `SOURCE`, at most."""


class PublishedFile(NamedTuple):
    """A file of a data set, as it is published.

    Attributes:
        name: Its name, or its role's; it is in the folder of its set below the data
            folder.
        checksum: `md5:` or `sha256:` and the digest, "" where none is known.
        size: Bytes, None where it is not known.
        unpacked: Checksum of a gzip file's content, "" where none is known.
        urls: Where it can be downloaded, the first one first; none where it cannot.
    """

    name: str
    checksum: str = ""
    size: int | None = None
    unpacked: str = ""
    urls: tuple[str, ...] = ()


class Published(NamedTuple):
    """Facts on a data set.

    Attributes:
        origin: Where it comes from: a page, or a paper.
        licence: Its licence, as far as it is known.
        files: Its files; none of a set that is only bundled.
        by_hand: How to get the files that have no URL, "" where all have one.
        bundled: Name of the library that a set, or a part of it, comes with.
        copies: Other files that may stand in their place, by what a set that is read
            from them is called in tables and figures, such as `usps (zip)`.
    """

    origin: str
    licence: str
    files: tuple[PublishedFile, ...] = ()
    by_hand: str = ""
    bundled: str = ""
    copies: Mapping[str, "Published"] = {}

    @property
    def downloads(self) -> tuple[PublishedFile, ...]:
        """The files that can be downloaded."""
        return tuple(file for file in self.files if file.urls)


def checksums(path: Path, known: Iterable[str]) -> set[str]:
    """Returns the checksums of a file, by the algorithms of some known ones."""
    algorithms = sorted({one.partition(":")[0] for one in known} - {""})
    return {f"{one}:{files.digest(path, one)}" for one in algorithms}


def is_published(path: Path, role: str, published: Published) -> bool:
    """Returns whether a file is one of the published ones, as far as is known.

    Where no checksum is known of the file in this role, its size decides, and where
    that is not known either, the file is believed.
    """
    known = {file.checksum for file in published.files}
    if known & checksums(path, known):
        return True
    unpacked = {file.unpacked for file in published.files} - {""}
    if unpacked and f"md5:{files.content_md5(path)}" in unpacked:
        return True
    unchecked = [f for f in published.files if f.name == role and not f.checksum]
    return any(f.size in (None, path.stat().st_size) for f in unchecked)


def called(name: str, published: Published, paths: Mapping[str, Path]) -> str:
    """Returns the name of a set, by its files, in tables and figures.

    Returns:
        The bare name for the published files; for other ones the name of a known copy,
        else the name that a file `SOURCE` in their folder gives, else
        `NAME (other copy)`.

    Raises:
        DataError: A file `SOURCE` gives no name, or the bare one.
    """
    others = [p for role, p in paths.items() if not is_published(p, role, published)]
    if not published.files or not others:
        return name
    for its_name, copy in published.copies.items():
        known = {file.checksum for file in copy.files}
        if all(known & checksums(path, known) for path in others):
            return its_name
    named = others[0].with_name(SOURCE)
    return _named(named, name) if named.is_file() else f"{name} (other copy)"


def _named(path: Path, name: str) -> str:
    """Returns the name that a file `SOURCE` gives, in its first line."""
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    given = printable(lines[0]).strip() if lines else ""
    if not 0 < len(given) <= LONGEST_NAME or given == name:
        raise DataError(
            f"{path} must give a name of 1 to {LONGEST_NAME} characters other than "
            f"{name!r} in its first line, because the files there are not the "
            f"published ones, got {given[:LONGEST_NAME]!r}; correct or remove it"
        )
    return given


def sources(paths: Mapping[str, Path]) -> list[Path]:
    """Returns the files `SOURCE` in the folders of some files."""
    found = dict.fromkeys(path.with_name(SOURCE) for path in paths.values())
    return [path for path in found if path.is_file()]


def remedy(name: str, published: Published) -> str:
    """Returns the way to get the files of a set, in a line."""
    if published.downloads:
        return f"stalesim data get {name}"
    return f"{published.by_hand}; then put it into {files.data_folder() / name}"


def missing(
    name: str, published: Published, absent: Sequence[str], remark: str = ""
) -> DataError:
    """Returns the error with the missing files and the way to get them."""
    more = f" and {len(absent) - 2} more" if len(absent) > 2 else ""
    return DataError(
        f"{name} must be in the data folder, {files.data_folder()} (chosen by "
        f"{files.FOLDER}), got no {', '.join(absent[:2])}{more}; "
        f"{remedy(name, published)}{remark}"
    )
