"""Finds the parts of plug-ins: by entry points, or in modules that a user names.

A package names a part, a class, by an entry point in the group `stalesim.KIND`, such as
`stalesim.laws`. A module lists its parts in the attribute `STALESIM`, a mapping of
kinds to tuples of classes; the variable `STALESIM_IMPORT` names such modules, so that
the processes of a study find the same ones.
"""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args, get_origin

from . import own_code
from .base import NamedPart, Part, tag, unmarked
from .errors import UserError, said, shown, suggestion
from .own_code import Content

VARIABLE = "STALESIM_IMPORT"
"""Dotted modules and paths of .py files, separated as in PYTHONPATH."""
IMPORTED = "stalesim --plugin FILE (in Python stalesim.register)"
"""How a user's own parts are made known, as a message says it."""
ATTRIBUTE = "STALESIM"
"""The attribute of a module that lists its parts."""


MEMBERS = {
    "algorithms": ("family", "protocols", "messages"),
    "weights": ("factor",),
    "models": ("families", "num_weights"),
    "partitions": ("family", "num_clients"),
    "claims": ("named",),
}
"""Members that the parts of a kind must have without inheriting them."""


Plugins = dict[str, dict[type[Part] | NamedPart, str]]
"""Parts of plug-ins by their kinds, each with the name of its plug-in."""

_sources: dict[str, Content] = {}
"""Code of every plug-in that was imported, by its name."""


def everything(
    known: Mapping[str, set[str]],
    base_of: Callable[[str], type[Part] | type[NamedPart]],
) -> Plugins:
    """Returns the parts of every kind that plug-ins add, in the order of their names.

    Raises:
        UserError: one line with the plug-in, the fault and the remedy.
    """
    found: Plugins = {kind: {} for kind in known}
    owners = {(kind, name): "stalesim" for kind in known for name in known[kind]}
    for kind, given, place, source in (*_of_entry_points(known), *_of_modules(known)):
        base = base_of(kind)
        if issubclass(base, NamedPart):
            part = _checked_record(given, place, base)
        else:
            part = _checked(given, kind, place, base)
        name = tag(part)
        if (kind, name) in owners:
            raise UserError(
                f"{place} must have {kind} under new names, got {name!r}, which "
                f"{owners[kind, name]} has; rename it"
            )
        owners[kind, name] = source
        found[kind][part] = source
    return found


@contextlib.contextmanager
def naming(modules: list[str]) -> Iterator[None]:
    """Names modules in the environment, for good unless an error follows."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = os.pathsep.join([*named(), *modules])
    try:
        yield
    except UserError:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        raise


def named() -> list[str]:
    """Returns the modules that the environment names, each once."""
    given = os.environ.get(VARIABLE, "").split(os.pathsep)
    return list(dict.fromkeys(name for name in given if name))


def command(name: str, folder: Path) -> str:
    """Returns a command for a study, with the plug-ins of this process."""
    return " ".join(["stalesim", *map(shlex.quote, options()), name, str(folder)])


def options() -> list[str]:
    """Returns the options of the program for the plug-ins of this process."""
    given: list[str] = []
    for name in named():
        file = source(name).at  # of a package, its folder
        given += ["--plugin", file if file.endswith(".py") else name]
    return given


def are_there(kinds: Iterable[str]) -> bool:
    """Returns whether a plug-in is named, or has entry points; imports none."""
    groups = {f"stalesim.{kind}" for kind in kinds}
    return bool(named()) or bool(groups & entry_points().groups)


def source(name: str) -> Content:
    """Returns the code of a plug-in, as it was when it was imported."""
    return _sources.get(name, Content("", ""))


def _of_entry_points(kinds: Iterable[str]) -> Iterator[tuple[str, object, str, str]]:
    installed = entry_points()  # reads a file of every package: once for all kinds
    for kind in kinds:
        group = f"stalesim.{kind}"
        for point in installed.select(group=group):
            package = point.dist.name if point.dist else point.module
            place = f"the entry point {point.name!r} of {group} in {package!r}"
            try:
                given = point.load()
            except Exception as error:  # a package runs any code when imported
                raise UserError(
                    f"{place} must be importable, got {said(error)}; mend or "
                    f"uninstall the package"
                ) from error
            note(package, point.module)
            yield kind, given, place, package


def _of_modules(kinds: Iterable[str]) -> Iterator[tuple[str, object, str, str]]:
    for name in named():
        module = imported(name)
        source = module.__name__
        note(source, source)
        for kind, classes in _given(module, name).items():
            place = f"{ATTRIBUTE} of {shown(source)}"
            if kind not in kinds:
                raise UserError(
                    f"{place} must have kinds of parts as keys, got {shown(kind)}; "
                    f"{suggestion(kind, kinds)}"
                )
            if not isinstance(classes, tuple | list):
                raise UserError(
                    f"{place} must have a tuple of classes under {kind!r}, got "
                    f"{type(classes).__name__}; write (MyPart,)"
                )
            for number, part in enumerate(classes):
                yield kind, part, f"{place}, {kind} {number + 1},", source


def _checked(given: object, kind: str, place: str, base: type[Part]) -> type[Part]:
    """Returns what a plug-in gives for a part of a kind, if it is one."""
    if not (isinstance(given, type) and issubclass(given, base)):
        raise UserError(
            f"{place} must be a subclass of {base.__module__}.{base.__name__}, got "
            f"{getattr(given, '__name__', shown(given))}; inherit from it"
        )
    part: type[Part] = given
    if kind != "claims":
        _check_name(part, kind, place)
    missing = [name for name in MEMBERS.get(kind, ()) if not hasattr(part, name)]
    missing += sorted(getattr(part, "__abstractmethods__", ()))
    if missing:
        raise UserError(
            f"{place} must be a class with {', '.join(missing)}, got {part.__name__} "
            f"without; add it"
        )
    name = unmarked(part)
    if name is not None:
        raise UserError(
            f"{place} must mark entries that name files, got {part.__name__}.{name} "
            f"without; write {name}: FilePath (of stalesim.simulator.parts.base), or "
            f"rename it if it names none"
        )
    return part


def _checked_record(given: object, place: str, base: type[NamedPart]) -> NamedPart:
    if not isinstance(given, base):
        got = getattr(given, "__name__", shown(given))
        raise UserError(
            f"{place} must be a {base.__module__}.{base.__name__}, got {got}; write "
            f'{base.__name__}("name", ...)'
        )
    if not re.fullmatch(r"[A-Za-z][\w-]*", given.name, re.ASCII):
        raise UserError(
            f"{place} must have a name of letters, digits, _ and -, got "
            f"{shown(given.name)}; rename it"
        )
    return given


def _check_name(part: type[Part], kind: str, place: str) -> None:
    """Refuses a class without one fixed name, or a law with a name of SciPy's."""
    key = "law" if kind == "laws" else "kind"
    field = part.model_fields.get(key)
    names = get_args(field.annotation) if field else ()
    literal = field is not None and get_origin(field.annotation) is Literal
    if field is None or not literal or names != (field.default,):
        raise UserError(
            f"{place} must be a class with a name, got {part.__name__} without; "
            f'write {key}: Literal["name"] = "name"'
        )
    if kind == "laws":
        import scipy.stats  # 1 s: only for those who add a law

        if hasattr(scipy.stats, str(field.default)):
            raise UserError(
                f"{place} must have laws under new names, got {field.default!r}, "
                f"which scipy.stats has; rename it"
            )


def note(name: str, module: str) -> None:
    """Notes the code of a module that has just been imported, and of its imports."""
    if name in _sources:
        return
    modules, libraries = own_code.of(module, installed=True)
    mine = next((n for n in modules if f"{module}.".startswith(f"{n}.")), None)
    if mine is not None:
        at, sha256 = modules.pop(mine)
        _sources[name] = Content(at, sha256, 0, modules, libraries)


def _given(module: ModuleType, name: str) -> Mapping[str, object]:
    given = getattr(module, ATTRIBUTE, None)
    if isinstance(given, Mapping):
        return given
    unfinished = getattr(module.__spec__, "_initializing", False)
    if given is None and not unfinished and not _forgotten(module):
        return {}
    got = "none" if given is None else type(given).__name__
    remedy = f'add for example {ATTRIBUTE} = {{"laws": (MyLaw,)}}'
    if unfinished:
        got = "none yet: it reads a scenario while it is being imported"
        remedy = "move that into a function"
    elif name == "__main__":
        remedy += (
            "; a notebook's parts exist in its own process alone, so take jobs=1, or "
            "write the part into a module"
        )
    raise UserError(
        f"module {shown(name)} must have a mapping {ATTRIBUTE}, got {got}; {remedy}"
    )


def _forgotten(module: ModuleType) -> bool:
    """Says whether a module that lists no parts has some, or nothing at all.

    One with functions alone may hold a model or a loss that a scenario names.
    """
    here = [
        each
        for each in vars(module).values()
        if getattr(each, "__module__", None) == module.__name__
    ]
    of_parts = any(isinstance(each, type) and issubclass(each, Part) for each in here)
    records = any(isinstance(each, NamedPart) for each in vars(module).values())
    return of_parts or records or not any(map(callable, here))


def imported(name: str) -> ModuleType:
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
        if missing:
            raise UserError(
                f"module {shown(name)} must be importable, got {said(error)}; "
                f"install {missing}, or correct the import"
            ) from error
        raise UserError(
            f"module {shown(name)} must be importable, got {said(error)}; mend it"
        ) from error
    found = getattr(module, "__file__", None)
    if path is not None and (found is None or not path.samefile(found)):
        raise UserError(
            f"module {shown(name)} must have a new name, got {dotted!r}, which is "
            f"{found or 'built into Python'}; rename the file"
        )
    return module
