"""Shows one component by its name: its options, their defaults and meanings."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from rich.table import Table

from ..parts.base import Config, meanings
from ..parts.errors import TAGS, documented, shown
from .console import out


def optimizers() -> dict[str, type[Config]]:
    """Returns the server's optimisers by their names; optax's have no class each."""
    from ..engine.optimizers import part

    directions = dict.fromkeys(part.DIRECTIONS, part.Direction)
    return {**directions, part.DELAYED: part.DelayedNesterov}


def show_options(part: type[Config]) -> None:
    """Prints all that a class says of itself, and its options in pages' words."""
    about = re.sub(r"\s*\n\s*", " ", (part.__doc__ or "").replace("\n\n", "\0"))
    out.print()
    for paragraph in about.split("\0"):
        out.print(paragraph.strip())
    from ..scenario.synonyms import with_words

    table = Table("option", "default", "what it is", box=None)
    said, first = meanings(part), documented(part.model_fields)
    for key, field in part.model_fields.items():
        if key not in TAGS:
            name, meaning = field.alias or key, said.get(key, "")
            needed = field.is_required()
            default = (
                "required"
                if needed
                else _default(field.get_default(call_default_factory=True))
            )
            default = with_words(key, default, "'")
            meaning = with_words(key, " ".join(meaning.split()))
            table.add_row(first.get(name, name), default, meaning)
    if table.rows:
        out.print("", table, sep="\n")


def _default(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    return "none" if value is None else shown(value)


def law_of_scipy(name: str) -> list[str]:
    """Returns lines on a law of SciPy by its name; none where it has no such law."""
    import scipy.stats

    law = getattr(scipy.stats, name, None)
    discrete = isinstance(law, scipy.stats.rv_discrete)
    if not (discrete or isinstance(law, scipy.stats.rv_continuous)):
        return []
    shapes = (law.shapes or "").replace(",", "").split()
    usual = ["loc = 0"] + ([] if discrete else ["scale = 1 (or mean, if it has one)"])
    own = "".join(f", {shape}: ..." for shape in shapes)
    pages = "https://docs.scipy.org/doc/scipy/reference/generated"
    return [
        f"{{law: {name}{own}}} is a law of scipy.stats",
        f"parameters: {', '.join([*shapes, *usual])}",
        f"see {pages}/scipy.stats.{name}.html",
    ]


def scenario(name: str) -> Iterator[str]:
    """Yields lines on a shipped scenario: its question, and how it is copied."""
    from ..scenario.shipped import file_of

    text = file_of(name).read_text(encoding="utf-8")
    question = re.search(r'^question: *"?(.*?)"?$', text, re.MULTILINE)
    yield f"{name} is a scenario" + (f": {question[1]}" if question else "")
    yield f"run it: stalesim run {name}"
    yield f"copy it: stalesim new study mine --from {name}"
