"""Short runs write what they wrote when they were pinned; see `tests.golden.pins`."""

import pytest

from tests.golden import pins


@pytest.mark.slow
@pytest.mark.parametrize("name", pins.NAMES)
def test_runs_write_what_is_pinned(name: str) -> None:
    assert not pins.differences(name, everything=False)


def test_a_change_is_seen() -> None:
    name = "harsh deadline"
    changed = pins.found(name)
    changed["base"]["jobs"]["outcome"] = "0"
    place = f"{name}/base/jobs/outcome: pinned "
    place += pins.pinned(name)["base"]["jobs"]["outcome"]
    found = pins.compared(name, pins.pinned(name), changed, everything=False)
    assert list(found) == [f"{place}, now 0"]
