"""The way of one scenario through the program: each package is entered once.

And few files: a *stay* is a row of calls of functions of one file of `simulator`, so
that going to another file and coming back to call a third function makes three. A
profiler counts calls, not returns. Passed over are the package `parts`, through which
parts are made and named, properties, which are facts of records, methods that Python or
pydantic calls by itself (`__init__` of data classes, serializers), comprehensions, ends
of `with`, and what is executed at an import.
"""

import inspect
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from stalesim import simulator
from stalesim.simulator.catalogue.data.bundled import Digits
from stalesim.simulator.engine import checking, simulation
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.files import inputs
from stalesim.simulator.scenario.study import Run
from tests.support import SGD, Memory, scenario

LEADS = tuple(
    f"stalesim.simulator.engine.{name}" for name in ("checking", "of_run", "simulation")
)
"""Modules that lead the way: they call one package after the other."""
ASKED = ("capabilities", "scenario", "metrics", "inputs", "keys", "setup")
"""Questions to records, checks of files and the facts themselves are no stay."""
ROOMS = {
    "catalogue.algorithms": "algorithms",
    "engine.algorithm": "algorithms",
    "catalogue": "problem",
}
"""What parts belong to; a leaf of the catalogue belongs to the room that asks it."""
PASSED = "stalesim.simulator.parts."
"""What a call passes through on its way, and that is no stay."""

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


ROOT = f"{Path(simulator.__file__).parent}/"


def profiled(walk: Callable[[], Any], called: Callable[[FrameType], None]) -> None:
    """Walks; every call on the way is handed over."""
    sys.setprofile(lambda frame, event, _: called(frame) if event == "call" else None)
    try:
        walk()
    finally:
        sys.setprofile(None)


def stays(walk: Callable[[], Any]) -> list[str]:
    """Returns the rooms that the leading modules call, repeated calls once."""
    found: list[str] = []

    def module(frame: FrameType | None) -> str:
        return str(frame.f_globals.get("__name__")) if frame else ""

    def called(frame: FrameType) -> None:
        here, caller = module(frame), frame.f_back
        while module(caller).startswith(PASSED):
            caller = caller.f_back if caller else None
        if module(caller) not in LEADS or here in LEADS:
            return
        if here.startswith(PASSED) or here.count(".") < 2:
            return
        room = here.removeprefix(f"{simulator.__name__}.")
        asked = any(f".{word}." in f".{room}." for word in ASKED)
        if room == here or asked:
            return
        name = next((new for old, new in ROOMS.items() if room.startswith(old)), room)
        if found[-1:] != [name.split(".")[0]]:
            found.append(name.split(".")[0])

    profiled(walk, called)
    return found


def _passed_over(frame: FrameType, begun: set[FrameType]) -> bool:
    """Says whether a call is none of a function that ours has called by its name."""
    code, own = frame.f_code, type(frame.f_locals.get("self"))
    if code.co_name.startswith("<") or not code.co_flags & inspect.CO_OPTIMIZED:
        return True
    if frame in begun:  # the end of a `with`
        return True
    if code.co_flags & inspect.CO_GENERATOR:
        begun.add(frame)
    hooks = getattr(own, "__pydantic_decorators__", None)
    if hooks and code.co_name in hooks.model_serializers:
        return True
    fact = inspect.getattr_static(own, code.co_name, None)
    return isinstance(fact, property | cached_property)


def files_of(walk: Callable[[], Any]) -> list[str]:
    """Returns the stays of a walk, each by its file; consecutive calls are one."""
    found: list[str] = []
    begun: set[FrameType] = set()

    def called(frame: FrameType) -> None:
        file = frame.f_code.co_filename.removeprefix(ROOT)
        if file == frame.f_code.co_filename or file.startswith("parts/"):
            return
        if not _passed_over(frame, begun) and found[-1:] != [file]:
            found.append(file)

    profiled(walk, called)
    return found


def run_of(*changes: dict[str, Any]) -> Run:
    return Run(0, "base", {}, 0, 1, scenario(*changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), ["problem", "algorithms", "timelines"]),
        ((BUDGET,), ["problem", "algorithms", "privacy", "timelines"]),
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
    assert found == ["timelines", "problem", "algorithms"]


WALKS = {"columns": (), "rows": (SGD,)}
"""Changes by which the data are divided in either way."""
STAYS = {"columns": (38, 16, 26, 30), "rows": (40, 21, 38, 35)}
"""Most stays in files, by the way in which the data are divided.

Of `set_up` of a run that reads the data, of `set_up` of later ones, of the numerics,
and of `check`.
"""
ENTERED = 69
"""Most files that a plain run enters."""


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_stays_in_few_files(name: str) -> None:
    changes, most = WALKS[name], STAYS[name]
    simulation.prepare(run_of(*changes, {"problem": {"l2": 0.5}}))  # imports
    # A set of its own, which nobody has read yet.
    run = run_of(*changes, {"problem": {"data": {"split_seed": 987654}}})
    with inputs.held(inputs.collect([run.scenario])):
        first = files_of(lambda: set_up(run))
        later = files_of(lambda: set_up(run))
        setup = set_up(run)
        numerics = files_of(lambda: simulation._with_numerics(setup))
        check = files_of(lambda: checking.check(run))
    walks = first, later, numerics, check
    for walk, bound in zip(walks, most, strict=True):
        assert len(walk) <= bound, " ".join(walk)


def test_a_plain_run_enters_few_files() -> None:
    """By a program and data that are new."""

    def plain(batch: int) -> Run:
        return run_of(
            SGD,
            {
                "problem": {"data": {"split_seed": 987650 + batch}},
                "algorithm": {"batch": batch},
                "protocol": {"kind": "asynchronous"},
                "timeline": {"player": "simpy"},
                "stop": {"commits": 40},
            },
        )

    def walk(run: Run) -> None:
        writer: Any = Memory()
        simulation.execute([simulation.prepare(run)], "compiled", writer)

    walk(plain(11))  # imports
    run, entered = plain(13), set[str]()

    def called(frame: FrameType) -> None:
        code = frame.f_code
        if code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            entered.add(code.co_filename.removeprefix(ROOT))

    profiled(lambda: walk(run), called)
    assert ENTERED - 5 <= len(entered) <= ENTERED, " ".join(sorted(entered))


def test_data_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And their files are confirmed when they are read, by whichever half it is."""
    made, confirmed = [], []
    make, confirm = Digits.make, inputs.confirm
    monkeypatch.setattr(Digits, "make", lambda data: made.append(data) or make(data))
    monkeypatch.setattr(
        inputs, "confirm", lambda *given: confirmed.append(given[1]) or confirm(*given)
    )
    run = run_of(SGD, {"problem": {"data": {"split_seed": 987655}}})
    with inputs.held(inputs.collect([run.scenario])):
        for _ in range(2):
            simulation.prepare(run)
        others = run_of(SGD, {"problem": {"data": {"split_seed": 987655}}})
        others = others._replace(seed=2)
        assert set_up(others).learning is set_up(run).learning
    assert len(made) == 1
    assert confirmed.count("problem.data") == 1
