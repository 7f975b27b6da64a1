"""Which test runs which line of what is mutated, and how long it takes."""

import difflib
import hashlib
import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants import children
from tests.mutants.targets import ROOT, files, test_files

CACHE = ROOT / ".mutants"
"""Where maps are kept; ignored by git."""
MOST_S = 420.0
"""Processor seconds that the tests of one file may take to be mapped."""

ELSEWHERE_S = 2.0
"""Processor seconds in processes that a test starts, which do not see a mutant; tests
with more are left out."""


class _Mapping:
    """Asks of every test what it runs and how long that takes."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self._cover = cover
        self.tests: dict[str, Any] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._cover.switch_context(item.nodeid)
        self.tests[item.nodeid] = {"passed": True}
        begun = os.times()
        yield
        spent = [now - then for now, then in zip(os.times(), begun, strict=True)]
        self.tests[item.nodeid]["s"] = round(spent[0] + spent[1], 4)
        self.tests[item.nodeid]["elsewhere_s"] = round(spent[2] + spent[3], 4)
        self._cover.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.tests[report.nodeid]["passed"] = False


def _map(path: str) -> dict[str, Any]:
    """Returns the tests of a file with the lines that they run."""
    cover = coverage.Coverage(
        data_file=None,
        include=[str(ROOT / path) for path in files()],
        config_file=False,
        messages=False,
    )
    cover.start()
    plugin = _Mapping(cover)
    children.run_tests([path], plugin)
    cover.stop()
    data = cover.get_data()
    lines: dict[str, dict[str, list[int]]] = {}
    for name in data.measured_files():
        relative = Path(name).relative_to(ROOT).as_posix()
        for line, contexts in data.contexts_by_lineno(name).items():
            for context in contexts:
                if context:
                    of_test = plugin.tests[context].setdefault("lines", {})
                    of_test.setdefault(relative, []).append(line)
    return {"tests": plugin.tests, "lines": lines}


def _kept(path: str) -> Path:
    return CACHE / "maps" / f"{path.replace('/', '-')}.json"


def _digest(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def make(paths: list[str]) -> None:
    """Maps files of tests; by default those that are not mapped, or have changed."""
    for folder in ("maps", "sources"):
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
    children.import_libraries()
    sources = {path: _digest(path) for path in files()}
    for path, digest in sources.items():
        (CACHE / "sources" / digest).write_bytes((ROOT / path).read_bytes())
    for path in paths or test_files():
        state = {"test": _digest(path), "sources": sources}
        if _kept(path).exists() and not paths:
            known = json.loads(_kept(path).read_text())
            if known["of"]["test"] == state["test"]:
                continue
        begun = time.monotonic()
        how, result = children.in_child(lambda p=path: _map(p), MOST_S, 6 * MOST_S)
        if how == "died":
            print(result)
        made = result if how == "done" else {"tests": {}}
        _kept(path).write_text(json.dumps({"of": state, "tests": made["tests"]}))
        passed = sum(one["passed"] for one in made["tests"].values())
        spent = time.monotonic() - begun
        print(
            f"{path}: {how}, {passed} of {len(made['tests'])}, {spent:.0f} s",
            flush=True,
        )


class Map:
    """What was found, by line.

    Where a source has changed since, its lines are found again by comparing both.

    Attributes:
        seconds: of each test that passed, mostly in its own process.
        by_line: tests that run a line of a file.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.by_line: dict[tuple[str, int], set[str]] = {}
        now = {path: _digest(path) for path in files()}
        for kept in sorted((CACHE / "maps").glob("*.json")):
            found = json.loads(kept.read_text())
            then = found["of"]["sources"]
            for name, test in found["tests"].items():
                if not test["passed"] or test["elsewhere_s"] > ELSEWHERE_S:
                    continue
                self.seconds[name] = test["s"]
                for path, lines in test.get("lines", {}).items():
                    if path not in now:
                        continue
                    moved = _moved(then[path], path, now[path])
                    for line in lines:
                        place = path, moved.get(line, line) if moved else line
                        self.by_line.setdefault(place, set()).add(name)


@cache
def _moved(then: str, path: str, now: str) -> dict[int, int]:
    """Returns where the lines of an older source are now; nothing if it is the same."""
    if then == now:
        return {}
    older = (CACHE / "sources" / then).read_text().splitlines()
    newer = (ROOT / path).read_text().splitlines()
    moved = {}
    matcher = difflib.SequenceMatcher(None, older, newer, autojunk=False)
    for kind, first, last, there, end in matcher.get_opcodes():
        for line in range(first, last):
            if kind == "equal":
                moved[line + 1] = line - first + there + 1
            else:  # somewhere in what stands there now
                moved[line + 1] = min(line - first + there, max(end - 1, there)) + 1
    return moved
