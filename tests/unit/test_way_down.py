"""The way of one scenario through the program: each package is entered once."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from stalesim.simulator import simulation
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.timelines.of_run import set_up
from tests.support import scenario

LEADS = ("stalesim.simulator.simulation", "stalesim.simulator.timelines.of_run")
"""Modules that lead the way: they call one package after the other."""
ASKED = ("scenario", "metrics", "inputs", "keys", "setup")
"""Questions to records, checks of files and the facts themselves are no stay."""
PASSED = "stalesim.simulator.config."
"""A part's `make` passes a call on to what its `made_by` names."""

BUDGET = {
    "problem": {"partition": {"kind": "iid", "clients": 5}},
    "algorithm": {
        "kind": "sgd",
        "step_size": 0.1,
        "batch": 17,
        "mechanism": {
            "law": "gaussian",
            "clip": "sample",
            "clip_bound": 1.0,
            "multiplier": 8.0,
        },
    },
    "privacy": {"budget": 5.0},
}


def stays(walk: Callable[[], Any]) -> list[str]:
    """Returns the packages that the leading modules call, repeated calls once."""
    found: list[str] = []

    def module(frame: FrameType | None) -> str:
        return str(frame.f_globals.get("__name__")) if frame else ""

    def called(frame: FrameType, event: str, _: Any) -> None:
        here, caller = module(frame), frame.f_back
        while module(caller).startswith(PASSED):
            caller = caller.f_back if caller else None
        if event != "call" or module(caller) not in LEADS:
            return
        if here in LEADS or here.startswith(PASSED) or here.count(".") < 2:
            return
        *root, package = here.split(".")[:3]
        if (
            root == ["stalesim", "simulator"]
            and package not in ASKED
            and found[-1:] != [package]
        ):
            found.append(package)

    sys.setprofile(called)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return found


def run_of(*changes: dict[str, Any]) -> Run:
    return Run(0, "base", {}, 0, 1, scenario(*changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), ["learning", "algorithms", "timelines"]),
        ((BUDGET,), ["learning", "algorithms", "privacy", "timelines"]),
    ],
)
def test_the_facts_of_a_run_are_found_in_one_pass(
    changes: tuple[dict, ...], expected: list[str]
) -> None:
    run = run_of(*changes)
    assert stays(lambda: set_up(run)) == expected


def test_its_numerics_are_made_in_one_pass() -> None:
    setup = set_up(run_of())
    found = stays(lambda: simulation._with_numerics(setup))
    # The timeline says how many commits an epoch has, for step sizes by epochs.
    assert found == ["timelines", "learning", "algorithms"]
