"""The JSON schema of scenarios, for editors and validators."""

from collections.abc import Mapping

from pydantic.json_schema import JsonSchemaValue as Schema

from ..parts.attached import worlds
from ..parts.base import Part, tag
from ..parts.catalogue import classes
from ..parts.errors import KEYS, TAGS, fields_words
from .claims import Claim
from .scenario import Scenario
from .setting import WorldScenario
from .synonyms import VALUES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> Schema:
    """Returns the JSON schema of a scenario: a study, or a world alone.

    One of several parts is recognised by its `kind` or `law`, and a claim by the entry
    that names its kind. A validator then reports the mistake in that part, and not that
    it fits none of all.
    """
    study, world = Scenario.model_json_schema(), WorldScenario.model_json_schema()
    others = {each.entries[0]: each.scenario() for each in worlds()}
    own = {each.__name__: each.model_json_schema() for each in others.values()}
    every = (*own.values(), world, study)
    found = {k: part for tree in every for k, part in tree.pop("$defs", {}).items()}
    for part in found.values():
        _let_rates_be_steps(part)
    tree = {
        "$schema": DIALECT,
        "title": "Scenario",
        "type": "object",
        "properties": {key: True for tree in every for key in tree["properties"]},
        # A scenario with neither is a world alone, as `reading.read_any` has it.
        "if": {"anyOf": [{"required": ["problem"]}, {"required": ["algorithm"]}]},
        "then": {"$ref": "#/$defs/Study"},
        "else": _of_worlds({entry: _address(each) for entry, each in others.items()}),
        "$defs": {**found, "Study": study, "World": world, **own},
    }
    claims = {_address(part): part.named for part in classes("claims", Claim)}
    schema = _told_apart(tree, found, claims)
    known = classes("algorithms", Part)
    chained = next(part for part in known if tag(part) == "chained")
    entries = schema["$defs"]["Study"]["properties"]
    entries["algorithm"] = {  # a chain needs no kind
        "if": {"required": ["chain"]},
        "then": {"$ref": _address(chained)},
        "else": entries["algorithm"],
    }
    for part in schema["$defs"].values():
        _let_have_synonyms(part)
    return schema


def _let_have_synonyms(part: Schema) -> None:
    """Lets a class have the field's words for its values and keys."""
    known = part.get("properties", {})
    for key in VALUES.keys() & known.keys():
        for choice in (known[key], *known[key].get("anyOf", ())):
            ours = choice.get("enum", [])
            ours += [word for word, our in VALUES[key].items() if our in ours]
    for word, key in fields_words(known).items():
        known[word] = known[key]
        rule: Schema = {
            "if": {"required": [word]},
            "then": {"properties": {key: False}},
        }
        if key in part.get("required", ()):
            part["required"].remove(key)
            rule["else"] = {"required": [key]}
        part["allOf"] = [*part.get("allOf", ()), rule]
        if {"required": [key]} in part.get("anyOf", ()):
            part["anyOf"] += [{"required": [word]}]


def _of_worlds(others: Mapping[str, str]) -> Schema:
    """Returns the choice of a world by its entry; without any, it is one of clients."""
    chosen: Schema = {"$ref": "#/$defs/World"}
    for entry, address in others.items():
        chosen = {
            "if": {"required": [entry]},
            "then": {"$ref": address},
            "else": chosen,
        }
    return chosen


def _let_rates_be_steps(part: Schema) -> None:
    """Lets the learning rate of an optimiser take the place of the step size."""
    known = part.get("properties", {})
    others = [key for key in ("optimizer", "local_optimizer") if key in known]
    if others and "step_size" in part.get("required", ()):
        part["required"] = [key for key in part["required"] if key != "step_size"]
        part["anyOf"] = [{"required": [key]} for key in ("step_size", *others)]


def _address(part: type) -> str:
    return f"#/$defs/{part.__name__}"


def _told_apart(
    node: Schema, found: Mapping[str, Schema], claims: Mapping[str, str]
) -> Schema:
    """Returns a schema whose unions of parts say when each of them is meant."""

    def inner(tree: object) -> object:
        if isinstance(tree, list):
            return list(map(inner, tree))
        return _told_apart(tree, found, claims) if isinstance(tree, dict) else tree

    node = {key: inner(each) for key, each in node.items()}
    if "anyOf" in node:
        return _mapping_apart(node, found)
    members = [each.get("$ref") for each in node.get("oneOf", ())]
    if not members:
        return node
    del node["oneOf"]
    node.pop("discriminator", None)
    if members[0] in claims:
        return {**node, **_of_claims({claims[each]: each for each in members})}
    return {**node, **_of_tags(members, found)}


def _mapping_apart(node: Schema, found: Mapping[str, Schema]) -> Schema:
    """Returns a choice of which one is a mapping as a rule for mappings and others."""
    mappings = [each for each in node["anyOf"] if _is_mapping(each, found)]
    others = [each for each in node["anyOf"] if each not in mappings]
    if len(mappings) != 1 or not others:
        return node
    rest = {key: each for key, each in node.items() if key != "anyOf"}
    (mapping,) = mappings
    otherwise = others[0] if len(others) == 1 else {"anyOf": others}
    return {**rest, "if": {"type": "object"}, "then": mapping, "else": otherwise}


def _is_mapping(node: Schema, found: Mapping[str, Schema]) -> bool:
    address = node.get("$ref")
    of = found[address.rpartition("/")[2]] if address else node
    return of.get("type") == "object"


def _of_claims(members: Mapping[str, str]) -> Schema:
    return {
        "type": "object",
        "anyOf": [{"required": [name]} for name in members],
        "allOf": [
            {"if": {"required": [name]}, "then": {"$ref": address}}
            for name, address in members.items()
        ],
    }


def _of_tags(members: list[str], found: Mapping[str, Schema]) -> Schema:
    """Returns what parts must be: of a known name, and as the part of that name wants.

    A part without a name of its own, such as any law of SciPy, has all other names.
    """
    tags = {address: _tag(found[address.rpartition("/")[2]]) for address in members}
    (entry,) = {entry for entry, _ in tags.values()}
    names = [name for _, name in tags.values() if name is not None]
    if len(names) < len(members) - 1:  # told apart by something else
        return {"anyOf": [{"$ref": address} for address in members]}
    others = {"not": {"enum": names}}
    rules = {at: {"const": name} if name else others for at, (_, name) in tags.items()}
    further = [word for word, ours in KEYS.items() if ours == (entry,)]
    needed: Schema = {"required": [entry]}
    for word in further:
        needed = {"if": {"required": [word]}, "else": needed}
    chosen = [
        {
            "if": {"properties": {word: rule}, "required": [word]},
            "then": {"$ref": address},
        }
        for address, rule in rules.items()
        for word in (entry, *further)
    ]
    is_open = len(names) < len(members)
    known = {} if is_open else {"properties": {entry: {"enum": names}}}
    return {"type": "object", **needed, **known, "allOf": chosen}


def _tag(part: Schema) -> tuple[str, str | None]:
    """Returns the entry that names a part, and its name; None if that is open."""
    entry = next(tag for tag in TAGS if tag in part["properties"])
    return entry, part["properties"][entry].get("const")
