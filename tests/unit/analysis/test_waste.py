"""What was spent on jobs of which nothing came, by hand."""

import pytest

from analysis import wasted
from simulator import simulate
from tests.support import SGD

TREE = {
    "name": "waste",
    "problem": SGD["problem"] | {"partition": {"kind": "iid", "clients": 2}},
    "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 3, "local_steps": 2},
    "clients": {"compute": {"law": "constant", "value": [1, 2.5]}},
    "stop": {"time": 8},
    "evaluate": {"every": {"time": 8}},
}


@pytest.mark.parametrize(
    ("late", "outcome", "seconds"),
    [
        # Rounds of 2 s: client 2 is stopped after 2 s in each of four.
        ("stop", "STOPPED", 8.0),
        # It is late at 2.5, 5 and 7.5 s, after 2.5 s each.
        ("reject", "REJECTED", 7.5),
    ],
)
def test_seconds_and_samples_of_late_jobs(late, outcome, seconds) -> None:
    protocol = {"kind": "collect", "count": 2, "late": late}
    study = simulate(TREE | {"protocol": protocol})
    found = wasted(study)
    assert found["outcome"].tolist() == [outcome]
    row = found.iloc[0]
    assert row["seconds"] == pytest.approx(seconds)
    jobs = 4 if late == "stop" else 3
    assert row["jobs"] == jobs
    assert row["samples"] == jobs * 2 * 3
    assert (row["upload_bytes"] > 0) == (late == "reject")
    assert row["download_bytes"] > 0
    # Client 1 works for 8 s in both; its last job ends with the run.
    assert row["share"] == pytest.approx(seconds / (8 + seconds))


def test_nothing_is_wasted_where_everything_is_applied() -> None:
    study = simulate(TREE | {"protocol": {"kind": "asynchronous"}})
    assert wasted(study).empty
