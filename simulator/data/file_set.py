"""Files of a data set in the data folder: finding, and choosing those to read."""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from ..storage import files
from ..storage.published import Published, called, sources

Roles = dict[str, Path]
"""Files by their roles, which are mostly their official names."""


class Chosen(NamedTuple):
    """Files that a data set is read from.

    Attributes:
        form: Format of the files, "" where none are read.
        paths: Paths by role, of those files of the format that exist.
    """

    form: str
    paths: Roles


class FileSet(NamedTuple):
    """Files that make a data set, in one or more formats.

    Attributes:
        name: Name of the data set, and of its folder in the data folder.
        formats: Roles of the files of each format, in order of preference. Their names
            are values of the entry `source` of the data set.
        find: Function that returns the files in the data folder.
        remark: Function from a format to a further remark on missing files.
        published: What is known of the set, if its checksums decide on its name.
    """

    name: str
    formats: dict[str, tuple[str, ...]]
    find: Callable[[], Roles]
    remark: Callable[[str], str] = lambda _: ""
    published: Published | None = None

    def choose(self, source: str) -> Chosen:
        """Returns the files that are read.

        Args:
            source: Name of a format, which is demanded; or `auto`, the first format
                that is complete; any other source needs no files.
        """
        if source != "auto" and source not in self.formats:
            return Chosen("", {})
        found, form = self.find(), source
        if source == "auto":
            complete = (f for f, roles in self.formats.items() if {*roles} <= {*found})
            form = next(complete, "")
        roles = self.formats.get(form, ())
        return Chosen(form, {role: found[role] for role in roles if role in found})

    def complete(self, source: str) -> Chosen:
        """Returns the files that are read, all files of their format.

        Raises:
            DataError: A format is demanded of which files are missing.
        """
        chosen = self.choose(source)
        roles = self.formats.get(chosen.form, ())
        absent = [role for role in roles if role not in chosen.paths]
        if absent:
            remark = self.remark(chosen.form)
            raise files.missing(self.name, absent, chosen.form, remark)
        return chosen

    def called(self, chosen: Chosen) -> str:
        """Returns what the set is called that is read from some files.

        Raises:
            DataError: A file `SOURCE` in their folder gives no name.
        """
        if self.published is None:
            return self.name
        return called(self.name, self.published, chosen.paths)

    def paths(self, source: str) -> list[Path]:
        """Returns the paths of the files that are read; none for a stand-in.

        A file `SOURCE` is one of them where it may decide on the set's name.
        """
        paths = self.choose(source).paths
        if self.published is None or not self.published.files:
            return [*paths.values()]
        return [*paths.values(), *sources(paths)]


def by_role(
    folders: Collection[str],
    named: re.Pattern[str],
    identify: Callable[[Path], str],
) -> Roles:
    """Returns the files in the data folder that belong to a data set.

    Args:
        folders: Plain names of its folders, whose files come first.
        named: Pattern in the names of its files in other folders.
        identify: Function that returns the role of a file, "" for a stranger; of
            several files in one role the first counts.
    """
    found: Roles = {}
    for path in files.candidates(folders, named):
        role = identify(path)
        if role:
            found.setdefault(role, path)
    return found
