"""Python as its users write it: methods of a study, folders, errors, progress."""

import inspect
import io
import re
import sys
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

import stalesim
from stalesim.simulator.parts.progress import StudyProgress
from stalesim.simulator.studies import progress
from tests.runs import tiny_study

REST = """\
stop: {commits: 20}
evaluate: {every: {commits: 5}}
sweep:
  algorithm.step_size: {low: 0.01, high: 0.1}
claims:
  - higher: "base, learning_rate=high"
    than: "base, learning_rate=low"
    metric: test_accuracy
    says: larger steps learn more
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_study(tmp_path_factory, REST)


def test_a_study_has_methods_and_a_folder_stands_for_it(folder: Path) -> None:
    study = stalesim.load(folder)
    assert_frame_equal(study.tidy(), stalesim.tidy(folder))
    finals = study.final_values("test_accuracy")
    assert_frame_equal(finals, stalesim.final_values(str(folder), "test_accuracy"))
    assert list(finals["algorithm.learning_rate"].unique()) == ["low", "high"]
    assert len(study.claims()) == len(stalesim.claims.evaluate(folder)) == 1
    (axes,) = study.plot(against="commits").axes
    assert axes.get_xlabel() == "Server updates"


def test_all_mistakes_are_of_one_class(folder: Path) -> None:
    study = stalesim.load(folder)
    for mistake in (
        lambda: study.best(),
        lambda: study.plot("test_acc"),
        lambda: stalesim.mean_curve(folder, "bsae"),
        lambda: stalesim.staleness.histogram(study, "base, learning_rate=low", 99),
        lambda: stalesim.load(folder / "none"),
        lambda: stalesim.load(3),  # pyright: ignore[reportArgumentType]
        lambda: stalesim.read({}),  # pyright: ignore[reportArgumentType]
        lambda: stalesim.simulate("none.yaml"),
        lambda: stalesim.simulate(None),  # pyright: ignore[reportArgumentType]
        lambda: stalesim.simulate("quickstart", jobs=-3),
        lambda: stalesim.simulate("quickstart", replace="seed=5"),  # pyright: ignore
        lambda: stalesim.simulate("quickstart", data=3),  # pyright: ignore
        lambda: stalesim.simulate("quickstart", replicates="3"),  # pyright: ignore
        lambda: study.table("jobs", ["run", "foo"]),
        lambda: study.table("jobs", ["client"]),
        lambda: stalesim.tune(3),  # pyright: ignore[reportArgumentType]
        lambda: stalesim.compare("quickstart"),
    ):
        with pytest.raises(stalesim.UserError) as caught:
            mistake()
        assert len(caught.value.lines) == 1


def test_a_script_shows_progress_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    assert progress.bar("delays") is progress.silent
    monkeypatch.setattr(screen, "isatty", lambda: True)
    show = progress.bar("delays")
    show(StudyProgress(0.5, 1, 2))
    show(StudyProgress(1.0, 2, 2))
    first, last = screen.getvalue().split("\r")[1:]
    assert first.startswith("delays: 50 %, 1 of 2 runs")
    assert "took 0:00:00" in last
    assert last.endswith("\n")


def test_signatures_can_be_read_and_methods_have_examples() -> None:
    public = [getattr(stalesim, name) for name in stalesim.__all__]
    study = vars(stalesim.Study).items()
    methods = [of for name, of in study if inspect.isfunction(of) and name[0] != "_"]
    assert {stalesim.simulate, stalesim.convergence, stalesim.Study.tidy} <= {
        *filter(inspect.isfunction, [*public, *methods])
    }
    for function in filter(inspect.isfunction, [*public, *methods, stalesim.Study]):
        assert not re.search(r"<|\b_\w", str(inspect.signature(function))), function
    shown = {"tidy", "final_values", "plot", "claims", "best", "table"}
    assert {of.__name__ for of in methods if "Example: `study." in of.__doc__} == shown
