"""Sizes and formats for print, and styles of the user's."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from stalesim.analysis import figures, style
from stalesim.analysis.figures import report
from stalesim.analysis.page import writing
from stalesim.simulator.config.errors import UserError
from tests.unit.analysis.studies import Fake


def test_sizes() -> None:
    assert style.size() == (3.5, 2.625)
    assert style.size("two") == (7.16, 3.58)
    assert style.size("one", aspect=1) == (3.5, 3.5)
    with pytest.raises(UserError, match="columns must be 'one' or 'two', got 'three'"):
        style.size("three")  # pyright: ignore[reportArgumentType]


def test_a_users_style_wins_where_it_says_something() -> None:
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


def test_a_style_may_ask_for_matplotlibs_defaults(tmp_path: Path) -> None:
    file = tmp_path / "own.mplstyle"
    file.write_text("axes.grid: False\nlines.linewidth: 4\n")
    with style.using(file):
        with style.context():
            assert not mpl.rcParams["axes.grid"]
            assert mpl.rcParams["lines.linewidth"] == 4
            assert mpl.rcParams["font.size"] == style.RC["font.size"]
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


def test_a_style_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="got 'gplot'; did you mean 'ggplot'"):
        report.save(Fake(("central",)), tmp_path, styles=["gplot"])
    assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]
    with pytest.raises(
        UserError, match="style must be a venue, a file of Matplotlib s"
    ):
        report.save(Fake(("central",)), tmp_path, styles=["nothing.mplstyle"])


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_vector_output_is_reproducible(form: str, tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        paths = report.save(Fake(("central",)), tmp_path / name, form)
        assert [path.name for path in paths] == [
            f"convergence-time.{form}",
            f"convergence-commits.{form}",
        ]
        folder = tmp_path / name / "figures"
        captions = [path.with_suffix(".txt") for path in paths]
        assert sorted(folder.iterdir()) == sorted([*paths, *captions])
        found.append([path.read_bytes() for path in paths])
    assert found[0] == found[1]
    start = {"svg": b"<?xml", "pdf": b"%PDF"}[form]
    assert all(content.startswith(start) for content in found[0])


def test_a_format_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="format must be one of png, pdf, svg, got 'gi"):
        report.save(Fake(("central",)), tmp_path, "gif")
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
