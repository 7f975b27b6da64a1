"""Refuses parts that others bring and that are not as they should be."""

import re
from typing import Any, Literal, get_args, get_origin

from simulator.scenario.algorithms import Algorithm
from simulator.scenario.base import Config
from simulator.scenario.entry import Entry
from simulator.scenario.errors import UserError
from simulator.scenario.named import unmarked
from simulator.scenario.problems import Data
from simulator.scenario.protocols import LIKE
from simulator.scenario.suggestions import shown

BASES: dict[str, type[Config]] = {"algorithms": Algorithm, "data": Data}
"""What the configuration classes of a kind must inherit from; else `Config`."""
MEMBERS = {
    "algorithms": ("family", "protocols", "messages"),
    "models": ("families", "num_weights", "work"),
    "partitions": ("family", "num_clients"),
}
"""What else the configuration classes of a kind must have."""
FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def checked(given: Any, kind: str, place: str, source: str) -> Entry:
    """Returns an entry as the catalogue has it.

    Args:
        given: a pair of a configuration class and `"module:factory"`.
        kind: of the part.
        place: where the entry stands, for messages.
        source: who brings it.

    Raises:
        UserError: it is no entry, or its class lacks something.
    """
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise UserError(
            f"{place} must be an entry, got {shown(given)}; write "
            f'Entry(MyConfig, "mymodule:factory")'
        )
    config, factory = given[:2]
    base = BASES.get(kind, Config)
    if not (isinstance(config, type) and issubclass(config, base)):
        raise UserError(
            f"{place} must have a subclass of {base.__module__}.{base.__name__}, got "
            f"{getattr(config, '__name__', shown(config))}; inherit from it"
        )
    if not (isinstance(factory, str) and FACTORY.fullmatch(factory)):
        raise UserError(
            f'{place} must name its factory as "module:factory", got '
            f"{shown(factory)}; write the module's name, a colon and the function's"
        )
    _check_name(config, kind, place)
    for member in MEMBERS.get(kind, ()):
        if not hasattr(config, member):
            raise UserError(
                f"{place} must have a class with {', '.join(MEMBERS[kind])}, got "
                f"{config.__name__} without {member}; add it"
            )
    _check_files(config, place)
    like = getattr(config, "like", None)
    if kind == "protocols" and like is not None and like not in LIKE:
        raise UserError(
            f"{place} must be like one of {', '.join(LIKE)}, got {shown(like)}; "
            f"change {config.__name__}.like"
        )
    return Entry(config, factory, source)


def _check_files(config: type[Config], place: str) -> None:
    """Refuses a file that a study would not notice to have changed."""
    name = unmarked(config)
    if name is not None:
        raise UserError(
            f"{place} must mark entries that name files, got {config.__name__}.{name} "
            f"without; write {name}: FilePath (of simulator.scenario.base), or rename "
            f"it if it names none"
        )


def _check_name(config: type[Config], kind: str, place: str) -> None:
    """Refuses a class without one fixed name, or a law with a name of SciPy's."""
    key = "law" if kind == "laws" else "kind"
    field = config.model_fields.get(key)
    names = get_args(field.annotation) if field else ()
    literal = field is not None and get_origin(field.annotation) is Literal
    if field is None or not literal or names != (field.default,):
        raise UserError(
            f"{place} must have a class with a name, got {config.__name__} without; "
            f'write {key}: Literal["name"] = "name"'
        )
    if kind == "laws":
        import scipy.stats  # 1 s: only for those who bring a law

        if hasattr(scipy.stats, str(field.default)):
            raise UserError(
                f"{place} must bring laws under new names, got {field.default!r}, "
                f"which scipy.stats has; rename it"
            )
