"""The bar of a study in a notebook, as IPython shows it."""

from types import SimpleNamespace
from typing import Any

import pytest

from stalesim.simulator import studies
from stalesim.simulator.studies import notebook
from stalesim.simulator.studies.progress import StudyProgress
from tests.unit.studies.watched import WATCHED

IPython = pytest.importorskip("IPython")
SMALL = {**WATCHED, "name": "small", "stop": {"commits": 200}}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Makes this a notebook; what its cell shows."""
    found: list[Any] = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)

    def display(first: Any, *, display_id: bool) -> Any:
        assert display_id
        found.append(first)
        return SimpleNamespace(update=found.append)

    monkeypatch.setattr("IPython.display.display", display)
    return found


def test_a_study_in_a_notebook_has_a_bar(shown: list[Any]) -> None:
    studies.simulate(SMALL)
    last = shown[-1]
    assert repr(last).startswith("small: 100 %, 2 of 2 runs")
    assert ", took 0:00:" in repr(last)
    assert last._repr_html_().startswith('<progress max="1" value="1.0000" aria-label=')


def test_a_label_is_no_markup() -> None:
    page = notebook.Shown("study", 0.5, '(at <b>"')._repr_html_()
    assert page.count("<") == 2
    assert "&lt;b&gt;&quot;" in page


def test_the_bar_is_drawn_twice_a_second(
    shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now[0])
    hear = notebook.bar("study")
    for step in range(101):
        now[0] = 0.1 * step
        hear(StudyProgress(step / 200, 0, 2, "[async]", 50 * step))
    assert len(shown) == 21
    said = "study: 28 %, 0 of 2 runs (at [async]), 500 commits/s in all"
    assert repr(shown[11]) == f"{said}, about 0:00:14 left"


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_a_script_writes_a_line_twice_a_minute(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    now = [0.0]
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now[0])
    hear = notebook.bar("a\nstudy")
    for second in range(0, 100, 5):
        now[0] = float(second)
        hear(StudyProgress(second / 200, 1, 2))
    out, err = capsys.readouterr()
    lines = [line.split(", about")[0] for line in err.splitlines()]
    assert out == ""
    assert lines == [rf"a\nstudy: {part} %, 1 of 2 runs" for part in (15, 30, 45)]


def test_who_hears_it_has_no_bar(shown: list[Any]) -> None:
    heard: list[StudyProgress] = []
    studies.simulate(SMALL, progress=heard.append)
    assert heard
    assert shown == []
