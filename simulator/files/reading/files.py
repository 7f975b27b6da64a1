"""The user's data folder: its files, their permitted size, their bytes."""

import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from ...parts.errors import DataError

LARGEST = 16 * 2**30
"""Bytes that a file may hold, unpacked."""
MOST_TEXT = 2**30
"""Bytes of text that a table may hold, unpacked. In memory a cell takes ten times as
much as the number in it."""
ALWAYS = 256 * 2**20
"""Bytes that any file may unpack to."""
RATIO = 100
"""More than `ALWAYS` only files may hold that are not packed tighter than this."""
PIECE = 2**20


def limit(packed: int) -> int:
    """Returns how many bytes a file of `size` bytes may unpack to."""
    return min(LARGEST, max(ALWAYS, RATIO * packed))


def check(unpacked: int, packed: int) -> None:
    """Refuses a file that would unpack to too much.

    Raises:
        ValueError: the content is too large; the message is one line.
    """
    if unpacked > limit(packed):
        raise ValueError(
            f"{shown(unpacked)} of content in {shown(packed)}, where "
            f"{shown(limit(packed))} are allowed"
        )


def unpack(read: Callable[[int], bytes], packed: int) -> bytes:
    """Returns the content of a packed file, unless it is too much.

    Args:
        read: Returns at most the given number of bytes, none at the end.
        packed: Bytes of the file.

    Raises:
        ValueError: it is too much.
    """
    pieces, size = [], 0
    while piece := read(PIECE):
        size += len(piece)
        if size > limit(packed):
            raise ValueError(
                f"more than the {shown(limit(packed))} of content that are allowed in "
                f"{shown(packed)}"
            )
        pieces.append(piece)
    return b"".join(pieces)


def shown(size: int) -> str:
    """Returns a number of bytes as a reader counts them: `1.5 GiB`."""
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.4g} {unit}"


FOLDER = "STALESIM_DATA"
"""Environment variable that names the data folder."""
SHIPPED = Path(__file__).parents[2] / "world"
"""Folder whose `recorded/` holds the measurements of recorded worlds."""
GZIP = b"\x1f\x8b"


_places: list[tuple[Path, Path]] = []
"""Working and data folder of the study that this process works for, if it does; the
last ones count."""


@contextmanager
def looking_in(working: str | Path, data: str | Path) -> Iterator[None]:
    """Finds files where another process does, or another day did."""
    _places.append((Path(working), Path(data)))
    try:
        yield
    finally:
        _places.pop()


def working_folder() -> Path:
    """Returns the folder that relative paths start from: by default the current one."""
    return _places[-1][0] if _places else Path.cwd()


def data_folder() -> Path:
    """Returns the folder of real data files: `STALESIM_DATA`, else the user's own."""
    if _places:
        return _places[-1][1]
    named = os.environ.get(FOLDER)
    return Path(named or platformdirs.user_data_dir("stalesim")).expanduser()


def located(path: str, key: str) -> Path:
    """Returns a file: of the working folder, the data folder or a recorded world.

    Raises:
        DataError: it is in neither.
    """
    given = Path(path).expanduser()
    here, among_data = working_folder() / given, data_folder() / given
    for place in (here, among_data, SHIPPED / given):
        if place.is_file():
            return given if place == Path.cwd() / given else place
    raise DataError(
        f"{key} must be a file, got {path!r}; it is neither at {here} nor at "
        f"{among_data}"
    )


def folder(path: str) -> Path:
    """Returns a user's folder, which need not exist: from the working folder on."""
    given = Path(path).expanduser()
    place = working_folder() / given
    return given if place == Path.cwd() / given else place


def plain(name: str) -> str:
    """Returns a name in lower case, letters and digits only: `fashionmnist`."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def candidates(folders: Collection[str], named: re.Pattern[str]) -> list[Path]:
    """Returns the files below the data folder that may belong to a data set.

    Args:
        folders: Plain names of its folders, at any depth.
        named: Words in the name of a file in any other folder.

    Returns:
        Files below those folders, then all others, each in order of their paths.
        Files in the data folder itself need no name.
    """
    root = data_folder()
    if not root.is_dir():
        return []
    entries = sorted(root.iterdir())
    # Entry by entry, because a search follows no link but where it begins.
    below = [path for entry in entries for path in sorted(entry.rglob("*"))]
    inside = [path for path in below if folder_of(path, folders)]
    outside = [
        path
        for path in below
        if named.search(path.name) and not folder_of(path, folders)
    ]
    return [path for path in (*inside, *outside, *entries) if path.is_file()]


def folder_of(path: Path, folders: Collection[str]) -> str:
    """Returns the first of these plain names whose folder holds a file, "" for none.

    The innermost counts, which is `fashionmnist` of `mnist/fashion_mnist/raw`.
    """
    parts = path.relative_to(data_folder()).parts[:-1]
    return next((plain(part) for part in parts[::-1] if plain(part) in folders), "")


_noted: list[set[str]] = []
"""Sets of the paths of files that are read, one for each caller of `noted`."""


@contextmanager
def noted() -> Iterator[set[str]]:
    """Notes the absolute paths of the files that `read` reads meanwhile."""
    _noted.append(set())
    try:
        yield _noted[-1]
    finally:
        _noted.pop()


def note(path: Path) -> None:
    """Records that a file is read, also where its content comes from the cache."""
    for paths in _noted:
        paths.add(str(path.absolute()))


def head(path: Path, size: int) -> bytes:
    """Returns the first bytes of a file's content, fewer if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(max(size, len(GZIP)))
        if not start.startswith(GZIP):
            return start[:size]
        with gzip.open(path) as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def read(path: Path) -> bytes:
    """Returns the content of a file, unzipped if it is gzipped.

    Raises:
        DataError: it cannot be read, is too large, or its gzip stream is damaged.
    """
    note(path)
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise DataError(
                f"{path} must have {shown(LARGEST)} at most, got "
                f"{shown(size)}; take fewer rows"
            )
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} must be a readable file, got: {error.strerror}; check its name "
            "and permissions"
        ) from error
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return unpack(file.read, len(content))
    except ValueError as error:
        raise DataError(
            f"{path} must not unpack to so much, got {error}; unpack it yourself"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} must be a whole gzip file, got: {error}; download it again"
        ) from error


def digest(path: Path, algorithm: str) -> str:
    """Returns the digest of a file's present content, "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(
                file, lambda: hashlib.new(algorithm, usedforsecurity=False)
            )
    except OSError:
        return ""
    return found.hexdigest()


def content_md5(path: Path) -> str:
    """Returns the md5 of a file's content, unzipped if it is gzipped, "" if damaged."""
    found = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            zipped = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if zipped else path.open("rb") as file:
            while piece := file.read(PIECE):
                found.update(piece)
    except (OSError, EOFError, zlib.error):
        return ""
    return found.hexdigest()
