"""Finds the parts that others bring: by entry points, or in modules that a user names.

A package names a part by an entry point in the group `stalesim.KIND`, such as
`stalesim.laws`. A module says what it brings in the attribute `STALESIM`, a mapping of
kinds to tuples of entries; the variable `STALESIM_IMPORT` names such modules, so that
the processes of a study find the same ones.
"""

import hashlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from simulator.scenario.entry import Entry, tag
from simulator.scenario.entry_checks import checked
from simulator.scenario.errors import UserError
from simulator.scenario.suggestions import one_line, shown, suggestion

VARIABLE = "STALESIM_IMPORT"
"""Dotted modules and paths of .py files, separated as in PYTHONPATH."""
ATTRIBUTE = "STALESIM"
"""Of a module: what it brings."""
DOCUMENTED = "see docs/extending.md"


class Source(NamedTuple):
    """The code that brings parts.

    Attributes:
        file: of the module, or folder of the package that it belongs to.
        sha256: of the file when it was imported, or of all .py files of the package; ""
            for what is in no file that can be read, as in a notebook.
    """

    file: str
    sha256: str


_sources: dict[str, Source] = {}
"""Of everything that was imported, by the source that its entries name."""


def everything(own: Mapping[str, tuple[Entry, ...]]) -> dict[str, tuple[Entry, ...]]:
    """Returns the parts of every kind that others bring, in the order of their names.

    Args:
        own: the parts of every kind that are there already.

    Raises:
        UserError: one line with who brings what, what is wrong and the remedy.
    """
    found: dict[str, list[Entry]] = {kind: [] for kind in own}
    sources = {
        (kind, tag(entry.config)): entry.source
        for kind, entries in own.items()
        for entry in entries
    }
    for kind, entry, place in (*_of_entry_points(own), *_of_modules(own)):
        name = tag(entry.config)
        if (kind, name) in sources:
            raise UserError(
                f"{place} must bring {kind} under new names, got {name!r}, which "
                f"{sources[kind, name]} has; rename it"
            )
        sources[kind, name] = entry.source
        found[kind].append(entry)
    return {kind: tuple(entries) for kind, entries in found.items()}


def named() -> list[str]:
    """Returns the modules that the environment names, each once."""
    given = os.environ.get(VARIABLE, "").split(os.pathsep)
    return list(dict.fromkeys(name for name in given if name))


def located(module: str | Path) -> str:
    """Returns how the environment names a module, from whatever folder it is read."""
    text = str(module)
    return str(Path(text).absolute()) if text.endswith(".py") else text


def source(name: str) -> Source:
    """Returns the code behind an entry's `source`, as it was when it was imported."""
    return _sources.get(name, Source("", ""))


def _of_entry_points(
    own: Mapping[str, tuple[Entry, ...]],
) -> Iterator[tuple[str, Entry, str]]:
    for kind in own:
        group = f"stalesim.{kind}"
        for point in entry_points(group=group):
            package = point.dist.name if point.dist else point.module
            place = f"the entry point {point.name!r} of {group} in {package!r}"
            try:
                given = point.load()
            except Exception as error:
                raise UserError(
                    f"{place} must be importable, got {_brief(error)}; mend or "
                    f"uninstall the package"
                ) from error
            _note(package, point.module)
            yield kind, checked(given, kind, place, package), place


def _of_modules(
    own: Mapping[str, tuple[Entry, ...]],
) -> Iterator[tuple[str, Entry, str]]:
    for name in named():
        module = _imported(name)
        brings = module.__name__
        _note(brings, brings)
        for kind, entries in _given(module, name).items():
            place = f"{ATTRIBUTE} of {shown(brings)}"
            if kind not in own:
                raise UserError(
                    f"{place} must have kinds of parts as keys, got {shown(kind)}; "
                    f"{suggestion(kind, own)}"
                )
            if isinstance(entries, Entry) or not isinstance(entries, tuple | list):
                raise UserError(
                    f"{place} must have a tuple of entries under {kind!r}, got "
                    f"{type(entries).__name__}; write (Entry(...),)"
                )
            for number, entry in enumerate(entries):
                at = f"{place}, {kind} {number + 1},"
                yield kind, checked(entry, kind, at, brings), at


def _note(name: str, module: str) -> None:
    """Notes the code of a module that has just been imported, or of its package."""
    if name in _sources:
        return
    words = module.split(".")
    above = [sys.modules.get(".".join(words[: i + 1])) for i in range(len(words))]
    # The outermost that is no namespace, in which strangers may lie.
    files = (getattr(module, "__file__", None) for module in above)
    file = next(filter(None, files), None)
    if file is None:
        return
    path = Path(file)
    package = path.name == "__init__.py"
    paths = sorted(path.parent.rglob("*.py")) if package else [path]
    try:
        contents = {each: each.read_bytes() for each in paths}
    except OSError:  # in a zip file, say
        return
    told = [
        f"{each.relative_to(path.parent).as_posix()} {_sha256(content)}\n"
        for each, content in contents.items()
    ]
    digest = _sha256("".join(told).encode() if package else contents[path])
    _sources[name] = Source(str(path.parent if package else path), digest)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _given(module: ModuleType, name: str) -> Mapping[Any, Any]:
    given = getattr(module, ATTRIBUTE, None)
    if isinstance(given, Mapping):
        return given
    got = "none" if given is None else type(given).__name__
    remedy = f'add for example {ATTRIBUTE} = {{"laws": (Entry(...),)}}'
    if getattr(module.__spec__, "_initializing", False):
        got = "none yet: it reads a scenario while it is being imported"
        remedy = "move that into a function"
    elif name == "__main__":
        remedy += (
            "; what a notebook brings is known to its own process alone, so take "
            "jobs=1, or write the part into a module"
        )
    raise UserError(
        f"module {shown(name)} must have a mapping {ATTRIBUTE}, got {got}; {remedy}"
    )


def _imported(name: str) -> ModuleType:
    """Imports a dotted module or the file of one, from this folder as well.

    What is in a file is imported by its name, so that other processes can do so, too.
    """
    path = Path(name) if name.endswith(".py") else None
    if path is not None and not path.is_file():
        raise UserError(f"there is no module {shown(name)}; check the path")
    folder = str(path.absolute().parent if path else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    dotted = path.stem if path else name
    invalidate_caches()  # it may just have been written
    try:
        module = import_module(dotted)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and f"{dotted}.".startswith(f"{missing}."):
            raise UserError(
                f"there is no module {shown(name)}; check its name, and that it is "
                f"installed or lies in {folder}"
            ) from error
        raise UserError(
            f"module {shown(name)} must be importable, got {_brief(error)}; mend it"
        ) from error
    found = getattr(module, "__file__", None)
    if path is not None and (found is None or not path.samefile(found)):
        raise UserError(
            f"module {shown(name)} must have a name of its own, got {dotted!r}, which "
            f"is {found or 'built into Python'}; rename the file"
        )
    return module


def _brief(error: BaseException) -> str:
    """Returns an error in one line, and at which line of the module it came up."""
    said = str(error).partition("\n")[0]
    text = one_line(f"{type(error).__name__}: {said}")
    for frame in traceback.extract_tb(error.__traceback__):
        if "importlib" not in frame.filename and frame.filename != __file__:
            return f"{text} ({Path(frame.filename).name}:{frame.lineno})"
    return text
