"""The page that reads the first floor of the core, and runs it."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
CORE = ROOT / "docs" / "core.md"


def test_the_core_is_read_in_an_afternoon() -> None:
    stops = re.findall(r"^(\d+)\. `(.+?)`", CORE.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in stops] == [*range(1, 12)]
    assert (
        sum(len((ROOT / f).read_text("utf-8").splitlines()) for _, f in stops) <= 3000
    )


def test_asynchronous_sgd_runs_by_hand_as_the_page_says() -> None:
    text = CORE.read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)
    commits, stale, *model = re.findall(r"-?\d+\.?\d*", text.split("```")[4])[:5]
    assert len(found["rows"].time) == int(commits)
    assert found["staleness"].mean() == pytest.approx(float(stale), abs=0.05)
    assert found["model"].tolist() == pytest.approx([*map(float, model)], abs=0.005)


def test_a_protocol_is_called_in_the_order_of_the_page() -> None:
    text = (ROOT / "docs" / "callbacks.md").read_text("utf-8")
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["calls"] == printed.splitlines()
