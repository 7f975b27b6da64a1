"""What all tests share."""

import os
import zlib

import pytest

from simulator.engine import device

# As the command line has it; and nothing of the user's cache.
device.before_import()
os.environ["MPLBACKEND"] = "Agg"

PART = 6
"""Of so many slow tests one is run; all of them with `--slow`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run all slow tests")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Takes a fixed sample of the slow tests, by a hash of their names."""
    if config.getoption("--slow"):
        return
    left, taken = [], []
    for item in items:
        slow = item.get_closest_marker("slow") is not None
        out = slow and zlib.crc32(item.nodeid.encode()) % PART != 0
        (left if out else taken).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = taken
