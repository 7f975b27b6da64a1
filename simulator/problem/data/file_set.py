"""Files of a data set in the data folder: finding them, saying which are missing."""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import ClassVar, NamedTuple

from ...files.reading import files
from ...files.reading.published import Published, called, missing, sources
from .parts import Data

Roles = dict[str, Path]
"""Files by their roles, which are mostly their official names."""


class FileSet(NamedTuple):
    """Files that make a data set.

    Attributes:
        name: Name of the data set, and of its folder in the data folder.
        roles: Roles of the files, all of which are needed.
        published: What is known of the set; its checksums decide on its name.
        folders: Plain names of its folders, whose files come first.
        named: Pattern in the names of its files in other folders.
        identify: Function that returns the role of a file, "" for a stranger; of
            several files in one role the first counts.
        remark: Function that returns a further remark on missing files.
    """

    name: str
    roles: tuple[str, ...]
    published: Published
    folders: Collection[str]
    named: re.Pattern[str]
    identify: Callable[[Path], str] = lambda path: path.name
    remark: Callable[[], str] = lambda: ""

    def found(self) -> Roles:
        """Returns those of the files that exist."""
        found: Roles = {}
        for path in files.candidates(self.folders, self.named):
            found.setdefault(self.identify(path), path)
        return {role: found[role] for role in self.roles if role in found}

    def complete(self) -> Roles:
        """Returns all files.

        Raises:
            DataError: Files are missing.
        """
        found = self.found()
        absent = [role for role in self.roles if role not in found]
        if absent:
            raise missing(self.name, self.published, absent, self.remark())
        return found

    def called(self, paths: Roles) -> str:
        """Returns what the set is called that is read from some files.

        Raises:
            DataError: A file `SOURCE` in their folder gives no name.
        """
        return called(self.name, self.published, paths)

    def paths(self) -> list[Path]:
        """Returns the paths of the files that exist.

        A file `SOURCE` is one of them where it may decide on the set's name.
        """
        paths = self.found()
        decides = any(file.checksum or file.size for file in self.published.files)
        return [*paths.values(), *(sources(paths) if decides else [])]


class FileData(Data):
    """A data set of files in the data folder."""

    files: ClassVar[FileSet]
    """The files, all of which are needed."""

    def located_files(self) -> list[Path]:
        return self.files.paths()
