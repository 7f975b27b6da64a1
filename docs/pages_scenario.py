"""Every key of a scenario: type, default and meaning, from the classes' schema."""

import ast
import inspect
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

FAMILIES = {
    "protocols": ("Protocols", "a protocol"),
    "algorithms": ("Algorithms", "an algorithm"),
    "stages": ("Stages of a chain", "a stage"),
    "compressors": ("Compressors", "a compressor"),
    "weights": ("Staleness weights", "a staleness weight"),
    "data": ("Data", "a data set"),
    "partitions": ("Partitions", "a partition"),
    "models": ("Models", "a model"),
    "laws": ("Laws of durations", "a law of durations"),
    "claims": ("Claims", "a claim"),
}
"""Kinds of parts, each with its heading and what one of them is called."""
ORDER = (
    *("name", "source", "question", "seed", "replicates", "problem", "clients"),
    *("server", "protocol", "algorithm", "privacy", "stop", "evaluate", "engine"),
    *("timeline", "probe", "record", "variants", "sweep", "claims", "looks"),
)
"""Keys of a study, as scenario files have them."""
LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
HEAD = ("| key | value | by default | meaning |", "| --- | --- | --- | --- |")
SEVERAL = 3
"""Parts of a kind with the same key from which it is shown once for all of them."""
MOST_NAMES = 7
"""Names that a cell lists; longer lists are shown once, at the end."""
TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "object": "mapping",
}


@cache
def scenario_keys() -> str:
    """Returns the reference of scenarios as Markdown."""
    from stalesim.simulator.parts.attached import extras
    from stalesim.simulator.parts.catalogue import own
    from stalesim.simulator.scenario.grid import Range
    from stalesim.simulator.scenario.scenario import Scenario
    from stalesim.simulator.scenario.setting import WorldScenario

    schema = Scenario.model_json_schema()
    world = WorldScenario.model_json_schema()
    ranges = {"Range": Range.model_json_schema()}  # of the sweep, which has no classes
    worlds = [
        (name, world.kind, world.scenario())
        for name, extra in extras().items()
        for world in extra.worlds
    ]
    schemas = {of: of.model_json_schema() for _, _, of in worlds}
    added = {k: of for tree in schemas.values() for k, of in tree["$defs"].items()}
    definitions = added | world["$defs"] | schema["$defs"] | ranges
    families = {kind: [part.__name__ for part in own(kind)] for kind in FAMILIES}
    classes = _classes(Scenario, WorldScenario, *schemas)
    writer = _Writer(definitions, families, classes)
    properties = {key: schema["properties"][key] for key in _ordered(schema)}
    study = schema | {"properties": properties}
    parts = ["## A study", "", *writer.table("Scenario", study), ""]
    own = {"properties": {"job": world["properties"]["job"]}}
    parts += ["In a world without a problem, for `stalesim timeline`, also:", ""]
    parts += [*writer.table("WorldScenario", own), ""]
    for key, of in (*properties.items(), ("job", own["properties"]["job"])):
        parts += writer.chapter(key, of)
    parts += writer.chapter("sweep", {"$ref": "#/$defs/Range"})
    for name, kind, scenario in worlds:
        found = schemas[scenario]["properties"]
        mine = {k: of for k, of in found.items() if k not in properties}
        mine["stop"] = found["stop"]
        told = (
            f"A world of {kind} ([{name}](../extras/{name}.md)) has name, source, "
            f"question, seed, replicates, record, variants and sweep, and:"
        )
        parts += [f"## A world of {kind}", "", told, ""]
        parts += [*writer.table(scenario.__name__, {"properties": mine}), ""]
        for key, of in mine.items():
            parts += writer.chapter(key, of)
    parts += writer.lists()
    topics = [part.removeprefix("## ") for part in parts if part.startswith("## ")]
    plain = [re.sub(r" <a .*", "", topic) for topic in topics]
    links = [f"[{topic}](#{slug(topic)})" for topic in plain]
    return "\n".join(["Topics: " + ", ".join(links) + ".", "", *parts])


def anchor(name: str) -> str:
    """Returns a mark that links lead to, also on a code host."""
    return f'<a id="{name}"></a>'


def slug(heading: str) -> str:
    """Returns the anchor that a code host gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def _ordered(schema: dict[str, Any]) -> list[str]:
    """Returns the keys of a study as scenario files have them; others at the end."""
    known = list(schema["properties"])
    return [key for key in ORDER if key in known] + [k for k in known if k not in ORDER]


class _Writer:
    """Writes classes of a schema.

    Args:
        definitions: Definitions of the schema, by the name of the class.
        families: Classes of each kind of part.
        classes: Classes by name, whose attributes have docstrings.
    """

    def __init__(
        self,
        definitions: dict[str, Any],
        families: dict[str, list[str]],
        classes: dict[str, type],
    ) -> None:
        self._definitions, self._families = definitions, families
        self._classes = classes
        self._seen: set[str] = set()
        self._lists: dict[tuple[str, ...], int] = {}
        """Long lists of names, each with its number; every one is shown once."""
        self._common_lines: dict[str, dict[str, str]] = {}
        self._keys: dict[str, str] = {}
        for referred, key in _references(definitions):
            self._keys.setdefault(referred, key)

    def chapter(self, key: str, of: dict[str, Any]) -> list[str]:
        """Returns the classes below a key of a study that no earlier one has shown.

        Kinds of parts have headings of their own, with what their options need.
        """
        found: list[str] = []
        self._collect(of, found)
        family_of = {n: kind for kind, names in self._families.items() for n in names}
        plain: list[str] = []
        of_kind: dict[str, list[str]] = {}
        inside = ""
        for name in found:
            inside = family_of.get(name, inside)
            (of_kind.setdefault(inside, []) if inside else plain).append(name)
        lines = [f"## `{key}`", "", *self.sections(plain)] if plain else []
        for kind, names in of_kind.items():
            lines += [f"## {FAMILIES[kind][0]} {anchor(kind)}", ""]
            lines += self._common_of(kind)
            others = [name for name in names if name not in self._families[kind]]
            lines += self.sections([*self._families[kind], *others])
        return lines

    def _collect(self, of: dict[str, Any], found: list[str]) -> None:
        """Adds the classes that a key refers to, in the order of their keys."""
        inner: list[str] = []
        for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(of)):
            if name not in self._seen and name in self._definitions:
                self._seen.add(name)
                inner.append(name)
        family = {n for names in self._families.values() for n in names}
        for name in sorted(inner, key=lambda each: each in family):
            found.append(name)
            self._collect(self._definitions[name].get("properties", {}), found)

    def sections(self, names: list[str]) -> list[str]:
        """Returns a section for each class."""
        lines = []
        for name in names:
            about = self._definitions[name].get("description", "")
            lines += [f"### {self._heading(name)} {anchor(name)}", ""]
            lines += [about, ""]
            lines += [*self.table(name, self._definitions[name]), ""]
        return lines

    def table(self, name: str, schema: dict[str, Any]) -> Iterator[str]:
        """Yields the lines of a class's table."""
        kinds = [kind for kind, names in self._families.items() if name in names]
        common = self._common(kinds[0]) if kinds else {}
        rows = self._rows(name, schema)
        own = [row for key, row in rows.items() if common.get(key) != row]
        yield from [*HEAD, *own] if own else []
        if listed := ", ".join(
            f"`{key}`" for key in rows if common.get(key) == rows[key]
        ):
            yield from ["", f"Also [as above](#{kinds[0]}): {listed}."]

    def _rows(self, name: str, schema: dict[str, Any]) -> dict[str, str]:
        """Returns the lines of a class's keys."""
        said = _attribute_docstrings(self._classes.get(name))
        rows = {}
        for key, of in schema.get("properties", {}).items():
            if "const" not in of:
                needed = key in schema.get("required", ())
                default = "required" if needed else _default(of)
                meaning = _cell(said.get(key) or said.get(f"{key}_", ""))
                rows[key] = f"| `{key}` | {self._type(of)} | {default} | {meaning} |"
        return rows

    def _common(self, kind: str) -> dict[str, str]:
        """Returns the lines that several parts of a kind share, the commonest each."""
        if kind not in self._common_lines:
            parts = [(n, self._definitions[n]) for n in self._families[kind]]
            counts = Counter(row for part in parts for row in self._rows(*part).items())
            often = [row for row, number in counts.most_common() if number >= SEVERAL]
            self._common_lines[kind] = dict(reversed(often))
        return self._common_lines[kind]

    def _common_of(self, kind: str) -> list[str]:
        """Returns the table of what several parts of a kind share, if anything."""
        rows = sorted(self._common(kind).values())
        return (
            ["Keys that several of them share:", "", *HEAD, *rows, ""] if rows else []
        )

    def lists(self) -> list[str]:
        """Returns the long lists of names that keys refer to."""
        lines = ["## Lists of names", ""] if self._lists else []
        for names, number in self._lists.items():
            lines += [f"### List {number} {anchor(f'names-{number}')}", ""]
            lines += [", ".join(f"`{name}`" for name in names) + ".", ""]
        return lines

    def _title(self, name: str) -> str:
        properties = self._definitions[name].get("properties", {})
        for key in ("kind", "law"):
            if "const" in properties.get(key, {}):
                return f"{key}: {properties[key]['const']}"
        if named := getattr(self._classes.get(name), "named", ""):
            return f"{named}: VARIANT"
        return "law: NAME" if name == "Scipy" else name

    def _heading(self, name: str) -> str:
        title = self._title(name)
        if title == name or any(name in family for family in self._families.values()):
            return title
        return f"{self._keys.get(name, 'sweep')}, {title}"

    def _type(self, of: dict[str, Any]) -> str:
        if "$ref" in of:
            name = of["$ref"].rsplit("/", 1)[1]
            return f"[{self._title(name)}](#{name})"
        if "const" in of:
            return f"`{of['const']}`"
        if len(of.get("enum", ())) > MOST_NAMES:
            names = tuple(of["enum"])
            number = self._lists.setdefault(names, len(self._lists) + 1)
            return f"one of [{len(names)} names](#names-{number})"
        if "enum" in of:
            return " or ".join(f"`{value}`" for value in of["enum"])
        if "description" in of:
            return of["description"]
        choices = of.get("anyOf") or of.get("oneOf")
        if choices:
            return self._choice(choices)
        if of.get("type") == "array":
            return f"list of {self._items(of)}"
        inner = of.get("additionalProperties")
        if of.get("type") == "object" and isinstance(inner, dict) and inner:
            return f"mapping of names to {self._type(inner)}"
        limits = [f"{word} {of[key]:g}" for key, word in LIMITS.items() if key in of]
        return " ".join([TYPES.get(of.get("type", ""), "any value"), *limits])

    def _items(self, of: dict[str, Any]) -> str:
        if "prefixItems" in of:
            return ", ".join(self._type(item) for item in of["prefixItems"])
        return self._type(of.get("items", {}))

    def _choice(self, choices: list[dict[str, Any]]) -> str:
        named = {c["$ref"].rsplit("/", 1)[1] for c in choices if "$ref" in c}
        for kind, family in self._families.items():
            if len(named) > 1 and named <= set(family):
                rest = [c for c in choices if "$ref" not in c]
                link = f"[{FAMILIES[kind][1]}](#{kind})"
                return " or ".join([link, *self._known(rest)])
        return " or ".join(self._known(choices))

    def _known(self, choices: list[dict[str, Any]]) -> list[str]:
        """Returns the types of some choices, each once, without null."""
        types = (self._type(c) for c in choices if c.get("type") != "null")
        return list(dict.fromkeys(types))


def _references(definitions: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the names of classes with a key that holds one."""
    for of in definitions.values():
        for key, what in of.get("properties", {}).items():
            for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(what)):
                yield name, key


def _default(of: dict[str, Any]) -> str:
    if of.get("default") in (None, "", [], {}):
        return ""
    return f"`{json.dumps(of['default'])}`".replace('"', "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _classes(*roots: type) -> dict[str, type]:
    """Returns all configuration classes that exist, by name."""
    from stalesim.simulator.parts.base import Config

    found, left = {}, [Config]
    while left:
        one = left.pop()
        if one.__module__.startswith("stalesim."):  # not those of tests
            found[one.__name__] = one
        left += one.__subclasses__()
    return found | {root.__name__: root for root in roots}


def _attribute_docstrings(cls: type | None) -> dict[str, str]:
    """Returns what stands under the attributes of a class and of those it inherits."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__ if cls else ()):
        if one.__module__.startswith("stalesim."):
            found |= _own_docstrings(one)
    return found


@cache  # to find a class in its file takes long
def _own_docstrings(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for before, after in pairwise(body):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[before.target.id] = inspect.cleandoc(str(after.value.value))
    return found
