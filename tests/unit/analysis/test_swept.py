"""Figures over a swept number: what is drawn as a line, and what never is averaged."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer

from stalesim import analysis
from stalesim.analysis import style
from stalesim.analysis.figures import report, sweeps
from stalesim.analysis.figures.lines import lines_over
from stalesim.analysis.frames import follow, swept_columns
from stalesim.simulator.files.study import StudyError
from stalesim.simulator.scenario.claims.base import is_at
from tests.unit.analysis.drawn import legend_of, note_of
from tests.unit.analysis.studies import Grid

T = 4.302653  # t(0.975, 2)
BS, STEPS = (1.1, 2.0, 4.0), (0.01, 0.1)


def _value(b: float, step: float, replicate: int) -> float:
    return 0.5 + 0.02 * b + step + 0.01 * (replicate - 1)


def two_keys(**more: Any) -> Grid:
    """Returns a study of two keys: three replicates, 0.01 apart, at each point."""
    points = [
        (
            "base",
            {"clients.compute.b": b, "algorithm.step_size": step},
            [_value(b, step, replicate) for replicate in range(3)],
        )
        for b in BS
        for step in STEPS
    ]
    return Grid(points, **more)


def bars(axes: Axes) -> list[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
    """Returns places, heights and ends of what has error bars."""
    found = []
    for container in axes.containers:
        assert isinstance(container, ErrorbarContainer)
        line, _, (ends,) = container
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        found.append((x, y, ends.get_segments()))
    return found


def test_another_swept_key_is_never_taken_for_replicates() -> None:
    # Pooled, every point would have 6 values, and an interval of 0.12 about their mean.
    figure = analysis.final_over(two_keys(), "clients.compute.b")
    (axes,) = figure.axes
    lines = bars(axes)
    assert len(lines) == len(STEPS)
    for step, (x, y, ends) in zip(STEPS, lines, strict=True):
        np.testing.assert_allclose(x, BS, atol=0.05)
        np.testing.assert_allclose(y, [_value(b, step, 1) for b in BS])
        half = [end[1, 1] - y[0] for end in ends[:1]]
        np.testing.assert_allclose(half, T * 0.01 / math.sqrt(3), rtol=1e-6)
    assert legend_of(figure) == ["learning_rate=0.01", "learning_rate=0.1"]
    note = note_of(figure)
    assert "Final: mean of the last tenth" in note
    assert "means over 3 replicates" in note
    assert axes.get_ylabel() == "Final test accuracy"
    assert axes.get_xlabel() == "Compute: b"


def test_the_other_key_can_be_fixed() -> None:
    at = {"algorithm.step_size": 0.1}
    figure = analysis.final_over(two_keys(), "clients.compute.b", at=at)
    (line,) = bars(figure.axes[0])
    np.testing.assert_allclose(line[0], BS)
    np.testing.assert_allclose(line[1], [_value(b, 0.1, 1) for b in BS])
    assert figure.legends == []  # without variants there is nothing to be told apart
    assert "algorithm.learning_rate = 0.1" in figure.get_suptitle()
    study = two_keys()
    study.manifest["scenario"]["clients"] = {"compute": {"law": "pareto", "b": 2}}
    (axes,) = analysis.final_over(study, "clients.compute.b").axes
    assert axes.get_xlabel() == "Compute: b of pareto"
    other = analysis.final_over(study, "algorithm.step_size")
    assert legend_of(other) == ["b=1.1", "b=2", "b=4"]
    assert other.axes[0].get_xlabel() == "Learning rate"


@pytest.mark.parametrize("word", ["learning_rate", "step_size"])
def test_keys_are_read_in_either_word(word: str) -> None:
    study, key, b = two_keys(), f"algorithm.{word}", "clients.compute.b"
    figure = analysis.final_over(study, key, at={b: 2.0})
    assert figure.axes[0].get_xlabel() == "Learning rate"
    assert len(analysis.convergence(study, panels=key).axes) == len(STEPS)
    (axes, _) = analysis.heat_map(study, keys=(key, b)).axes
    assert len(axes.get_xticks()) == len(STEPS)
    with pytest.raises(StudyError, match="the swept key"):
        analysis.convergence(study, against=key)
    assert {"algorithm.learning_rate", b} <= {*analysis.tidy(study)}
    with pytest.raises(StudyError, match=r"known are algorithm\.learning_rate, cl"):
        analysis.final_over(study, "x")


def test_columns_have_the_words_of_pages() -> None:
    keys = {
        "clients.loss.chance": "clients.message_loss.probability",
        "clients.groups.size.power.values": "clients.groups.size.speed.values",
        "algorithm.step_size.value": "algorithm.learning_rate.value",
        "problem.loss": "problem.loss",
    }
    study = Grid([("a", dict.fromkeys(keys, x), [0.5]) for x in (1, 2)])
    assert swept_columns(study) == {word: word for word in keys.values()}


def test_a_part_without_a_name_is_fixed_by_itself() -> None:
    law = {"law": "lognorm", "scale": 0.3, "s": 1}
    laws = law, law | {"s": 2}
    cells = [("base", {"law": each, "x": x}, [0.5]) for each in laws for x in (1, 2)]
    study = Grid(cells)
    ((line,), _) = lines_over(study, "x", {"law": laws[1]})
    assert len(line.groups) == 2
    assert all("'s': 2" in group for group in line.groups)
    assert [is_at({"law": each}, {"law": [laws[1]]}) for each in laws] == [0, 1]


def test_every_group_is_in_one_line() -> None:
    study = Grid(
        [
            *(
                (variant, {"x": x, "y": y, "z": z}, [0.5])
                for variant in ("a", "b")
                for x in (1, 2)
                for y in (1, 2)
                for z in ("p", "q")
            ),
            ("free", {}, [0.6]),
            ("half", {"y": 1}, [0.7]),
            ("half", {"y": 2}, [0.8]),
        ]
    )
    lines, along = lines_over(study, "x")
    groups = [group for line in lines for group in line.groups]
    assert sorted(groups) == sorted({run["label"] for run in study.manifest["runs"]})
    assert [line.label for line in lines] == [
        *(f"{v}, y={y}, z={z}" for v in "ab" for y in (1, 2) for z in "pq"),
        "free",
        *("half, y=1", "half, y=2"),
    ]
    assert [line.is_level for line in lines] == [False] * 8 + [True] * 3
    assert along == ""
    confined, _ = lines_over(study, "x", {"y": 2, "z": "p"})
    assert [line.label for line in confined] == ["a", "b", "free", "half"]


def test_keys_that_change_along_a_line_are_named() -> None:
    study = Grid([("base", {"x": x, "lr": 1 / x}, [0.5, 0.6]) for x in (1, 2, 4)])
    lines, along = lines_over(study, "x")
    assert [line.groups for line in lines] == [
        ["base, x=1, lr=1.0", "base, x=2, lr=0.5", "base, x=4, lr=0.25"]
    ]
    assert along == "along with it changes lr"
    figure = sweeps.final_over(study, "x")
    assert "along with it changes lr" in note_of(figure)


def test_few_values_on_a_linear_axis_are_its_ticks() -> None:
    study = Grid([("base", {"x": x}, [0.5, 0.6]) for x in (2, 5, 20)])
    (axes,) = sweeps.final_over(study, "x").axes
    assert axes.get_xscale() == "linear"
    assert axes.get_xticks().tolist() == [2, 5, 20]


def test_what_cannot_be_drawn_is_said_in_one_line() -> None:
    study = two_keys()
    with pytest.raises(StudyError, match="w is not swept; known are algorithm"):
        sweeps.final_over(study, "w")
    with pytest.raises(
        StudyError, match=r"at .*learning_rate = 7; known are 0.01, 0.1"
    ):
        sweeps.final_over(study, "clients.compute.b", at={"algorithm.step_size": 7})
    many = Grid([("a", {"x": x, "y": y}, [0.5]) for x in (1, 2) for y in range(30)])
    with pytest.raises(StudyError, match=r"more than x .* 30 lines; .* by at: y"):
        sweeps.final_over(many, "x")


def test_what_is_no_number_is_a_category() -> None:
    cells = [
        (variant, {"clients.compute": {"law": law}, "x": x}, [0.5 + x / 10])
        for variant in ("a", "b")
        for law in ("norm", "expon")
        for x in (1, 2)
    ]
    figure = sweeps.final_over(Grid(cells), "compute", at={"x": 2})
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["norm", "expon"]
    assert axes.get_xlabel() == "Compute"
    for x, y, _ in bars(axes):
        np.testing.assert_allclose(x, [0, 1], atol=0.05)
        np.testing.assert_allclose(y, 0.7)
    assert [line.get_linestyle() for line in axes.get_lines()[:1]] == ["None"]
    truths = Grid([("a", {"on": on}, [0.1 + on]) for on in (True, False)])
    (axes,) = sweeps.final_over(truths, "on").axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["False", "True"]
    np.testing.assert_allclose(bars(axes)[0][1], [0.1, 1.1])


def test_intervals_that_are_cut_are_said_to_be() -> None:
    study = Grid([("a", {"x": x}, [0.8, 1.0, 1.0]) for x in (1, 2)])
    figure = sweeps.final_over(study, "x")
    ends = bars(figure.axes[0])[0][2]
    assert [end[1, 1] for end in ends] == [1, 1]
    assert "cut at the metric's limit 1" in note_of(figure)
    alone = sweeps.final_over(Grid([("a", {"x": x}, [0.8]) for x in (1, 2)]), "x")
    assert "interval" not in alone.get_supxlabel()
    assert "means over" not in alone.get_supxlabel()


def test_commits_to_a_target_are_medians_of_replicates_alone() -> None:
    study = two_keys(stop="target")
    for run in study.manifest["runs"]:
        b, step = run["parameters"].values()
        run["commits"] = round(100 * b * (1 + run["replicate"]) / step)
        if (b, step) == (4.0, 0.01):
            run["stop"] = "commits"
    figure = analysis.commits_over(study, "clients.compute.b")
    lines = bars(figure.axes[0])
    medians = [*(200 * b / 0.01 for b in BS[:2]), math.nan]
    np.testing.assert_allclose(lines[0][1], medians)
    np.testing.assert_allclose(lines[1][1], [200 * b / 0.1 for b in BS])
    assert missed(figure.axes[0]) == [[40_000, 80_000, 120_000]]
    note = note_of(figure)
    assert "△: one that did not arrive, at its end (k of n did)" in note
    assert "medians over 3 replicates" in note


def missed(axes: Axes) -> list[list[float]]:
    """Returns where replicates that did not arrive are drawn, line by line."""
    lines = (line for line in axes.get_lines() if line.get_marker() == "^")
    return [sorted(np.asarray(line.get_ydata()).tolist()) for line in lines]


def timed(central: float = 0.9) -> Grid:
    """Returns a study of two keys in which replicate r arrives at (r + 1) b / step s.

    It is looked at for twice as long. With the small step none arrives at b = 4, and
    the last one does not at b = 2. A variant that is not swept takes 100 (r + 1) s.
    """
    arrive = {(4.0, 0.01): 0, (2.0, 0.01): 2}
    points = [
        (
            "base",
            {"clients.compute.b": b, "algorithm.step_size": step},
            [0.9 if r < arrive.get((b, step), 3) else 0.2 for r in range(3)],
        )
        for b, step in itertools.product(BS, STEPS)
    ]
    study = Grid([*points, ("central", {}, [central] * 3)])
    seconds = {}
    for run in study.manifest["runs"]:
        b, step = run["parameters"].values() or (100.0, 1.0)
        seconds[run["run"]] = (1 + run["replicate"]) * b / step
    table = study.tables["evaluations"]
    table["time"] *= table["run"].map(seconds)
    return study


TO_08 = ("clients.compute.b", "test_accuracy", 0.8)


def test_times_to_a_target_are_medians_of_replicates_alone() -> None:
    figure = analysis.time_to_target_over(timed(), *TO_08)
    (axes,) = figure.axes
    small, large = bars(axes)
    assert legend_of(figure) == [
        "base, learning_rate=0.01",
        "base, learning_rate=0.1",
        "central",
    ]
    np.testing.assert_allclose(small[1], [220, 400, math.nan])
    np.testing.assert_allclose(large[1], [22, 40, 80])
    # Of three the range: evaluated at 0 and, the last one, at 60.
    np.testing.assert_allclose(large[2][1][:, 1], [0, 60])
    heights = [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()]
    assert [200, 200] in heights
    assert axes.get_ylabel() == "Virtual time\nto test accuracy ≥ 0.8 (s)"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    alone = analysis.time_to_target_over(
        timed(), *TO_08, at={"algorithm.step_size": 0.1}
    )
    assert len(bars(alone.axes[0])) == 1


def test_replicates_that_do_not_arrive_are_drawn_and_counted() -> None:
    figure = analysis.time_to_target_over(timed(central=0.5), *TO_08)
    (axes,) = figure.axes
    never = [800, 1600, 2400]
    assert missed(axes) == [sorted([*never, 1200]), [200, 400, 600]]
    assert [text.get_text() for text in axes.texts] == ["2 of 3", "0 of 3", "0 of 3"]
    assert legend_of(figure)[2] == "central"  # though it has no line
    told = str(figure.get_label())
    assert "no median where half or more did not" in told
    assert "compute.b=2.0, algorithm.step_size=0.01 2 of 3" in told
    assert told.endswith(", of the others all")
    calm = Grid([("a", {"x": x}, [0.9, 0.9]) for x in (1, 2, 3)])
    all_there = analysis.time_to_target_over(calm, "x", "test_accuracy", 0.8)
    assert "△" not in str(all_there.get_label())
    assert "arrived" not in str(all_there.get_label())
    assert all_there.axes[0].get_ylim()[0] == 0
    drawn = dict(report.standard(calm))["time-to-target-over-x"]
    assert "target: 95 % of the best variant's final value" in str(drawn.get_label())


@pytest.mark.parametrize(
    ("values", "geometric"),
    [
        ((1, 2, 4, 8), True),
        ((10, 20, 50, 100), True),
        ((8, 16, 33, 65, 130), True),  # rounded
        ((1, 2, 3), False),
        ((0.8, 1.2, 1.6), False),
        ((1, 2, 3, 5), False),
        ((0, 1, 2, 4), False),
        ((1, 10), False),
    ],
)
def test_an_axis_is_logarithmic_where_the_sweep_is(
    values: tuple[float, ...], *, geometric: bool
) -> None:
    study = Grid([("a", {"x": x}, [0.5, 0.6]) for x in values])
    axis = sweeps.final_over(study, "x").axes[0]
    assert axis.get_xscale() == ("log" if geometric else "linear")


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("algorithm.step_size", "Learning rate"),
        ("clients.compute.b", "Compute: b"),
        ("clients.groups.slow.compute.scale", "Compute (slow): scale"),
        ("algorithm.batch", "Batch size"),
        ("clients.groups.$x$.n", r"\$x\$: n"),
        ("b", "b"),
    ],
)
def test_an_axis_says_which_key_it_is(key: str, label: str) -> None:
    assert style.key_label(key) == label


def test_ticks_of_a_wide_sweep_stand_at_its_values_apart_from_each_other() -> None:
    steps = (0.01, 0.03, 0.1, 0.3, 1.0)
    study = Grid([("a", {"algorithm.step_size": x}, [0.5, 0.6]) for x in steps])
    figure = analysis.final_over(study, "algorithm.step_size")
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    shown = [tick.label1 for tick in ticks if tick.label1.get_text()]
    assert [text.get_text() for text in shown] == [f"{x:g}" for x in steps]
    places = [text.get_window_extent() for text in shown]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(places))
    dense = [round(0.001 * 1.2**n, 6) for n in range(30)]
    study = Grid([("a", {"algorithm.step_size": x}, [0.5, 0.6]) for x in dense])
    axis = analysis.final_over(study, "algorithm.step_size").axes[0].xaxis
    assert not any(tick.label1.get_text() for tick in axis.get_minor_ticks())


def test_values_at_an_instant_over_a_sweep() -> None:
    study = two_keys()
    figure = analysis.final_over(study, "clients.compute.b", after=0.5)
    lines = bars(figure.axes[0])
    np.testing.assert_array_equal([y for _, y, _ in lines], np.zeros((2, 3)))
    assert figure.axes[0].get_ylabel() == "Test accuracy after 0.5 s"
    note = note_of(figure)
    assert note.startswith("After 0.5 s: as evaluated at 0 s")
    at = analysis.final_over(study, "clients.compute.b", after=10, against="commits")
    for step, (_, y, _) in zip(STEPS, bars(at.axes[0]), strict=True):
        np.testing.assert_allclose(y, [_value(b, step, 1) for b in BS])
    with pytest.raises(StudyError, match="no run of study 'fake' lasted for 3 s"):
        analysis.final_over(study, "clients.compute.b", after=3)
    wrong: Any = 40
    with pytest.raises(StudyError, match=r"at must be values .* take after=40"):
        analysis.final_over(study, "clients.compute.b", at=wrong)


def names_over(study: Grid, at: tuple[float, ...] = ()) -> dict[str, Any]:
    """Returns the standard figures over what is swept, and those at instants."""
    drawn = report.standard(study, at)
    return {k: v for k, v in drawn if "-over-" in k or "-after-" in k}


def test_standard_figures_over_what_is_swept() -> None:
    of_two = names_over(two_keys(), (1,))
    assert list(of_two) == [
        "test_accuracy-over-clients.compute.b-and-algorithm.learning_rate",
        "test_accuracy-after-1-s",
    ]
    assert of_two["test_accuracy-after-1-s"].axes[0].get_images()
    assert not any(text.startswith("base") for text in legend_of(of_two.popitem()[1]))
    key = "clients.groups.../../x.n"  # which is no path
    of_one = names_over(Grid([("a", {key: x}, [0.8]) for x in (1, 2)]), (1,))
    assert list(of_one) == [
        "test_accuracy-over-clients.groups...-..-x.n",
        "time-to-target-over-clients.groups...-..-x.n",
        "test_accuracy-after-1-s",
    ]
    assert of_one["test_accuracy-after-1-s"].axes[0].lines
    zipped = [{"x": x, "y": y} for x, y in ((1, "p"), (2, "q"), (4, "r"))]
    study = Grid([("a", one | {"z": z}, [0.5]) for one in zipped for z in (1, 2)])
    assert "test_accuracy-over-x-and-z" in names_over(study)
    study.manifest["scenario"]["sweep"] = {"random": {"num": 6, "x": {}, "y": {}}}
    assert follow(study, "x") == []  # points that are drawn are no axis
