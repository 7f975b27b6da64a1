"""Runs, on each mutant of a random sample, the tests that call its function."""

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutants.operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
JUDGEMENTS = HERE / "judgements.csv"
"""Columns `key`, `judgement` (`equivalent` or `open`) and `why`, written by hand."""
MAPS = ROOT / ".mutants"
"""What tests call; ignored by git."""
TARGETS = ("simulator", "analysis")
"""Folders whose mutants are sampled from."""
TESTS = ("unit", "extras", "property", "golden", "reference", "verification")
"""Tests that run the program in their process."""
SEED = 13
"""Of the sample."""
FIRST = 5
"""Tests that are tried first."""
START_S, MOST_S, OF_FILE_S = 30.0, 40.0, 420.0
"""Processor seconds in which pytest starts, of the tests that a mutant has to survive,
and of those that map a file."""
ELSEWHERE_S = 2.0
"""Seconds in processes that a test starts, which see no mutant; tests with more are
left out."""


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
        num_tests: that were chosen to run.
        num_left: tests of its function for which there was no time.
        first: what had become of it when it was run for the first time.
    """

    key: str
    path: str
    line: str
    scope: str
    operator: str
    before: str
    after: str
    outcome: str
    by: str = ""
    num_tests: str = "0"
    num_left: str = "0"
    first: str = ""


def python_files(places: tuple[str, ...], under: Path, pattern: str) -> list[str]:
    """Returns the files in some places below a folder, from the repository's root."""
    paths = (under / place for place in places)
    found = [p for path in paths for p in ([path, *sorted(path.rglob(pattern))])]
    return [p.relative_to(ROOT).as_posix() for p in found if p.suffix == ".py"]


def pytest_of(tests: list[str], cpu_s: float, **order: Any) -> dict[str, Any] | None:
    """Runs tests in a process with the plugin.

    Args:
        tests: Files or tests.
        cpu_s: Seconds of the processor after which the process is killed; where it
            only waits, eight times as many seconds.
        order: What the plugin is asked for.

    Returns:
        What the plugin noted of each test; None if there was no time.

    Raises:
        RuntimeError: pytest failed other than by its tests.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        order |= {"result": str(result), "cpu_s": int(cpu_s)}
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-n", "0", "-x"]
        command += ["--slow", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider"]
        if "changed" not in order:
            command.remove("-x")
        process = subprocess.Popen(
            [*command, *tests],
            cwd=ROOT,
            env=os.environ | {"MUTANTS": json.dumps(order), "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=8 * cpu_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return None
        noted = json.loads(result.read_text()) if result.exists() else {}
        imported = "changed" not in order or noted.pop("imported", False)
        if process.returncode in (0, 1) and not imported:
            raise RuntimeError(f"{order['path']} was not imported: {output[-2000:]}")
        if process.returncode > 1 or not noted:  # of an import, or a process that died
            return {f"pytest ended with {process.returncode}": {"passed": False}}
        return noted


def map_tests(paths: list[str]) -> None:
    """Notes what tests call; by default those of files that have changed since."""
    MAPS.mkdir(exist_ok=True)
    for path in paths or python_files(TESTS, ROOT / "tests", "test_*.py"):
        digest = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:12]
        file = MAPS / f"{path.replace('/', '-')}-{digest}.json"
        if paths or not file.exists():
            found = pytest_of([path], OF_FILE_S) or {}
            file.write_text(json.dumps(found), encoding="utf-8")
            print(f"{path}: {len(found)} tests", flush=True)


class Map:
    """What was noted of tests that passed.

    Attributes:
        seconds: of each test.
        by_function: tests that call a function, by path:scope; by path, any of it.
    """

    def __init__(self, noted: dict[str, Any]) -> None:
        self.seconds: dict[str, float] = {}
        self.by_function: dict[str, set[str]] = {}
        for test, one in noted.items():
            if one["passed"] and one["elsewhere_s"] <= ELSEWHERE_S:
                self.seconds[test] = one["s"]
                for function in one["calls"]:
                    path, _, scope = function.partition(":")
                    names = scope.split(".")
                    parts = (".".join(names[:n]) for n in range(1, len(names) + 1))
                    for place in (path, *(f"{path}:{part}" for part in parts)):
                        self.by_function.setdefault(place, set()).add(test)

    def choose(self, mutant: Mutant, noticed: Counter[str]) -> tuple[list[str], int]:
        """Returns the tests that are run, best first; and how many are left out.

        First tests of the function, or of the module where none calls it; then others
        of their files: a fixture that tests share calls it in one of them only.

        Args:
            mutant: Mutant.
            noticed: How many mutants each test was the first to notice.
        """
        place = f"{mutant.path}:{mutant.scope}"
        known = self.by_function
        mine = known.get(place) or known.get(mutant.path, set())
        files = {_file(test) for test in mine}
        near = [test for test in self.seconds if _file(test) in files]

        def rank(test: str) -> tuple[bool, int, float]:
            return test not in mine, -noticed[test], self.seconds[test]

        chosen, spent = [], 0.0
        for test in sorted(near, key=rank):
            if spent + self.seconds[test] <= MOST_S:
                chosen.append(test)
                spent += self.seconds[test]
        return chosen, len(mine.difference(chosen))


def _file(test: str) -> str:
    return test.split("::")[0]


def judge(mutant: Mutant, source: bytes, tests: list[str], cpu_s: float) -> Result:
    """Runs tests with a changed source, until one fails."""
    made = Result(mutant.key, mutant.path, str(mutant.line), *mutant[2:6], "no test")
    with tempfile.NamedTemporaryFile() as changed:
        changed.write(source)
        changed.flush()
        for some in filter(None, (tests[:FIRST], tests[FIRST:])):
            found = pytest_of(some, cpu_s, path=mutant.path, changed=changed.name)
            if found is None:
                return made._replace(outcome="time")
            failed = [test for test, one in found.items() if not one["passed"]]
            if failed:
                return made._replace(outcome="killed", by=failed[0])
            made = made._replace(outcome="survived")
    return made


def sample(number: int) -> list[Mutant]:
    """Returns a uniform sample of all mutants, in a random order that stays.

    The order is that of a hash of seed and mutant, so that a larger sample holds a
    smaller one, and what else changes in a file takes nothing out of it.
    """
    paths = python_files(TARGETS, ROOT, "*.py")
    made = [one for path in paths for one in mutants(path, _source(path))]
    made.sort(key=lambda one: hashlib.sha256(f"{SEED}/{one.key}".encode()).digest())
    return made[:number]


def run(number: int, *, again: bool, jobs: int) -> None:
    """Runs what is left of a sample, and writes each result when it is there.

    Args:
        number: of the sample.
        again: whether to run those too that no test has noticed yet, and could.
        jobs: so many at a time.
    """
    maps = (json.loads(path.read_text()) for path in sorted(MAPS.glob("*.json")))
    found = Map({test: one for each in maps for test, one in each.items()})
    known = read()
    weak = {k for k, one in known.items() if one.outcome in ("survived", "no test")}
    weak -= equivalents()
    chosen = [
        m for m in sample(number) if (m.key in (weak if again else known)) == again
    ]

    def judged(mutant: Mutant) -> Result:
        noticed = Counter(one.by for one in known.values())
        tests, left = found.choose(mutant, noticed)
        source = mutant.apply(_source(mutant.path))
        result = judge(mutant, source, tests, START_S + 3 * MOST_S)
        return result._replace(num_tests=str(len(tests)), num_left=str(left))

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(judged, mutant) for mutant in chosen]):
            result = done.result()
            first = known.get(result.key, result)
            known[result.key] = result._replace(first=first.first or first.outcome)
            write(known)
            print(*result[1:3], *result[4:9], flush=True)


def read() -> dict[str, Result]:
    """Returns the results that are there, by the keys of their mutants."""
    with RESULTS.open(newline="") as file:
        return {row["key"]: Result(**row) for row in csv.DictReader(file)}


def equivalents() -> set[str]:
    """Returns the keys of mutants that no test can notice."""
    with JUDGEMENTS.open(newline="") as file:
        rows = csv.DictReader(file)
        return {row["key"] for row in rows if row["judgement"] == "equivalent"}


def write(known: dict[str, Result]) -> None:
    """Writes all results, in the order of their places."""
    partial = RESULTS.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Result._fields)
        out.writerows(
            sorted(known.values(), key=lambda r: (r.path, int(r.line), r.key))
        )
    partial.replace(RESULTS)


@cache
def _source(path: str) -> bytes:
    return (ROOT / path).read_bytes()
