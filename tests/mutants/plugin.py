"""A plugin of pytest: notes what each test calls, and has one module changed.

`MUTANTS` is a JSON object: the file for the result, the most seconds of the processor,
and of a mutant the path of its module and a file with the changed source.
"""

import cProfile
import importlib.abc
import importlib.util
import json
import os
import re
import resource
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("simulator", "analysis")
MEMORY = 12 * 2**30
"""Most bytes of addresses of a process that runs tests."""
ORDER = json.loads(os.environ["MUTANTS"])
TESTS: dict[str, Any] = {}
# What a failure was is of no interest: the smallest example is not sought.
hypothesis.settings.register_profile(
    "mutants",
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    report_multiple_bugs=False,
)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Finds one module with another source than its file's; writes no bytecode."""

    def __init__(self, path: str, changed: str) -> None:
        parts = ["stalesim", *Path(path).with_suffix("").parts]
        self._package = [str((ROOT / path).parent)] if parts[-1] == "__init__" else None
        self._name = ".".join(parts[:-1] if self._package else parts)
        self._path, self._changed = str(ROOT / path), Path(changed)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        TESTS["imported"] = True
        return importlib.util.spec_from_file_location(
            name, self._path, loader=self, submodule_search_locations=self._package
        )

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        """Returns the changed source, and no cached bytecode."""
        if path != self._path:
            raise OSError(path)
        return self._changed.read_bytes()


def called(profile: cProfile.Profile) -> list[str]:
    """Returns the functions of the program that were called, each as path:scope."""
    found = set()
    for entry in profile.getstats():
        if not isinstance(entry.code, str):
            path = Path(entry.code.co_filename).resolve()
            if any(path.is_relative_to(ROOT / top) for top in PRODUCT):
                scope = re.sub(r"\.<[^.]*>", "", entry.code.co_qualname)
                found.add(f"{path.relative_to(ROOT).as_posix()}:{scope}")
    return sorted(found)


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (ORDER["cpu_s"], ORDER["cpu_s"] + 5))
    hypothesis.settings.load_profile("mutants")
    if "changed" in ORDER:
        sys.meta_path.insert(0, Changed(ORDER["path"], ORDER["changed"]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    one = TESTS[item.nodeid] = {"passed": True}
    profile, begun = cProfile.Profile(), os.times()
    if "changed" not in ORDER:
        profile.enable()
    yield
    profile.disable()
    spent = [now - then for now, then in zip(os.times(), begun, strict=True)]
    one |= {"s": sum(spent[:2]), "elsewhere_s": sum(spent[2:4])}
    one["calls"] = called(profile)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        TESTS[report.nodeid]["passed"] = False


def pytest_sessionfinish() -> None:
    Path(ORDER["result"]).write_text(json.dumps(TESTS), encoding="utf-8")
