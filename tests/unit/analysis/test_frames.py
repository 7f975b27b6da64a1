"""Frames of a study: its runs, its tables, and one of all that was evaluated."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stalesim import analysis
from stalesim.analysis import (
    curves,
    frames,
    instants,
    paired,
    tables,
    targets,
)
from stalesim.analysis.phases import evaluations_by
from stalesim.simulator.files.study import COLUMNS, StudyError
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record
from tests.unit.analysis.studies import Curves, Fake, Grid, arrives, empty, run_of


def test_runs_that_have_ended() -> None:
    study = Fake()
    study.manifest["runs"][3]["stop"] = "incomplete"
    table = frames.runs(study)
    assert len(table) == 19
    assert 3 not in set(table["run"])
    assert frames.groups(study) == ["async", "async private", "sync", "central"]
    assert set(frames.evaluations(study)["run"]) == set(table["run"])


def test_parameters_are_columns() -> None:
    study = Curves({"async": [arrives(1), arrives(2)]})
    for run, step in zip(study.manifest["runs"], (0.1, 0.2), strict=True):
        run["parameters"] = {"algorithm.step_size": step}
        run["label"] = f"async, learning_rate={step}"
    table = frames.evaluations(study)
    np.testing.assert_array_equal(
        table["algorithm.learning_rate"], [0.1] * 11 + [0.2] * 11
    )
    assert set(table["group"]) == {
        "async, learning_rate=0.1",
        "async, learning_rate=0.2",
    }
    assert set(table["variant"]) == {"async"}


def test_a_study_of_which_nothing_has_ended() -> None:
    study = Fake()
    study.manifest["runs"] = [run_of(0, "async", 0, stop="incomplete")]
    with pytest.raises(StudyError, match="'fake' has no run that has ended yet; wait"):
        frames.runs(study)


@pytest.mark.parametrize("table", COLUMNS)
def test_an_empty_table_is_valid(table: str) -> None:
    assert frames.validated(empty(table), table).empty


def test_what_is_wrong_with_a_table_is_said() -> None:
    good = Fake().table("evaluations")
    assert frames.validated(good.assign(of_mine=1.0), "evaluations").shape[0] == 520
    with pytest.raises(StudyError, match="'evaluations' must have the column 'epochs'"):
        frames.validated(good.drop(columns="epochs"), "evaluations")
    words = good.assign(time=good["time"].astype(str))
    with pytest.raises(
        StudyError, match=r"'time' of table 'evaluations' must hold num"
    ):
        frames.validated(words, "evaluations")
    with pytest.raises(StudyError, match=r"table must be one of commits, .* got 'x'"):
        frames.validated(good, "x")
    stale = Fake().table("staleness")
    with pytest.raises(StudyError, match=r"'quantity' .* must hold words"):
        frames.validated(stale.assign(quantity=1), "staleness")
    for words in ("category", "object", "string"):
        frames.validated(stale.astype({"quantity": words}), "staleness")


def test_public_names_come_when_they_are_used() -> None:
    assert all(hasattr(analysis, name) for name in analysis.__all__)
    with pytest.raises(AttributeError, match=r"'stalesim.analysis' has no"):
        _ = analysis.x
    code = (
        "import stalesim.analysis, sys\n"
        "assert not {'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_of_nothing_are_missing_and_not_large(tmp_path: Path) -> None:
    """Jobs that were not applied had the commit 9223372036854775807."""
    clients = {"number": 4, "compute": {"law": "constant", "value": "m"}}
    gossip = {"kind": "gossip", "average": "all"}
    for protocol in ({"kind": "collect", "count": 2}, gossip):
        world = {"name": "w", "stop": {"time": 9.5}, "clients": clients}
        scenario = WorldScenario.model_validate(world | {"protocol": protocol})
        study = record(scenario, tmp_path / str(protocol["kind"]))
        for name in study.files:
            table = study.table(name)
            for column in table.select_dtypes("number"):
                assert not (table[column] >= 2**31 - 1).any(), (name, column)
        jobs = study.table("jobs")
        assert jobs["commit"].dtype == "Int64"
        applied = jobs["outcome"] == "APPLIED"
        assert 0 < applied.sum() < len(jobs)
        assert (jobs["commit"].notna() == applied).all()
        assert (frames.jobs(study)["staleness"].notna() == applied).all()


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


def test_a_curve_of_nothing_that_is_counted() -> None:
    with pytest.raises(StudyError, match="runs of plain have no epsilon to be counted"):
        curves.mean_curve(_study(), "plain", against="epsilon")


def test_tables_of_a_sweep_have_its_values_in_columns() -> None:
    study = two_steps()
    looks = [
        targets.time_to_target(study, "test_accuracy", 0.5),
        targets.times_to_target(study, "test_accuracy", 0.5),
        instants.value_at(study, "test_accuracy", 1),
        instants.values_at(study, "test_accuracy", 1),
        paired.against(study, "slow"),
    ]
    for table in looks:
        assert [*table][:3] == ["variant", "group", "algorithm.learning_rate"]
        words = (
            table["variant"]
            + ", learning_rate="
            + table["algorithm.learning_rate"].map(str)
        )
        assert (table["group"] == words).all()
    found = tables.by_point(study, tables.results(study))
    assert [*found][:2] == ["variant", "learning rate"]
    assert found["learning rate"].tolist() == [0.1, 0.2, 0.1, 0.2]


def test_a_variant_is_the_baseline_at_each_swept_value() -> None:
    table = paired.against(two_steps(), "slow").query("quantity == 'final'")
    assert table["group"].tolist() == [
        "fast, learning_rate=0.1",
        "fast, learning_rate=0.2",
    ]
    assert table["baseline"].tolist() == pytest.approx([0.5, 0.6])
    assert table["difference"].tolist() == pytest.approx([0.2, 0.3])


def test_names_of_groups_that_are_wrong() -> None:
    study = two_steps()
    with pytest.raises(StudyError, match="did you mean 'fast'"):
        frames.chosen(study, ["fsat"])
    with pytest.raises(StudyError, match="take one of them: 'fast, learning_rate=0"):
        frames.check_groups(study, "fast")
    lone = Grid([("a", {"q": 1}, [0.5]), ("a", {"q": 2}, [0.5]), ("b", {}, [0.5])])
    with pytest.raises(StudyError, match="the swept values of 'b', but has 2; take"):
        paired.against(lone, "a")


def two_steps() -> Grid:
    finals = {"slow": (0.5, 0.6), "fast": (0.7, 0.9)}
    points = [
        (name, {"algorithm.step_size": step}, [final] * 2)
        for name, values in finals.items()
        for step, final in zip((0.1, 0.2), values, strict=True)
    ]
    study = Grid(points)
    for run in study.manifest["runs"]:
        run["label"] = run["label"].replace("algorithm.step_size", "learning_rate")
    return study
