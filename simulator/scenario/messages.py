"""Turns what pydantic finds wrong with a scenario into one line for its author."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from simulator.scenario.scenario import Scenario

Path = tuple[str | int, ...]


def first_error(error: ValidationError, tree: Mapping[str, Any]) -> tuple[Path, str]:
    """Returns where the first mistake is and what to do about it, in one line.

    Args:
        error: what pydantic found.
        tree: the scenario as it was written.
    """
    details = error.errors(include_url=False)
    # A key that is missing is most often one that is misspelt: say that first.
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    located = [(_path(detail["loc"], tree), detail) for detail in details]
    path, detail = located[0]
    same = [other for where, other in located if where == path]
    key = ".".join(map(str, path))
    if len(same) > 1 and all(d["type"] != "extra_forbidden" for d in same):
        message = _of_union(key, detail["input"], same)
    else:
        message = _message(key, path, detail, tree)
    if detail["type"].startswith("union_tag"):
        path = (*path, "kind")
    others = len({where for where, _ in located}) - 1
    return path, message + (f" (and {others} more)" if others else "")


def suggestion(word: object, known: Iterable[str]) -> str:
    """Returns "did you mean ...?" with the nearest known word, or lists all."""
    known = sorted(known)
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(known)}"


def _path(loc: Path, tree: Any) -> Path:
    """Leaves out of a location what is not in the tree: the tags of unions."""
    path: list[str | int] = []
    for position, item in enumerate(loc):
        if isinstance(tree, Mapping) and item in tree:
            tree = tree[item]
        elif isinstance(tree, list | tuple) and isinstance(item, int):
            tree = tree[item] if item < len(tree) else None
        elif (
            position < len(loc) - 1
            or not isinstance(tree, Mapping)
            or item in _tags(tree)
        ):
            continue
        else:
            tree = None
        path.append(item)
    return tuple(path)


def _tags(tree: Mapping[str, Any]) -> set[Any]:
    return {tree.get("kind"), tree.get("law"), "scipy", "constant"}


def _of_union(key: str, value: object, details: list[Any]) -> str:
    values = [d for d in details if d["type"] == "value_error"]
    if values and isinstance(value, str):
        return f"{key}: {_said(values[-1])}"
    options = dict.fromkeys(_said(d) for d in details)
    return f"{key} must be one of: {'; '.join(options)}; got {value!r}"


def _message(key: str, path: Path, detail: Any, tree: Mapping[str, Any]) -> str:
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1], tree)
        return f"{key} is not a known key; {suggestion(path[-1], known)}"
    if kind == "missing":
        return f"{key} is missing; add it"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        expected = [
            tag.strip("'") for tag in str(context.get("expected_tags", "")).split(", ")
        ]
        if kind == "union_tag_not_found":
            known = [e.strip("'") for e in _kinds(path, tree)]
            return f"{key}.kind is missing; {suggestion('', known)}"
        got = context.get("tag")
        return (
            f"{key}.kind must be a known one, got {got!r}; {suggestion(got, expected)}"
        )
    if kind == "value_error":
        said = _said(detail)
        return f"{key}: {said}" if key else said
    if kind == "literal_error" and isinstance(value, str):
        expected = str(context["expected"]).replace(" or ", ", ").split(", ")
        known = [word.strip("'") for word in expected]
        return f"{key} must be a known word, got {value!r}; {suggestion(value, known)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{key} must be a mapping of keys to values, got {value!r}"
    return f"{key} {_said(detail)}, got {value!r}"


def _said(detail: Any) -> str:
    said = str(detail["msg"]).removeprefix("Value error, ")
    return said.replace("Input should be", "must be").replace("\n", " ")


def _kinds(path: Path, tree: Mapping[str, Any]) -> list[str]:
    models = _models_at(path, tree)
    return [
        str(m.model_fields["kind"].default) for m in models if "kind" in m.model_fields
    ]


def _known_keys(path: Path, tree: Mapping[str, Any]) -> set[str]:
    """Returns the keys that the mapping at a path may have."""
    known: set[str] = set()
    for model in _models_at(path, tree):
        known |= set(model.model_fields)
    return known


def _models_at(path: Path, tree: Any) -> list[type[BaseModel]]:
    """Returns the configurations that may stand at a path of a scenario."""
    models: list[type[BaseModel]] = [Scenario]
    for key in path:
        if isinstance(key, int):
            tree = tree[key]
            continue
        annotations = [
            (m.model_fields[key].annotation, m.model_fields[key].metadata)
            for m in models
            if key in m.model_fields
        ]
        found = [model for a in annotations for model in _models_in(a)]
        tree = tree.get(key) if isinstance(tree, Mapping) else None
        chosen = [model for model in found if _is_chosen(model, tree)]
        models = chosen or found
    return models


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = annotation if isinstance(annotation, tuple | list) else get_args(annotation)
    return [model for part in parts for model in _models_in(part)]


def _is_chosen(model: type[BaseModel], tree: Any) -> bool:
    if not isinstance(tree, Mapping):
        return False
    tag = "kind" if "kind" in model.model_fields else "law"
    return (
        tag in model.model_fields and tree.get(tag) == model.model_fields[tag].default
    )
