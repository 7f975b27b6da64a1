"""Figures for print: widths and fonts of venues, captions in files, instants."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from stalesim.analysis import figures, style
from stalesim.analysis.figures import layout, report
from stalesim.analysis.figures.files import DOTS_PER_INCH
from stalesim.analysis.figures.venues import VENUES
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.trace import StudyError
from tests.unit.analysis.studies import Curves, Fake


@pytest.mark.parametrize("name", ["icml", "nature-wide"])
def test_figures_are_as_wide_as_the_venue_prints(name: str, tmp_path: Path) -> None:
    paths = report.save(Fake(), tmp_path, styles=[name])
    wanted = VENUES[name].width * DOTS_PER_INCH
    for path in paths:
        with Image.open(path) as image:
            assert image.width == pytest.approx(wanted, abs=1.5)
    assert len(paths) >= 5


def test_a_venue_leaves_titles_and_notes_to_the_caption(tmp_path: Path) -> None:
    with style.using("ieee"):
        figure = figures.convergence(Fake(noise=0.3))
        assert not figure.get_suptitle()
        assert not figure.get_supxlabel()
        assert "bands: 95 % t-intervals" in str(figure.get_label())
        assert mpl.rcParams["font.family"] == ["STIXGeneral"]
    assert figures.convergence(Fake()).get_suptitle()
    report.save(Fake(noise=0.3), tmp_path, styles=["ieee"])
    text = (tmp_path / "figures" / "convergence-time.txt").read_text()
    assert "Bands: 95 % t-intervals" in " ".join(text.split())


def test_a_venues_settings_are_overridden_by_a_later_style(tmp_path: Path) -> None:
    file = tmp_path / "own.mplstyle"
    file.write_text("font.size: 5\n")
    with style.using("icml", file), style.context():
        assert mpl.rcParams["font.size"] == 5
        assert mpl.rcParams["axes.labelsize"] == 8
    with pytest.raises(UserError, match="got 'icm'; did you mean 'icml'"):
        report.save(Fake(("central",)), tmp_path, styles=["icm"])


def test_captions_say_what_is_drawn_and_of_what(tmp_path: Path) -> None:
    study = Fake(noise=0.3)
    study.manifest["environment"] = {"stalesim": "9.9", "jax": "1.2"}
    paths = report.save(study, tmp_path)
    for path in paths:
        lines = path.with_suffix(".txt").read_text().splitlines()
        assert lines[0][0].isupper()
        said = dict(line.split(": ", 1) for line in lines[lines.index("") + 1 :])
        assert said["data"] == "digits-part"
        assert said["study"] == "fake (20 runs)"
        assert said["replicates"].startswith("5,")
        assert said["simulated by"] == "stalesim 9.9, jax 1.2"
        assert said["drawn by"].endswith(f"figure {path.stem}")
    text = (tmp_path / "figures" / "convergence-time.txt").read_text()
    first = " ".join(text.split("\n\n")[0].split())
    assert "Lines: means over 5 replicates. Bands: 95 % t-intervals, cut at 0" in first
    assert "axes: Test accuracy; Virtual time (s)" in text


def test_values_after_some_time() -> None:
    curves = {"a": [[0.1, 0.5], [0.1, 0.6]], "b": [[0.1, 0.8], [0.1, 0.9]]}
    (axes,) = figures.values_after(Curves(curves), "test_accuracy", 1).axes
    points = [
        line for line in axes.get_lines() if len(np.asarray(line.get_xdata())) == 1
    ]
    assert [float(np.asarray(p.get_xdata())[0]) for p in points] == [
        pytest.approx(0.55),
        pytest.approx(0.85),
    ]
    assert axes.get_xlabel() == "Test accuracy after 1 s"
    with pytest.raises(StudyError, match="no run of study 'fake' lasted for 9 s"):
        figures.values_after(Curves(curves), "test_accuracy", 9)


def test_a_claim_on_an_instant_has_a_figure() -> None:
    claim = {"ahead": "a", "than": "b", "after": {"time": 1}, "says": "x"}
    claim["metric"] = "test_accuracy"
    beyond = claim | {"after": {"time": 9}}
    curves = {"a": [[0.1, 0.5], [0.1, 0.6]], "b": [[0.1, 0.8]]}
    study = Curves(curves, claims=[claim, beyond])
    names = [name for name, _ in report.standard(study, [0.5])]
    assert "test_accuracy-after-1-s" in names
    assert "test_accuracy-after-9-s" not in names
    assert "test_accuracy-after-0.5-s" in names
    (axes,) = dict(report.standard(study))["test_accuracy-after-1-s"].axes
    assert not axes.texts


def test_replicates_that_ended_before_are_counted() -> None:
    study = Curves({"a": [[0.1, 0.5, 0.6], [0.1, 0.6]], "b": [[0.1, 0.8, 0.9]] * 2})
    (axes,) = figures.values_after(study, "test_accuracy", 2).axes
    assert [text.get_text() for text in axes.texts] == ["1 of 2 lasted so long"]


@pytest.mark.parametrize("name", ["icml", "neurips", "nature"])
def test_legends_take_a_quarter_of_the_height_at_most(name: str) -> None:
    """One column took 40 % of a narrow figure, where there was room for two."""
    groups = ("FedAvg, waits for all 20", "FedAvg, deadline 60 s", "FedBuff, K = 10")
    with style.using(name):
        figure = figures.convergence(Fake((*groups, "FedAsync", "sync", "central")))
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert box.height <= layout.MOST_OF_HEIGHT * figure.bbox.height
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        sizes = {text.get_fontsize() for text in legend.get_texts()}
        assert min(sizes) >= layout.SMALLEST
