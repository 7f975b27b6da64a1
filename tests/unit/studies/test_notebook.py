"""The bar of a study in a notebook, as IPython shows it."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from stalesim.simulator import studies
from stalesim.simulator.studies import progress
from stalesim.simulator.studies.progress import StudyProgress, silent
from tests.unit.studies.watched import WATCHED

IPython = pytest.importorskip("IPython")
SMALL = {**WATCHED, "name": "small", "stop": {"commits": 200}}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Makes this a notebook; what its cell shows."""
    found: list[Any] = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)

    def display(first: Any, *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        found.append(first)
        return SimpleNamespace(update=lambda then, raw: found.append(then))

    monkeypatch.setattr("IPython.display.display", display)
    return found


def test_a_study_in_a_notebook_has_a_bar(shown: list[Any]) -> None:
    studies.simulate(SMALL)
    last = shown[-1]
    assert last["text/plain"].startswith("small: 100 %, 2 of 2 runs")
    assert ", took 0:00:" in last["text/plain"]
    assert last["text/html"].startswith('<progress max="1" value="1.0000" aria-label=')


def test_a_label_is_no_markup(shown: list[Any]) -> None:
    progress.bar("study")(StudyProgress(0.5, 0, 2, '<b>"'))
    page = shown[-1]["text/html"]
    assert page.count("<") == 2
    assert "&lt;b&gt;&quot;" in page


def test_the_bar_is_drawn_twice_a_second(
    shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    hear = progress.bar("study")
    for step in range(101):
        now[0] = 0.1 * step
        hear(StudyProgress(step / 200, 0, 2, "[async]", 50 * step))
    assert len(shown) == 21
    said = "study: 28 %, 0 of 2 runs (at [async]), 500 commits/s in all"
    assert shown[11]["text/plain"] == f"{said}, about 0:00:15 left"


def test_elsewhere_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IPython, "get_ipython", lambda: None)
    assert progress.bar("study") is silent
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace())
    assert progress.bar("study") is silent
    monkeypatch.delitem(sys.modules, "IPython")
    assert progress.bar("study") is silent


def test_who_hears_it_has_no_bar(shown: list[Any]) -> None:
    heard: list[StudyProgress] = []
    studies.simulate(SMALL, progress=heard.append)
    assert heard
    assert shown == []
