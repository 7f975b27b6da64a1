"""One frame of a whole study, and what is counted in it."""

import math

import numpy as np
import pytest

from stalesim.analysis import curves, frames, targets
from stalesim.analysis.phases import evaluations_by
from stalesim.simulator.trace import StudyError
from tests.unit.analysis.studies import Curves, Grid, arrives

LAW = {"law": "expon", "scale": 2.0}
EPSILONS = {"a, q=1": [4.0, 6.0], "a, q=2": [2.0, math.inf]}


def _study() -> Grid:
    points = [("a", {"q": 1}, [0.8, 0.9]), ("a", {"q": 2}, [0.7, 0.6])]
    return Grid([*points, ("plain", {}, [0.95, 0.99])], EPSILONS)


def test_tidy_has_a_row_per_evaluation() -> None:
    table = frames.tidy(_study())
    assert table.columns.tolist() == [
        *("run", "variant", "group", "replicate", "seed", "protocol", "q"),
        *("time", "commits", "contributions", "epochs", "rounds", "messages"),
        *("upload_bytes", "download_bytes", "bytes", "epsilon", "test_accuracy"),
    ]
    assert table["run"].tolist() == [run for run in range(6) for _ in range(3)]
    assert table["seed"].tolist() == [100, 100, 100, 101, 101, 101] * 3
    assert table["group"].unique().tolist() == ["a, q=1", "a, q=2", "plain"]
    np.testing.assert_array_equal(table["bytes"][:3], [0, 10_010_000, 20_020_000])
    np.testing.assert_array_equal(table["q"], [1.0] * 6 + [2.0] * 6 + [np.nan] * 6)


def test_tidy_has_the_largest_epsilon_of_the_first_accountant() -> None:
    spent = frames.tidy(_study())["epsilon"].to_numpy()
    expected = [0, 2, 4, 0, 3, 6, 0, 1, 2, 0, math.inf, math.inf, *[math.nan] * 6]
    np.testing.assert_array_equal(spent, expected)
    plain = frames.tidy(Curves({"a": [arrives(1)]}))
    assert plain["epsilon"].isna().all()
    assert "seed" not in plain


def test_runs_that_failed_or_are_incomplete_are_left_out() -> None:
    study = _study()
    for run, stop in ((0, "failed"), (3, "incomplete")):
        study.manifest["runs"][run]["stop"] = stop
    assert set(frames.tidy(study)["run"]) == {1, 2, 4, 5}


def test_swept_sub_trees_are_words_in_columns_of_their_own() -> None:
    values = {"clients.compute": LAW, "protocol": {"kind": "synchronous"}, "x": [1, 2]}
    table = frames.tidy(Grid([("a", values, [0.5])]))
    assert table["clients.compute"].unique() == ["expon(scale=2.0)"]
    assert table["sweep.protocol"].unique() == ["synchronous"]
    assert table["x"].unique() == ["[1, 2]"]
    assert table["protocol"].unique() == ["asynchronous"]


def test_order_of_swept_values() -> None:
    study = Grid([("a", {"q": q}, [0.5]) for q in (3, 0.1, 20)])
    assert frames.ordered(frames.runs(study)["q"]) == [0.1, 3, 20]
    study = Grid([("a", {"q": q}, [0.5]) for q in ("z", "b")] + [("c", {}, [0.5])])
    assert frames.ordered(frames.runs(study)["q"]) == ["z", "b"]


@pytest.mark.parametrize(
    ("against", "median"),
    [
        *(("time", 1), ("commits", 10), ("epochs", 0.1), ("rounds", 5)),
        *(("messages", 40), ("bytes", 10_010_000), ("epsilon", 2)),
    ],
)
def test_to_target_in_anything_that_is_counted(against: str, median: float) -> None:
    times = targets.times_to_target(_study(), "test_accuracy", 0.8, against)
    mine = times.set_index(["group", "replicate"])
    assert mine.loc[("a, q=1", 0), "time"] == pytest.approx(median)
    assert bool(mine.loc[("a, q=1", 0), "reached"])
    assert not mine.loc[("a, q=2", 0), "reached"]


def test_what_counts_nothing_has_no_time_to_target() -> None:
    table = targets.time_to_target(_study(), "test_accuracy", 0.8, "epsilon")
    table = table.set_index("group")
    assert table.loc["a, q=1", ["median", "reached"]].tolist() == [2, 2]
    assert math.isnan(table.loc["plain", "median"])
    assert table.loc["plain", "replicates"] == 2
    with pytest.raises(StudyError, match="has no epsilon to count, because no run acc"):
        evaluations_by(Curves({"a": [arrives(1)]}), "epsilon")


def test_final_quantities() -> None:
    study = _study()
    for run in study.manifest["runs"]:
        run["virtual_s"] = 2.5
    study.manifest["runs"][1]["stop"] = "diverged"

    def found(quantity: str) -> list[float]:
        return targets.final_quantities(study, quantity)["value"].tolist()

    expected = [2.5, math.nan, *[2.5] * 4]
    assert found("virtual_s") == pytest.approx(expected, nan_ok=True)
    expected = [20, math.nan, *[20] * 4]
    assert found("contributions") == pytest.approx(expected, nan_ok=True)
    expected = [4, math.nan, 2, math.inf, math.nan, math.nan]
    assert found("epsilon") == pytest.approx(expected, nan_ok=True)


def test_area_under_curve_is_over_the_common_range() -> None:
    # To 4 s and to 2 s: common are 0 to 2 s.
    study = Curves({"a": [[0, 0.5, 1, 1, 1]], "b": [[0.2, 0.4, 0.4]]})
    areas = curves.area_under_curve(study)
    assert areas["value"].tolist() == pytest.approx([0.5, (0.3 + 0.4) / 2])
    alone = curves.area_under_curve(study, among=["a"])
    assert alone["value"].tolist() == pytest.approx([3 / 4])
    for against in ("commits", "epochs", "bytes", "messages"):  # all grow evenly
        found = curves.area_under_curve(study, against=against)
        assert found["value"].tolist() == pytest.approx([0.5, 0.35])


def test_area_between_evaluations() -> None:
    study = Curves({"a": [[0, 1, 0]], "b": [[0, 1, 0]]})
    table = study.tables["evaluations"]
    table.loc[table["run"] == 1, "time"] = [0.5, 1.0, 1.5]
    # Of a: 3/4 on either side of the peak, between 0.5 and 1.5 s; of b: a triangle.
    areas = curves.area_under_curve(study)
    assert areas["value"].tolist() == pytest.approx([0.75, 0.5])


def test_areas_of_what_has_none() -> None:
    rows = {"a": [[0.1, 0.5, 0.6], [0.3]], "b": [[0.1, 0.5, 0.6]]}
    ends = {("a", 1): "diverged"}
    # The one that diverged counts as accuracy 0 from its last evaluation on.
    areas = curves.area_under_curve(Curves(rows, ends))
    assert areas["value"].tolist() == pytest.approx([0.425, 0, 0.425])
    assert areas["low"].tolist() == [areas["value"][0], -np.inf, areas["value"][2]]
    assert curves.area_under_curve(Curves(rows))["value"].isna().all()
    spent = curves.area_under_curve(_study(), against="epsilon")["value"]
    # Over epsilons from 0 to 2; one run has a single finite one, and no range.
    assert spent.isna().all()
    spent = curves.area_under_curve(_study(), against="epsilon", among=["a, q=1"])
    # Finals 0.8 and 0.9, reached at 2 and 3 of the 4 that are common.
    expected = [(0.4 * 2 + 0.8 * 2) / 4, (0.45 * 3 + 0.9) / 4]
    assert spent["value"].tolist() == pytest.approx(expected)


def test_a_curve_of_nothing_that_is_counted() -> None:
    with pytest.raises(StudyError, match="runs of plain have no epsilon to be counted"):
        curves.mean_curve(_study(), "plain", against="epsilon")
