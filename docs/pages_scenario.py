"""The reference of scenarios, from the schema of the classes: a page for each topic."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stalesim.simulator.parts.base import meanings
from stalesim.simulator.parts.errors import documented
from stalesim.simulator.scenario import dialect
from stalesim.simulator.scenario.synonyms import Synonyms, with_words

ROOT = Path(__file__).resolve().parents[1]
FIRST = "reference/scenario.md"
PAGES = {
    "problem": "problem losses",
    "data": "data",
    "partitions": "partitions",
    "models": "models",
    "clients": "clients server job availability slowdowns preferences local_steps",
    "laws": "laws",
    "protocols": "protocols graphs deadlines buffer_sizes",
    "algorithms": "algorithms weights step_sizes",
    "stages": "stages compressors",
    "privacy": "privacy accounts accountants",
    "runs": "stop evaluate sweep tune compare engine timeline probe",
    "metrics": "metrics",
    "claims": "claims",
}
"""Kinds of parts, and keys with mappings, that a page describes."""
WORDS = {"laws": "delay distributions", "stages": "stages of a chain"}
ORDER = (
    *("name", "source", "question", "seed", "replicates", "problem", "clients"),
    *("server", "protocol", "algorithm", "privacy", "stop", "evaluate", "engine"),
    *("timeline", "probe", "record", "variants", "sweep", "claims", "looks"),
)
"""Keys of a study, as scenario files have them."""
LISTS = ("chain", "claims", "slowdowns")
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">"}
LIMITS |= {"maximum": "≤", "exclusiveMaximum": "<"}
HEAD = ("| key | type | default | description |", "| --- | --- | --- | --- |")
NAMES = ("| name | description |", "| --- | --- |")
TYPES = {"string": "text", "boolean": "true or false", "object": "mapping"}
PER_CLIENT = "a number, an expression in m and M, or a list with one number per client"
FENCED = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_DECISION = r"(?:decisions? )?[AFMV]-\d\d\b"
CODE = re.compile(
    rf" ?\({OF_DECISION}(?:, {OF_DECISION})*\)|[,;]? {OF_DECISION}|{OF_DECISION}[.:] "
)
"""Numbers of decisions, which tell a user nothing."""


@cache
def scenario_pages() -> dict[str, str]:
    """Returns the pages by their address in the site; of the first one, the keys."""
    from stalesim.simulator.parts.attached import extras
    from stalesim.simulator.scenario.grid import Range
    from stalesim.simulator.scenario.scenario import Scenario
    from stalesim.simulator.scenario.setting import WorldScenario

    study, world = Scenario.model_json_schema(), WorldScenario.model_json_schema()
    worlds = [(name, of) for name, extra in extras().items() for of in extra.worlds]
    schemas = {of.scenario(): of.scenario().model_json_schema() for _, of in worlds}
    definitions = {"Range": Range.model_json_schema()}
    for schema in (*schemas.values(), world, study):
        definitions |= schema["$defs"]
    keys = study["properties"]
    keys = {key: keys[key] for key in ORDER if key in keys} | keys
    definitions |= {"Scenario": study | {"properties": keys}, "WorldScenario": world}
    for of, schema in schemas.items():
        own = schema["properties"].items()
        own = {key: what for key, what in own if key not in keys or key == "stop"}
        definitions[of.__name__] = {"properties": own}
    writer = _Writer(definitions, _classes(Scenario, WorldScenario, *schemas))
    first = "\n".join(writer.table("Scenario"))
    found = {FIRST: first.replace("](#", "](scenario.md#")}
    keys |= {"job": world["properties"]["job"], "sweep": {"$ref": "#/$defs/Range"}}
    inner = {name: [*writer.page(name, of.split(), keys)] for name, of in PAGES.items()}
    inner["worlds"] = ["# Other worlds", ""]
    for (name, world), of in zip(worlds, schemas, strict=True):
        inner["worlds"] += [f"## A world of {world.kind}", ""]
        inner["worlds"] += [f"See [{name}](../../extras/{name}.md).", ""]
        inner["worlds"] += [*writer.table(of.__name__), ""]
        inner["worlds"] += writer.mappings(definitions[of.__name__])
    for name, lines in inner.items():
        text = "\n".join(lines).replace("](#", "](../scenario.md#")
        found[f"reference/scenario/{name}.md"] = text
    return found


@cache
def homes() -> dict[str, str]:
    """Returns the page of each anchor."""
    pages = scenario_pages().items()
    return {a: page for page, text in pages for a in re.findall(r"{ #([\w-]+) }", text)}


class _Writer:
    """Writes classes of a schema.

    Args:
        definitions: Definitions of the schema, by the name of the class.
        classes: Classes by name, whose attributes have docstrings.
    """

    def __init__(self, definitions: dict[str, Any], classes: dict[str, type]) -> None:
        from stalesim.simulator.parts.catalogue import BASES, own

        self._definitions, self._classes = definitions, classes
        self._members: dict[str, list[str]] = {}
        """Classes of each kind of parts."""
        self._records: dict[str, dict[str, str]] = {}
        """Names of the parts of other kinds, with what they mean."""
        topics = " ".join(PAGES.values()).split()
        for kind in (kind for kind in BASES if kind in topics):
            parts: Any = own(kind)
            if isinstance(parts[0], type):
                self._members[kind] = [part.__name__ for part in parts]
            else:
                self._records[kind] = {part.name: part.meaning for part in parts}
        members = self._members.items()
        self._kind_of = {name: kind for kind, names in members for name in names}
        self._shown = {*self._kind_of}
        self._keys: dict[str, dict[str, None]] = {}
        """Keys that hold a class."""
        for of in definitions.values():
            for key, what in of.get("properties", {}).items():
                for name in _referred(what):
                    self._keys.setdefault(name, {})[key] = None
        self._shared = {kind: self._repeated(kind) for kind in self._members}

    def page(self, name: str, topics: list[str], keys: dict[str, Any]) -> Iterator[str]:
        """Yields the lines of a page, with each mapping that no earlier one has."""
        yield from [f"# {_words(name).capitalize()} {{ #{name} }}", ""]
        for topic in topics:
            if topic not in self._members and topic not in self._records:
                yield from self.mappings(keys.get(topic, {}))
                continue
            if topic != name:
                yield from [f"## {_words(topic).capitalize()} {{ #{topic} }}", ""]
            yield from NAMES
            for one, meaning in self._records.get(topic, {}).items():
                yield f"| `{one}` | {cell(meaning)} |"
            yield from [*self._index(topic), ""]
            for one in self._members.get(topic, ()):
                yield from self._section(one)
                yield from self.mappings(self._definitions[one])

    def mappings(self, of: dict[str, Any]) -> Iterator[str]:
        """Yields a section for each mapping below some keys that has none yet."""
        for name in _referred(of):
            if name not in self._shown:
                self._shown.add(name)
                yield from self._section(name)
                yield from self.mappings(self._definitions[name])

    def _index(self, kind: str) -> Iterator[str]:
        """Yields rows for the parts of a kind, and the keys that several share."""
        for name in self._members.get(kind, ()):
            first = cell(self._about(name).partition("\n\n")[0])
            yield f"| [{self._title(name)}](#{name}) | {first} |"
        if rows := sorted(self._shared.get(kind, {}).values()):
            yield from ["", f"### Shared keys {{ #{kind}-keys }}", "", *HEAD, *rows]

    def _section(self, name: str) -> Iterator[str]:
        title = self._title(name)
        if name not in self._kind_of:
            keys = ", ".join(f"`{key}`" for key in self._keys[name])
            title = f"{keys}: {name}"
        yield from [f"### {title} {{ #{name} }}", "", self._about(name), ""]
        yield from [*self._example(name), "", *self.table(name), ""]

    def table(self, name: str) -> Iterator[str]:
        """Yields the lines of a class's table."""
        kind = self._kind_of.get(name, "")
        common, rows = self._shared.get(kind, {}), self._rows(name)
        own = [row for key, row in rows.items() if common.get(key) != row]
        yield from [*HEAD, *own] if own else []
        if shared := [key for key in rows if common.get(key) == rows[key]]:
            yield from ["", f"And {', '.join(shared)} ([shared](#{kind}-keys))."]

    def _rows(self, name: str) -> dict[str, str]:
        """Returns the lines of a class's keys."""
        said = meanings(self._classes.get(name))
        schema, rows = self._definitions[name], {}
        for key, of in schema.get("properties", {}).items():
            if "const" not in of:
                needed = key in schema.get("required", ())
                default = "required" if needed else _default(of)
                meaning = cell(said.get(key) or said.get(f"{key}_", ""))
                meaning = with_words(key, meaning)
                shown = self._worded(name, key)
                rows[shown] = f"| {shown} | {self._type(of)} | {default} | {meaning} |"
        return rows

    def _worded(self, name: str, key: str) -> str:
        """Returns a key of a class, behind the field's word for it."""
        word = documented(self._definitions[name].get("properties", {})).get(key)
        return f"`{word}` or `{key}`" if word else f"`{key}`"

    def _repeated(self, kind: str) -> dict[str, str]:
        """Returns the lines that three parts of a kind share, the commonest each."""
        parts = map(self._rows, self._members[kind])
        counts = Counter(row for rows in parts for row in rows.items())
        often = [row for row, number in counts.most_common() if number >= 3]
        return dict(reversed(often))

    def _about(self, name: str) -> str:
        return CODE.sub("", self._definitions[name].get("description", ""))

    def _title(self, name: str) -> str:
        properties = self._definitions[name].get("properties", {})
        tags: list[Any] = [
            properties.get(key, {}).get("const") for key in ("kind", "law")
        ]
        tags += [getattr(self._classes.get(name), "named", None)]
        tags += ["lognorm"] if name == "Scipy" else []  # any of SciPy's
        return next((f"`{tag}`" for tag in tags if tag), name)

    def _type(self, of: dict[str, Any]) -> str:
        if "$ref" in of:
            name = of["$ref"].rsplit("/", 1)[1]
            return f"[{self._title(name)}](#{name})"
        if "const" in of:
            return f"`{of['const']}`"
        if "enum" in of:
            return self._names(of["enum"])
        if "description" in of:
            return of["description"].replace(PER_CLIENT, "[per client](#per-client)")
        if choices := of.get("anyOf") or of.get("oneOf"):
            return self._choice(choices)
        if of.get("type") == "array":
            inner = of.get("prefixItems") or [of.get("items", {})]
            return f"list of {', '.join(map(self._type, inner))}"
        inner = of.get("additionalProperties")
        if of.get("type") == "object" and isinstance(inner, dict) and inner:
            return f"mapping of names to {self._type(inner)}"
        limits = [f"{sign} {of[key]:g}" for key, sign in LIMITS.items() if key in of]
        kind = of.get("type", "anything")
        return " ".join([TYPES.get(kind, kind), *limits]).replace(" ", "&nbsp;")

    def _names(self, names: list[str]) -> str:
        """Returns names to choose from; those of a kind are a link."""
        kinds = [kind for kind, of in self._records.items() if {*of} <= {*names}]
        known = {name for kind in kinds for name in self._records[kind]}
        links = [f"[{_words(kind)}](#{kind})" for kind in kinds]
        return " or ".join([*links, *(f"`{n}`" for n in names if n not in known)])

    def _choice(self, choices: list[dict[str, Any]]) -> str:
        """Returns types to choose from; all parts of a kind are a link."""
        found = {}
        for choice in choices:
            kind = self._kind_of.get(choice.get("$ref", "").rpartition("/")[2], "")
            if len(self._members.get(kind, ())) > 1:
                found[f"[{_words(kind)}](#{kind})"] = None
            elif choice.get("type") != "null":
                found[self._type(choice)] = None
        return " or ".join(found)

    def _example(self, name: str) -> Iterator[str]:
        """Yields the shortest example of a part that scenarios and pages have."""
        if name not in self._kind_of:
            return
        own, fit = self._classes[name], []
        for tree in _written().get(self._title(name).strip("`"), ()):
            with suppress(ValueError):
                own.model_validate(tree := Synonyms(own).replaced(tree))
                names = {k: self._worded(name, k).split("`")[1] for k in tree}
                fit.append(_dumped({names[k]: of for k, of in tree.items()}))
        if fit:
            key = (
                next(iter(self._keys[name]))
                if self._kind_of[name] != "laws"
                else "compute"
            )
            entry = f"{key}:\n  - " if key in LISTS else f"{key}: "
            yield from ["```yaml", entry + CODE.sub("", min(fit, key=len)), "```"]


def _dumped(tree: Any) -> str:
    """Returns a line of YAML."""
    style = {"default_flow_style": True, "sort_keys": False, "width": 999}
    return " ".join(yaml.dump(tree, None, dialect.Dumper, **style).split())


@cache
def _written() -> dict[str, list[dict[str, Any]]]:
    """Returns the mappings of all scenarios and pages that name a part, by its name."""
    files = [*ROOT.glob("scenarios/**/*.yaml"), ROOT / "docs/reference/examples.yaml"]
    texts = [path.read_text(encoding="utf-8") for path in files]
    for path in ROOT.glob("docs/**/*.md"):
        texts += FENCED.findall(path.read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = {}
    left: list[Any] = [yaml.load(text, dialect.Loader) for text in texts]
    while left:
        tree = left.pop()
        if isinstance(tree, dict):
            for name in (tree.get("kind"), tree.get("law"), *[*tree][:1]):
                if isinstance(name, str):
                    found.setdefault(name, []).append(tree)
            left += tree.values()
        elif isinstance(tree, list):
            left += tree
    return found


def _referred(of: Any) -> list[str]:
    """Returns the names of the classes that a part of a schema refers to."""
    return re.findall(r'"#/\$defs/(\w+)"', json.dumps(of))


def _words(kind: str) -> str:
    return WORDS.get(kind, kind.replace("_", " "))


def _default(of: dict[str, Any]) -> str:
    if of.get("default") in (None, "", [], {}):
        return ""
    return f"`{json.dumps(of['default'])}`".replace('"', "")


def cell(text: str) -> str:
    """Returns a text as a cell of a table, without numbers of decisions."""
    return " ".join(CODE.sub("", text).split()).replace("|", r"\|")


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
