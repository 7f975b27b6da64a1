"""The published data sets of the catalogue: which exist, and which files are there."""

from pathlib import Path
from typing import Any, NamedTuple

from ..config.errors import DataError
from ..config.text import counted, suggestion
from ..storage import files, limits
from ..storage.published import (
    SOURCE,
    Published,
    checksums,
    is_published,
    remedy,
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


def every() -> dict[str, PublishedSet]:
    """Returns the published data sets by their names, plug-ins' sets as well."""
    from ..config.catalogue import parts
    from ..config.parts import described, tag

    return {
        tag(part): PublishedSet(tag(part), described(part), part, part.published)
        for part in parts("data")
        if part.published is not None
    }


def named(name: str) -> PublishedSet:
    """Returns the data set of a name.

    Raises:
        DataError: There is none.
    """
    known = every()
    if name not in known:
        raise DataError(
            f"NAME must be one of {', '.join(known)}, got {name!r}; "
            f"{suggestion(name, known)}"
        )
    return known[name]


def verdict(one: PublishedSet, path: Path) -> CheckedFile:
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
