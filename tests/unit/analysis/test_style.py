"""Figures for print: venues, formats, captions, styles of the user's, units, shades."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

from stalesim.analysis import figures, style
from stalesim.analysis.figures import layout, report
from stalesim.analysis.figures.files import DOTS_PER_INCH
from stalesim.analysis.figures.venues import VENUES
from stalesim.analysis.page import writing
from stalesim.simulator.files.study import StudyError
from stalesim.simulator.parts.errors import UserError
from tests.unit.analysis.drawn import points_of, texts_of
from tests.unit.analysis.studies import Curves, Fake


def test_figures_are_as_wide_as_the_venue_prints(tmp_path: Path) -> None:
    for name in ("icml", "nature-wide"):
        paths = report.save(Fake(("async", "sync")), tmp_path / name, styles=[name])
        wanted = VENUES[name].width * DOTS_PER_INCH
        for path in paths:
            with Image.open(path) as image:
                assert image.width == pytest.approx(wanted, abs=1.5)
        assert len(paths) >= 5


def test_a_venue_leaves_titles_and_notes_to_the_caption() -> None:
    study = Fake(noise=0.3)
    with style.using("ieee"):
        figure = figures.convergence(study)
        assert not figure.get_suptitle()
        assert not figure.get_supxlabel()
        assert "bands: 95 % t-intervals" in str(figure.get_label())
        assert mpl.rcParams["font.family"] == ["STIXGeneral"]
    assert figures.convergence(study).get_suptitle()


def test_captions_say_what_is_drawn_and_of_what(tmp_path: Path) -> None:
    study = Fake(("async", "sync"), noise=0.3)
    study.manifest["environment"] = {"stalesim": "9.9", "jax": "1.2"}
    paths = report.save(study, tmp_path, styles=["ieee"])
    for path in paths:
        lines = path.with_suffix(".txt").read_text().splitlines()
        assert lines[0][0].isupper()
        said = dict(line.split(": ", 1) for line in lines[lines.index("") + 1 :])
        assert said["data"] == "digits-part"
        assert said["study"] == "fake (10 runs)"
        assert said["replicates"].startswith("5,")
        assert said["simulated by"] == "stalesim 9.9, jax 1.2"
        assert said["drawn by"].endswith(f"figure {path.stem}")
    text = (tmp_path / "figures" / "convergence-time.txt").read_text()
    first = " ".join(text.split("\n\n")[0].split())
    assert "Lines: means over 5 replicates. Bands: 95 % t-intervals, cut at" in first
    assert "axes: Test accuracy; Virtual time (s)" in text


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
    axes: Any = figure.axes[0].get_tightbbox()
    assert box.y1 <= axes.y0  # below the axes
    sizes = {text.get_fontsize() for text in legend.get_texts()}
    assert min(sizes) >= layout.SMALLEST


def test_values_after_some_time() -> None:
    curves = {"a": [[0.1, 0.5, 0.6], [0.1, 0.6]], "b": [[0.1, 0.8], [0.1, 0.9]]}
    study = Curves(curves)
    (axes,) = figures.values_after(study, "test_accuracy", 1).axes
    places = [points_of(line)[0].tolist() for line in axes.get_lines()]
    points = [place for (place, *more) in places if not more]
    assert points == pytest.approx([0.55, 0.85])
    assert axes.get_xlabel() == "Test accuracy after 1 s"
    late = figures.values_after(study, "test_accuracy", 2)
    missing = "0 of 2 lasted so long"
    assert texts_of(late) == ["1 of 2 lasted so long", missing]
    with pytest.raises(StudyError, match="no run of study 'fake' lasted for 9 s"):
        figures.values_after(study, "test_accuracy", 9)


def test_a_users_style_wins_where_it_says_something(tmp_path: Path) -> None:
    with plt.style.context({"font.size": 13.0}), style.context():
        assert mpl.rcParams["font.size"] == 13
        assert mpl.rcParams["axes.grid"]
        with style.context():  # as when a figure is saved
            assert mpl.rcParams["font.size"] == 13
    with style.context():
        assert mpl.rcParams["font.size"] == style.RC["font.size"]
        mpl.rcParams["font.size"] = 13
        with style.context():
            assert mpl.rcParams["font.size"] == 13
    file = tmp_path / "own.mplstyle"
    file.write_text("axes.grid: False\nlines.linewidth: 4\nfont.size: 5\n")
    with style.using("icml", file):
        with style.context():
            assert not mpl.rcParams["axes.grid"]  # Matplotlib's own default
            assert mpl.rcParams["lines.linewidth"] == 4
            assert mpl.rcParams["font.size"] == 5
            assert mpl.rcParams["axes.labelsize"] == 8  # the venue's
        with style.using("dark_background"), style.context():
            assert not mpl.rcParams["axes.grid"]
            assert style.ink() == "white"
    with style.context():
        assert mpl.rcParams["axes.grid"]
        assert style.ink() == "black"


@pytest.mark.parametrize("within", [plt.style.context, style.using])
def test_colours_of_a_style_are_those_of_groups(within: Any) -> None:
    names = ("async", "sync")
    with within("ggplot"):
        (axes,) = figures.convergence(Fake(names)).axes
    colors = [to_hex(line.get_color()) for line in axes.get_lines()]
    assert colors == ["#e24a33", "#348abd"]
    (axes,) = figures.convergence(Fake(names)).axes
    colors = [to_hex(line.get_color()).upper() for line in axes.get_lines()]
    assert colors == list(style.OKABE_ITO[:2])


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("got 'gplot'; did you mean 'ggplot'", {"styles": ["gplot"]}),
        ("got 'icm'; did you mean 'icml'", {"styles": ["icm"]}),
        ("style must be a venue, a file of Matplotlib s", {"styles": ["no.mplstyle"]}),
        ("format must be one of png, pdf, svg, got 'gi", {"forms": "gif"}),
    ],
)
def test_a_style_or_format_that_is_not_there(
    words: str, given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words):
        report.save(Fake(("central",)), tmp_path, **given)
    assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]
    assert not list(tmp_path.iterdir())


def test_styles_change_what_is_drawn(tmp_path: Path) -> None:
    plain, dark = (
        report.save(Fake(("central",)), tmp_path / name, "svg", styles)[0].read_text()
        for name, styles in (("plain", ()), ("dark", ("dark_background",)))
    )
    white = "fill: #ffffff"  # behind everything; black is not written
    assert white in plain.split("axes_1")[0]
    assert white not in dark.split("axes_1")[0]


@pytest.mark.parametrize(
    ("problem", "label"),
    [
        ({"loss": "auto"}, "Test loss (nats)"),
        ({"loss": "hinge"}, "Test loss"),
        ({"loss": "mine:huber"}, "Test loss"),
    ],
)
def test_a_loss_has_the_unit_that_all_runs_share(problem: Any, label: str) -> None:
    study = Fake(("central", "central"))
    for run in study.manifest["runs"]:
        run["scenario"] = {"problem": {"loss": "softmax"}}
    study.manifest["runs"][0]["scenario"] = {"problem": problem}
    assert style.metric_label("test_loss", study) == label
    assert style.metric_label("test_accuracy", study) == "Test accuracy"
    assert style.metric_label("test_loss") == "Test loss"
    for run in study.manifest["runs"]:
        run["scenario"] = {"problem": {"loss": "mine:huber", "loss_unit": "mm"}}
    assert style.final_label("test_loss", study) == "Final test loss (mm)"
    assert style.in_words("test_loss", study) == "test loss"


def test_colours_are_told_apart_from_a_dark_page_as_well() -> None:
    """Contrast after the page's filter, at least as on white.

    Source: W3C, Filter Effects Module 1, invert and hueRotate; WCAG 2.2, contrast.
    """
    css = writing.environment().get_template("page.css").render()
    (found,) = re.findall(r"filter: invert\((\S+)\) hue-rotate\(180deg\)", css)
    (dark,) = re.findall(r"--paper: (#1\w+)", css)
    # The matrix of hueRotate at 180 degrees: cosine -1, sine 0.
    luminance = np.array([0.213, 0.715, 0.072])
    turn = 2 * np.tile(luminance, (3, 1)) - np.eye(3)

    def seen(color: str) -> np.ndarray:
        inverted = np.array(to_rgb(color)) * (1 - 2 * float(found)) + float(found)
        return np.clip(turn @ inverted, 0, 1)

    def contrast(one: Any, other: Any) -> float:
        linear = [
            np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
            for c in (np.array(one), np.array(other))
        ]
        low, high = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
        return (high + 0.05) / (low + 0.05)

    assert contrast(seen("#ffffff"), to_rgb(dark)) < 1.1  # the page's own colour
    for color in style.OKABE_ITO[:-1]:
        on_white = contrast(to_rgb(color), to_rgb("#ffffff"))
        assert contrast(seen(color), to_rgb(dark)) >= on_white
    assert contrast(seen(style.INK), to_rgb(dark)) > 7
