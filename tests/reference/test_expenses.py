"""Joules, counted job by job."""

import math
from typing import Any

import numpy as np
import pytest

from stalesim import analysis
from stalesim.analysis.tables import results
from stalesim.simulator import simulate
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.study import load
from stalesim.simulator.files.study.jobs import incidents_of, jobs_of
from stalesim.simulator.files.timeline import Incidents, Jobs, StopReason
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from stalesim.simulator.world.expenses import Expenses
from tests.support import SGD

EXPON = {"law": "expon"}
LINK = {"latency": {"law": "uniform", "scale": 0.4}}
WATTS = {"idle": 0.5, "compute": [5, 4, 3, 2, 1], "upload": 2, "download": 1.5}
WATTS |= {"upload_byte": 1e-3, "download_byte": 1e-4}
WORLD: dict[str, Any] = {
    "name": "expenses",
    "clients": {
        "number": 5,
        "idle": EXPON | {"scale": 0.2},
        "compute": EXPON | {"scale": "m"},
        "upload": LINK,
        "download": LINK,
        "watts": WATTS,
    },
    "job": {"upload_bytes": 1000, "download_bytes": 2000},
    "protocol": {"kind": "asynchronous"},
    "stop": {"time": 60},
}
CRASHES = {"after": EXPON | {"scale": 20}, "down": EXPON | {"scale": 3}}
WORLDS = {
    "asynchronous": {},
    "rounds": {"protocol": {"kind": "synchronous"}},
    "late jobs are stopped": {
        "protocol": {"kind": "collect", "count": 2, "late": "stop"}
    },
    "crashes": {"clients": {"crashes": CRASHES}},
    "losses": {"clients": {"loss": {"chance": 0.4, "timeout": 0.7, "retries": 1}}},
    "come and go": {"clients": {"join": "m", "leave": "40+m"}},
    "shared link": {"server": {"upload_bandwidth": 3000}},
}


def world(changes: dict[str, Any], **stop: Any) -> WorldScenario:
    """Returns a world with some entries of it and of its clients changed."""
    clients = WORLD["clients"] | changes.get("clients", {})
    tree = WORLD | changes | {"clients": clients} | ({"stop": stop} if stop else {})
    return WorldScenario.model_validate(tree)


def of_timeline(scenario: WorldScenario) -> tuple[Any, Jobs, Incidents, StopReason]:
    """Returns a timeline, its jobs and incidents, and why it ended."""
    (run,) = expand(scenario)
    played = timeline(run)
    chunks = [*played.chunks(64)]
    jobs = Jobs(*map(np.concatenate, zip(*(c.jobs for c in chunks), strict=True)))
    told = zip(*(c.incidents for c in chunks), strict=True)
    reason = chunks[-1].stop
    assert reason is not None
    return played, jobs, Incidents(*map(np.concatenate, told)), reason


def slowly(clients: dict[str, Any], jobs: Jobs, incidents: Incidents, until: float):
    """Returns joules up to a moment, job by job.

    Of each job in turn: the seconds of each activity up to the moment.
    """
    joules = 0.0
    given = {"STOPPED": 8, "CRASHED": 0, "LOST": 4}  # incidents, by number
    names = ["APPLIED", "BUFFERED", "REJECTED", "LOST", "CRASHED", "IN_FLIGHT"]
    names += ["STOPPED"]
    left: dict[tuple[int, int], list[float]] = {}
    rows = sorted(zip(*incidents, strict=True), key=lambda row: row[0])
    for time, client, what, _ in rows:
        left.setdefault((client, what), []).append(time)
    everyone: list[list[tuple[float, float]]] = [[] for _ in range(5)]
    order = sorted(range(jobs.client.size), key=lambda j: (jobs.client[j], jobs.job[j]))
    for j in order:
        client, outcome = int(jobs.client[j]), names[jobs.outcome[j]]
        end = float(jobs.arrived_time[j])
        if outcome in given:
            end = left[client, given[outcome]].pop(0)
        over = until if math.isnan(end) else min(end, until)
        moments = [
            ("download", jobs.read_time[j], jobs.begun_time[j]),
            ("compute", jobs.begun_time[j], jobs.computed_time[j]),
            ("upload", jobs.sent_time[j], jobs.arrived_time[j]),
        ]
        for name, start, stop in moments:
            if math.isnan(start) or start >= until:
                continue
            stop = over if math.isnan(stop) else min(stop, until)
            watts = clients["watts"][name]
            watts = watts[client] if isinstance(watts, list) else watts
            joules += watts * (stop - start)
            everyone[client].append((start, stop))
        if jobs.sent_time[j] <= until:
            joules += 1e-3 * 1000 * jobs.uploads[j]
        if jobs.begun_time[j] <= until:
            joules += 1e-4 * 2000
    for m, busy in enumerate(everyone, 1):
        join = m if "join" in clients else 0
        leave = min(40 + m, until) if "leave" in clients else until
        there = max(leave - join, 0)
        joules += 0.5 * (there - sum(stop - start for start, stop in busy))
    return joules


@pytest.mark.parametrize("name", WORLDS)
def test_amounts_are_those_of_a_loop_over_jobs(name: str) -> None:
    scenario = world(WORLDS[name])
    clients = scenario.clients.model_dump(mode="json")  # pyright: ignore
    clients = {k: v for k, v in clients.items() if v not in (None, 0)}
    played, jobs, incidents, _ = of_timeline(scenario)
    found = Expenses(played.tariffs, jobs, incidents, 60.0)
    assert jobs.client.size > 30
    for until in (0.3, 17.0, 41.5, 60.0):
        joules = slowly(clients, jobs, incidents, until)
        at = np.array([until])
        assert found.up_to(at)[0] == pytest.approx(joules, rel=1e-12)
    of_each = found.by_activity()[0]
    # In one order, so that sums have the same digits in every process.
    order = ["download", "compute", "upload", "idle"]
    order += ["upload_message", "download_message"]
    assert list(of_each) == order
    assert sum(of_each.values()) == pytest.approx(joules, rel=1e-12)


def _first(played: Any) -> tuple[Any, Jobs, Incidents]:
    return played[0].tariffs, played[1], played[2]


@pytest.mark.parametrize("rates", [{"idle": 0}, {"idle": 0, "compute": 0}])
def test_clients_of_no_rate_take_nothing(rates: dict[str, int]) -> None:
    clients = {"number": 2, "compute": EXPON, "watts": rates}
    tree = WORLD | {"clients": clients, "stop": {"time": 9}}
    found = Expenses(*_first(of_timeline(WorldScenario.model_validate(tree))), 9.0)
    assert found.up_to(np.array([0.0, 4.5, 9.0])).tolist() == [0, 0, 0]


def test_asynchronous_clients_draw_watts_by_their_utilisation() -> None:
    """Renewal: of each cycle a client computes 1 s and idles 3 s on average."""
    laws = {"idle": EXPON | {"scale": 3}, "compute": EXPON, "number": 20}
    rates = {"idle": 1, "compute": 9}
    tree = WORLD | {"clients": laws | {"watts": rates}, "stop": {"time": 4000}}
    found = Expenses(*_first(of_timeline(WorldScenario.model_validate(tree))), 4000.0)
    power = float(found.up_to(np.array([4000.0]))[0]) / (20 * 4000)
    # 20,000 cycles: the share of time has a deviation of 0.25 * 0.75 * sqrt(2 / 20,000)
    # = 0.0019 (renewal reward), and 8 W times as much, of which five are allowed.
    assert power == pytest.approx(1 + 8 * 0.25, abs=5 * 8 * 0.0019)


def test_rounds_wait_for_the_slowest() -> None:
    clients = {"number": 3, "compute": {"law": "constant", "value": [1, 2, 4]}}
    clients["watts"] = {"idle": 1, "compute": 3}
    tree = WORLD | {"clients": clients, "protocol": {"kind": "synchronous"}}
    tree |= {"stop": {"rounds": 10}}
    found = Expenses(*_first(of_timeline(WorldScenario.model_validate(tree))), 40.0)
    assert found.by_activity() == [
        {"compute": pytest.approx(3 * 70), "idle": pytest.approx(1 * (120 - 70))}
    ]


def test_overlapping_jobs_leave_no_time_to_idle() -> None:
    """A refresh within a job: the client computes twice, but idles once less."""
    one = dict.fromkeys(Jobs._fields, np.zeros(2))
    times = {
        "read_time": [0, 2],
        "begun_time": [0, 2],
        "computed_time": [4, 3],
        "sent_time": [4, 3],
        "arrived_time": [4, 3],
    }
    whole = {"client": [0, 0], "job": [0, 1], "refresh": [0, 1], "uploads": [1, 1]}
    jobs = Jobs(**{k: np.array(v, float) for k, v in (one | times).items()})
    jobs = jobs._replace(**{k: np.array(v) for k, v in whole.items()})
    nothing = Incidents(*np.zeros((4, 0)))
    tariff = {"clients": 1, "joules": {"idle": 1, "compute": 10, "upload_message": 2}}
    found = Expenses([tariff], jobs, nothing, 6.0).by_activity()
    assert found == [{"compute": 50.0, "idle": 2.0, "upload_message": 4.0}]


def test_a_study_has_them_in_tables_targets_and_claims(tmp_path) -> None:
    clients = {"compute": EXPON, "watts": {"idle": 1, "compute": 5}}
    tree = SGD | {"name": "e", "clients": clients, "stop": {"time": 25.0}}
    tree |= {"protocol": {"kind": "asynchronous"}}
    tree |= {"evaluate": {"every": {"commits": 10}}, "replicates": 2}
    tree |= {"variants": {"all": {}, "waiting": {"protocol": {"kind": "synchronous"}}}}
    study = simulate(tree, folder=tmp_path / "study")
    runs = study.manifest["runs"]
    tidy = analysis.tidy(load(tmp_path / "study"))
    last = tidy.groupby("run")["joules"].last()
    curve = tidy.loc[tidy["run"] == 0]
    for _, row in curve.iloc[1:-1].iterrows():
        expected = Expenses(
            runs[0]["tariffs"], jobs_of(study, 0), incidents_of(study, 0), 1e9
        ).up_to(np.array([row["time"]]))
        assert row["joules"] == pytest.approx(float(expected[0]), rel=1e-12)
    goal = float(curve["test_accuracy"].iloc[5])
    by_time = analysis.time_to_target(study, "test_accuracy", goal)
    by_energy = analysis.time_to_target(study, "test_accuracy", goal, "joules")
    assert by_energy["reached"].tolist() == by_time["reached"].tolist()
    assert by_energy["median"].min() < last.max()
    table = results(study)
    by_group = last.to_numpy().reshape(2, 2).mean(axis=1)
    assert table["joules"].tolist() == pytest.approx(by_group.tolist())


def test_a_study_without_rates_counts_no_joules(tmp_path) -> None:
    tree = SGD | {"name": "none", "clients": {"compute": EXPON}, "stop": {"time": 5}}
    tree |= {"protocol": {"kind": "asynchronous"}}
    tree |= {"evaluate": {"every": {"commits": 10}}}
    study = simulate(tree, folder=tmp_path / "study")
    assert "joules" not in analysis.tidy(study)
    with pytest.raises(StudyError, match="must have clients with rates"):
        analysis.time_to_target(study, "test_accuracy", 0.1, "joules")


def test_a_recorded_world_keeps_its_tariffs(tmp_path) -> None:
    study = record(world({}), tmp_path / "world")
    played, jobs, incidents, _ = of_timeline(world({}))
    expected = Expenses(played.tariffs, jobs, incidents, 60.0).up_to(np.array([60.0]))
    found = analysis.spent_by_activity(study)["joules"].sum()
    assert found == pytest.approx(float(expected[0]), rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"protocol": {"kind": "cyclic"}}, "upload must be left out"),
        ({"clients": {"watts": {"idle": -1}}}, "watts.idle must be >= 0"),
    ],
)
def test_what_cannot_be_counted_is_refused(changes, match) -> None:
    with pytest.raises(ValueError, match=match):
        world(changes)
