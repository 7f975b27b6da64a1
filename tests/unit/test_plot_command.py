"""`stalesim plot`: formats, styles, and what is wrong with them."""

from pathlib import Path

import pytest

from stalesim.simulator.parts.errors import UserError
from tests.commands import invoked
from tests.runs import TINY, tiny_study

REST = """\
stop: {commits: 20}
evaluate: {every: {commits: 5}}
sweep:
  algorithm.step_size: [0.01, 0.1]
  clients.compute: [{law: expon}, {law: constant, value: 1}]
"""
HEAT = "test_accuracy-over-algorithm.learning_rate-and-clients.compute"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_study(tmp_path_factory, REST)


def _plot(*arguments: object) -> str:
    return invoked("plot", *arguments).output


def test_formats_and_styles(folder: Path) -> None:
    figures = folder / "figures"
    output = _plot(folder, "--format", "svg")
    assert f"{HEAT}.svg" in output
    assert {path.suffix for path in figures.iterdir()} == {".svg", ".txt"}
    first = (figures / f"{HEAT}.svg").read_bytes()
    _plot(folder, "--format", "svg", "--style", "ggplot", "--style", "dark_background")
    assert (figures / f"{HEAT}.svg").read_bytes() != first
    _plot(folder)
    found = {path.suffix for path in figures.glob(f"{HEAT}.*")}
    assert found == {".svg", ".png", ".txt"}
    output = _plot(folder, "--format", "pdf", "--format", "png", "--format", "pdf")
    assert output.count(f"{HEAT}.pdf") == output.count(f"{HEAT}.png") == 1
    found = {path.suffix for path in figures.glob(f"{HEAT}.*")}
    assert found == {".svg", ".png", ".pdf", ".txt"}


@pytest.mark.parametrize(
    ("option", "word", "said"),
    [
        ("--format", "gif", "format must be one of png, pdf, svg, got 'gif'"),
        ("--style", "gplot", "got 'gplot'; did you mean 'ggplot'?"),
        ("--winner-map", "a/base", "all runs are of 'base'; state what you compare"),
        ("--winner-map", "step_size=0.1/step_size=1", "variants, but all runs are of"),
        ("--metric", "test_acc", "no column 'test_acc'; did you mean 'test_accuracy'?"),
        ("--against", "commit", "no column 'commit'; did you mean 'commits'?"),
        ("--target", "90", "target of test_accuracy must be >= 0 and <= 1, got 90"),
    ],
)
def test_what_is_not_known_is_said(
    option: str, word: str, said: str, folder: Path
) -> None:
    with pytest.raises(UserError) as caught:
        _plot(folder, option, word)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_format_is_looked_at_before_a_study_is_run(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY + REST)
    place = tmp_path / "study"
    with pytest.raises(UserError, match="format must be one of png, pdf, svg"):
        invoked("run", file, "-o", place, "--format", "gif", "--no-plots")
    assert not place.exists()


def test_a_metric_is_drawn_against_what_is_asked_for(folder: Path) -> None:
    assert "test_loss-against-messages.png" in _plot(
        folder, "--metric", "test_loss", "--against", "messages"
    )
    for key in ("algorithm.step_size", "algorithm.learning_rate", "learning_rate"):
        output = _plot(folder, "--against", key)
        assert f"test_accuracy-over-{key}.png" in output
    assert "test_accuracy-over-compute.png" in _plot(folder, "--against", "compute")
    caption = (folder / "figures" / "test_accuracy-over-compute.txt").read_text()
    assert caption.startswith("Final values (of the last tenth of evaluations) over")


def test_times_are_drawn_to_a_target_of_one_s_own(folder: Path) -> None:
    output = _plot(folder, "--target", "0.125")
    assert "time-to-target-0.125.png" in output
    caption = (folder / "figures" / "time-to-target-0.125.txt").read_text()
    assert caption.startswith("Virtual time until the target: medians")
    assert "test accuracy ≥ 0.125" in caption
    heat = f"time-to-target-0.125-over{HEAT.partition('-over')[2]}"
    assert f"{heat}.png" in output.replace("\n", "")
    caption = (folder / "figures" / f"{heat}.txt").read_text()
    assert caption.startswith("Virtual time until the target over the swept keys")
    output = _plot(folder, "--target", "1e-4", "--metric", "test_loss")
    assert "time-to-target-0.0001.png" in output
