"""Short runs write what they wrote when they were pinned; see `tests.golden.pins`."""

from pathlib import Path

import pytest

from tests.golden import pins

LONG = frozenset(pins.FILES)
"""Shipped files, of which each compiles programs of its own: a quarter of a suite's
time. They take turns; the small cases are compared at every landing."""


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


def test_an_unknown_case_is_one_line() -> None:
    with pytest.raises(SystemExit, match="got 'harsh deadlin'; did you mean 'harsh d"):
        pins.main("compare", "harsh deadline", "harsh deadlin")
    with pytest.raises(SystemExit, match="must be asked to compare or write, got 'x'"):
        pins.main("x")


def test_a_case_that_is_pinned_on_another_machine_says_so_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pins.json"
    monkeypatch.setattr(pins, "FILE", file)
    monkeypatch.setattr(pins, "_all", lambda _, names: [(n, {}) for n in names])
    monkeypatch.setattr(pins, "NAMES", ["a", "b", "c"])

    def on(machine: str, *names: str) -> None:
        monkeypatch.setattr(pins, "machine", lambda: machine)
        assert pins.main("write", *names) == 0

    on("first")
    on("second", "b")
    assert [pins.is_machine(name) for name in "abc"] == [False, True, False]
    monkeypatch.setattr(pins, "machine", lambda: "first")
    assert [pins.is_machine(name) for name in "abc"] == [True, False, True]
    on("first", "b")
    assert all(map(pins.is_machine, "abc"))
