"""What all tests share: XLA's settings, worker processes, turns of the long tests."""

import os
import sys
from collections.abc import Iterable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.engine import device

# As the command line has it; and nothing of the user's cache.
device.before_import()
os.environ["MPLBACKEND"] = "Agg"
# A shape that is stretched by chance is a mistake; child processes inherit it.
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

TURN = Path(__file__).parents[1] / ".ci" / "turn"
"""A number that `.ci/land` raises: whose turn it is of the long tests."""
SHARES = 10
NUMERICS = ("jax", "jaxlib")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run all long tests")
    parser.addoption(
        "--without-jax", action="store_true", help="refuse imports of JAX (.ci/quick)"
    )


def pytest_configure(config: pytest.Config) -> None:
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


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forgets compiled programs between files, before there are too many for XLA."""
    if "jax" in sys.modules and (nextitem is None or nextitem.path != item.path):
        device.release_programs()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Takes all cores for folders; files are tested sooner without more processes."""
    nothing_said = getattr(config.option, "numprocesses", 0) is None
    is_worker = hasattr(config, "workerinput")
    if nothing_said and not is_worker and asks_for_folders(config):
        config.option.numprocesses = "auto"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leaves out the long tests of folders whose turn it is not."""
    if config.getoption("--slow") or not asks_for_folders(config):
        return
    long = [item.nodeid for item in items if item.get_closest_marker("long")]
    left_out = {*long} - {*share(long, int(TURN.read_text()))}
    if left_out:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def asks_for_folders(config: pytest.Config) -> bool:
    """Says whether not only files, or tests by name, are to be run."""
    return any(Path(argument.split("::")[0]).is_dir() for argument in config.args)


def share(names: Iterable[str], turn: int) -> list[str]:
    """Returns every tenth of some names, from another one at each of ten turns."""
    return sorted(names)[turn % SHARES :: SHARES]
