"""Reads a scenario file, and says of each mistake in it where it is, a line each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..parts.attached import worlds
from ..parts.errors import ScenarioError, one_line
from ..parts.messages import Mistake, mistakes
from . import dialect, overrides
from .overrides import Place, Places
from .scenario import Scenario
from .setting import Varied, WorldScenario
from .shipped import file_of, remedy
from .study import S, VariantError, check

LEARNING = ("problem", "algorithm")
"""Entries of which a world alone has none."""
MOST = 10
"""Mistakes that are shown; more are counted."""


def read(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Reads and validates a scenario file, with all its variants and sweep points.

    Args:
        path: Path of the file, or the name of a shipped scenario, such as `quickstart`.
        overrides: `dotted.key=value`, each replacing an entry, in this order.

    Raises:
        ScenarioError: A line for each mistake with the file, the line, what is wrong
            and the remedy.
    """
    text, shown = _text(path)
    return loads(text, shown, overrides)


def read_any(path: str | Path, overrides: Sequence[str] = ()) -> Any:
    """Reads a scenario as `read` does, or a world with neither problem nor algorithm.

    Args:
        path: Path of the file.
        overrides: Overrides as in `read`.

    Raises:
        ScenarioError: The same as in `read`.
    """
    text, shown = _text(path)
    return _loads_in_lines(text, shown, overrides, alone=True)


def _text(path: str | Path) -> tuple[str, str]:
    """Returns what a file holds, and its name for messages."""
    shown, file = one_line(str(path)), file_of(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(
            f"{shown}: there is no such file; check the path, or name a shipped "
            f"scenario; {remedy(shown)}"
        ) from None
    except IsADirectoryError:
        raise ScenarioError(
            f"{shown}: must be a file, got a folder; name a .yaml file in it"
        ) from None
    except UnicodeDecodeError as error:
        byte = f"0x{error.object[error.start]:02x}"
        raise ScenarioError(
            f"{shown}: must be text in UTF-8, got the byte {byte} at position "
            f"{error.start}; save it as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{shown}: cannot be read: {why}; check it") from None
    return text, shown


def loads(text: str, name: str, overrides: Sequence[str] = ()) -> Scenario:
    """Reads and validates the text of a scenario.

    Args:
        text: YAML.
        name: Name of the file, for messages.
        overrides: Overrides as in `read`.

    Raises:
        ScenarioError: The same as in `read`.
    """
    return _loads_in_lines(text, name, overrides, alone=False)


def loads_any(text: str, name: str) -> Any:
    """Reads the text of a scenario, or of a world, as `read_any` does a file.

    Args:
        text: YAML.
        name: Name of the file, for messages.

    Raises:
        ScenarioError: The same as in `read`.
    """
    return _loads_in_lines(text, name, (), alone=True)


@contextmanager
def placing(path: Path) -> Iterator[None]:
    """Puts file and line before what planning says of an entry of a scenario.

    Args:
        path: File of the scenario, which could be read.
    """
    try:
        yield
    except ScenarioError as error:
        words = re.match(r"[a-z_]+(\.[\w-]+)*", str(error))
        keys = tuple(words[0].split(".")) if words else ()
        where = place(path, keys)
        if where == str(path):
            raise
        raise ScenarioError(f"{where}: {error}") from None


def place(path: Path, keys: dialect.Keys) -> str:
    """Returns file and line of an entry, or of what it stands in.

    Args:
        path: File of the scenario, which could be read.
        keys: Keys of the entry.
    """
    _, marks = dialect.compose(_text(path)[0], lambda line: f"{path}:{line}")
    heads = (keys[:size] for size in range(len(keys), 0, -1))
    head = next((each for each in heads if each in marks), None)
    return str(path) if head is None else f"{path}:{marks[head].line}"


def validated(tree: Mapping[str, object]) -> Scenario:
    """Validates a scenario that is there as nested mappings, and not in a file.

    Raises:
        ScenarioError: A line for each mistake with the dotted key, what is wrong and
            the remedy.
    """
    return _validated(tree, Scenario)


def validated_world(tree: Mapping[str, object]) -> WorldScenario:
    """Validates a world as `validated` does a scenario.

    Raises:
        ScenarioError: The same as in `validated`.
    """
    return _validated(tree, WorldScenario)


def _validated(tree: Mapping[str, Any], kind: type[S]) -> S:
    try:
        scenario = kind.model_validate(tree)
    except ValidationError as error:
        found = [each.message for each in mistakes(error, tree, kind)]
        raise ScenarioError(*_counted(found)) from None
    check(scenario)
    return scenario


def _counted(lines: list[str]) -> list[str]:
    """Returns the first lines, and one that counts the others."""
    more = len(lines) - MOST
    counted = [f"and {more} more mistake{'s' if more > 1 else ''}"] if more > 0 else []
    return lines[:MOST] + counted


def _loads_in_lines(
    text: str, name: str, overrides: Sequence[str], *, alone: bool
) -> Any:
    try:
        return _loads(text, name, overrides, alone=alone)
    except ScenarioError as error:
        raise ScenarioError(*map(one_line, error.lines)) from None


def _loads(text: str, name: str, changes: Sequence[str], *, alone: bool) -> Any:
    tree, marks = dialect.compose(text, lambda line: f"{name}:{line}")
    if tree is None:
        raise ScenarioError(
            f"{name}:1: must hold a scenario, but is empty; begin with name: NAME"
        )
    if not isinstance(tree, dict):
        raise ScenarioError(
            f"{name}:1: must be a mapping of keys to values, got a "
            f"{type(tree).__name__}; begin with name: NAME"
        )
    places: Places = {
        keys: Place(f"{name}:{mark.line}", mark) for keys, mark in marks.items()
    }
    for change in changes:
        tree = overrides.apply(tree, change, places)
    kind = _kind(tree)
    if kind is not Scenario and not alone:
        raise ScenarioError(
            f"{name}:1: must have a problem and an algorithm to be run, but has "
            f"neither; add them, or play its world alone: stalesim timeline {name}"
        )
    try:
        scenario = kind.model_validate(tree)
    except ValidationError as error:
        found = mistakes(
            error, tree, kind, lambda keys: overrides.place_of(keys, places).rank
        )
    else:
        try:
            check(scenario)
        except VariantError as error:
            found = [Mistake(error.keys, str(error))]
        else:
            return scenario
    lines = [
        f"{overrides.place_of(keys, places).name}: {message}"
        f"{overrides.remedy(keys, places)}"
        for keys, message in found
    ]
    raise ScenarioError(*_counted(lines))


def to_yaml(scenario: Varied) -> str:
    """Returns a scenario with all its defaults as YAML that `read` reads back."""
    tree = scenario.model_dump(mode="json")
    kept = {key: tree.pop(key) for key in ("variants", "sweep")}
    return dialect.dump(without_nothing(tree) | kept)


def without_nothing(tree: object) -> Any:
    """Returns nested mappings and lists without the keys that have no value."""
    if isinstance(tree, Mapping):
        return {k: without_nothing(v) for k, v in tree.items() if v is not None}
    return [without_nothing(v) for v in tree] if isinstance(tree, list) else tree


def _kind(tree: Mapping[str, object]) -> type[Varied]:
    """Returns the class of a scenario: of a study, or of a world alone."""
    if any(key in tree for key in LEARNING):
        return Scenario
    for world in worlds():
        if world.entries[0] in tree:
            return world.scenario()
    # A mapping without protocol is more likely an unfinished scenario than a world.
    return WorldScenario if "protocol" in tree else Scenario
