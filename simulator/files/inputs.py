"""The inputs of a run: files, their content, and the code of plug-ins.

A run is identified by the content of its inputs, not by their names. `collect` finds
that before anything is executed, wherever a scenario names it: in entries of the types
`FilePath` and `RecordingPath`, in files that data sets find by themselves
(`Data.located_files`), in parts of plug-ins. While it is in force (`held`), all
processes take files from the same places, and `confirm` refuses files that have changed
before they are read.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..parts import functions, plugins
from ..parts.attached import extras_of
from ..parts.base import Config, Part, Reads, named_files, parts_within
from ..parts.catalogue import registered, sources
from ..parts.errors import DataError
from ..parts.json_text import Tree
from ..parts.own_code import Content
from .reading import digests, files

if TYPE_CHECKING:
    from .study.manifest import Read

TABLES = ("rows", "jobs", "incidents")
"""Tables that are read of a recorded timeline, with its manifest."""
UNTOLD = ("elapsed_s",)
"""Entries of a recording's manifest that are no part of the timeline."""
MANY = 64
"""Files of a data set from which on they are one input; some sets have 20,000."""
IN_DATA = f"${files.FOLDER}"
"""Replaces the data folder in the names of files that were found there."""


class Inputs(NamedTuple):
    """Everything that the runs of a study read.

    Attributes:
        working: Folder that relative paths start from.
        data: Folder of real data files.
        named: inputs by their names: paths as scenarios write them; files that data
            sets find by themselves have paths below the data folder.
        sets: names of what each data set finds by itself, by its configuration.
        modules: Modules of the plug-ins that are used, by their names.
        objects: Objects that a Python program has handed over, packed for others.
        extras: Names of the extras that parts come from.
    """

    working: str
    data: str
    named: dict[str, Content]
    sets: dict[str, tuple[str, ...]]
    modules: dict[str, Content]
    objects: dict[str, functions.Packed]
    extras: frozenset[str] = frozenset()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Code that not all studies use: installed modules and extras (`extras.NAME`).

        Outermost names of the modules that the user's own code imports.
        """
        each = [*self.named.values(), *self.modules.values()]
        modules = {name for one in each for name in one.libraries}
        return tuple(sorted(modules | {f"extras.{name}" for name in self.extras}))


_held: list[Inputs] = []
"""Inputs that are in force in this process; the last one counts."""


def collect(scenarios: Iterable[object]) -> Inputs:
    """Finds the inputs of scenarios, and their present content.

    Args:
        scenarios: Scenarios of runs; one that several runs share is looked at once.

    Raises:
        UserError: a file is missing or cannot be read.
    """
    folders = files.working_folder(), files.data_folder()
    working, data = (str(each.absolute()) for each in folders)
    found = Inputs(working, data, {}, {}, {}, {})
    extras: set[str] = set()
    with files.looking_in(working, data):
        for scenario in {id(each): each for each in scenarios}.values():
            _add(found, scenario)
            extras |= extras_of(used := list(parts_within(scenario)))
            found.modules.update(sources(used))
    packed = functions.packed(found.named)
    return found._replace(objects=packed, extras=frozenset(extras))


@contextmanager
def held(inputs: Inputs | None) -> Iterator[None]:
    """Puts inputs in force: all reads must match them.

    Raises:
        DataError: A plug-in's module is another one in this process.
    """
    if inputs is None:
        yield
        return
    _confirm_modules(inputs)
    _held.append(inputs)
    try:
        with files.looking_in(inputs.working, inputs.data):
            yield
    finally:
        _held.pop()


def are_held() -> bool:
    """Returns whether inputs are in force, so that reads will be confirmed."""
    return bool(_held)


def manifest_entries(inputs: Inputs) -> "Read":
    """Returns the manifest's entries on the inputs of a study's runs."""
    return {
        "inputs": {
            name: _entry(each, "at", bytes=each.bytes)
            for name, each in inputs.named.items()
        },
        "modules": {
            name: _entry(each, "file") for name, each in inputs.modules.items()
        },
        "working_folder": inputs.working,
    }


def _entry(each: Content, place: str, **more: int) -> Tree:
    imports = {"imports": each.imports} if each.imports else {}
    return {place: each.at, "sha256": each.sha256, **more, **imports}


def of_log(log: str | Path) -> dict[str, Tree]:
    """Returns the entry of a manifest on a log that was read, by its name."""
    held = digests.of_file(Path(log))
    return {str(log): _entry(held, "at", bytes=held.bytes)}


def identified(scenario: Config) -> Tree:
    """Returns a scenario as nested mappings, with content in place of files' names."""
    tree = scenario.model_dump(mode="json")
    entries = list(named_files(scenario))
    sets = list(_sets(scenario))
    if not entries and not sets:
        return tree
    inputs = _held[-1] if _held else collect([scenario])
    reads = {}
    for keys, path, _ in entries:
        reads[".".join(keys)] = inputs.named[path].sha256
        _remove(tree, keys)
    for part in sets:
        reads |= dict(_state(part, inputs))
    return {**tree, "reads": reads} if reads else tree


def finds(scenario: Config | None, inputs: Inputs) -> tuple[str, ...] | None:
    """Returns the names of the files that a scenario's data set finds by itself.

    None where it needs no files, () where it has found none.
    """
    sets = [inputs.sets.get(_name(part), ()) for part in _sets(scenario)]
    return sets[0] if sets else None


def state(config: Config) -> tuple[tuple[str, str], ...]:
    """Returns names and digests of the files that a problem is made of.

    A remembered configuration is valid for one state of its files. Empty where no
    inputs are in force.
    """
    if not _held:
        return ()
    known = _held[-1].named
    read = [path for _, path, _ in named_files(config)]
    found = _state(getattr(config, "data", config), _held[-1])
    return *((path, known[path].sha256) for path in read), *found


def contents(config: object, key: str) -> list[str]:
    """Returns the digests of the files that a configuration names, in its order."""
    known = _held[-1].named if _held else {}
    return [
        known[path].sha256
        if path in known
        else _read(path, what, ".".join(keys)).sha256
        for keys, path, what in named_files(config, key)
    ]


def confirm(config: object, key: str, read: Collection[str] = ()) -> None:
    """Refuses files that have changed since the study started.

    To be called when they have been read.

    Raises:
        DataError: one line with the file, the fault and the remedy.
    """
    if not _held:
        return
    then = _held[-1]
    now = Inputs(then.working, then.data, {}, {}, {}, {})
    paths = _add(now, config, key)
    for name, each in now.named.items():
        if then.named.get(name) != each:
            raise DataError(
                f"{each.at} must stay as it is while the study runs, but has changed "
                "since that began; restore its content, then resume the study"
            )
    for part, names in now.sets.items():
        gone = {*then.sets.get(part, ())} - {*names}
        if gone:
            raise DataError(
                f"{then.named[min(gone)].at} must stay while the study runs, but is no "
                f"longer there; put it back, then resume the study"
            )
    for path in sorted({*read} - paths):
        raise DataError(
            f"{key} must declare that it reads {path}; give its entry the type "
            "FilePath, or return it from located_files"
        )


def _add(inputs: Inputs, config: object, *keys: str) -> set[str]:
    """Adds what a configuration reads; returns the paths of its files."""
    paths = set()
    for at, path, what in named_files(config, *keys):
        if path not in inputs.named:
            inputs.named[path] = _read(path, what, ".".join(at))
        paths.add(inputs.named[path].at)
    for part in _sets(config):
        if (name := _name(part)) not in inputs.sets:
            of_set, files_of_set = _of_set(part)
            inputs.named.update(of_set)
            inputs.sets[name] = tuple(of_set)
            paths |= files_of_set
    return paths


def _sets(config: object) -> Iterator[Part]:
    """Yields the data sets that find their files by themselves, or have a function."""
    for part in parts_within(config):
        if not isinstance(part, Part):
            continue
        if part.computed or part.located_files() is not None:
            yield part


def _state(data: Config, inputs: Inputs) -> tuple[tuple[str, str], ...]:
    names = inputs.sets.get(_name(data), ())
    return tuple((name, inputs.named[name].sha256) for name in names)


def _name(data: Config) -> str:
    return f"{type(data).__name__} {data.model_dump_json()}"


def _read(path: str, what: Reads, key: str) -> Content:
    if what is Reads.RECORDING:
        return _recording(files.folder(path))
    if what is Reads.FUNCTION:
        return functions.content(path, key)
    return digests.of_file(files.located(path, key))


def _recording(folder: Path) -> Content:
    """Returns the digest of a recorded timeline: of its tables, and of its runs."""
    from .study import load  # a tenth of a short command, and few scenarios replay
    from .study.parts import ordered

    manifest = folder / "manifest.json"
    known = digests.of_file(manifest).sha256 if manifest.is_file() else ""
    written = load(folder).files
    tables = [
        [digests.of_file(folder / name / file) for file in ordered(written[name])]
        for name in TABLES
        if name in written
    ]
    told = [_runs(folder, known), [[each.sha256 for each in t] for t in tables]]
    size = sum(each.bytes for table in tables for each in table)
    return Content(str(folder.absolute()), digests.of_text(json.dumps(told)), size)


@lru_cache(maxsize=16)
def _runs(folder: Path, manifest: str) -> str:
    """Returns the digest of what a recording says of its runs."""
    from .study import load

    runs = load(folder).manifest["runs"]
    told = [{k: v for k, v in run.items() if k not in UNTOLD} for run in runs]
    return digests.of_text(json.dumps(told, sort_keys=True))


def _of_set(part: Part) -> tuple[dict[str, Content], set[str]]:
    """Returns what a data set finds by itself, by name; and the paths of all files."""
    made = part.made()
    if made is not None:
        return {made.at: Content(*made)}, set()
    root = files.data_folder()
    paths = sorted(Path(path) for path in part.located_files() or ())
    at = {str(path.absolute()) for path in paths}
    if len(paths) <= MANY:
        return {_below(path, root): digests.of_file(path) for path in paths}, at
    top = Path(os.path.commonpath(paths))
    return {f"{_below(top, root)} ({len(paths)} files)": _together(top, paths)}, at


def _together(top: Path, paths: list[Path]) -> Content:
    read = [digests.of_file(path) for path in paths]
    told = [
        [str(path.relative_to(top)), each.sha256]
        for path, each in zip(paths, read, strict=True)
    ]
    size = sum(each.bytes for each in read)
    return Content(str(top.absolute()), digests.of_text(json.dumps(told)), size)


def _below(path: Path, root: Path) -> str:
    if path.is_relative_to(root):
        return f"{IN_DATA}/{path.relative_to(root).as_posix()}"
    return str(path)


def _remove(tree: Any, keys: tuple[str, ...]) -> None:
    """Removes an entry from nested mappings and lists, if it is there.

    A part may be written otherwise than it is made.
    """
    with suppress(LookupError, TypeError, ValueError):
        *above, last = keys
        for key in above:
            tree = tree[int(key) if isinstance(tree, list) else key]
        tree[int(last) if isinstance(tree, list) else last] = None


def _confirm_modules(inputs: Inputs) -> None:
    """Refuses modules that are not those with which the study was planned."""
    for name, then in inputs.modules.items():
        registered()  # imports all of them, if this process has not done so
        here = plugins.source(name)
        if here.digests != then.digests:
            raise DataError(
                f"the module {name!r} ({here.at}) must stay as it is while the study "
                f"runs, but has changed; put it back, then resume the study"
            )
