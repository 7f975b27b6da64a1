"""Names and options of optimisers: what is refused, and what the page lists."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.engine.checking import check
from stalesim.simulator.engine.optimizers import part
from stalesim.simulator.engine.optimizers.part import DIRECTIONS, Direction
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.study import Run
from tests.support import SGD, scenario

DOCS = Path(__file__).parents[3] / "docs"
PAGE, TABLES = (DOCS / folder / "optimisers.md" for folder in ("how-to", "reference"))

WRONG = {
    "a name": (
        {"kind": "adamv"},
        r"optimizer\.kind must be an optimiser of optax .*did you mean",
    ),
    "one that needs the loss": ({"kind": "lbfgs"}, r"optimizer\.kind must be"),
    "an option": (
        {"weight_decai": 1},
        r"weight_decai must be an option of optax's adamw .*'weight_decay'\?",
    ),
    "an option that is no number": ({"mask": 1}, "mask must be an option"),
    "a flag for a number": ({"b1": True}, "b1 must be a number, got true"),
    "a number for a flag": ({"nesterov": 1}, "nesterov must be true or false, got 1"),
    "a fraction of a count": (
        {"kind": "muon", "ns_steps": 2.5},
        "ns_steps must be a whole number, got 2.5",
    ),
    "a schedule": (
        {"learning_rate": {"schedule": "cosine_decay"}},
        r"learning_rate\.schedule must be a schedule .*did you mean 'co",
    ),
    "a schedule's option": (
        {"learning_rate": {"schedule": "constant_schedule", "size": 1}},
        r"learning_rate\.size must be an option of optax's constant_schedule \(value\)",
    ),
    "a schedule's lacking option": (
        {"learning_rate": {"schedule": "constant_schedule"}},
        r"learning_rate\.value must be given",
    ),
    "a length below zero": (
        {
            "learning_rate": {
                "schedule": "cosine_decay_schedule",
                "init_value": 1,
                "decay_steps": -1,
            }
        },
        "learning_rate must be what optax's cosine_decay_schedule takes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_optax_does_not_have_is_one_line_before_a_run(name: str) -> None:
    options, says = WRONG[name]
    given = {"kind": "adamw", "learning_rate": 0.1, **options}
    change = {"algorithm": {"step_size": None, "optimizer": given}}
    run = Run(0, "base", {}, 0, 1, scenario(SGD, change))
    with pytest.raises(UserError, match=says) as error:
        check(run)
    assert "\n" not in str(error.value)


def listed(functions: dict[str, Callable[..., Any]]) -> str:
    """Returns the page's table of some functions."""
    lines = ["| name | options |", "|---|---|"]
    for name, function in functions.items():
        options = [
            f"`{option}`{_default(default)}"
            for option, default in part.options_of(function).items()
        ]
        lines.append(f"| `{name}` | {', '.join(options)} |")
    return "\n".join(lines)


def _default(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return ""
    if default is None or isinstance(default, bool):
        return f": {str(default).lower()}"
    return f": {default:g}"


def test_the_page_lists_what_optax_has() -> None:
    page, tables = (path.read_text(encoding="utf-8") for path in (PAGE, TABLES))
    for functions in (part.optimisers(), part.schedules()):
        assert listed(functions) in tables, listed(functions)
    for name in part.BY_ARRAY:
        assert f"`{name}`" in page


def test_directions_are_the_kinds_without_a_rate() -> None:
    for kind in DIRECTIONS:
        assert Direction.model_validate({"kind": kind}).kind == kind
