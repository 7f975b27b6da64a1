"""What was spent on jobs of which nothing came, by hand."""

from pathlib import Path

import pytest

from stalesim.analysis import wasted
from stalesim.simulator import simulate
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.timelines.of_run import set_up
from stalesim.simulator.timelines.saved import record
from tests.support import SGD

ASYNC = {"kind": "asynchronous"}
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


def test_runs_of_one_study_are_told_apart() -> None:
    variants = {
        late: {"protocol": {"kind": "collect", "count": 2, "late": late}}
        for late in ("stop", "reject")
    }
    tree = TREE | {"protocol": variants["stop"]["protocol"], "variants": variants}
    found = wasted(simulate(tree)).set_index("group")
    assert found.loc["stop", "seconds"] == pytest.approx(8.0)
    assert found.loc["reject", "seconds"] == pytest.approx(7.5)


def test_samples_are_those_of_each_client_s_own_jobs(tmp_path: Path) -> None:
    """A fast client was counted with as many as the slowest one, twice too many."""
    clients = {"number": 4, "compute": {"law": "constant", "value": [3, 3, 3, 1]}}
    protocol = {"kind": "collect", "count": 2}
    world = {"name": "w", "stop": {"time": 12}, "clients": clients}
    study = record(
        WorldScenario.model_validate(world | {"protocol": protocol}), tmp_path
    )
    jobs = study.table("jobs")
    lost = jobs.loc[jobs["outcome"] == "REJECTED", "client"]
    assert lost.nunique() > 1
    (entry,) = study.manifest["runs"]
    entry["samples_per_job"] = [8, 8, 8, 32]
    expected = lost.map({1: 8, 2: 8, 3: 8, 4: 32}).sum()
    assert wasted(study)["samples"].tolist() == [expected]
    del entry["samples_per_job"]  # of an earlier version
    assert wasted(study)["samples"].isna().all()


def test_samples_are_those_of_local_steps_that_change() -> None:
    by = {"kind": "schedule", "values": [1], "seconds": [3]}
    clients = TREE["clients"] | {"local_steps_by": by}
    protocol = {"kind": "collect", "count": 2}
    study = simulate(TREE | {"protocol": protocol, "clients": clients})
    jobs = study.table("jobs")
    steps = jobs.loc[jobs["outcome"] == "REJECTED", "local_steps"]
    assert {*steps} == {1, 2}
    assert wasted(study)["samples"].tolist() == [3 * steps.sum()]


def test_a_run_notes_the_samples_of_each_client_s_job() -> None:
    own = {"kind": "sgd", "step_size": 0.1, "batch": 8, "local_steps": 4}
    own |= {"speeds": [1, 1, 1, 4]}
    problem = SGD["problem"] | {"partition": {"kind": "iid", "clients": 4}}
    tree = TREE | {"problem": problem, "algorithm": own}
    tree |= {"clients": {"compute": {"law": "expon"}}, "protocol": ASYNC}
    (run,) = expand(Scenario.model_validate(tree))
    assert set_up(run).timeline.workload.samples_per_job == [8, 8, 8, 32]


def test_nothing_is_wasted_where_everything_is_applied() -> None:
    study = simulate(TREE | {"protocol": {"kind": "asynchronous"}})
    assert wasted(study).empty


@pytest.mark.parametrize(
    ("late", "seconds", "share"), [("reject", 24, 0.3), ("stop", 10, 0.125)]
)
def test_jobs_that_were_rejected_before_they_were_sent(late, seconds, share) -> None:
    """In a tree they never arrive; their seconds were counted as none."""
    tree = {
        **TREE,
        "problem": SGD["problem"] | {"partition": {"kind": "iid", "clients": 4}},
        "clients": {"compute": {"law": "constant", "value": 1}},
        "stop": {"time": 20},
    }
    protocol = {"kind": "spanning_tree", "graph": {"kind": "ring"}, "pivot": 4}
    study = simulate(tree | {"protocol": protocol | {"count": 7, "late": late}})
    (row,) = wasted(study).to_dict("records")
    assert (row["seconds"], row["share"]) == (seconds, share)


def test_a_job_of_unknown_end_makes_the_sum_unknown(tmp_path: Path) -> None:
    clients = {"number": 2, "compute": {"law": "constant", "value": [1, 1.5]}}
    protocol = {"kind": "collect", "count": 2, "late": "stop"}
    world = {"name": "w", "stop": {"time": 8}, "clients": clients, "protocol": protocol}
    study = record(WorldScenario.model_validate(world), tmp_path)
    assert wasted(study)["seconds"].notna().all()
    study.files.pop("incidents")
    study.manifest["runs"][0]["rows"].pop("incidents")
    assert wasted(study)["seconds"].isna().all()
