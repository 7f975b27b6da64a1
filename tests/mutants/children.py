"""Forked children that run tests, in limits of time and memory.

The parent has imported the libraries, which takes most of the time of a test, but
neither the program nor its tests. A child sees the program as it is, or with a changed
file.
"""

import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.mutants.targets import ROOT

LIBRARIES = (
    *("jax", "numpy", "scipy.stats", "scipy.optimize", "scipy.sparse", "pandas"),
    *("pyarrow.parquet", "pyarrow.dataset", "simpy", "pydantic", "equinox", "optax"),
    *("jaxtyping", "matplotlib", "sklearn.datasets", "yaml", "typer", "rich.table"),
    *("joblib", "filelock", "platformdirs", "dp_accounting", "pytest", "hypothesis"),
)
MEMORY = 12 * 2**30
"""Most bytes of addresses of a child."""


def import_libraries() -> None:
    """Imports what neither mutants nor tests change."""
    os.environ["MPLBACKEND"] = "Agg"
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def in_child(work: Callable[[], Any], cpu_s: float, wall_s: float) -> tuple[str, Any]:
    """Runs a function in a forked child.

    Args:
        work: whose result can be pickled.
        cpu_s: seconds of the processor after which the child is killed.
        wall_s: seconds after which it is killed in any case.

    Returns:
        "done" and the result; "time" and None; "died" and the end of its output.
    """
    folder = tempfile.mkdtemp(prefix="mutant-")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(work, cpu_s, Path(folder), writing)
    os.close(writing)
    try:
        how, result = _hear(child, reading, wall_s)
        if how == "died":
            result = (Path(folder) / "output").read_text()[-2000:]
        return how, result
    finally:
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)


def _live(work: Callable[[], Any], cpu_s: float, folder: Path, writing: int) -> None:
    """What the child does; it does not return."""
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        os.chdir(ROOT)
        with (folder / "output").open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        result = pickle.dumps(work())
        with os.fdopen(writing, "wb") as out:
            out.write(result)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _hear(child: int, reading: int, wall_s: float) -> tuple[str, Any]:
    end = time.monotonic() + wall_s
    parts: list[bytes] = []
    over = False
    while True:
        ready, _, _ = select.select([reading], [], [], max(0, end - time.monotonic()))
        if not ready:
            over = True
            break
        part = os.read(reading, 1 << 20)
        if not part:
            break
        parts.append(part)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL) if over else None
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it may have started
    if over:
        return "time", None
    if os.WIFSIGNALED(status):
        timed = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return ("time" if timed else "died"), None
    if os.WEXITSTATUS(status) != 0 or not parts:
        return "died", None
    return "done", pickle.loads(b"".join(parts))


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Finds one module with another source than its file's; writes no bytecode."""

    def __init__(self, path: str, source: bytes) -> None:
        parts = ["stalesim", *Path(path).with_suffix("").parts]
        self._package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._package else parts)
        self._path, self._source = str(ROOT / path), source
        self.found = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        self.found = True
        return importlib.util.spec_from_file_location(
            name,
            self._path,
            loader=self,
            submodule_search_locations=(
                [str(Path(self._path).parent)] if self._package else None
            ),
        )

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        """Returns the changed source, and no cached bytecode."""
        if path != self._path:
            raise OSError(path)
        return self._source


def run_tests(files: Sequence[str], plugin: Any) -> int:
    """Runs tests in this process, and returns pytest's exit code."""
    import hypothesis
    import pytest

    # What a failure was is of no interest: the smallest example is not sought.
    hypothesis.settings.register_profile(
        "mutants",
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        report_multiple_bugs=False,
    )
    hypothesis.settings.load_profile("mutants")
    sys.path.insert(0, str(ROOT))
    options = ["-q", "--tb=line", "-p", "no:cacheprovider", "-n", "0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported already
    return int(pytest.main([*options, *files], plugins=[plugin]))
