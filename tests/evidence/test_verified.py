"""The table of what is shown of the methods names tests that there are."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "evidence/pages/verified.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`( \(long\))?")


@cache
def found_in(file: str) -> dict[str, bool]:
    """Returns the tests of a file, and whether each is marked long."""
    path = ROOT / file
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: any(
            ast.unparse(d) == "pytest.mark.long" for d in node.decorator_list
        )
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_each_test_that_is_named_exists_and_says_if_it_is_long() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 50
    for file, test, long in named:
        assert test in found_in(file), f"{file}::{test}"
        assert found_in(file)[test] == bool(long), f"{file}::{test} (long)"


def test_nothing_else_is_named() -> None:
    """A name that is spelt otherwise would not be looked at."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("::test_") == len(NAMED.findall(text))
    assert not found_in("tests/unit/docs/test_nothing.py")
