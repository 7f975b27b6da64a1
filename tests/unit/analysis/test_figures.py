"""Standard figures of a study whose numbers are known, and their files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from stalesim.analysis import figures, style
from stalesim.analysis.figures import report
from stalesim.analysis.figures.files import DOTS_PER_INCH, save_figure
from stalesim.analysis.figures.staleness import _file_names
from stalesim.analysis.statistics import MEDIANS
from stalesim.analysis.targets import default_target, final_values, times_to_target
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.drawn import (
    assert_apart,
    legend_of,
    note_of,
    points_of,
    texts_of,
    titles_of,
)
from tests.unit.analysis.studies import REPLICATES, SPEEDS, Curves, Fake, arrives


def test_convergence_draws_means_on_bands_beside_a_legend() -> None:
    study = Fake()
    figure = figures.convergence(study)
    (axes,) = figure.axes
    lines = axes.get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    colors = [to_hex(line.get_color()).upper() for line in lines]
    assert colors[:3] == [*[style.OKABE_ITO[0]] * 2, style.OKABE_ITO[1]]
    finals = final_values(study, "test_accuracy")
    expected = finals.loc[finals["group"] == "central", "value"].mean()
    np.testing.assert_allclose(points_of(lines[3])[1], expected)
    assert len(axes.collections) == 3
    highest_band = max(band.get_zorder() for band in axes.collections)
    assert highest_band < min(line.get_zorder() for line in lines)
    assert legend_of(figure) == list(SPEEDS)
    labels = axes.get_xlabel(), axes.get_ylabel()
    assert labels == ("Virtual time (s)", "Test accuracy")
    assert "digits-part" in figure.get_suptitle()
    assert_apart(figure)


def test_convergence_in_megabytes_and_of_a_decay() -> None:
    (axes,) = figures.convergence(Fake(), "optimality_gap", "upload_bytes").axes
    assert axes.get_xlabel() == "Data uploaded (MB)"
    assert points_of(axes.get_lines()[0])[0][-1] == pytest.approx(250)
    assert axes.get_yscale() == "log"
    (alone,) = figures.convergence(Fake(("central",))).axes
    assert len(points_of(alone.get_lines()[0])[0]) > 2  # a curve, and no level


@pytest.mark.parametrize("against", ["epsilon", "rounds"])
def test_what_no_run_counts_is_said(against: str) -> None:
    study = Curves({"a": [arrives(1)]})
    study.tables["evaluations"]["rounds"] = np.nan
    said = "no run (accounts for privacy|of the study has rounds to be)"
    with pytest.raises(StudyError, match=said):
        figures.convergence(study, "test_accuracy", against)


def test_single_replicates_are_drawn_without_bands() -> None:
    study = Fake()
    study.manifest["runs"] = study.manifest["runs"][::REPLICATES]
    figure = figures.convergence(study)
    assert np.isfinite(points_of(figure.axes[0].get_lines()[0])[1].astype(float)).all()
    assert note_of(figure).startswith("Lines: one replicate of each")
    assert_apart(figures.speed_up_bars(study, "test_accuracy", 0.8))


def test_many_groups_with_awkward_names() -> None:
    names = tuple(f"_a long $name$, q={n}, {'word ' * 12}" for n in range(20))
    figure = figures.convergence(Fake(names))
    titles = titles_of(figure)
    assert len(titles) == 20
    assert titles[3].strip().startswith(r"_a long \$name\$, q=3,")
    assert_apart(figure)
    assert_apart(figures.speed_up_bars(Fake(names), "test_accuracy", 0.5))
    endless = tuple(f"{number}{'a' * 10_000}{number}" for number in range(5))
    figure = figures.convergence(Fake(endless))
    assert max(figure.get_size_inches()) < 12
    assert_apart(figure)
    ends = [(text[0], text[-1]) for text in legend_of(figure)]
    assert ends == [(n, n) for n in "01234"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("$x$", r"\$x\$"),
        ("_hidden", " _hidden"),
        ("back\\slash", "back\\slash"),
        ("ctl\x1b[31m\x07", r"ctl\x1b[31m\x07"),
        ("\u202eabc", r"\u202eabc"),
        ("two\nlines", "two lines"),
        ("\u5feb", r"\u5feb"),  # DejaVu Sans has no such letter
        ("\u03b5 é", "\u03b5 é"),
    ],
)
def test_text_in_figures_is_literal(name: str, shown: str) -> None:
    assert style.text(name) == shown
    figure = figures.convergence(Fake((name, "other")))
    assert legend_of(figure)[0] == shown
    figure.draw_without_rendering()  # a letter that is missing would be a warning


def test_looks_of_private_groups() -> None:
    looks = style.looks(["private-a", "a", "b", "c, private, q=1", "c, q=1"])
    assert looks["private-a"].color == looks["a"].color
    assert looks["c, private, q=1"].color == looks["c, q=1"].color
    assert looks["private-a"].linestyle == style.DASHED
    assert len({look.color for look in looks.values()}) == 3
    assert style.looks(["private"])["private"].linestyle == style.DASHED


def test_bands_of_an_accuracy_end_at_one() -> None:
    study = Fake(("async",), noise=0.3)
    for metric, cut in (("test_accuracy", True), ("test_loss", False)):
        table = study.tables["evaluations"]
        study.tables["evaluations"] = table.rename(columns={"test_accuracy": metric})
        figure = figures.convergence(study, metric)
        (axes,) = figure.axes
        low, high = axes.collections[0].get_datalim(axes.transData).intervaly
        assert ((low, high) == (0, 1)) == cut
        assert ("cut at the metric's limits 0 and 1" in note_of(figure)) == cut


def test_bands_of_what_is_never_negative_end_at_zero() -> None:
    study = Curves({"a": [[0.2, 0.1], [0.2, 1.0]]})
    table = study.tables["evaluations"]
    table = table.rename(columns={"test_accuracy": "consensus_distance"})
    study.tables["evaluations"] = table
    figure = figures.convergence(study, "consensus_distance")
    (axes,) = figure.axes
    low, _ = axes.collections[0].get_datalim(axes.transData).intervaly
    assert low == 0
    assert "cut at the metric's limit 0" in note_of(figure)
    assert "means of the last evaluation: a 0.55" in figure.get_label()


def test_notes_say_what_is_drawn_and_no_more() -> None:
    study = Fake(("async", "sync"))
    study.manifest["runs"][0]["stop"] = "diverged"
    study.manifest["status"] = "incomplete"
    figure = figures.convergence(study)
    said = "Lines: means over 4 to 5 replicates; bands: 95 % t-intervals"
    assert note_of(figure) == said
    assert legend_of(figure)[0] == "async (1 of 5 diverged)"
    assert "incomplete" in figure.get_suptitle()
    figure = figures.convergence(Fake(("async", "central")))
    assert note_of(figure).endswith("; dashed: mean final value")


def test_commits_of_unlike_content_are_said_to_be() -> None:
    study = Fake(("async", "sync"))
    table = study.tables["evaluations"]
    table["contributions"] = table["commits"] * np.where(table["run"] < 5, 1, 8)
    # Three of the second group are in a buffer that is not full at the end.
    table["contributions"] += np.where(table["run"] < 5, 0, 3)
    said = "1 to 8 client updates per server update, by variant"
    assert said in note_of(figures.convergence(study, against="commits"))
    assert said not in note_of(figures.convergence(study, against="time"))
    table["contributions"] = 3 * table["commits"]
    same = figures.convergence(study, against="commits")
    assert "client updates" not in note_of(same)


def test_groups_of_a_study_without_variants_are_called_by_what_is_swept() -> None:
    study = Fake(("base, b=1", "base, b=2"))
    for run in study.manifest["runs"]:
        run["variant"] = "base"
    assert legend_of(figures.convergence(study)) == ["b=1", "b=2"]
    title = figures.staleness_histogram(study, "base, b=1").get_suptitle()
    assert title.splitlines()[1] == "b=1; 1 of 2 swept points"
    assert figures.convergence(Fake(("base",))).legends == []


def test_title_and_note_can_be_taken_off() -> None:
    figure = figures.convergence(Fake(("async", "sync")))
    figure.draw_without_rendering()
    before = figure.axes[0].get_position().height
    figure.suptitle("")
    figure.supxlabel("")
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().height > before + 0.1


def test_speed_up_bars_say_who_did_not_arrive() -> None:
    study = Fake()
    figure = figures.speed_up_bars(study, "test_accuracy", 0.8)
    (axes,) = figure.axes
    texts = texts_of(figure)
    assert "not reached (0 of 5)" in texts
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars if bar.get_hatch()] == [100]
    # Those of the slow side were last seen at 100 s, each at its pair's own ratio.
    mine = times_to_target(study, "test_accuracy", 0.8)
    fast = mine.loc[mine["group"] == "async", "high"]
    assert f"≥ {np.median(100 / fast):.3g}× (5 of 5)" in texts
    assert axes.get_xlabel() == "Virtual time to test accuracy ≥ 0.8 (s)"
    assert "; hatched: half or more did not, to where they tried;" in note_of(figure)
    assert_apart(figure)
    for target, label in ((0.2, "1× (5 of 5)"), (0.05, "at once (5 of 5)")):
        assert label in texts_of(figures.speed_up_bars(study, "test_accuracy", target))


def test_intervals_of_times_are_closed_where_all_arrived() -> None:
    study = Fake(("async", "async private"))
    figure = figures.speed_up_bars(study, "test_accuracy", 0.8)
    markers = [line.get_marker() for line in figure.axes[0].get_lines()]
    assert (markers.count(">"), markers.count("|")) == (0, 4)
    assert note_of(figure) == (
        "Bars: median; lines: its range (94 % interval); ×: times as fast as the "
        "slowest, median over pairs of replicates; (k of n): replicates that reached "
        "it; resolution 4 s (between evaluations)"
    )
    study.manifest["scenario"]["stop"] = {}
    best = default_target(study)
    of_best = figures.speed_up_bars(study, best.metric, best.value)
    assert note_of(of_best).endswith("target: 95 % of the best variant's final value")
    table = study.tables["evaluations"]
    table.loc[table["run"] == 0, "test_accuracy"] = 0.1
    opened = figures.speed_up_bars(study, "test_accuracy", 0.8)
    assert ">" in [line.get_marker() for line in opened.axes[0].get_lines()]
    assert "an arrow where it is unbounded" in note_of(opened)
    # Two times, of which one is 4 s: their t-interval went on for hours.
    study.manifest["runs"] = [r for r in study.manifest["runs"] if r["replicate"] < 2]
    table.loc[(table["run"] == 0) & (table["time"] >= 4), "test_accuracy"] = 0.9
    (axes,) = figures.speed_up_bars(study, "test_accuracy", 0.8).axes
    ends = [x for line in axes.get_lines() for x in line.get_xdata()]
    assert max(ends) <= table["time"].max()


def test_report_is_reproducible(tmp_path: Path) -> None:
    drawn, forms = ("convergence-time", "convergence-commits"), ("png", "svg", "pdf")
    files = [f"{name}.{form}" for name in drawn for form in forms]
    every = []
    for name in ("one", "two"):
        paths = report.save(Fake(("central",)), tmp_path / name, forms)
        assert [path.name for path in paths] == files
        folder = tmp_path / name / "figures"
        captions = {path.with_suffix(".txt") for path in paths}
        assert {*folder.iterdir()} == {*paths, *captions}
        every.append([path.read_bytes() for path in paths])
    assert every[0] == every[1]
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for file, content in zip(files, every[0], strict=True):
        assert content.startswith(starts[file[-3:]])
        assert b"CreationDate" not in content


def test_a_figure_is_saved_as_matplotlib_would_lay_it_out(tmp_path: Path) -> None:
    ours, plain = (figures.convergence(Fake(("async",))) for _ in range(2))
    (path,) = save_figure(ours, tmp_path / "ours")
    with style.context():
        plain.savefig(tmp_path / "plain.png", dpi=DOTS_PER_INCH)
    assert path.read_bytes() == (tmp_path / "plain.png").read_bytes()


def test_names_of_files_and_their_folder(tmp_path: Path) -> None:
    assert [name for name, _ in report.standard(Fake(("async", "central")))] == [
        *("convergence-time", "convergence-commits"),
        *("staleness", "staleness-async", "time-to-target"),
    ]
    names = _file_names(["a=1", "a 1", "../b", "β"])
    assert list(names.values()) == ["a-1", "a-1-2", "b", "group"]
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(StudyError, match="must be written, but"):
        report.save(Fake(("central",)), tmp_path)


def test_kinds_of_figures_are_counted() -> None:
    heard: list[tuple[int, int]] = []
    drawn = report.standard(Fake(("a", "b")), report=lambda *told: heard.append(told))
    assert len([*drawn]) > 1
    kinds = heard[0][1]
    assert heard == [(done, kinds) for done in range(kinds)]


def test_captions_of_figures() -> None:
    final = "Final values (of the last tenth of evaluations)"
    swept = f"{final} over the swept"
    known: dict[str, Any] = {
        "loss-over-a-and-b": f"{swept} keys, means over replicates",
        "loss-over-a": f"{swept} key, with 95 % intervals",
        "commits-over-a": "Server updates until the target over the swept key",
        "time-to-target-over-a": "Virtual time until the target over the swept key, "
        f"with 95 % intervals of medians; {MEDIANS}",
        "loss-against-privacy": f"{final} against the privacy that clients spent",
        "convergence-commits-loss": "Learning curves",
        "time-to-target": f"Virtual time until the target: medians; {MEDIANS}",
        "unheard-of": "unheard-of",
    }
    assert {name: report.caption(name) for name in known} == known
