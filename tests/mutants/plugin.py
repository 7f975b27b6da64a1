"""A plugin of pytest: notes what each test calls, and has one module changed.

`MUTANTS` is a JSON object: the file for the result, the most seconds of the processor,
and of a mutant the path of its module and a file with the changed source.
"""

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
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
CALLED: set[str] = set()
"""Functions that the test under way has entered, each as path:scope."""
PROBE = "__called__"
setattr(builtins, PROBE, CALLED.add)
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


class Told(ast.NodeTransformer):
    """Has each function of a module add its path:scope to `CALLED` when it is entered.

    That costs next to nothing, where a profiler takes as long as the tests.
    """

    def __init__(self, path: str) -> None:
        self._path, self._scopes = path, list[str]()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._scopes.append(node.name)
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._scopes.append(node.name)
        self.generic_visit(node)
        text = f"{PROBE}({f'{self._path}:{chr(46).join(self._scopes)}'!r})"
        at = int(ast.get_docstring(node) is not None)
        line = node.body[min(at, len(node.body) - 1)]
        call = ast.parse(text).body[0]
        for one in ast.walk(call):
            ast.copy_location(one, line)
        node.body.insert(at, call)
        self._scopes.pop()
        return node


class Telling(importlib.machinery.SourceFileLoader):
    """Loads a module as `Told` has it; writes no bytecode."""

    def get_code(self, fullname: str) -> Any:
        path = Path(self.get_filename(fullname))
        tree = Told(path.relative_to(ROOT).as_posix()).visit(
            ast.parse(path.read_bytes())
        )
        return compile(tree, str(path), "exec", dont_inherit=True)


class Probes(importlib.abc.MetaPathFinder):
    """Finds the modules of the program for `Telling`."""

    _busy = False  # while the usual finders look for a module

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self._busy or not name.startswith("stalesim."):
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None:
            return None
        real = Path(spec.origin or "").resolve()
        if not any(real.is_relative_to(ROOT / top) for top in PRODUCT):
            return spec
        return importlib.util.spec_from_file_location(
            name,
            real,
            loader=Telling(name, str(real)),
            submodule_search_locations=spec.submodule_search_locations,
        )


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (ORDER["cpu_s"], ORDER["cpu_s"] + 5))
    hypothesis.settings.load_profile("mutants")
    if "changed" in ORDER:
        sys.meta_path.insert(0, Changed(ORDER["path"], ORDER["changed"]))
    else:
        sys.meta_path.insert(0, Probes())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    one: dict[str, Any] = {"passed": True}
    TESTS[item.nodeid] = one
    begun = os.times()
    CALLED.clear()
    yield
    spent = [now - then for now, then in zip(os.times(), begun, strict=True)]
    one |= {"s": sum(spent[:2]), "elsewhere_s": sum(spent[2:4])}
    one["calls"] = sorted(CALLED)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        TESTS[report.nodeid]["passed"] = False


def pytest_sessionfinish() -> None:
    Path(ORDER["result"]).write_text(json.dumps(TESTS), encoding="utf-8")
