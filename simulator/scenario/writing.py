"""A scenario written back as YAML."""

from collections.abc import Mapping
from typing import Any

from . import dialect
from .setting import Varied


def to_yaml(scenario: Varied) -> str:
    """Returns a scenario with all its defaults as YAML that `read` reads back."""
    tree = scenario.model_dump(mode="json")
    kept = {key: tree.pop(key) for key in ("variants", "sweep")}
    return dialect.dump(without_nothing(tree) | kept)


def without_nothing(tree: Any) -> Any:
    """Returns nested mappings and lists without the keys that have no value."""
    if isinstance(tree, Mapping):
        return {k: without_nothing(v) for k, v in tree.items() if v is not None}
    return [without_nothing(v) for v in tree] if isinstance(tree, list) else tree
