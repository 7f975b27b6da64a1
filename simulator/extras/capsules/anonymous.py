"""Anonymous capsules: omitted entries, and a search for names of authors."""

import contextlib
import copy
import getpass
import json
import re
import socket
import subprocess
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ....analysis.frames import Study
from ...files.study import StudyError
from ...files.study.manifest import git
from ...parts.errors import counted, shown
from .contents import FIGURES, PackedFile

LEFT_OUT = ("commit", "dirty", "continued", "command", "working_folder")
"""Entries of a manifest that lead to a repository or contain a user's input."""
COMMON = ("root", "user", "admin", "ubuntu", "runner", "localhost", "/root", "/tmp")
"""Names of users, hosts and folders that are no one's."""
SHORTEST = 3
"""Letters of the shortest name that is searched for."""
LONG = 5
"""Letters from which on a person's name is also found inside words."""
PERSON = ("the user's", "git's user.")
"""Prefixes of keys that name a person."""
ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
"""A letter beyond ASCII as JSON and YAML write it."""
PATTERNS = {
    "an e-mail address": r"[\w.+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b",
    "a user's folder": r"(?:/home/|/Users/|\\Users\\+)[\w.-]+",
}
OWN = ("variants", "groups", "also", "found", "metrics", "inputs", "modules")
"""Entries of a manifest below which the author has made up the keys."""
KEYS = r"^(user\.(name|email)|remote\..*\.url)$"
REPOSITORY = re.compile(r"[:/]([^/:]+/[^/]+?)(?:\.git)?/?$")
HOME = re.compile(r"~[\w.-]*[/\\]")
"""Beginning of a path in someone's home folder."""
PNG = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG."""
DRAWS = (b"IHDR", b"PLTE", b"tRNS", b"pHYs", b"IDAT", b"IEND")
"""Its chunks that draw: all others are about it."""
COMMIT = re.compile(rb" \(commit [^)]*\)")


def nameless(study: Study) -> Study:
    """Returns a study whose manifest has neither folders nor command nor commit.

    Files are called by their names alone: a repetition finds them in the working folder
    or among data.

    Raises:
        StudyError: Two files have one name.
    """
    found, names = copy.copy(study), dict[str, str]()
    kept = {k: v for k, v in study.manifest.items() if k not in LEFT_OUT}
    inputs = study.manifest.get("inputs") or {}
    kept["inputs"] = {
        name: {k: v for k, v in told.items() if k != "at"}
        for name, told in inputs.items()
    }
    renamed: Any = {key: _renamed(value, names) for key, value in kept.items()}
    found.manifest = renamed
    if len({*names.values()}) < len(names):
        raise StudyError(
            f"{study.folder}: files of an anonymous capsule must have different names, "
            f"got {', '.join(names)}; rename one, and run the study again"
        )
    return found


def without_hidden_texts(entries: Sequence[PackedFile]) -> Iterator[PackedFile]:
    """Yields the files whose texts can be searched.

    A figure stays if it has a caption, as ours have, and is no PDF. A PNG loses all
    chunks that draw nothing, a caption the program's commit.

    Raises:
        StudyError: A figure is damaged.
    """
    paths = {entry.path for entry in entries}
    for entry in entries:
        path, content = PurePosixPath(entry.path), entry.content
        if path.parts[0] != FIGURES:
            yield entry
        elif path.suffix == ".txt":
            yield entry._replace(content=COMMIT.sub(b"", content))
        elif path.suffix != ".pdf" and str(path.with_suffix(".txt")) in paths:
            is_png = path.suffix == ".png"
            yield entry._replace(content=_picture(entry)) if is_png else entry


def check(entries: Sequence[PackedFile], names: Mapping[str, str]) -> None:
    """Refuses files that name someone, by their paths or their texts.

    Raises:
        StudyError: There are names; it has the first place, and the number of others.
    """
    patterns = [*_patterns(names)]
    found = [each for entry in entries for each in _found(entry, patterns)]
    if found:
        place, what, text = found[0]
        more = f" and {counted(len(found) - 1, 'line')} more" if found[1:] else ""
        raise StudyError(
            f"{place}{more}: must not name its author, got {shown(text)}, {what}; "
            f"change it where it comes from and run the study again, or --allow "
            f"{shown(text)} if it is no one's"
        )


def identities(study: Study, allowed: Sequence[str] = ()) -> dict[str, str]:
    """Returns the texts that would name the author of a study, and their kinds.

    They are of the user, the host, and git's settings and remotes here and where the
    study was run. Common names, such as root, and those of fewer than three letters
    are left out.

    Args:
        study: Study, as it is in its folder.
        allowed: Names that are no author's.
    """
    folders = {str(Path.cwd()), str(study.folder.absolute())}
    folders |= {*filter(None, [study.manifest.get("working_folder")])}
    found = dict.fromkeys(folders, "a folder of the study")
    home = Path.home()
    found[str(home)] = "the home folder"
    found |= dict.fromkeys(home.parts[2:], f"a part of the home folder {home}")
    with contextlib.suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
        found[user] = "the user's name"
        import pwd  # not on Windows

        found[pwd.getpwnam(user).pw_gecos.split(",")[0]] = "the user's full name"
    host = socket.gethostname()
    found |= dict.fromkeys([host, host.split(".")[0]], "the host's name")
    for folder in folders:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            for line in git(Path(folder), "config", "--get-regexp", KEYS):
                key, _, value = line.partition(" ")
                found[value] = f"git's {key}"
                if key.startswith("remote") and (name := REPOSITORY.search(value)):
                    found[name[1]] = f"git's {key}"
    words = {word for key in _keys(study.manifest) for word in key.split("_")}
    for name, what in [*found.items()]:
        if what.startswith(PERSON):
            parts = [part for part in _parts(name) if part.lower() not in words]
            found = dict.fromkeys(parts, f"{what}, a part of it") | found
    left = {*COMMON, *(each.lower() for each in allowed)}
    return {
        text: what
        for text, what in found.items()
        if len(text) >= SHORTEST and text.lower() not in left
    }


def _parts(name: str) -> list[str]:
    local, at, _ = name.partition("@")
    if at:
        return [local] if len(local) >= LONG else []
    # Words that are no names, such as those of a robot, rarely have a capital.
    return [part for part in re.split(r"[\s._-]+", name) if part[:1].isupper()]


def _keys(tree: object, within: str = "") -> Iterator[str]:
    """Yields the keys of a manifest, such as `seed`, that may be a name elsewhere."""
    if isinstance(tree, Mapping):
        if within not in OWN:
            yield from map(str, tree)
        for key, inner in tree.items():
            yield from _keys(inner, str(key))
    elif isinstance(tree, list):
        for inner in tree:
            yield from _keys(inner)


def _renamed(tree: object, names: dict[str, str]) -> object:
    """Returns a tree with files' names in place of absolute paths, which it notes."""
    if isinstance(tree, Mapping):
        return {_renamed(k, names): _renamed(v, names) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return [_renamed(each, names) for each in tree]
    if isinstance(tree, str):
        for path in (PurePosixPath(tree), PureWindowsPath(tree)):
            if path.name and (path.is_absolute() or HOME.match(tree)):
                return names.setdefault(tree, path.name)
    return tree


def _picture(entry: PackedFile) -> bytes:
    content, place, kept = entry.content, len(PNG), [PNG]
    if not content.startswith(PNG):
        raise StudyError(f"{entry.path} must be a PNG; draw it again by stalesim plot")
    while place + 12 <= len(content):
        end = place + 12 + int.from_bytes(content[place : place + 4])
        if content[place + 4 : place + 8] in DRAWS:
            kept.append(content[place:end])
        place = end
    return b"".join(kept)


def _patterns(names: Mapping[str, str]) -> Iterator[tuple[str, re.Pattern[str]]]:
    for text, what in names.items():
        # As it is, and as JSON and YAML write backslashes.
        forms = {_plain(form) for form in (text, json.dumps(text)[1:-1])}
        either = "|".join(map(re.escape, sorted(forms)))
        near = r"[^\W_]"  # a letter or a digit
        if what.startswith(PERSON) and len(text) >= LONG:
            near = r"(?!)"
        elif not re.fullmatch("[0-9a-f]+", text.lower()):  # which digests hold
            near = r"[^\W\d_]"
        yield what, re.compile(rf"(?<!{near})(?:{either})(?!{near})", re.IGNORECASE)
    for what, text in PATTERNS.items():
        yield what, re.compile(text, re.IGNORECASE)


def _plain(text: str) -> str:
    if text.isascii() and "\\" not in text:
        return text
    text = ESCAPED.sub(lambda code: chr(int(code[1] or code[2], 16)), text)
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if unicodedata.category(c) not in ("Mn", "Cf"))


def _found(
    entry: PackedFile, patterns: Sequence[tuple[str, re.Pattern[str]]]
) -> Iterator[tuple[str, str, str]]:
    is_text = not entry.content.startswith(PNG)
    text = entry.content.decode(errors="replace") if is_text else ""
    for number, line in enumerate([entry.path, *text.splitlines()]):
        plain = _plain(line)
        for what, pattern in patterns:
            if match := pattern.search(plain):
                yield (
                    f"{entry.path}" + f", line {number}" * bool(number),
                    what,
                    match[0],
                )
                break
