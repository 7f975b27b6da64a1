"""The base of a scenario's components: types and checks of options, and files."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from .errors import TAGS, ScenarioError, UserError
from .own_code import Content


@dataclass(frozen=True)
class NamedPart:
    """A part that is one row of a table: the description of a metric or a figure.

    Attributes:
        name: Word by which it is named; no other record of the kind has it.
        meaning: Description in a few words, for lists and tables.
    """

    name: str
    meaning: str = field(default="", kw_only=True)


def function_at(text: str, where: str) -> Callable[..., Any]:
    """Imports and returns a function.

    Args:
        text: `"module:function"`.
        where: Entry that holds the text, for messages.

    Raises:
        UserError: The entry of a plug-in names no function.
    """
    try:
        module, name = text.split(":")
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        if text.startswith("stalesim."):  # ours, which is a defect
            raise
        raise UserError(
            f'{where} must be "module:function" with a function that exists, got '
            f"{text!r}: {error}; change it"
        ) from error
    if not callable(found):
        raise UserError(
            f"{where} must name a function, got {text!r}, which is "
            f"{type(found).__name__}; change it"
        )
    return found


class Rule(NamedTuple):
    """Rule of a value and an example of it, for messages; put into `Annotated`."""

    rule: str
    example: str


class Reads(Enum):
    """Marks an entry whose value names an input of a run; put into `Annotated`."""

    FILE = "file"
    RECORDING = "recording"
    """The folder of a recorded timeline."""
    FUNCTION = "function"
    """A function of a user's module; see `parts/functions.py`."""


FilePath = Annotated[str, Field(json_schema_extra={"format": "file-path"}), Reads.FILE]
"""A file that a run reads: in the working folder, or in the data folder. Its content is
a part of the run's identity."""
RecordingPath = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"format": "directory-path"}),
    Reads.RECORDING,
]
"""A folder that `stalesim timeline` wrote, and whose content counts in the same way."""


MOST_CLIENTS = 1_000_000
"""Most clients or parties of a world: each has its durations, jobs and rows."""
NumClients = Annotated[int, Field(ge=1, le=MOST_CLIENTS)]


class LocatedError(ScenarioError):
    """A mistake in a known entry of a scenario.

    Args:
        message: One line that begins with the dotted key of the entry.
        keys: Keys of the entry, from the validated part of the scenario; by default
            those that the message begins with.
    """

    def __init__(self, message: str, keys: tuple[str | int, ...] | None = None) -> None:
        super().__init__(message)
        written = message.partition(" ")[0].split(".")
        found = tuple(int(key) if key.isdecimal() else key for key in written)
        self.keys = found if keys is None else keys


def refuse_booleans(key: str, value: object) -> None:
    """Refuses true and false, alone or in a list, where numbers are expected.

    Raises:
        LocatedError: there is one, at the key.
    """
    items = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(item, bool) for item in items):
        got = str(value).lower()
        raise LocatedError(
            f"{key} must be a number, got {got}; write 1 or 0 if that is meant", (key,)
        )


class Config(BaseModel):
    """A component of a scenario: immutable, and refusing unknown keys.

    Its schema is made when it is first used, not with the class: by then all parts of
    plug-ins are known.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _no_booleans(cls, data: object) -> object:
        """Refuses true and false where a number must stand; Python has them as 1, 0."""
        numeric = _numeric(cls)
        for key, value in data.items() if isinstance(data, dict) else ():
            if key in numeric:
                refuse_booleans(key, value)
        return data

    def named_parts(self) -> tuple[NamedPart, ...]:
        """Returns the records that the entries name, such as metrics."""
        return ()

    def replaced(self, **changes: object) -> Self:
        """Returns a validated copy with some fields replaced."""
        return type(self).model_validate({**self.model_dump(), **changes})


OPEN = "scipy"
"""Tag of the law for every name that no other part has."""


class Part(Config):
    """A part that a scenario chooses by its name.

    `make` imports late what would slow the reading of a scenario, such as JAX.
    """

    computed: ClassVar[bool] = False
    """Whether its product comes from a user's function: then `made` names its
    source."""
    if TYPE_CHECKING:
        kind: Any = ""  # each part has a literal of its own, no subtype of `str` here

    def make(self, *facts: Any, **named: Any) -> Any:
        """Returns the part's product for some facts of a run."""
        raise NotImplementedError

    def located_files(self) -> Iterable[str | Path] | None:
        """Returns the files that the part finds by itself; None if it needs none.

        A file named by its options is not one of these.
        """
        return None

    def made(self) -> Content | None:
        """Returns the product of a user's function, and words for it as its place.

        None where there is no such function.
        """
        return None


def tag(part: type[Config] | NamedPart) -> str:
    """Returns the name by which a scenario chooses a part."""
    if isinstance(part, NamedPart):
        return part.name
    if named := getattr(part, "named", ""):
        return named
    name = next((name for name in TAGS if name in part.model_fields), None)
    field = part.model_fields[name] if name else None
    return OPEN if field is None or field.is_required() else str(field.default)


def described(part: type[Config] | NamedPart) -> str:
    """Returns the description of a part, in a line."""
    if isinstance(part, NamedPart):
        return part.meaning
    return (part.__doc__ or "").strip().partition("\n")[0]


NOT_OURS = ("abc", "builtins", "pydantic", "typing")
"""Packages of bases whose attributes are no options."""


def meanings(part: type | None) -> dict[str, str]:
    """Returns the texts below the attributes of a class, those of its bases too."""
    found: dict[str, str] = {}
    for one in reversed(part.__mro__ if part else ()):
        if one.__module__.partition(".")[0] not in NOT_OURS:
            found |= _own_meanings(one)
    return found


@cache  # to find a class in its file takes long
def _own_meanings(part: type) -> dict[str, str]:
    found: dict[str, str] = {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for pair in pairwise(body):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[key] = inspect.cleandoc(text)
    return found


NESTED = (Config, dict, list, tuple)
"""Types that may contain other configurations."""


CALLED = re.compile(r"(?:^|_)(?:path|file|filename|folder|replay)s?$")
"""Pattern of the names of entries that hold the path of a file or a folder."""


Named = tuple[tuple[str, ...], str, Reads]
"""Keys of an entry that names a file or a folder, its path as written, its kind."""


def named_files(config: object, *keys: str) -> Iterator[Named]:
    """Yields the files that a configuration names, in the order of its entries.

    Entries are found by their type (`FilePath` and the like), at any depth: in a law
    within a law, in a part of a plug-in.
    """
    for inner, value, what in _entries(config):
        where = (*keys, inner)
        if what is not None:
            # Words of our own, such as names of losses, are no functions of the user's.
            yield from (
                (at, path, what)
                for at, path in _texts(value, where)
                if what is not Reads.FUNCTION or ":" in path
            )
        elif isinstance(value, NESTED):
            yield from named_files(value, *where)


def parts_within(config: object) -> Iterator[Config]:
    """Yields a configuration and all those within it."""
    if isinstance(config, Config):
        yield config
    for _, value, _ in _entries(config):
        if isinstance(value, NESTED):
            yield from parts_within(value)


@cache
def marks(config: type[Config]) -> tuple[tuple[str, Reads | None], ...]:
    """Returns the entries of a class, and the files that each names, if any."""
    return tuple(
        (name, _mark((*field.metadata, field.annotation)))
        for name, field in config.model_fields.items()
    )


def unmarked(config: type[Config]) -> str | None:
    """Returns an entry of a class that is called like a file and not marked as one.

    Such a file would not be part of a run's identity.
    """
    return next(
        (
            name
            for name, what in marks(config)
            if what is None
            and CALLED.search(name)
            and str in _types(config.model_fields[name].annotation)
        ),
        None,
    )


def _entries(config: object) -> Iterator[tuple[str, object, Reads | None]]:
    if isinstance(config, Config):
        for name, what in marks(type(config)):
            yield name, getattr(config, name), what
    elif isinstance(config, dict):
        yield from ((str(key), value, None) for key, value in config.items())
    elif isinstance(config, list | tuple):
        yield from ((str(i), value, None) for i, value in enumerate(config))


def _texts(
    value: object, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield keys, value
        return
    for inner, part, _ in _entries(value):
        yield from _texts(part, (*keys, inner))


@cache
def _numeric(kind: type[Config]) -> frozenset[str]:
    """Returns the fields that may hold a number, but neither true nor false."""
    types = {key: _types(field.annotation) for key, field in kind.model_fields.items()}
    return frozenset(
        key
        for key, accepted in types.items()
        if accepted & {int, float} and not accepted & {bool, Any}
    )


def _types(annotation: object) -> set[object]:
    inner = get_args(annotation)
    return {annotation}.union(*map(_types, inner))


def _mark(annotation: object) -> Reads | None:
    if isinstance(annotation, Reads):
        return annotation
    inner = annotation if isinstance(annotation, tuple) else get_args(annotation)
    return next((mark for mark in map(_mark, inner) if mark is not None), None)
