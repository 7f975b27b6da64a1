"""The public names: commands and options, keys of scenarios, columns, functions.

`public.csv` has a line for each with the version that added it. A name leaves only by a
line that says since when it was deprecated, when it was removed, and what to take.

    python -m tests.golden.public    # adds new names; before 1.0 it drops old ones
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from typer.main import get_command

from stalesim import analysis, simulator
from stalesim.simulator.cli import app
from stalesim.simulator.files.study import COLUMNS
from stalesim.simulator.parts.attached import worlds
from stalesim.simulator.parts.base import Config, Part, tag
from stalesim.simulator.parts.catalogue import BASES, own
from stalesim.simulator.parts.version import __version__
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("public.csv")
PACKAGES = {"simulator": simulator, "analysis": analysis}
TAGS = ("kind", "law")
"""Keys that say which part an entry is."""


class Name(NamedTuple):
    """A public name, and the versions in which it came and went, if it did."""

    name: str
    since: str
    deprecated: str = ""
    removed: str = ""
    instead: str = ""


def version(text: str) -> tuple[int, ...]:
    """Returns the numbers of a version, of which the text has two or three."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", text):
        raise ValueError(f"a version must be such as 1.2, got {text!r}")
    return tuple(map(int, text.split(".")))


def of_commands(group: Any, name: str = "command-line") -> Iterator[str]:
    """Yields the arguments and options of a command, and of those in it."""
    for one in (param for param in group.params if param.name != "help"):
        is_argument = one.param_type_name == "argument"
        yield f"{name}: {one.name.upper() if is_argument else one.opts[0]}"
    for word, command in getattr(group, "commands", {}).items():
        inner = f"{name} {word}" if " " in name else f"{name}: stalesim {word}"
        yield from of_commands(command, inner)


def of_scenarios() -> Iterator[str]:
    """Yields the keys of scenarios and of every part, as their classes have them."""
    roots = {"a study": Scenario, "a world": WorldScenario}
    roots |= {f"a world of {each.kind}": each.scenario() for each in worlds()}
    of_all = {*keys(WorldScenario)} & {*keys(Scenario)}
    yield from (f"scenario: {key}" for key in of_all)
    for root, config in roots.items():
        yield from (f"scenario: {root}: {key}" for key in {*keys(config)} - of_all)
    for kind in BASES:
        for part in own(kind):
            name = f"{kind}: {tag(part) if isinstance(part, type) else part.name}"
            yield name
            if isinstance(part, type):
                yield from (f"{name}: {key}" for key in keys(part))


def keys(config: type[Config], above: tuple[type, ...] = ()) -> Iterator[str]:
    """Yields the dotted keys of an entry; those of parts stand with the parts."""
    config.model_rebuild()  # types that are named before they are there
    for field_name, field in config.model_fields.items():
        name = field.alias or field_name
        if name not in TAGS:
            yield name
        for inner in configs(field.annotation):
            if inner not in (*above, config):
                for key in keys(inner, (*above, config)):
                    yield f"{name}.{key}"


def configs(annotation: Any) -> Iterator[type[Config]]:
    """Yields the classes of entries in an annotation, without parts."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        if not issubclass(annotation, Part):
            yield annotation
    else:
        for inner in get_args(annotation):
            yield from configs(inner)


def of_reference() -> list[str]:
    """Returns the public names of this version, each once, in order."""
    found = {*of_scenarios(), *of_commands(get_command(app))}
    for table, columns in COLUMNS.items():
        found |= {f"trace: {table}: {column}" for column in columns}
    for package, module in PACKAGES.items():
        found |= {f"python: {package}: {name}" for name in module.__all__}
    return sorted(found)


def kept() -> list[Name]:
    """Returns the lines of the file."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return [Name(**row) for row in csv.DictReader(file)]


def faults(known: list[Name], now: list[str], current: str) -> list[str]:
    """Returns what is wrong with the lines, given the names and version of today."""
    found = [f"{n}: is new and has no line" for n in {*now} - {k.name for k in known}]
    for each in known:
        marks = [m for m in each[1:4] if m]
        told = [*map(version, marks)]
        if told != sorted({*told}):
            found.append(f"{each.name}: {', '.join(marks)} must rise")
        elif told[-1] > version(current):
            found.append(f"{each.name}: {marks[-1]} is after {current}")
        if each.removed and not (each.deprecated and each.instead):
            found.append(f"{each.name}: was removed without deprecation or a way on")
        if bool(each.removed) == (each.name in now):
            found.append(f"{each.name}: is {'' if each.removed else 'not '}there")
    return sorted(found)


def write() -> None:
    """Writes the file: lines of new names, and before 1.0 none of those that left."""
    now, known = of_reference(), kept() if FILE.is_file() else []
    free = version(__version__)[0] == 0
    stay = [each for each in known if each.name in now or each.removed or not free]
    new = {*now} - {each.name for each in known}
    rows = sorted([*stay, *(Name(name, __version__) for name in new)])
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Name._fields, *rows])


if __name__ == "__main__":
    write()
