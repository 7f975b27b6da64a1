"""Time divided into computation and communication, and what is counted to a target."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import tables, targets
from stalesim.analysis.phases import covered, with_phases
from stalesim.simulator.files.study import COLUMNS, Study, StudyError
from stalesim.simulator.studies import simulate
from tests.support import scenario
from tests.unit.analysis.studies import Curves, arrives, judged

Q, ROUNDS = 4, 3
COMPUTE, UPLOAD, DOWNLOAD = (1.0, 2.0, 5.0), 0.5, 0.25


def slowly_covered(begun: Any, ended: Any, until: float) -> float:
    """Returns what `covered` does, of intervals between whole numbers."""
    cells = np.arange(0.0, until)
    inside = np.zeros(cells.size, bool)
    for one, other in zip(begun, ended, strict=True):
        inside |= (one <= cells) & ((cells < other) | np.isnan(other))
    return float(np.minimum(until - cells, 1)[inside].sum())


@pytest.mark.parametrize("open_ends", [0.0, 0.1, 1.0])
def test_covered_is_what_is_counted_cell_by_cell(open_ends: float) -> None:
    generator = np.random.default_rng(0)
    until = np.arange(0, 45, 0.5)
    for size in [0, 1, *generator.integers(2, 12, 40)]:
        begun = generator.integers(0, 30, size).astype(float)
        ended = begun + generator.integers(0, 9, size)
        ended[generator.random(size) < open_ends] = np.nan
        expected = [slowly_covered(begun, ended, instant) for instant in until]
        np.testing.assert_array_equal(covered(begun, ended, until), expected)


def test_instants_need_no_order() -> None:
    begun, ended = np.array([4.0, 1.0]), np.array([6.0, 2.0])
    found = covered(begun, ended, np.array([9.0, 0.5, 5.0]))
    assert found.tolist() == [3, 0, 2]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Three parties with constant laws: rounds of either order, and without pause."""
    constant = {"law": "constant"}
    clients = {
        "compute": {"law": "constant", "value": list(COMPUTE)},
        "compute_per": "step",
        "upload": {"latency": constant | {"value": UPLOAD}},
        "download": {"latency": constant | {"value": DOWNLOAD}},
    }
    changes: dict[str, Any] = {
        "problem": {"partition": {"parties": 3}},
        "protocol": {"kind": "rounds"},
        "algorithm": {
            "kind": "fed_bcd",
            "step_size": 0.1,
            "batch": 8,
            "local_steps": Q,
        },
        "stop": {"commits": None, "rounds": ROUNDS},
        "evaluate": {"every": {"commits": 1}, "metrics": ["test_accuracy"]},
        "variants": {
            "parallel": {},
            "sequential": {"protocol": {"order": "sequential"}},
            "alone": {
                "clients": {
                    "compute": constant | {"value": 1},
                    "upload": None,
                    "download": None,
                },
                "problem": {"partition": {"parties": 1}},
            },
            "crashing": {
                "clients": {
                    "crashes": {
                        "after": constant | {"value": [999, 999, 30]},
                        "down": constant | {"value": 1},
                    }
                }
            },
        },
    }
    found = scenario({"clients": None}, {"clients": clients}, changes)
    return simulate(found, tmp_path_factory.mktemp("studies") / "rounds")


def phases(study: Study, group: str) -> np.ndarray:
    """Returns time, computation and communication after each commit."""
    table = with_phases(study)
    names = ["time", "computation_s", "communication_s"]
    return table.loc[table["group"] == group, names].to_numpy()[1:]


def test_in_parallel_rounds_computations_are_one(study: Study) -> None:
    rounds = np.arange(1, ROUNDS + 1)
    compute = Q * max(COMPUTE) * rounds
    wait = (UPLOAD + DOWNLOAD) * rounds
    expected = np.stack([compute + wait, compute, wait], axis=1)
    np.testing.assert_allclose(phases(study, "parallel"), expected, rtol=1e-12)


def test_in_sequential_rounds_computations_add_up(study: Study) -> None:
    compute = Q * np.cumsum(COMPUTE * ROUNDS)
    turns = np.arange(1, 3 * ROUNDS + 1)
    # What all hold of a new batch is sent at once, before the first turn of a round.
    wait = (UPLOAD + DOWNLOAD) * turns + UPLOAD * ((turns + 2) // 3)
    expected = np.stack([compute + wait, compute, wait], axis=1)
    np.testing.assert_allclose(phases(study, "sequential"), expected, rtol=1e-12)


def test_without_messages_all_time_is_computation(study: Study) -> None:
    compute = Q * np.arange(1.0, ROUNDS + 1)
    expected = np.stack([compute, compute, 0 * compute], axis=1)
    np.testing.assert_allclose(phases(study, "alone"), expected, rtol=1e-12)


def test_a_crash_ends_a_computation(study: Study) -> None:
    # The third party crashes at 30 s and 61 s, 9 s after it had begun, is away for 1 s,
    # and begins anew 0.25 s later; the others have long been ready.
    compute = 20 + 29 * np.arange(3)
    time = 20.75 + 31 * np.arange(3)
    expected = np.stack([time, compute, time - compute], axis=1)
    np.testing.assert_allclose(phases(study, "crashing"), expected, rtol=1e-12)
    jobs = study.table("jobs")
    lost = jobs.loc[jobs["outcome"] == "CRASHED"]
    assert lost["begun_time"].tolist() == [21, 52]
    assert lost["computed_time"].isna().all()


def counted() -> Curves:
    """Returns a study in which `a` is faster, but not in computation or rounds.

    Evaluated every second, with five rounds between; a round of `b` is worth three.
    """
    at = {"a": [1, 2, 3], "b": [2, 4, 7], "unsure": [5, 1, 99]}
    study = Curves({name: [arrives(n) for n in when] for name, when in at.items()})
    table = study.tables["evaluations"]
    of_b = table["run"].between(3, 5)
    table["rounds"] = table["rounds"].where(~of_b, table["rounds"] / 15)
    # Every client of `a` computes all the time, the one of `b` a fifth of each second.
    seconds = np.arange(10.0)
    frames = [jobs_of(run, seconds, seconds + 1) for run in (0, 1, 2)]
    frames += [jobs_of(run, seconds + 0.5, seconds + 0.7) for run in (3, 4, 5)]
    study.tables["jobs"] = pd.concat(frames, ignore_index=True)
    return study


def jobs_of(run: int, begun: np.ndarray, computed: np.ndarray) -> pd.DataFrame:
    """Returns the jobs of a run's only client, which takes nothing else."""
    columns: dict[str, Any] = dict.fromkeys(COLUMNS["jobs"], 0)
    columns |= {"run": run, "kind": "work", "outcome": "APPLIED"}
    columns |= {"begun_time": begun, "computed_time": computed}
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("against", "expected"),
    [
        ("time", [1, 2, 3, 2, 4, 7]),
        ("commits", [10, 20, 30, 20, 40, 70]),
        ("rounds", [5, 10, 15, 2 / 3, 4 / 3, 7 / 3]),
        ("messages", [40, 80, 120, 80, 160, 280]),
        ("computation_s", [1, 2, 3, 0.4, 0.8, 1.4]),
        ("communication_s", [0, 0, 0, 1.6, 3.2, 5.6]),
    ],
)
def test_what_it_took_to_a_target(against: str, expected: list[float]) -> None:
    table = targets.times_to_target(counted(), "test_accuracy", 0.9, against)
    both = table.loc[table["group"] != "unsure"]
    assert both["reached"].all()
    np.testing.assert_allclose(both["time"], expected, rtol=1e-12)
    medians = targets.time_to_target(counted(), "test_accuracy", 0.9, against)
    assert medians["median"].tolist()[:2] == pytest.approx(expected[1::3])


def test_nothing_else_is_counted() -> None:
    with pytest.raises(StudyError, match="no column 'parsecs'; known are"):
        targets.times_to_target(counted(), "test_accuracy", 0.9, "parsecs")


def faster(study: Curves, counted: str) -> pd.Series:
    to = {"test_accuracy": 0.9}
    return judged(study, faster="a", than="b", to=to, counted_in=counted)


@pytest.mark.parametrize(
    ("unit", "words", "ends"),
    [
        # Of the second replicate: between 3 s / 2 s and 4 s / 1 s.
        ("time", "times faster: 2.4 [", (1, math.inf)),
        ("messages", "times fewer messages: 2.4 [", (1, math.inf)),
        # From a fifteenth and from a fifth on, since the first may have needed none.
        ("rounds", "times fewer rounds: 0.163 [", (1 / 15, math.inf)),
        ("computation_s", "times less computation: 0.49 [", (0.2, math.inf)),
    ],
)
def test_a_claim_may_count_something_else(
    unit: str, words: str, ends: tuple[float, float]
) -> None:
    found = faster(counted(), unit)
    assert found["measured"].startswith(words)
    assert (found["low"], found["high"]) == pytest.approx(ends)
    assert found["replicates"] == 3


def test_what_a_claim_counts_is_a_column() -> None:
    study = counted()
    for count in ("messages", "bytes", "time", "joules"):  # of which there are none
        faster(study, count)
        found = tables.results(study)
        name = {"messages": "messages to 0.9", "bytes": "MB to 0.9"}.get(count)
        assert [column for column in found if " to 0.9" in column] == [
            "time to 0.9 (s)",
            *filter(None, [name]),
        ]
        if name:
            there = targets.time_to_target(study, "test_accuracy", 0.9, count)
            scale = 1e-6 if count == "bytes" else 1
            medians = [cell.estimate for cell in found[name]]
            assert medians == pytest.approx(scale * there["median"])


def test_rounds_are_not_counted_where_there_are_none() -> None:
    study = counted()
    table = study.tables["evaluations"]
    table.loc[table["run"] < 3, "rounds"] = np.nan
    found = faster(study, "rounds")
    assert found["why"].startswith("the protocol of a has no rounds to be counted")
    assert faster(study, "commits")["estimate"] > 1
