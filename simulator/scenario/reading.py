"""Reads a scenario file: YAML without its traps, with the line of every mistake."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from simulator.scenario.errors import ScenarioError
from simulator.scenario.messages import first_error, suggestion
from simulator.scenario.scenario import Scenario
from simulator.scenario.study import VariantError, expand, replace

Keys = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """YAML 1.2's plain scalars: `no` is a word, `010` is ten, `1e-3` is a number."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|false|False)$", "tTfF"),
    ("null", r"^(?:~|null|Null|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf)|\.(?:nan|NaN))$",
        "-+0123456789.",
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first)
    )


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)


def read(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Reads and validates a scenario file, with all its variants and sweep points.

    Args:
        path: of the file.
        overrides: `dotted.key=value`, each replacing an entry.

    Raises:
        ScenarioError: one line with the file, the line, what is wrong and the remedy.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: must be a file, but is a folder") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: must be text in UTF-8; save it as such") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    return loads(text, str(path), overrides)


def loads(text: str, name: str, overrides: Sequence[str] = ()) -> Scenario:
    """Reads and validates the text of a scenario.

    Args:
        text: YAML.
        name: of the file, for messages.
        overrides: as in `read`.
    """
    tree, lines = _parse(text, name)
    places: dict[Keys, str] = {keys: f"{name}:{line}" for keys, line in lines.items()}
    for override in overrides:
        tree = _override(tree, override, places)
    try:
        scenario = Scenario.model_validate(tree)
    except ValidationError as error:
        keys, message = first_error(error, tree)
        raise ScenarioError(f"{_place(keys, places, name)}: {message}") from None
    try:
        expand(scenario)
    except VariantError as error:
        place = _place(error.keys, places, name)
        raise ScenarioError(f"{place}: {error}") from None
    return scenario


def _override(
    tree: dict[str, Any], override: str, places: dict[Keys, str]
) -> dict[str, Any]:
    where = f"override {override!r}"
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ScenarioError(f"{where} must be dotted.key=value")
    value, _ = _compose(text, where)
    keys = tuple(key.split("."))
    if keys[0] not in Scenario.model_fields:
        near = suggestion(keys[0], Scenario.model_fields)
        raise ScenarioError(f"{where}: {keys[0]} is not a known key; {near}")
    for known in [known for known in places if known[: len(keys)] == keys]:
        del places[known]
    places[keys] = where
    return replace(tree, key, value)


def _place(keys: Keys, places: dict[Keys, str], name: str) -> str:
    """Returns the place of an entry, or of the nearest one that contains it."""
    while keys and keys not in places:
        keys = keys[:-1]
    return places.get(keys, f"{name}:1")


def _parse(text: str, name: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    tree, lines = _compose(text, name)
    if tree is None:
        raise ScenarioError(f"{name}: must hold a scenario, but is empty")
    if not isinstance(tree, dict):
        raise ScenarioError(f"{name}:1: must be a mapping of keys to values at the top")
    return tree, lines


def _compose(text: str, name: str) -> tuple[Any, dict[Keys, int]]:
    """Returns the value of a YAML text, and the line of every entry in it."""
    lines: dict[Keys, int] = {}
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _note(node, (), lines, name)
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ScenarioError(f"{name}:{line}: is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise ScenarioError(f"{name}: is not YAML: {first}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _note(node: yaml.Node, keys: Keys, lines: dict[Keys, int], name: str) -> None:
    """Notes the line of every entry, and refuses keys that occur twice."""
    lines.setdefault(keys, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note(item, (*keys, index), lines, name)
    if not isinstance(node, yaml.MappingNode):
        return
    for key_node, value in node.value:
        key = (*keys, str(key_node.value))
        line = key_node.start_mark.line + 1
        if key in lines:
            raise ScenarioError(
                f"{name}:{line}: {'.'.join(map(str, key))} stands twice, first in line "
                f"{lines[key]}; remove one"
            )
        lines[key] = line
        _note(value, key, lines, name)
