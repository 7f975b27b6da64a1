"""What all tests share: XLA's settings and programs, worker processes, turns."""

import ctypes
import gc
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from stalesim.simulator.engine import device

# As the command line has it; and nothing of the user's cache.
device.before_import()
os.environ["MPLBACKEND"] = "Agg"
# A shape that is stretched by chance is a mistake; child processes inherit it.
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

# Waves are divided among two, however many cores there are.
os.environ["JAX_NUM_CPU_DEVICES"] = "2"

ROOT = Path(__file__).parent
TURN = ROOT.parent / ".ci" / "turn"
"""A number that `.ci/land` raises: whose turn it is."""
SHARES = {"long": 40, "costly": 20}
"""Turns until each test of a kind was run once, the dearer kind first."""
COSTLY = (
    # They compile programs.
    *("golden/*", "reference/*", "unit/algorithms/*", "unit/engine/*"),
    *("unit/learning/*", "unit/models/*", "property/test_[gj]*.py"),
    *("property/test_metamorphic_[cs]*.py", "property/test_w*.py"),
    *("extras/central_noise/*", "extras/compression/*", "extras/robust/*"),
    *("extras/papers/test_attacks_[lm]*.py", "extras/papers/test_[glv]*.py"),
    *("extras/papers/test_ci*.py", "extras/papers/test_mimic.py"),
    "extras/papers/test_n*.py",
    *("extras/papers/test_physionet2012.py", "unit/privacy/test_[amn]*.py"),
    "unit/test_*_runs.py",
    *("unit/protocols/test_replayed.py", "unit/test_results.py"),
    # They compare with theory: compile, draw, or play many timelines.
    "verification/*",
    # They run whole studies, or processes.
    *("attacks/*", "unit/studies/*"),
    "extras/logs/*",
    *("extras/capsules/*", "extras/clusters/*"),
    *("extras/testbed/*", "extras/trackers/*"),
    "unit/analysis/test_phases.py",
    *("unit/analysis/test_waste.py", "unit/docs/test_words_page.py"),
    *("unit/scenario/test_*_page.py", "unit/scenario/test_own_before.py"),
    *("unit/test_cli.py", "unit/test_hostile.py"),
    *("unit/test_*_command.py", "unit/test_loops.py", "unit/test_mutants.py"),
    *("unit/test_t*.py", "unit/test_wheel.py"),
    # They play many timelines, or large ones.
    "extras/rl/test_[cflp]*.py",
    *("property/test_metamorphic_times.py", "unit/scenario/test_s[hi]*.py"),
    *("unit/timelines/test_arrays.py", "unit/timelines/test_summary.py"),
    # They read large files, or make them.
    *("unit/data/test_arrow.py", "unit/data/test_bundled.py"),
    *("unit/data/test_cifar.py", "unit/data/test_l*.py"),
    "unit/data/test_synthetic.py",
    # They draw.
    *("unit/analysis/test_f[ai]*.py", "unit/analysis/test_maps.py"),
    *("unit/analysis/test_page.py", "unit/analysis/test_racing.py"),
    *("unit/analysis/test_style.py", "unit/analysis/test_swept.py"),
    *("unit/analysis/test_timelines.py", "unit/analysis/test_utility.py"),
    "unit/analysis/test_watching.py",
)
"""Files of tests, but for those of the twins in NumPy, of which parts take turns."""
WHOLE = ("unit/scenario/test_*_page.py", "unit/test_hostile.py")
"""Costly files that take one turn, since all their tests need one dear fixture."""
EVIDENCE = ROOT / "evidence"
"""Tests of evidence: run by `--slow`, or where the command line names them."""
NUMERICS = ("jax", "jaxlib")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests of all turns")
    parser.addoption(
        "--without-jax", action="store_true", help="refuse imports of JAX (.ci/quick)"
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all is imported, which stays
    keep_programs(config)
    if config.getoption("--without-jax"):
        loaded = [name for name in NUMERICS if name in sys.modules]
        if loaded:
            raise pytest.UsageError(f"the start of pytest imports {loaded[0]}")
        sys.meta_path.insert(0, NoNumerics())


class NoNumerics(MetaPathFinder):
    """Fails where JAX is imported, so that pytest names the file that does it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in NUMERICS:
            raise AssertionError(
                f"tests of .ci/quick must not import {name}; import it in fewer "
                f"places, or take this file out of .ci/quick"
            )


def keep_programs(config: pytest.Config) -> None:
    """Has each program compiled once for all processes; `--cache-clear` forgets them.

    A folder that is set stays: the steps of `.ci/run` share one.
    """
    cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
    if cache is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache.mkdir("compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spares each search for garbage the modules and tests, a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forgets compiled programs between files: they take a gigabyte."""
    if "jax" in sys.modules and (nextitem is None or nextitem.path != item.path):
        sys.modules["jax"].clear_caches()
        gc.collect()
        if sys.platform == "linux":  # others give memory back by themselves
            ctypes.CDLL(None).malloc_trim(0)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Takes all cores for folders; files are tested sooner without more processes.

    Each process begins with whole files, whose tests share programs, and takes over
    tests of another one when it has no more of its own, so that all end together.
    """
    nothing_said = getattr(config.option, "numprocesses", 0) is None
    is_worker = hasattr(config, "workerinput")
    if nothing_said and not is_worker and asks_for_folders(config):
        config.option.numprocesses = "auto"
        if config.option.dist == "no":
            config.option.dist = "worksteal"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks what is costly, and leaves out tests of folders whose turn it is not."""
    for item in items:
        if is_costly(item.path):
            item.add_marker("costly")
    if config.getoption("--slow") or not asks_for_folders(config):
        return
    left_out = {*of_other_turns(items, int(TURN.read_text()))}
    if left_out:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves the evidence to `--slow`, and to whoever names it."""
    if collection_path != EVIDENCE or config.getoption("--slow"):
        return None
    named = (Path(argument.split("::")[0]).absolute() for argument in config.args)
    return not any(path.is_relative_to(EVIDENCE) for path in named) or None


@cache
def is_costly(path: Path) -> bool:
    """Says whether a file of tests compiles much, draws much or runs whole studies."""
    if path.stem.endswith(("_twin", "test_twins")):
        return False
    return any(path.match(f"{ROOT}/{pattern}") for pattern in COSTLY)


def of_other_turns(items: Iterable[pytest.Item], turn: int) -> list[str]:
    """Returns the tests that are not run in a turn.

    Each file has its share of a kind, whichever its name says, so that turns cost about
    the same, and a new file moves the turn of no other one.
    """
    groups = defaultdict(list)
    for item in items:
        kind = next((kind for kind in SHARES if item.get_closest_marker(kind)), None)
        if kind:
            groups[kind, item.path].append(item.nodeid)
    left_out: list[str] = []
    for (kind, path), names in groups.items():
        own_turn = turn + crc32(path.name.encode())
        if any(path.match(f"{ROOT}/{pattern}") for pattern in WHOLE):
            own = names if own_turn % SHARES[kind] == 0 else []
        else:
            own = share(names, own_turn, SHARES[kind])
        left_out += {*names} - {*own}
    return left_out


def asks_for_folders(config: pytest.Config) -> bool:
    """Says whether not only files, or tests by name, are to be run."""
    return any(Path(argument.split("::")[0]).is_dir() for argument in config.args)


def share(names: Iterable[str], turn: int, shares: int) -> list[str]:
    """Returns one of equal shares of some names: neighbours, which share programs."""
    ordered, number = sorted(names), turn % shares
    first, last = (len(ordered) * n // shares for n in (number, number + 1))
    return ordered[first:last]
