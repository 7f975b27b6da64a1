"""What privacy costs: the numbers, and the curve."""

import math
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import figures
from stalesim.analysis.figures import privacy
from stalesim.analysis.legend import details, legend
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.drawn import legend_of, note_of, texts_of
from tests.unit.analysis.studies import Curves, Grid, arrives

HALF = 4.302653 * 0.01 / math.sqrt(3)  # t(0.975, 2) s / sqrt(n)
EPSILONS: dict[str, Any] = {
    "a, q=1": [8.0, 8.0, 8.0],
    "a, q=2": [1.0, 2.0, 3.0],
    "b": [4.0] * 3,
    "open": [math.inf] * 3,
}


def _study(epsilons: Any = None) -> Grid:
    points = [
        ("a", {"q": 1}, [0.89, 0.9, 0.91]),
        ("a", {"q": 2}, [0.69, 0.7, 0.71]),
        ("b", {}, [0.8, 0.8, 0.8]),
        ("plain", {}, [0.99, 0.995, 1.0]),
        ("open", {}, [0.98] * 3),
    ]
    return Grid(points, EPSILONS if epsilons is None else epsilons)


def test_utility_of_groups() -> None:
    table = privacy.utility(_study())
    assert table["variant"].tolist() == ["a", "a", "b", "plain", "open"]
    np.testing.assert_array_equal(table["epsilon"], [8, 2, 4, np.nan, np.inf])
    np.testing.assert_allclose(table["mean"], [0.9, 0.7, 0.8, 0.995, 0.98])
    np.testing.assert_allclose(table["low"][:2], [0.9 - HALF, 0.7 - HALF], rtol=1e-6)
    assert table["replicates"].tolist() == [3] * 5


def test_the_curve_has_a_line_per_variant() -> None:
    figure = privacy.privacy_utility(_study())
    (axes,) = figure.axes
    lines = [line for line in axes.get_lines() if line.get_marker() == "o"]
    xs = [np.asarray(line.get_xdata()).tolist() for line in lines]
    assert xs == [[2, 8], [4]]
    # Labels have their line's colour, and lie above it and below it in turn.
    looks = [lines[place].get_color() for place in (0, 0, 1)]
    texts: list[Any] = list(axes.texts)
    assert [text.get_color() for text in texts] == looks
    assert [text.xyann[1] for text in texts] == [3, 3, -9]
    np.testing.assert_allclose(np.asarray(lines[0].get_ydata()), [0.7, 0.9])
    bars = axes.collections[0].get_segments()
    np.testing.assert_allclose(bars[0][:, 1], [0.7 - HALF, 0.7 + HALF], rtol=1e-6)
    assert legend_of(figure) == ["a", "b", "plain (no ε)", "open (no ε)"]
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    heights = [np.asarray(line.get_ydata())[0] for line in dashed]
    assert heights == pytest.approx([0.995, 0.98])
    assert axes.get_xlabel().endswith("(δ = 1e-05, by rdp)")
    assert axes.get_xscale() == "linear"


def test_keys_that_cost_no_privacy_are_lines_of_their_own() -> None:
    points = [
        ("a", {"eps": eps, "lr": lr}, [0.5 + 0.1 * eps + lr] * 3)
        for eps in (1, 2)
        for lr in (0.01, 0.1)
    ]
    spent = {f"a, eps={e}, lr={lr}": [e] * 3 for e in (1, 2) for lr in (0.01, 0.1)}
    figure = privacy.privacy_utility(Grid(points, spent))
    lines = [line for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    for line, lr in zip(lines, (0.01, 0.1), strict=True):
        assert np.asarray(line.get_xdata()).tolist() == [1, 2]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), [0.6 + lr, 0.7 + lr])
    assert legend_of(figure) == ["a, lr=0.01", "a, lr=0.1"]
    # Where both keys change epsilon, no line would be over one of them alone.
    spent = {f"a, eps={e}, lr={lr}": [e + lr] * 3 for e in (1, 2) for lr in (0.01, 0.1)}
    both = privacy.privacy_utility(Grid(points, spent))
    (line,) = (line for line in both.axes[0].get_lines() if line.get_marker() == "o")
    assert line.get_linestyle() == "None"
    assert "not joined, as several swept keys change ε: eps, lr" in note_of(both)


def _of_multiplier(spent: dict[float, float], **more: Any) -> Grid:
    points = [("a", {"multiplier": z}, [0.8] * 3) for z in spent]
    epsilons = {f"a, multiplier={z}": [e] * 3 for z, e in spent.items()}
    return Grid(points, epsilons, **more)


def test_points_of_one_budget_are_no_curve_over_epsilon() -> None:
    # Newcomer's study: what budget is left over less than a message is no epsilon.
    spent = {0.7: 7.83, 1.1: 7.89, 2.0: 8.0, 4.0: 3.8}
    ended = {f"a, multiplier={z}": 8.0 for z in (0.7, 1.1, 2.0)}
    study = _of_multiplier(spent, budgets=ended)
    name = "test_accuracy-against-privacy"
    assert name not in dict(privacy.standard(study))
    assert legend(study)["ε"] == (
        "of the client that spent most, in any replicate, by rdp at δ = 1e-05; epsilon "
        "protects a sample"
    )
    assert "no figure goes over ε, as runs ended at one budget" in details(study)
    figure = privacy.privacy_utility(study)
    (line,) = (one for one in figure.axes[0].get_lines() if one.get_marker() == "o")
    assert line.get_linestyle() == "None"
    assert "not joined, as runs ended at one budget" in figure.get_supxlabel()
    # Without budgets the same multipliers give each point an epsilon of its own.
    assert name in dict(privacy.standard(_of_multiplier(spent)))
    swept = privacy.privacy_utility(_of_multiplier(spent))
    assert "swept: multiplier; epsilon protects a sample" in swept.get_supxlabel()
    assert texts_of(swept) == ["4", "0.7", "1.1", "2"]


def test_intervals_end_where_the_metric_does_and_wide_axes_are_logarithmic() -> None:
    study = Grid([("a", {}, [0.9, 1.0, 1.0])], {"a": [1.0] * 3})
    (axes,) = privacy.privacy_utility(study).axes
    assert axes.collections[0].get_segments()[0][1, 1] == 1
    epsilons = {"a, q=1": [0.1] * 3, "b": [50.0] * 3}
    (axes,) = privacy.privacy_utility(_study(epsilons)).axes
    assert axes.get_xscale() == "log"


def test_nothing_to_draw_against() -> None:
    with pytest.raises(StudyError, match="no run accounts for privacy"):
        privacy.privacy_utility(Curves({"a": [arrives(1)]}))
    with pytest.raises(StudyError, match="no finite epsilon to draw against"):
        privacy.privacy_utility(_study({"b": [math.inf] * 3}))


def test_the_report_draws_it_where_epsilons_differ() -> None:
    same = {"a, q=1": [2.0] * 3, "b": [2.0] * 3}
    for epsilons in ({"b": [2.0] * 3}, same, {}):
        assert not [*privacy.standard(_study(epsilons))]
    points = [("a", {"budget": b}, [0.8] * 3) for b in (1.0, 2.0)]
    spent = {f"a, budget={b}": [b - 0.1] * 3 for b in (1.0, 2.0)}
    budgets = {f"a, budget={b}": b for b in (1.0, 2.0)}
    for study in (_study(), Grid(points, spent, budgets)):
        assert [*dict(privacy.standard(study))] == ["test_accuracy-against-privacy"]


@pytest.mark.parametrize(
    ("against", "end", "label"),
    [
        ("time", 2, "Virtual time (s)"),
        ("commits", 20, "Server updates"),
        ("bytes", 20.02, "Data sent (MB)"),
        ("epochs", 0.2, "Passes over the data"),
        ("epsilon", 8, "Privacy spent, ε of the client that spent most\n(δ = 1e-05"),
    ],
)
def test_convergence_against_anything_that_is_counted(
    against: str, end: float, label: str
) -> None:
    (axes,) = figures.convergence(_study(), "test_accuracy", against).axes
    first = axes.get_lines()[0]
    assert np.asarray(first.get_xdata())[-1] == pytest.approx(end)
    assert axes.get_xlabel().startswith(label)
    flat = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    # Without an epsilon, or with an infinite one: a line at the final value.
    expected = [0.995, 0.98] if against == "epsilon" else []
    heights = [np.asarray(line.get_ydata())[0] for line in flat]
    assert heights == pytest.approx(expected)


def test_every_figure_that_counts_epsilon_says_what_it_protects() -> None:
    step, batch = "algorithm.step_size", "algorithm.batch"
    places = [{step: s, batch: b} for s in (0.1, 0.2) for b in (5, 9)]
    labels = [", ".join(["a", *(f"{k}={v}" for k, v in at.items())]) for at in places]
    points = [("a", at, [0.5, 0.6]) for at in places]
    study = Grid(points, {label: [2.0, 3.0] for label in labels})
    metric, by = "test_accuracy", "epsilon"
    drawn = {
        "curve": figures.convergence(study, metric, by),
        "instant": figures.values_after(study, metric, 1.5, by),
        "line": figures.final_over(study, step, metric, after=1.5, against=by),
        "map": figures.heat_map(study, metric, (step, batch), after=1.5, against=by),
    }
    for name, figure in drawn.items():
        words = " ".join([figure.get_supxlabel(), figure.get_suptitle()])
        assert "epsilon protects a sample" in " ".join(words.split()), name
    other = figures.convergence(study, metric, "commits")
    assert "protects" not in other.get_supxlabel()


def test_curves_say_where_a_budget_ended_them() -> None:
    points = [("a", {}, [0.7] * 2), ("b", {}, [0.8] * 2)]
    study = Grid(points, {"a": [2.0] * 2}, {"a": 2.0})
    figure = figures.convergence(study)
    marked = [line.get_marker() for line in figure.axes[0].get_lines()]
    assert marked == ["s", "None"]
    assert "squares: privacy budget spent" in note_of(figure)
    assert "budget" not in note_of(figures.convergence(study, groups=["b"]))
