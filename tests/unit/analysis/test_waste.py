"""What was spent on jobs of which nothing came, by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import by_client, wasted
from stalesim.analysis.timelines.view import view
from stalesim.simulator import simulate
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.files.study import Study, StudyError
from stalesim.simulator.files.timeline import Incidents, Jobs, Outcome
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from stalesim.simulator.world.expenses import ends
from tests.support import SGD

LATE = {
    late: {"kind": "collect", "count": 2, "late": late} for late in ("stop", "reject")
}
CLIENTS = {"number": 2, "compute": {"law": "constant", "value": [1, 2.5]}}


def recorded(folder: Path, **entries: Any) -> Study:
    """Returns a world, of two clients until 8 s where nothing else is said."""
    tree = {"name": "w", "stop": {"time": 8}, "clients": CLIENTS}
    job = {"upload_bytes": 10, "download_bytes": 10}
    tree |= {"protocol": LATE["stop"], "job": job} | entries
    return record(WorldScenario.model_validate(tree), folder)


def test_seconds_of_late_jobs_of_each_run(tmp_path: Path) -> None:
    variants = {late: {"protocol": protocol} for late, protocol in LATE.items()}
    study = recorded(tmp_path, variants=variants)
    for entry in study.manifest["runs"]:
        entry["samples_per_job"] = [3, 6]
    found = wasted(study).set_index("group")
    # Rounds of 2 s: client 2 is stopped after 2 s in each of four. Or it is late at
    # 2.5, 5 and 7.5 s, after 2.5 s each. Client 1 works for 8 s in both.
    for late, outcome, jobs, seconds in (
        ("stop", "STOPPED", 4, 8.0),
        ("reject", "REJECTED", 3, 7.5),
    ):
        row = found.loc[late]
        assert row[["outcome", "jobs", "samples"]].tolist() == [outcome, jobs, 6 * jobs]
        assert row["seconds"] == pytest.approx(seconds)
        assert row["share"] == pytest.approx(seconds / (8 + seconds))
        assert row["upload_bytes"] == (10 * jobs if late == "reject" else 0)
        assert row["download_bytes"] == 10 * jobs
    asynchronous = recorded(tmp_path / "other", protocol={"kind": "asynchronous"})
    assert wasted(asynchronous).empty


def test_a_download_is_no_work(tmp_path: Path) -> None:
    # Rounds of 2.5 s; what client 2 began at 0.25 and 3.25 s is late at 3 and 6 s.
    link = {"latency": {"law": "constant", "value": 0.25}}
    compute = {"law": "constant", "value": [1, 2.75]}
    clients = {"number": 2, "compute": compute, "download": link}
    study = recorded(tmp_path, clients=clients, protocol=LATE["reject"])
    assert wasted(study)["seconds"].tolist() == [2 * 2.75]


SPENT = ["compute_s", "messages_s", "idle_s"]


def test_each_client_s_seconds_add_up_to_its_run(tmp_path: Path) -> None:
    """Clients of 1 and 2.5 s, whose messages take 0.25 and 0.5 s, in rounds of 3.25 s.

    The third round is under way at 8 s: client 1 has idled since 8.25 - 1.5 s.
    """
    links = {
        way: {"latency": {"law": "constant", "value": seconds}}
        for way, seconds in (("download", 0.25), ("upload", 0.5))
    }
    rounds = {"kind": "synchronous"}
    study = recorded(tmp_path, clients=CLIENTS | links, protocol=rounds)
    found = by_client(study).set_index("client")
    assert found.loc[1, SPENT].tolist() == pytest.approx([3, 2.0, 3.0])
    assert found.loc[2, SPENT].tolist() == pytest.approx([6.25, 1.75, 0])
    shares = found[[name.removesuffix("_s") for name in SPENT]]
    assert (8 * shares).to_numpy() == pytest.approx(found[SPENT].to_numpy())
    assert "waiting_mean" in found
    assert found.equals(by_client(view(study)).set_index("client"))


def test_unrecorded_messages_are_no_time_of_their_own(tmp_path: Path) -> None:
    """Jobs of gossip and of queues at clients do not have the times of all messages."""
    clients = CLIENTS | {"upload": {"latency": {"law": "constant", "value": 0.5}}}
    for protocol in ({"kind": "gossip"}, {"kind": "routed", "tasks": 2, "weights": 1}):
        folder = tmp_path / protocol["kind"]
        found = by_client(recorded(folder, clients=clients, protocol=protocol))
        assert found["messages_s"].isna().all()
        spent = found["compute_s"] + found["idle_s"]
        assert spent.to_numpy() == pytest.approx(8)


def test_pooled_work_is_no_client_s(tmp_path: Path) -> None:
    study = recorded(tmp_path, protocol={"kind": "centralised"})
    with pytest.raises(StudyError, match="jobs of their own"):
        by_client(study)


def test_crashed_work_is_work(tmp_path: Path) -> None:
    """What a client computed until it crashed is time of computing, never of idling."""
    laws = {"after": 3, "down": 100}
    crashes = {key: {"law": "constant", "value": of} for key, of in laws.items()}
    clients = {"number": 1, "compute": {"law": "constant", "value": 2}}
    study = recorded(
        tmp_path,
        clients=clients | {"crashes": crashes},
        protocol={"kind": "asynchronous"},
    )
    assert by_client(study)[SPENT].to_numpy().tolist() == [[3, 0, 5]]


def test_samples_are_those_of_each_client_s_own_jobs(tmp_path: Path) -> None:
    """A fast client was counted with as many as the slowest one, twice too many."""
    clients = {"number": 4, "compute": {"law": "constant", "value": [3, 3, 3, 1]}}
    protocol = {"kind": "collect", "count": 2}
    study = recorded(tmp_path, clients=clients, protocol=protocol, stop={"time": 12})
    jobs = study.table("jobs")
    lost = jobs.loc[jobs["outcome"] == "REJECTED", "client"]
    assert lost.nunique() > 1
    (entry,) = study.manifest["runs"]
    entry["samples_per_job"] = [8, 8, 8, 32]
    expected = lost.map({1: 8, 2: 8, 3: 8, 4: 32}).sum()
    assert wasted(study)["samples"].tolist() == [expected]
    del entry["samples_per_job"]  # of an earlier version
    assert wasted(study)["samples"].isna().all()


TREE = {
    "name": "waste",
    "problem": SGD["problem"] | {"partition": {"kind": "iid", "clients": 2}},
    "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 3, "local_steps": 2},
    "stop": {"time": 8},
    "evaluate": {"every": {"time": 8}},
}


def test_samples_are_those_of_local_steps_that_change() -> None:
    by = {"kind": "schedule", "values": [1], "seconds": [3]}
    clients = {"compute": CLIENTS["compute"], "local_steps_by": by}
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
    tree |= {"clients": {"compute": {"law": "expon"}}}
    tree |= {"protocol": {"kind": "asynchronous"}}
    (run,) = expand(Scenario.model_validate(tree))
    assert set_up(run).timeline.workload.samples_per_job == [8, 8, 8, 32]


def test_a_job_that_was_rejected_unsent_ended_when_it_was_computed() -> None:
    moments = {"computed_time": [2.0, 3.0], "arrived_time": [np.nan, 4.0]}
    columns = dict.fromkeys(Jobs._fields, np.zeros(2, int))
    columns |= {name: np.array(column) for name, column in moments.items()}
    columns["outcome"] = np.full(2, int(Outcome.REJECTED))
    nothing = Incidents(*np.zeros((len(Incidents._fields), 0)))
    assert ends(Jobs(**columns), nothing).tolist() == [2, 4]


def test_a_job_of_unknown_end_makes_the_sum_unknown(tmp_path: Path) -> None:
    study = recorded(tmp_path)
    assert wasted(study)["seconds"].notna().all()
    study.files.pop("incidents")
    study.manifest["runs"][0]["rows"].pop("incidents")
    assert wasted(study)[["seconds", "share"]].isna().all(axis=None)
