"""Reads a scenario file, and reports the place of each mistake in it, a line each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..parts.attached import worlds
from ..parts.base import LocatedError
from ..parts.errors import ScenarioError, check_type, one_line
from ..parts.messages import mistakes
from . import dialect, overrides
from .overrides import Places
from .scenario import Scenario
from .setting import Varied, WorldScenario
from .shipped import file_of, remedy
from .study import S, VariantError, check
from .synonyms import Synonyms

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
        ScenarioError: A line for each mistake with the file, the line, the fault and
            the remedy.
    """
    rule = "the path of a file, or the name of a shipped scenario"
    check_type("path", path, str | Path, rule)
    rule = 'a list of texts, such as ["stop.time=5"]'
    check_type("overrides", overrides, list | tuple, rule)
    return loads(*_text(path), overrides)


def read_any(path: str | Path, overrides: Sequence[str] = ()) -> Any:
    """Reads a scenario as `read`, or a world with neither problem nor algorithm."""
    return loads_any(*_text(path), overrides)


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

    Raises:
        ScenarioError: The same as in `read`.
    """
    with _in_lines():
        tree, places, words = _composed(text, name, overrides)
        if _kind(tree) is not Scenario:
            raise ScenarioError(
                f"{name}:1: must have a problem and an algorithm to be run, but has "
                f"neither; add them, or play its world alone: stalesim timeline {name}"
            )
        return _placed(tree, Scenario, name, places, words)


def loads_any(text: str, name: str, overrides: Sequence[str] = ()) -> Any:
    """Reads the text of a scenario, or of a world, as `read_any` does a file."""
    with _in_lines():
        tree, places, words = _composed(text, name, overrides)
        return _placed(tree, _kind(tree), name, places, words)


@contextmanager
def placing(path: Path) -> Iterator[None]:
    """Adds file and line to planning's errors on an entry of a scenario."""
    try:
        yield
    except ScenarioError as error:
        words = re.match(r"[a-z_]+(\.[\w-]+)*", str(error))
        keys = tuple(words[0].split(".")) if words else ()
        where, known = _place(path, keys)
        if where == str(path):
            raise
        raise ScenarioError(f"{where}: {known.written(str(error))}") from None


def place(path: Path, keys: dialect.Keys) -> str:
    """Returns file and line of an entry, or of what it stands in."""
    return _place(path, keys)[0]


def _place(path: Path, keys: dialect.Keys) -> tuple[str, Synonyms]:
    """Returns what `place` does, and what knows the words of the file."""
    _, places, words = _composed(*_text(path), ())
    heads = (keys[:size] for size in range(len(keys), 0, -1))
    head = next((each for each in heads if each in places), None)
    return str(path) if head is None else f"{path}:{places[head][0]}", words


def validated(tree: Mapping[str, object]) -> Scenario:
    """Validates a scenario that is there as nested mappings, and not in a file.

    Raises:
        ScenarioError: A line for each mistake with the dotted key, the fault and the
            remedy.
    """
    return validated_as(tree, Scenario)


def validated_as(tree: Mapping[str, object], kind: type[S]) -> S:
    """Validates a scenario of any class as `validated` does that of a study."""
    words = Synonyms(kind)
    tree = words.replaced(tree)
    try:
        scenario = kind.model_validate(tree)
    except ValidationError as error:
        found = [words.written(message) for _, message in mistakes(error, tree, kind)]
        raise ScenarioError(*_counted(found)) from None
    try:
        check(scenario)
    except VariantError as error:
        raise VariantError(words.written(str(error)), error.keys) from None
    return scenario


def _counted(lines: list[str]) -> list[str]:
    more = len(lines) - MOST
    counted = [f"and {more} more mistake{'s' if more > 1 else ''}"] if more > 0 else []
    return lines[:MOST] + counted


@contextmanager
def _in_lines() -> Iterator[None]:
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(*map(one_line, error.lines)) from None


def _composed(
    text: str, name: str, changes: Sequence[str]
) -> tuple[dict[str, object], Places, Synonyms]:
    """Returns what a text says after some overrides, and the places of its entries.

    Also returns what knows the words in which the entries were written.
    """
    tree, marks = dialect.compose(text, lambda line: f"{name}:{line}")
    if tree is None:
        raise ScenarioError(
            f"{name}:1: must hold a scenario, but is empty; begin with name: NAME"
        )
    if not isinstance(tree, dict):
        got = "text" if isinstance(tree, str) else f"a {type(tree).__name__}"
        log = name.lower().endswith(".csv")
        remedy = f"read a log by stalesim log import {name}"
        raise ScenarioError(
            f"{name}:1: must be a mapping of keys to values, got {got}; "
            f"{remedy if log else 'begin with name: NAME'}"
        )
    words = Synonyms(_kind(tree))
    try:
        changed = words.replaced(tree)
    except LocatedError as error:
        raise ScenarioError(f"{name}:{marks[error.keys][0]}: {error}") from None
    places: Places = {words.place(keys): mark for keys, mark in marks.items()}
    for change in changes:
        words = Synonyms(_kind(changed), words.found)
        changed = overrides.apply(changed, change, places, words)
    return changed, places, words


def _placed(
    tree: dict[str, object],
    kind: type[S],
    name: str,
    places: Places,
    words: Synonyms,
) -> S:
    """Returns a valid scenario, or says of each mistake where it is."""
    try:
        scenario = kind.model_validate(tree)
        check(scenario)
    except VariantError as error:
        found = [(error.keys, str(error))]
    except ValidationError as error:
        rank = partial(overrides.rank_of, places=places)
        found = mistakes(error, tree, kind, rank)
    else:
        overrides.refuse_swept(scenario, places)
        return scenario
    lines = [
        f"{overrides.place_of(keys, places, name)}: {words.written(message)}"
        f"{overrides.remedy(keys, places, name)}"
        for keys, message in found
    ]
    raise ScenarioError(*_counted(lines))


def to_yaml(scenario: Varied) -> str:
    """Returns a scenario with all its defaults as YAML that `read` reads back."""
    tree = scenario.model_dump(mode="json")
    kept = {key: tree.pop(key) for key in ("variants", "sweep")}
    return dialect.dump(without_nothing(tree) | kept)


def without_nothing(tree: Mapping[str, object]) -> dict[str, object]:
    """Returns nested mappings and lists without the keys that have no value."""
    return {key: _kept(each) for key, each in tree.items() if each is not None}


def _kept(tree: object) -> object:
    if isinstance(tree, Mapping):
        return without_nothing(tree)
    return list(map(_kept, tree)) if isinstance(tree, list) else tree


def _kind(tree: Mapping[str, object]) -> type[Varied]:
    """Returns the class of a scenario: of a study, or of a world alone."""
    if any(key in tree for key in LEARNING):
        return Scenario
    for world in worlds():
        if world.entries[0] in tree:
            return world.scenario()
    # A mapping without protocol is more likely an unfinished scenario than a world.
    return WorldScenario if "protocol" in tree else Scenario
