"""An algorithm is one folder and one line: shown by one of them."""

import ast
import re
from importlib import import_module
from pathlib import Path

import house
from stalesim.simulator.engine.algorithm import Algorithm
from stalesim.simulator.parts.attached import listed

SHOWN = "pipelined"
COUNTING = house.ROOT / ".ci/house.py"
"""The file that counts places."""
BY_HAND = (
    "tests/unit/scenario/test_sizes.py",
    "tests/property/test_metamorphic_studies.py",
)
"""Tests that every algorithm was once written into."""
ENDINGS = {".py", ".js", ".csv", ".toml", ".yaml", ".yml", ".j2", ".css", ".html"}


def named(kind: str) -> tuple[type[Algorithm], str]:
    """Returns the class of an algorithm, and the catalogue's text of it."""
    rows = (row for row in listed() if row[:2] == ("algorithms", kind))
    (text,) = (row.where for row in rows)
    module, name = text.split(":")
    return getattr(import_module(module), name), text


def places(kind: str) -> list[tuple[Path, str]]:
    """Returns all lines outside its folder that name an algorithm or what is in it.

    Its kind, its package, and all classes that its modules define.
    """
    found, _ = named(kind)
    package = found.__module__.rpartition(".")[0]
    folder = house.ROOT / package.removeprefix("stalesim.").replace(".", "/")
    words = {kind, package}
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    named_as = "|".join(map(re.escape, words))
    pattern = re.compile(rf"\b({named_as})\b|from \.[.\w]*\b{folder.name}\b")
    files = [house.ROOT / "pyproject.toml", house.ROOT / "setup.py"]
    files += [house.ROOT / name for name in BY_HAND]
    for part in house.PRODUCT:
        inside = [*(house.ROOT / part).rglob("*")]
        files += [path for path in inside if path.suffix in ENDINGS]
    return [
        (path, line)
        for path in files
        if folder not in path.parents
        for line in path.read_text(encoding="utf-8").splitlines()
        if pattern.search(line)
    ]


def test_an_algorithm_is_its_folder_and_one_line() -> None:
    outside = [place for place in places(SHOWN) if place[0] != COUNTING]
    assert len(outside) == 1, outside
    path, line = outside[0]
    assert path == house.ROOT / "simulator/parts/parts.csv"
    assert line.startswith(f"algorithms,{SHOWN},{named(SHOWN)[1]},")


def test_an_algorithm_that_others_know_would_be_seen() -> None:
    """SGD is named in checks of other parts, in cases of tests and in templates."""
    assert len({path for path, _ in places("sgd")}) > 5
