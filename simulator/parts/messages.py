"""Turns the mistakes of a scenario into lines that help its author, one each."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .attached import listed
from .base import LocatedError, Rule
from .catalogue import AnyName, AnyPart
from .errors import (
    KEYS,
    TAGS,
    UserError,
    advice,
    documented,
    elsewhere,
    nearest,
    one_line,
    shown,
    suggestion,
)
from .plugins import IMPORTED

Path = tuple[str | int, ...]

MISMATCHES = (
    "bool_type",
    "dict_type",
    "float_parsing",
    "float_type",
    "int_parsing",
    "int_type",
    "list_type",
    "model_attributes_type",
    "model_type",
    "string_type",
    "tuple_type",
)
"""Pydantic's errors that report only that a value is of another kind."""

RULES = {
    "bool_parsing": ("true or false", "write true or false"),
    "bool_type": ("true or false", "write true or false"),
    "finite_number": ("a finite number", "write a number, or leave the key out"),
    "float_parsing": ("a number", "write a number such as 0.1"),
    "float_type": ("a number", "write a number such as 0.1"),
    "greater_than": ("> {gt:g}", "write a larger number"),
    "greater_than_equal": (">= {ge:g}", "write {ge:g} or more"),
    "int_from_float": ("a whole number", "write a number without decimals"),
    "int_parsing": ("a whole number", "write a whole number such as 1"),
    "int_type": ("a whole number", "write a whole number such as 1"),
    "less_than": ("< {lt:g}", "write a smaller number"),
    "less_than_equal": ("<= {le:g}", "write {le:g} or less"),
    "string_type": ("text", "put it in quotes"),
    "too_long": ("at most {max_length} long", "remove entries"),
    "too_short": ("at least {min_length} long", "add an entry"),
    "tuple_type": ("a list", "write it as [first, second]"),
}
"""Pydantic's errors: the rule of the value, and the remedy."""


NUMBERS = ("float_parsing", "float_type", "int_parsing", "int_type")
SERVERS = ("algorithm", "optimizer")
"""Keys of the server's optimiser."""
FEDERATED = {"chain", "local_optimizer"}
"""Keys of algorithms with a server, one of which each of them has."""
Mistake = tuple[Path, str]
"""Keys of an entry that is wrong or missing, and a line that starts with them."""


Groups = Mapping[Path, list[ErrorDetails]]
"""Pydantic's errors by the keys of the entry that they are about."""


def mistakes(
    error: ValidationError,
    tree: Mapping[str, object],
    root: type[BaseModel],
    rank: Callable[[Path], tuple[int, int]] = lambda path: (0, 0),
) -> list[Mistake]:
    """Returns all mistakes in the order of the file, without what only follows."""
    found: dict[Path, list[ErrorDetails]] = {}
    details = error.errors(include_url=False)
    for detail in details:
        path, is_stranger = _path(detail, tree), detail["type"] == "extra_forbidden"
        if is_stranger and path[-1:] != detail["loc"][-1:] and len(details) > 1:
            continue  # a validator has added it for an entry that is refused itself
        found.setdefault(path, []).append(detail)
    groups = {path: d for path, d in found.items() if not _explained(path, found)}

    def order(path: Path) -> tuple[bool, tuple[int, int], bool]:
        # What is missing at the top has no line; it is reported last.
        # Elsewhere an unknown key next to it comes first: it may be what is missing.
        missing = groups[path][0]["type"] == "missing"
        strangers = _strangers(path, groups) if missing else []
        place = max(map(rank, strangers)) if strangers else rank(path)
        return missing and len(path) == 1, place, missing

    entries = _Entries(tree, root)
    return [
        (path, one_line(_message(path, groups, entries)))
        for path in sorted(groups, key=order)
    ]


def first_error(
    error: ValidationError, tree: Mapping[str, object], root: type[BaseModel]
) -> Mistake:
    """Returns the first of `mistakes`, and how many more there are."""
    (keys, message), *more = mistakes(error, tree, root)
    return keys, message + (f" (and {len(more)} more)" if more else "")


def fields_at(
    path: Path,
    tree: Mapping[str, object],
    root: type[BaseModel],
    *,
    of_any_kind: bool = False,
) -> frozenset[str]:
    """Returns the keys that the mapping at a path may have, by its kind or by any."""
    return frozenset(_fields(_Entries(tree, root).models(path)[of_any_kind]))


def words_at(
    path: Path, tree: Mapping[str, object], root: type[BaseModel]
) -> list[str | int]:
    """Returns the words that the entry at a path may have, if it is a word."""
    return _Entries(tree, root).words(path)


def _path(detail: ErrorDetails, tree: object) -> Path:
    """Returns the keys of an entry: pydantic's location without the tags of unions."""
    path: list[str | int] = []
    loc = detail["loc"]
    for position, item in enumerate(loc):
        if isinstance(tree, Mapping) and item in tree:
            tree = tree[item]
        elif isinstance(tree, list | tuple) and isinstance(item, int):
            tree = tree[item] if item < len(tree) else None
        elif position == len(loc) - 1 and detail["type"] == "missing":
            tree = None
        else:
            continue
        path.append(item)
    if detail["type"].startswith("union_tag"):
        path.append("kind")
    cause = detail.get("ctx", {}).get("error")
    return (*path, *cause.keys) if isinstance(cause, LocatedError) else tuple(path)


def _explained(path: Path, groups: Groups) -> bool:
    """Says whether an error only follows from another one.

    A key is missing because it is misspelt, or a value is not of the one kind because
    it is meant to be of the other, in which there is a mistake further down.
    """
    details = groups[path]
    if details[0]["type"] == "missing":
        names = [str(other[-1]) for other in _strangers(path, groups)]
        words = [path[-1], *(w for w, (ours, *_) in KEYS.items() if ours == path[-1])]
        meant = any(nearest(name, map(str, words)) is not None for name in names)
        return meant or nearest(path[-1], names) is not None
    deeper = any(len(o) > len(path) and o[: len(path)] == path for o in groups)
    follows = (*MISMATCHES, "too_short")  # wrong items are counted as missing ones
    return deeper and all(detail["type"] in follows for detail in details)


def _strangers(path: Path, groups: Groups) -> list[Path]:
    return [
        other
        for other, found in groups.items()
        if found[0]["type"] == "extra_forbidden" and other[:-1] == path[:-1]
    ]


Models = list[type[BaseModel]]


class _Entries:
    """What the classes of a scenario say of the entries of one that was written."""

    def __init__(self, tree: object, root: type[BaseModel]) -> None:
        self.tree, self.root = tree, root

    def models(self, path: Path) -> tuple[Models, Models]:
        """Returns the classes that the mapping at a path is of, and might be of."""
        chosen, possible, keyed = [self.root], [self.root], False
        tree = self.tree
        for key in path:
            if isinstance(tree, list | tuple) and str(key).isdecimal():
                key = int(key)  # of a dotted key
            if isinstance(tree, Mapping):
                tree = tree.get(key)
            elif isinstance(tree, list | tuple) and isinstance(key, int):
                tree = tree[key] if key < len(tree) else None
            if not isinstance(key, int):  # entries of a list are of its parts
                if keyed:  # any name may stand here, such as a group's
                    keyed = False
                    continue
                fields = [m.model_fields[key] for m in chosen if key in m.model_fields]
                keyed = any(get_origin(field.annotation) is dict for field in fields)
                parts = [p for f in fields for p in _parts((f.annotation, f.metadata))]
                classes = [part for part in parts if isinstance(part, type)]
                possible = [part for part in classes if issubclass(part, BaseModel)]
            chosen = _named(possible, tree if isinstance(tree, Mapping) else {})
        return chosen, possible

    def kinds(self, path: Path) -> list[str]:
        """Returns the kinds that the mapping at a path may have."""
        return [_name(m) for m in self.models(path)[1] if _tag(m) == "kind"]

    def rule(self, path: Path) -> Rule | None:
        """Returns the rule of the entry at a path, if one was written for it."""
        if path and isinstance(path[-1], int):
            return None
        rules = (p for p in _parts(self._annotations(path)) if isinstance(p, Rule))
        return next(rules, None)

    def words(self, path: Path) -> list[str | int]:
        """Returns the words that an entry may have, each once, if it is a word."""
        parts = _parts(self._annotations(path))
        words = (each for each in parts if isinstance(each, str | int))
        return list(dict.fromkeys(w for w in words if not isinstance(w, bool)))

    def may_be_own(self, path: Path) -> bool:
        """Says whether users may add kinds or names of their own to an entry."""
        return _is_extensible(self._annotations(path))

    def _annotations(self, path: Path) -> list[tuple[object, object]]:
        while path and isinstance(path[-1], int):
            path = path[:-1]
        if not path:
            return []
        every = (model.model_fields for model in self.models(path[:-1])[0])
        fields = (each.get(str(path[-1])) or each.get("parameters") for each in every)
        return [(field.annotation, field.metadata) for field in fields if field]


def _named(possible: Models, tags: Mapping[object, object]) -> Models:
    """Returns those of some classes that a mapping names; all if it names none."""
    named = [m for m in possible if _tag(m) and tags.get(_tag(m)) == _name(m)]
    if not named and "chain" in tags:  # which needs no kind
        named = [m for m in possible if "chain" in m.model_fields]
    if not named:  # of a claim, whose name is a key
        own = {key for key, value in tags.items() if value is not None}
        named = [m for m in possible if getattr(m, "named", None) in own]
    if not named and "law" in tags:
        laws = [m for m in possible if _tag(m) == "law"]
        named = [m for m in laws if m.model_fields["law"].is_required()]
    return named or possible


def _message(path: Path, groups: Groups, entries: _Entries) -> str:
    key, details = ".".join(map(str, path)), groups[path]
    telling, says = _telling(details), entries.rule(path)
    detail, kind = telling or details[0], telling["type"] if telling else ""
    if kind == "value_error":
        return _of_validator(path, detail)
    if kind == "extra_forbidden":
        return _stranger(path, groups, entries)
    if kind == "missing":
        first = documented(_fields(entries.models(path[:-1])[0]))
        keys = [*path[:-1], first.get(str(path[-1]), path[-1])]
        return f"{'.'.join(map(str, keys))} is missing; add it{_hint(path, entries)}"
    if kind == "union_tag_not_found":
        return f"{key} is missing; {suggestion('', entries.kinds(path[:-1]))}"
    value = detail["input"]
    if kind == "union_tag_invalid":
        value = detail.get("ctx", {})["tag"]
        rule, remedy = "a known one", _remedy_of_tag(path[:-1], value, entries)
    elif kind == "literal_error":
        rule, remedy = _rule_of_word(path, value, entries)
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        rule, remedy = "a mapping of keys to values", _mapping(path, value, entries)
    elif says and kind not in ("greater_than_equal", "greater_than", "less_than"):
        rule, remedy = says.rule, f"write for example {says.example}"
    elif telling is None:
        rule, remedy = _any_rule(details), "change it"
    else:
        rule, remedy = _rule(detail)
    return f"{key} must be {rule}, got {shown(value)}; {remedy}"


def _telling(details: list[ErrorDetails]) -> ErrorDetails | None:
    """Returns the one error that says what is wrong with a value of several kinds.

    None where no single one does.
    """
    if len(details) == 1:
        return details[0]
    for detail in details:
        if detail["type"] == "value_error" and isinstance(detail["input"], str):
            return detail
    others = [d for d in details if d["type"] not in (*MISMATCHES, "literal_error")]
    return others[0] if len(others) == 1 else None


WITH_UNIT = re.compile(r"\d[\d.]* ?[A-Za-z]+")


def _rule(detail: ErrorDetails) -> tuple[str, str]:
    if detail["type"] in NUMBERS and WITH_UNIT.fullmatch(str(detail["input"])):
        return "a number", "leave out its unit; times are seconds"
    if detail["type"] in RULES:
        rule, remedy = RULES[detail["type"]]
        context = detail.get("ctx", {})
        return rule.format(**context), remedy.format(**context)
    said = str(detail["msg"]).removeprefix("Input should be ")
    return said[:1].lower() + said[1:], "change it"


def _any_rule(details: Iterable[ErrorDetails]) -> str:
    """Returns the rules of a value of several kinds, one of which it must obey."""
    rules = dict.fromkeys(_rule(detail)[0] for detail in details)
    if "a number" in rules:
        rules.pop("a whole number", None)
    return " or ".join(rules)


def _remedy_of_tag(path: Path, given: str, entries: _Entries) -> str:
    known = entries.kinds(path)
    own = nearest(given, known) is None and entries.may_be_own(path)
    return suggestion(given, known) + (f", and yours after {IMPORTED}" if own else "")


def _rule_of_word(path: Path, given: object, entries: _Entries) -> tuple[str, str]:
    words = [str(word) for word in entries.words(path)]
    rule, near = f"one of {', '.join(words)}", nearest(given, words)
    if near is not None:
        return rule, f"did you mean {near!r}?"
    own = f", or yours after {IMPORTED}" if entries.may_be_own(path) else ""
    return rule, f"take one of them{own}"


def _of_validator(path: Path, detail: ErrorDetails) -> str:
    cause = detail.get("ctx", {})["error"]
    if isinstance(cause, LocatedError):
        above = path[: len(path) - len(cause.keys)]
        return ".".join([*map(str, above), str(cause)])
    key, said = ".".join(map(str, path)), str(cause)
    joint = " " if said.startswith("must ") else ": "
    if path and path[-1] == "bandwidth":
        said += "; it is bytes per second: 1 Mbit/s is 125_000"
    return f"{key}{joint}{said}" if key else said


def _stranger(path: Path, groups: Groups, entries: _Entries) -> str:
    key, name = ".".join(map(str, path)), str(path[-1])
    chosen, possible = entries.models(path[:-1])
    known = _fields(chosen)
    if path == SERVERS and FEDERATED & known:
        return f"{key} is not a known key; {_of_server(path, known, entries)}"
    stage = {"compression": "compress", "compressor": "compress"}.get(name, name)
    is_stage = ("stages", stage) in {(row.kind, row.name) for row in listed()}
    is_named = "chain" not in known and bool(FEDERATED & known)
    if path[:-1] == ("algorithm",) and is_stage and is_named:
        return (
            f"{key} is not a known key; write algorithm.chain, as stalesim list "
            f"{_name(chosen[0])} prints it, with the stage {{kind: {stage}}}"
        )
    owners = [_name(m) for m in possible if name in m.model_fields and m not in chosen]
    if owners and len(chosen) == 1 and nearest(name, known) is None:
        tag = _tag(chosen[0])
        owners = [one for one in owners if _mends(path, tag, one, groups, entries)]
        choice = f", or choose {tag} {' or '.join(owners)}, which has it"
        return (
            f"{key} is not a key of {tag} {_name(chosen[0])!r}; remove it"
            f"{choice if owners else ''}"
        )
    place = elsewhere(name, known, at_top=len(path) == 1)
    if place == ".".join(SERVERS) and FEDERATED & _fields(entries.models(path[:1])[0]):
        hint = _of_server(path, known, entries)
    elif not place and nearest(name, known) == "number" and _divides(entries.tree):
        hint = "write problem.partition.clients"
    elif name == "inherit":
        hint = "only a part of a variant inherits; repeat the options that it needs"
    else:
        hint = advice(name, known, at_top=len(path) == 1)
    return f"{key} is not a known key; {hint}"


def _of_server(path: Path, known: set[str], entries: _Entries) -> str:
    """Returns how the server's momentum or optimiser is written."""
    if "decay" in known:
        return "write decay"
    stage = "{kind: optimise, optimizer: {kind: momentum, decay: 0.9}}"
    if "chain" in _fields(entries.models(path[:1])[0]):
        return f"put {stage} into the chain, before its last stage"
    if "optimizer" in _fields(entries.models(path[:1])[0]):
        return "write algorithm.optimizer: {kind: momentum, decay: 0.9}"
    return f"this algorithm has no optimiser at the server: write a chain with {stage}"


def _divides(tree: object) -> bool:
    """Says whether the number of clients is the partition's."""
    for key in ("problem", "partition", "clients"):
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree is not None


def _mends(path: Path, tag: str, name: str, groups: Groups, entries: _Entries) -> bool:
    """Says whether another kind in its place leaves other mistakes alone."""
    changed = _replaced(entries.tree, (*path[:-1], tag), name)
    try:
        entries.root.model_validate(changed)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return {_path(detail, changed) for detail in details} <= {*groups} - {path}
    except UserError:
        return False
    return True


def _replaced(tree: object, path: Path, value: object) -> object:
    if not path:
        return value
    key, *rest = path
    if isinstance(tree, Mapping):
        return {**tree, key: _replaced(tree.get(key), tuple(rest), value)}
    items = list(tree) if isinstance(tree, list | tuple) else []
    return [
        _replaced(item, tuple(rest), value) if number == key else item
        for number, item in enumerate(items)
    ]


def _hint(path: Path, entries: _Entries) -> str:
    if says := entries.rule(path):
        return f": {says.rule}, for example {says.example}"
    if words := entries.words(path):
        return f": one of {', '.join(map(str, words))}"
    models = entries.models(path)[1]
    if any(_tag(model) == "law" for model in models):
        return ": a law, for example {law: expon, scale: 1}"
    if kinds := [_name(model) for model in models if _tag(model)]:
        return f": a mapping whose kind is one of {', '.join(kinds)}"
    fields = dict.fromkeys(
        field.alias or name
        for model in models
        for name, field in model.model_fields.items()
    )
    return f": a mapping with {', '.join(fields)}" if fields else ""


def _mapping(path: Path, value: object, entries: _Entries) -> str:
    """Returns how a mapping is written that stands in the place of a value."""
    key, models = path[-1] if path else "", entries.models(path)[1]
    tags = {_tag(model) for model in models}
    if "law" in tags and isinstance(value, int | float | list):
        return f"write {key}: {{law: constant, value: {value}}}"
    if "law" in tags and isinstance(value, str) and not value.isidentifier():
        return (
            f"write {key}: {{law: constant, value: 0.1}}, a number without its unit; "
            f"times are seconds"
        )
    for tag in ("law", "kind"):
        if tag in tags:
            example = value if isinstance(value, str) else _name(models[0])
            return f"write {key}: {{{tag}: {example}}}"
    if value is None:
        return f"write {key}: {{}}, or indent its keys below it"
    if key == "every" and isinstance(value, int | float):
        return f"write every: {{time: {value}}}, or commits, rounds or epochs"
    return f"write {key}: {{key: value}}"


def _fields(models: Iterable[type[BaseModel]]) -> set[str]:
    return {name for model in models for name in model.model_fields}


def _is_extensible(annotation: object) -> bool:
    """Says whether all parts or records of a kind stand somewhere in an annotation."""
    listed = isinstance(annotation, tuple | list)
    inner = annotation if listed else get_args(annotation)
    return isinstance(annotation, AnyPart | AnyName) or any(map(_is_extensible, inner))


def _tag(model: type[BaseModel]) -> str:
    return next((tag for tag in TAGS if tag in model.model_fields), "")


def _name(model: type[BaseModel]) -> str:
    return str(model.model_fields[_tag(model)].default) if _tag(model) else ""


def _parts(annotation: object) -> list[object]:
    if isinstance(annotation, Rule):
        return [annotation]
    if isinstance(annotation, AnyPart):
        return list(annotation.configs())
    if isinstance(annotation, AnyName):
        return list(annotation.names())
    listed = isinstance(annotation, tuple | list)
    inner = annotation if listed else get_args(annotation)
    return [found for p in inner for found in _parts(p)] if inner else [annotation]
