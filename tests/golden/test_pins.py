"""Short runs write what they wrote when they were pinned; see `tests.golden.pins`."""

import pytest

from tests.golden import pins

LONG = ("adp2sgd/table1_networks", "adp2sgd/table1_rescnn")
"""Files whose networks are compiled for most of a minute."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long) if n in LONG else n for n in pins.NAMES],
)
def test_runs_write_what_is_pinned(name: str) -> None:
    assert not pins.differences(name, everything=False)


def test_a_change_is_seen() -> None:
    name = "harsh deadline"
    pinned = pins.pinned(name)
    before = pinned["base"]["jobs"]
    exact, inexact = before.split("~")
    for after, everything, seen in (
        (f"0~{inexact}", False, True),
        (f"{exact}~0", False, False),
        (f"{exact}~0", True, True),
        (before, True, False),
    ):
        changed = {"base": pinned["base"] | {"jobs": after}}
        found = list(pins.compared(name, pinned, changed, everything=everything))
        assert found == [f"{name}/base/jobs: pinned {before}, now {after}"] * seen
