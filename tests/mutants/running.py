"""Runs, on each mutant of a random sample, the tests that run its line."""

import ast
import csv
import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from filelock import FileLock

from tests.mutants import children
from tests.mutants.covering import CACHE, Map
from tests.mutants.operators import Mutant, mutants
from tests.mutants.targets import ROOT, files

RESULTS = ROOT / "tests" / "mutants" / "results.csv"
JUDGEMENTS = ROOT / "tests" / "mutants" / "judgements.csv"
"""Columns `key`, `judgement` (`equivalent` or `open`) and `why`, written by hand."""
SEED = 13
"""Of the sample."""
FIRST, FIRST_S = 5, 4.0
"""Tests that are tried first, and their processor seconds in all."""
EACH, SOME_S = 4, 12.0
"""Tests of each file that are tried then, and seconds with those before."""
MOST_S = 40.0
"""Processor seconds of tests that a mutant has to survive at most."""


class Result(NamedTuple):
    """What became of a mutant.

    Attributes:
        key: of the mutant.
        path: of its file.
        line: that is changed.
        scope: function.
        operator: kind of change.
        before: text.
        after: text.
        outcome: "killed", "time", "survived" or "no test".
        by: the test that failed first.
        num_tests: that ran, or were chosen to.
        num_left: tests of its line for which there was no time.
        first: what had become of it when it was run for the first time.
    """

    key: str
    path: str
    line: int
    scope: str
    operator: str
    before: str
    after: str
    outcome: str
    by: str = ""
    num_tests: int = 0
    num_left: int = 0
    first: str = ""


def sample(number: int | None = None) -> list[Mutant]:
    """Returns a uniform sample of all mutants, in a random order that stays.

    The order is that of a hash of seed and mutant, so that a larger sample holds a
    smaller one, and what else changes in a file takes nothing out of it.
    """
    made = [one for path in files() for one in mutants(path, _source(path))]
    made.sort(key=lambda one: hashlib.sha256(f"{SEED}/{one.key}".encode()).digest())
    return made[:number]


def run(number: int, again: str | None, control: int, part: tuple[int, int]) -> None:
    """Runs what is left of a sample, and writes each result when it is there.

    Args:
        number: of the sample.
        again: "survived" for those that no test has noticed yet, and could.
        control: so many are run unchanged instead.
        part: which of how many processes this one is, from 1.
    """
    children.import_libraries()
    chosen = sample(number)
    if control:
        _control(chosen[:control], Map())
        return
    known = read()
    if again:
        weak = ("survived", "no test")
        weakly = {key for key, one in known.items() if one.outcome in weak}
        chosen = [m for m in chosen if m.key in weakly - equivalents()]
    else:
        chosen = [m for m in chosen if m.key not in known]
    chosen = chosen[part[0] - 1 :: part[1]]
    for place, mutant in enumerate(chosen):
        begun = time.monotonic()
        found = Map()  # another process may map more meanwhile
        noticed = Counter(one.by for one in read().values())
        result = judge(mutant, mutant.apply(_source(mutant.path)), found, noticed)
        _add(result)
        spent = time.monotonic() - begun
        where = f"{mutant.path}:{mutant.line}"
        print(f"{place + 1}/{len(chosen)} {spent:.0f} s {where} {mutant.operator}: "
              f"{result.outcome} {result.by}", flush=True)  # fmt: skip


def _control(chosen: list[Mutant], found: Map) -> None:
    """Runs the same tests on unchanged sources, which all of them must survive."""
    for mutant in chosen:
        result = judge(mutant, _source(mutant.path), found, Counter())
        print(f"{mutant.path}:{mutant.line} {result.outcome} {result.by}", flush=True)


def judge(mutant: Mutant, source: bytes, found: Map, noticed: Counter[str]) -> Result:
    """Runs the tests of a mutant's line, until one fails."""
    made = Result(mutant.key, *mutant[:6], outcome="no test")
    stages, left = choose(mutant, found, noticed)
    ran = 0
    for tests in stages:
        outcome, by = _try(mutant.path, source, tests, found)
        ran += len(tests)
        made = made._replace(outcome=outcome, by=by, num_tests=ran, num_left=left)
        if outcome != "survived":
            break
    return made


def choose(
    mutant: Mutant, found: Map, noticed: Counter[str]
) -> tuple[list[list[str]], int]:
    """Returns which tests are run at once, and then; and how many are left out.

    Args:
        mutant: that is run.
        found: which test runs its line.
        noticed: how many mutants each test was the first to notice.
    """
    mine = _tests(mutant, found)
    spent = 0.0

    def take(tests: Iterable[str], most: float, number: int | None = None) -> list[str]:
        nonlocal spent
        taken = []
        for test in tests:
            seconds = found.seconds[test]
            if spent + seconds <= most and (number is None or len(taken) < number):
                spent += seconds
                taken.append(test)
        return taken

    by_file = Counter[str]()
    for test, times in noticed.items():
        by_file[_file(test)] += times
    best = sorted(mine, key=lambda t: (-noticed[t], -by_file[_file(t)]))
    stages = [take(best[:FIRST], FIRST_S, FIRST)]
    rest = sorted(mine - set(stages[0]), key=lambda test: found.seconds[test])
    # Some of every file, which look at different things; then all others.
    heads = [
        test
        for path in {_file(test): None for test in rest}
        for test in [t for t in rest if _file(t) == path][:EACH]
    ]
    stages.append(take(sorted(heads, key=lambda t: found.seconds[t]), SOME_S))
    left = [test for test in rest if test not in set(stages[1])]
    # A fixture that tests share runs its lines in one of them, and another one looks
    # at what came of it.
    sharing = {path for path in map(_file, mine) if _shares(path)}
    left += [t for t in found.seconds if t not in mine and _file(t) in sharing]
    stages.append(take(left, MOST_S))
    missing = mine.difference(*stages)
    return [stage for stage in stages if stage], len(missing)


def _file(test: str) -> str:
    return test.split("::")[0]


@cache
def _shares(path: str) -> bool:
    """Whether tests of a file have something in common that is made once."""
    text = (ROOT / path).read_text()
    return "scope=" in text or "cache" in text


def _tests(mutant: Mutant, found: Map) -> set[str]:
    """Returns the tests that run a mutant's line; or its statement; or what uses it."""
    here = found.by_line.get((mutant.path, mutant.line), set())
    if here:
        return here
    if not mutant.imported:
        first, last = mutant.lines
        places = [(mutant.path, line) for line in range(first, last + 1)]
    else:
        places = list(_uses(mutant))
    union = set[str]().union(*(found.by_line.get(place, set()) for place in places))
    if not union and mutant.imported:
        same = (
            tests for (path, _), tests in found.by_line.items() if path == mutant.path
        )
        union = set[str]().union(*same)
    return union


def _uses(mutant: Mutant) -> Iterator[tuple[str, int]]:
    """Yields lines that use what a line defines which runs at import."""
    tree = ast.parse(_source(mutant.path))
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            header = range(node.lineno, node.body[0].lineno)
            if mutant.line in header:
                for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1):
                    yield mutant.path, line
                return
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.lineno <= mutant.line <= (node.end_lineno or 0):
                inner = (n for target in targets for n in ast.walk(target))
                names |= {n.id for n in inner if isinstance(n, ast.Name)}
    if not names:
        return
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    for path in files():
        for number, line in enumerate(_source(path).decode().splitlines(), 1):
            if pattern.search(line):
                yield path, number


def _try(path: str, source: bytes, tests: list[str], found: Map) -> tuple[str, str]:
    seconds = sum(found.seconds[test] for test in tests)
    cpu_s = 8 + 3 * seconds
    how, result = children.in_child(
        lambda: _child(path, source, tests), cpu_s, 60 + 8 * cpu_s
    )
    if how == "time":
        return "time", ""
    if how == "died":
        return "killed", "the process died"
    code, by, seen = result
    if by:
        return "killed", by
    if code != 0 or not seen:
        raise RuntimeError(f"{path}: pytest ended with {code}, imported: {seen}")
    return "survived", ""


def _child(path: str, source: bytes, tests: list[str]) -> tuple[int, str, bool]:
    import sys

    finder = children.Changed(path, source)
    sys.meta_path.insert(0, finder)
    chosen = _Chosen(tests)
    names = list(dict.fromkeys(_file(test) for test in tests))
    code = children.run_tests(["-x", *names], chosen)
    return code, chosen.failed, finder.found


class _Chosen:
    """Runs some tests in an order, and notes the first that fails."""

    def __init__(self, tests: list[str]) -> None:
        files = list(dict.fromkeys(_file(test) for test in tests))
        self._order = {
            test: (files.index(_file(test)), number)
            for number, test in enumerate(tests)
        }
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        mine = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(mine, key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or f"import of {report.nodeid}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def read() -> dict[str, Result]:
    """Returns the results that are there, by the keys of their mutants."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        rows = [Result(**row) for row in csv.DictReader(file)]  # type: ignore[arg-type]
    return {
        row.key: row._replace(
            line=int(row.line),
            num_tests=int(row.num_tests),
            num_left=int(row.num_left),
            first=row.first or row.outcome,
        )
        for row in rows
    }


def judgements() -> dict[str, tuple[str, str]]:
    """Returns what was found out about survivors, and why, by the keys of mutants."""
    with JUDGEMENTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["key"]: (row["judgement"], row["why"]) for row in rows}


def equivalents() -> set[str]:
    """Returns the keys of mutants that no test can notice."""
    return {key for key, (what, _) in judgements().items() if what == "equivalent"}


def _add(result: Result) -> None:
    """Writes a result to those that are there; other processes do the same."""
    with FileLock(CACHE / "lock"):
        known = read()
        before = known.get(result.key)
        first = before.first if before else result.outcome
        write(known | {result.key: result._replace(first=first)})


def write(known: dict[str, Result]) -> None:
    """Writes all results, in the order of their places."""
    partial = RESULTS.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Result._fields)
        out.writerows(sorted(known.values(), key=lambda r: (r.path, r.line, r.key)))
    partial.replace(RESULTS)


@cache
def _source(path: str) -> bytes:
    return (ROOT / path).read_bytes()
