"""The runner of mutants: what it changes, and whether it sees what tests notice."""

import ast

import pytest

from tests.mutants import running
from tests.mutants.operators import mutants
from tests.mutants.running import ROOT

NUMBERING = "simulator/files/study/columns.py"
TEST = "tests/unit/trace/test_numbering.py::test_numbers_go_out_and_come_back"
SOURCE = b'''"""About 1 < 2."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    ONE = 1 + 1

__all__ = ["f"]


def f(a: "1 < 2", b=3) -> "4":
    """Adds 5."""
    if a < b and not a:
        raise ValueError(f"got {a + 1}" + str(7))
    assert a < 8
    self.x = g(a, b)
    return min(a, b)  # 9
'''


def test_each_place_is_changed_and_nothing_else() -> None:
    found = [(one.line, one.operator, one.after) for one in mutants("f.py", SOURCE)]
    assert sorted(found) == sorted(
        [
            (11, "constant", "(4)"),
            (11, "constant", "(2)"),
            (13, "condition negated", "(not (a < b and (not a)))"),
            (13, "and, or", "(a < b or not a)"),
            (13, "comparison", "(a <= b)"),
            (13, "comparison", "(a >= b)"),
            (13, "sign", "(a)"),
            (14, "statement deleted", "pass"),
            (16, "statement deleted", "pass"),
            (16, "arguments swapped", "(g(b, a))"),
            (17, "function", "(max)"),
            (17, "returned value", "(None)"),
        ]
    )


def test_every_change_is_one_of_the_program() -> None:
    for path in ("simulator/world/world.py", "analysis/claims/speed.py"):
        source = (ROOT / path).read_bytes()
        before = ast.dump(ast.parse(source))
        found = mutants(path, source)
        for one in found:
            changed = ast.parse(one.apply(source))
            assert ast.dump(changed) != before, one
        assert len({one.key for one in found}) == len(found)


def test_a_mutant_is_known_again_when_lines_move() -> None:
    moved = SOURCE.replace(b"\n\ndef f", b"\n\nHERE = []\n\n\ndef f")
    for one, other in zip(mutants("f.py", SOURCE), mutants("f.py", moved), strict=True):
        assert (one.key, one.line + 3) == (other.key, other.line)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("0, numbers) + 1", "0, numbers) + 2", ("killed", TEST)),
        ("+ 1\n", "+ 1  # as it is\n", ("survived", "")),
        ("numbers = np", "while True: pass\n    numbers = np", ("time", "")),
    ],
)
def test_what_a_test_notices_is_seen(
    before: str, after: str, expected: tuple[str, str]
) -> None:
    source = (ROOT / NUMBERING).read_bytes()
    mutant = mutants(NUMBERING, source)[0]
    changed = source.replace(before.encode(), after.encode())
    assert changed != source
    made = running.judge(mutant, changed, [TEST], 25)
    assert (made.outcome, made.by) == expected


def test_what_a_test_calls_is_noted() -> None:
    noted = running.pytest_of([TEST], 25)
    assert noted is not None
    assert f"{NUMBERING}:outward" in noted[TEST]["calls"]


def test_tests_of_a_function_come_first_and_those_of_its_file_then() -> None:
    noted = {
        name: {"passed": True, "elsewhere_s": 0, "s": seconds, "calls": calls}
        for name, seconds, calls in (
            ("a.py::slow", 30.0, ["f.py:f"]),
            ("a.py::quick", 1.0, ["f.py:f.inner"]),
            ("a.py::other", 2.0, []),
            ("a.py::too long", 50.0, ["f.py:f"]),
            ("b.py::elsewhere", 1.0, ["g.py:f"]),
        )
    }
    (mutant, *_) = mutants("f.py", SOURCE)
    assert mutant.scope == "f"
    chosen, left = running.Map(noted).choose(mutant, running.Counter())
    assert chosen == ["a.py::quick", "a.py::slow", "a.py::other"]
    assert left == 1
