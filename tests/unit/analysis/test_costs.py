"""Seconds of computation and communication until a target."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from stalesim.analysis.figures import costs
from tests.unit.analysis.studies import Curves, arrives, empty


def _study(*arrivals: int, groups: str = "ab") -> Curves:
    """Returns a study whose clients compute the first half of every two seconds."""
    study = Curves({group: [arrives(n) for n in arrivals] for group in groups})
    jobs = [
        (run["run"], 0, number, "work", 2.0 * number, 2.0 * number, 2.0 * number + 1)
        for run in study.manifest["runs"]
        for number in range(5)
    ]
    names = ["run", "client", "job", "kind", "read_time", "begun_time", "computed_time"]
    table = pd.DataFrame(jobs, columns=pd.Index(names))
    rest = {name: "APPLIED" if name == "outcome" else 0 for name in empty("jobs")}
    missing = {name: value for name, value in rest.items() if name not in names}
    study.tables["jobs"] = table.assign(**missing)
    return study


def test_costs_until_a_target() -> None:
    table = costs.costs(_study(1, 4, 7), "test_accuracy", 0.9)
    mine = table.loc[table["group"] == "a"]
    assert mine["computation_s"].tolist() == [1, 2, 4]
    assert mine["communication_s"].tolist() == [0, 2, 3]
    assert mine["reached"].all()


def test_costs_of_whole_runs_and_of_targets_that_were_not_reached() -> None:
    for target, reached in ((None, True), (0.95, False)):
        table = costs.costs(_study(1, 4), "test_accuracy", target)
        assert set(table["computation_s"]) == {5}
        assert set(table["communication_s"]) == {5}
        assert set(table["reached"]) == {reached}


def test_bars_are_stacked() -> None:
    figure = costs.cost_bars(_study(1, 4, 7), "test_accuracy", 0.9)
    (axes,) = figure.axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    # Computation 7/3 s, and on it communication 5/3 s; two groups.
    assert [bar.get_width() for bar in bars] == pytest.approx([7 / 3, 5 / 3] * 2)
    assert [bar.get_x() for bar in bars] == pytest.approx([0, 7 / 3] * 2)
    assert [bar.get_alpha() for bar in bars] == [1] * 4
    assert [text.get_text() for text in axes.texts] == ["4 s", "4 s"]
    # The sums are 1, 4 and 7 s: their interval would leave the 10 s of the runs.
    ends = axes.collections[0].get_segments()[0][:, 0]
    np.testing.assert_allclose(ends, [0, 10])
    assert "resolution 1 s" in figure.get_supxlabel()
    assert axes.get_xlabel() == "Virtual time to test accuracy ≥ 0.9 (s)"
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == list(costs.NAMES)


def test_intervals_of_sums_reach_to_the_evaluation_before() -> None:
    (axes,) = costs.cost_bars(_study(4, 5, 6), "test_accuracy", 0.9).axes
    half = 4.302653 / np.sqrt(3)  # the sums are 4, 5 and 6 s, or up to 1 s less
    ends = axes.collections[0].get_segments()[0][:, 0]
    np.testing.assert_allclose(ends, [4 - half, 5 + half], rtol=1e-6)
    same = costs.cost_bars(_study(5, 5, 5), "test_accuracy", 0.9).axes[0]
    ends = same.collections[0].get_segments()[0][:, 0]
    np.testing.assert_allclose(ends, [4, 5])  # not 5 to 5
    (axes,) = costs.cost_bars(_study(4, 99, 6), "test_accuracy", 0.9).axes
    assert not axes.collections  # of a bound there is no interval


def test_bars_that_are_bounds_say_so() -> None:
    figure = costs.cost_bars(_study(1, 99, groups="a"), "test_accuracy", 0.9)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["≥ 5.5 s (1 of 2)"]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert {bar.get_alpha() for bar in bars} == {0.4}
    axes, *_ = costs.cost_bars(_study(1, 99, groups="a")).axes
    assert axes.get_xlabel() == "Virtual time of whole runs (s)"
    assert [text.get_text() for text in axes.texts] == ["10 s"]
