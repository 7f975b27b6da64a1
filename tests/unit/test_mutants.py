"""The runner of mutants: what it changes, and whether it sees what tests notice."""

import ast
import json
import subprocess
import sys
from pathlib import Path

from tests.mutants.operators import mutants

ROOT = Path(__file__).resolve().parents[2]
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
    found = [(one.line, one.operator, one.text) for one in mutants("f.py", SOURCE)]
    assert sorted(found) == sorted(
        [
            (11, "constant", "(4)"),
            (11, "constant", "(2)"),
            (13, "condition negated", "(not (a < b and (not a)))"),
            (13, "and, or", "(a < b or not a)"),
            (13, "comparison", "<="),
            (13, "comparison", ">="),
            (13, "sign", "(a)"),
            (14, "statement deleted", "pass"),
            (16, "statement deleted", "pass"),
            (16, "arguments swapped", "(g(b, a))"),
            (17, "function", "max"),
            (17, "returned value", "(None)"),
        ]
    )


def test_every_change_is_one_of_the_program() -> None:
    for path in ("simulator/world/cycle.py", "analysis/claims/speed.py"):
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


SCRIPT = """
import json, os, time
from collections import Counter
from tests.mutants import children, running
from tests.mutants.covering import Map
from tests.mutants.operators import mutants

PATH, TEST = "simulator/trace/numbering.py", "tests/unit/trace/test_numbering.py"
TEST += "::test_numbers_go_out_and_come_back"
source = (running.ROOT / PATH).read_bytes()
made = [one for one in mutants(PATH, source) if one.scope == "outward"]
known = Map.__new__(Map)
known.seconds = {TEST: 1.0}
known.by_line = {(PATH, one.line): {TEST} for one in made}
first = next(one for one in made if one.operator == "arithmetic")


def forever():
    while True:
        pass


print(json.dumps({
    "changed": running.judge(first, first.apply(source), known, Counter())[7:9],
    "as it is": running.judge(first, source, known, Counter())[7:9],
    "elsewhere": running.judge(first._replace(path="simulator/trace/disk.py"),
                               source, known, Counter()).outcome,
    "endless": children.in_child(forever, 0.5, 60)[0],
    "waiting": children.in_child(lambda: time.sleep(60), 60, 0.5)[0],
    "died": children.in_child(lambda: os._exit(3), 60, 60)[0],
    "done": children.in_child(lambda: 5, 60, 60),
}))
"""


def test_what_a_test_notices_is_seen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    name = "tests/unit/trace/test_numbering.py::test_numbers_go_out_and_come_back"
    assert found == {
        "changed": ["killed", name],
        "as it is": ["survived", ""],
        "elsewhere": "no test",
        "endless": "time",
        "waiting": "time",
        "died": "died",
        "done": ["done", 5],
    }
