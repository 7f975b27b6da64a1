"""Facts of components, from a run's entry of a manifest.

A protocol's and an algorithm's `described` write it when the run is planned. Entries of
an earlier version have none, and nothing replaces it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, TypeVar

from ..simulator.parts.errors import printed

BUNDLED = "mnist5k"
"""Beginning of the name of data that are a part of MNIST."""

Entry = Mapping[str, Any]
"""JSON of a manifest, or a part of it: a run, a scenario, a law."""
Value = TypeVar("Value")


class Facts(TypedDict, total=False):
    """Facts of a run, by the words that `described` has for them."""

    averages: bool
    closed_forms: dict[str, dict[str, int | bool]]
    entities: str
    in_rounds: bool
    is_reference: bool
    pooled: bool
    queues: list[str]
    queues_jobs: bool
    refreshes_all: bool
    resources: dict[str, str]
    scheduling: str
    stages: dict[str, str]
    stops_jobs: bool
    symbols: str


def of(entry: Entry) -> Facts:
    """Returns the facts of a run; those that were not recorded are missing."""
    return entry.get("facts") or {}


def worded(manifest: Entry, text: str) -> str:
    """Returns a text that says worker updates where no run has a server."""
    if not all(of(run).get("averages") for run in manifest["runs"]):
        return text
    text = text.replace("Server update", "Worker update")
    return text.replace("server update", "worker update")


def within_sentence(label: str) -> str:
    """Returns the label of an axis as words within a sentence, without its unit."""
    words = label.split(" (")[0]
    return f"{words[0].lower()}{words[1:]}"


def at_key(run: Entry, key: str) -> Any:
    """Returns the value of a run's scenario at a dotted key; None for nothing."""
    tree: Any = run.get("scenario")
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def short(value: Value) -> Value | str:
    """Returns a swept value for a column: a number or word as it is, others printed."""
    return printed(value) if isinstance(value, Mapping | list | tuple) else value


def words_on_data(named: Iterable[tuple[str | None, str | None]]) -> list[str]:
    """Returns a line on each data set: its scale, and whether it is a part of MNIST."""
    lines = []
    for name, scaling in dict.fromkeys(named):
        known = [f"scale {scaling}"] if scaling else []
        if name and name.startswith(BUNDLED):
            known.append("5,000 of MNIST's images (all: stalesim data get mnist)")
        if name and known:
            lines.append("; ".join([f"data: {name}", *known]))
    return lines
