"""The YAML of scenario files: YAML without its traps, with the line of every entry.

`no` is a word, `010` is ten, `12:30:00` is text and `1e-3` is a number; a key may occur
only once.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import yaml
from pydantic import BaseModel

from ..parts.base import LocatedError
from ..parts.errors import TAGS, ScenarioError, documented_key, shown
from ..parts.json_text import Json
from ..parts.messages import fields_at

Keys = tuple[str | int, ...]
"""Place of an entry in a scenario: keys of mappings and positions in lists."""
Mark = tuple[int, int]
"""Place in a text: line and column, both from 1."""

DEEPEST = 50
MOST_ENTRIES = 100_000
_YAML = "tag:yaml.org,2002:"
_SCALARS = {
    "bool": (r"^(?:true|True|false|False)$", "tTfF"),
    "null": (r"^(?:~|null|Null|)$", ["~", "n", "N", ""]),
    "int": (r"^[-+]?[0-9]{1,100}$", "-+0123456789"),
    "float": (
        (
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf)|\.(?:nan|NaN))$"
        ),
        "-+0123456789.",
    ),
}
"""Types of words without quotes, by their forms and first letters."""
_KNOWN_TAGS = {_YAML + tag for tag in (*_SCALARS, "str", "map", "seq")}


class Loader(yaml.SafeLoader):
    """Reads YAML 1.2's plain scalars."""


class Dumper(yaml.SafeDumper):
    """Writes texts that both `Loader` and YAML 1.1 read back unchanged."""

    def ignore_aliases(self, data: object) -> bool:
        """Writes repeated values out in full."""
        return True


Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _SCALARS.items():
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(_YAML + _tag, re.compile(_pattern), list(_first))


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Unicode's line breaks are read as \n unless they are written as escapes.
    style = '"' if any(c in text for c in "\x85\u2028\u2029") else None
    return dumper.represent_scalar(f"{_YAML}str", text, style)


Loader.add_constructor(f"{_YAML}int", lambda _, node: int(node.value))
Dumper.add_representer(str, _text)


def compose(text: str, place: Callable[[int], str]) -> tuple[Json, dict[Keys, Mark]]:
    """Returns the value of a YAML text, and the place of every entry in it.

    Raises:
        ScenarioError: It is not YAML, or uses features that scenarios exclude.
    """
    marks: dict[Keys, Mark] = {}
    loader = None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, marks
        _note(node, (), marks, place)
        return loader.construct_document(node), marks
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = place(mark.line + 1 if mark else 1)
        why = str(error.problem or error.context)
        look = "look for wrong indentation, an open bracket or quote here or just above"
        remedy = "use spaces in place of tabs" if r"'\t'" in why else look
        raise ScenarioError(f"{where}: must be YAML, but {why}; {remedy}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScenarioError(
            f"{place(line)}: must be text, but has the character "
            f"{error.character!r}; remove it"
        ) from None
    except RecursionError:
        raise ScenarioError(f"{place(1)}: is nested too deep; flatten it") from None
    finally:
        if loader is not None:
            loader.dispose()


def dump(tree: object) -> str:
    """Returns a YAML text that `compose` reads as the same tree."""
    return yaml.dump(tree, Dumper=Dumper, sort_keys=False, allow_unicode=True)


def _note(
    node: yaml.Node,
    keys: Keys,
    marks: dict[Keys, Mark],
    place: Callable[[int], str],
) -> None:
    """Notes where every entry stands, and refuses what scenarios do without."""
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    marks.setdefault(keys, (line, column))
    key = ".".join(map(str, keys))
    if len(keys) > DEEPEST or len(marks) > MOST_ENTRIES:
        raise ScenarioError(
            f"{place(line)}: a scenario must have at most {DEEPEST} levels and "
            f"{MOST_ENTRIES} entries, got more at {key[:60]}; is there an alias (*) of "
            f"itself?"
        )
    if node.tag not in _KNOWN_TAGS or not _is_formed(node):
        tag = node.tag.replace(_YAML, "!!")
        raise ScenarioError(
            f"{place(line)}: {key} must be plain YAML, got the tag {tag}; remove it"
        )
    if isinstance(node, yaml.ScalarNode):
        _check_text(node.value, place(line))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note(item, (*keys, index), marks, place)
    elif isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            _note(value, _key(key_node, keys, marks, place), marks, place)


def _check_text(value: str, where: str) -> None:
    r"""Refuses halves of characters, which an escape such as \ud800 makes."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = value[error.start]
        raise ScenarioError(
            f"{where}: must be text, but has the character {half!r}; remove it"
        ) from None


def _is_formed(node: yaml.Node) -> bool:
    """Says whether a scalar with an explicit tag such as `!!int` is of its form."""
    form = _SCALARS.get(node.tag.removeprefix(_YAML))
    return form is None or re.match(form[0], str(node.value)) is not None


def _key(
    node: yaml.Node, keys: Keys, marks: dict[Keys, Mark], place: Callable[[int], str]
) -> Keys:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_YAML}str":
        got = repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or map"
        raise ScenarioError(
            f"{place(line)}: a key must be text, got {got}; put it in quotes"
        )
    _check_text(node.value, place(line))
    key = (*keys, str(node.value))
    if key in marks:
        raise ScenarioError(
            f"{place(line)}: {'.'.join(map(str, key))} must occur once, but is "
            f"already in line {marks[key][0]}; remove one"
        )
    marks[key] = line, column
    return key


INHERIT = "inherit"


class Inherited(NamedTuple):
    """The values that a mapping of a variant inherited.

    Attributes:
        keys: Its place in the scenario.
        kind: Name of its kind.
        taken: Entries of the base that it has taken over.
        left: Entries of the base that its kind does not have.
    """

    keys: Keys
    kind: str
    taken: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        taken, left = (map(documented_key, names) for names in (self.taken, self.left))
        place = documented_key(".".join(map(str, self.keys)))
        line = f"{place} ({self.kind}) inherits {', '.join(taken) or 'nothing'}"
        return f"{line}, but not {', '.join(left)}" if self.left else line


def filled(
    changes: Mapping[str, object],
    written: Mapping[str, object],
    root: type[BaseModel],
    keys: Keys = (),
) -> tuple[dict[str, object], list[Inherited]]:
    """Returns a variant's changes with the inherited values, and these alone.

    Raises:
        LocatedError: `inherit` is neither true nor false, or is in a law.
    """
    found: dict[str, object] = {}
    told: list[Inherited] = []
    for key, value in changes.items():
        here: Keys = (*keys, key)
        if not isinstance(value, Mapping) or key == "sweep":
            found[key] = value
            continue
        old = written.get(key)
        old = old if isinstance(old, Mapping) else {}
        rest = {name: entry for name, entry in value.items() if name != INHERIT}
        own, inside = filled(rest, old, root, here)
        told += inside
        if _asks(value, here) and own.get("kind") not in (None, old.get("kind")):
            tree = own
            for name in reversed(here):
                tree = {str(name): tree}
            known = fields_at(here, tree, root)
            others = [name for name in old if name not in TAGS]
            took = tuple(name for name in others if name in known and name not in own)
            left = tuple(name for name in others if name not in (*known, *own))
            told.append(Inherited(here, str(own["kind"]), took, left))
            taken = {name: old[name] for name in others if name in known}
            own = {**taken, **_merged(taken, own)}
        found[key] = own
    return found, told


def inherits(changes: object) -> bool:
    """Returns whether a variant inherits anything."""
    if not isinstance(changes, Mapping):
        return False
    return INHERIT in changes or any(map(inherits, changes.values()))


def of_another(keys: Keys, tree: object, base: object) -> str:
    """Returns why an entry is missing that the base has: it belongs to another kind."""
    key, *rest = keys or ("",)
    if not (isinstance(tree, Mapping) and isinstance(base, Mapping)):
        return ""
    if rest:
        return of_another(tuple(rest), tree.get(key, {}), base.get(key, {}))
    if key in tree or key not in base:
        return ""
    tag = next((t for t in TAGS if t in tree and tree[t] != base.get(t)), None)
    if tag is None:
        return ""
    return (
        f"; that of the base belongs to its {tag} {base.get(tag)!r}: a variant with "
        f"another {tag} inherits nothing, unless it has inherit: true"
    )


def _asks(value: Mapping[str, object], keys: Keys) -> bool:
    asked = value.get(INHERIT, False)
    name = ".".join(map(str, (*keys, INHERIT)))
    if not isinstance(asked, bool):
        raise LocatedError(
            f"{name} must be true or false, got {shown(asked)}; write true to inherit "
            "the base's entries that the new kind has, too",
            (*keys, INHERIT),
        )
    if "law" in value and INHERIT in value:
        raise LocatedError(
            f"{name} must not be set in a law, because parameters of different laws "
            f"differ in meaning, got {shown(asked)}; remove it",
            (*keys, INHERIT),
        )
    return asked


def _merged(
    taken: Mapping[str, object], own: Mapping[str, object]
) -> dict[str, object]:
    """Returns a variant's own entries, those of mappings over what is taken over."""
    return {
        key: {**old, **value}
        if isinstance(value, Mapping)
        and isinstance(old := taken.get(key), Mapping)
        and value.get("kind") in (None, old.get("kind"))
        else value
        for key, value in own.items()
    }
