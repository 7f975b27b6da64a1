"""Finds the files of a configuration: the entries that name one, and their parts."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args

from .base import Config, Reads

NESTED = (Config, dict, list, tuple)
"""Types that other configurations may stand in."""


CALLED = re.compile(r"(?:^|_)(?:path|file|filename|folder|replay)s?$")
"""Pattern of the names of entries that hold the path of a file or a folder."""


class Named(NamedTuple):
    """A file or a folder that an entry of a configuration names.

    Attributes:
        keys: Keys of the entry, from the configuration on.
        path: Path as it is written.
        what: Kind of file or folder.
    """

    keys: tuple[str, ...]
    path: str
    what: Reads


def named(config: Any, *keys: str) -> Iterator[Named]:
    """Yields the files that a configuration names, in the order of its entries.

    Entries are found by their type (`FilePath` and the like), wherever they stand:
    in a law within a law, in a part of a plug-in.

    Args:
        config: A part of a scenario, or lists or mappings of parts.
        keys: Keys that lead to it.
    """
    for inner, value, what in _entries(config):
        where = (*keys, inner)
        if what is not None:
            # Words of our own, such as names of losses, are no functions of the user's.
            yield from (
                Named(at, path, what)
                for at, path in _texts(value, where)
                if what is not Reads.FUNCTION or ":" in path
            )
        elif isinstance(value, NESTED):
            yield from named(value, *where)


def parts(config: Any) -> Iterator[Config]:
    """Yields a configuration and all those within it."""
    if isinstance(config, Config):
        yield config
    for _, value, _ in _entries(config):
        if isinstance(value, NESTED):
            yield from parts(value)


@cache
def marks(config: type[Config]) -> tuple[tuple[str, Reads | None], ...]:
    """Returns the entries of a class, and what each names of files, if anything."""
    return tuple(
        (name, _mark((*field.metadata, field.annotation)))
        for name, field in config.model_fields.items()
    )


def unmarked(config: type[Config]) -> str | None:
    """Returns an entry of a class that is called like a file and not marked as one.

    Such a file would be no part of what a run is identified by.
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


def _entries(config: Any) -> Iterator[tuple[str, Any, Reads | None]]:
    if isinstance(config, Config):
        for name, what in marks(type(config)):
            yield name, getattr(config, name), what
    elif isinstance(config, dict):
        yield from ((str(key), value, None) for key, value in config.items())
    elif isinstance(config, list | tuple):
        yield from ((str(i), value, None) for i, value in enumerate(config))


def _texts(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the texts of a value, or of what it is made of."""
    if isinstance(value, str):
        yield keys, value
        return
    for inner, part, _ in _entries(value):
        yield from _texts(part, (*keys, inner))


def _types(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    return {annotation}.union(*map(_types, inner))


def _mark(annotation: Any) -> Reads | None:
    if isinstance(annotation, Reads):
        return annotation
    inner = annotation if isinstance(annotation, tuple) else get_args(annotation)
    return next((mark for mark in map(_mark, inner) if mark is not None), None)
