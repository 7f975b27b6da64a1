"""A recorded timeline is executed exactly like the world that it was recorded from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator import studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.study import Study, load
from stalesim.simulator.files.timeline import NO_SLOT, Outcome, StopReason
from stalesim.simulator.parts.errors import ScenarioError, StudyError
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import Recording, WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from stalesim.simulator.timelines import replayed as replayed_module
from stalesim.simulator.timelines.replayed import replayed
from tests.property.whole import assert_alike, whole
from tests.support import SGD, everything, scenario

PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {},
    "bounded": {"protocol": {"kind": "bounded", "staleness_bound": 4}},
    "synchronous": {"protocol": {"kind": "synchronous"}},
    "t_synchronous": {"protocol": {"kind": "t_synchronous", "t": 2}},
    "centralised": {"protocol": {"kind": "centralised"}},
    "time": {"stop": {"commits": None, "time": 30}},
}
FAULTS: dict[str, Any] = {
    **SGD,
    "clients": {
        "compute": {"law": "expon", "scale": "m"},
        "loss": {"chance": 0.3, "timeout": 0.5, "retries": 1},
        "crashes": {
            "after": {"law": "expon", "scale": 20},
            "down": {"law": "expon", "scale": 2},
        },
    },
}


def replaying(study: Scenario, folder: Path, **changes: Any) -> Scenario:
    return study.replaced(timeline={"replay": str(folder)}, **changes)


def both(study: Scenario, folder: Path, **changes: Any) -> list[Study]:
    again = replaying(study, folder / "recorded", **changes)
    return [
        studies.simulate(one, folder / name)
        for name, one in (("played", study), ("replayed", again))
    ]


def assert_same(one: Study, other: Study, *tables: str) -> None:
    for table in tables:
        assert len(one.table(table)) > 0
        assert one.table(table).equals(other.table(table)), table


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_replay_gives_the_same_tables_bit_for_bit(name: str, tmp_path: Path) -> None:
    study = scenario(PROTOCOLS[name])
    record(study, tmp_path / "recorded")
    played, again = both(study, tmp_path)
    assert_same(played, again, "commits", "evaluations", "jobs")
    ends = [s.manifest["runs"][0] for s in (played, again)]
    for key in ("stop", "timeline", "virtual_s"):
        assert ends[0][key] == ends[1][key]


def test_faults_and_replicates_and_variants_are_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def counted(folder: Path) -> Study:
        reads.append(folder)
        return load(folder)

    monkeypatch.setattr(replayed_module, "load", counted)
    varied = {"replicates": 2, "variants": {"a": {}, "b": {"server": {"service": {
        "law": "constant", "value": 0.1}}}}}  # fmt: skip
    study = scenario(FAULTS, varied)
    recorded = record(study, tmp_path / "recorded")
    assert set(recorded.table("jobs")["outcome"]) >= {"LOST", "CRASHED"}
    tables = ("commits", "evaluations", "jobs", "incidents")
    assert_same(*both(study, tmp_path), *tables)
    assert len(reads) == 1  # of four runs


def test_a_replay_ends_where_the_scenario_does_if_that_is_earlier(
    tmp_path: Path,
) -> None:
    study = scenario(FAULTS)
    record(study, tmp_path)
    for stop, reason in (
        ({"commits": 50}, StopReason.COMMITS),
        ({"contributions": 60}, StopReason.CONTRIBUTIONS),
        ({"time": 20.0}, StopReason.TIME),
        ({"time": 1e9}, StopReason.RECORDING),
        ({"commits": 1000}, StopReason.RECORDING),
    ):
        earlier = study.replaced(stop=stop)
        run = expand(replaying(earlier, tmp_path))[0]
        rows, jobs, why = everything(timeline(run))
        assert why is reason
        if reason is StopReason.RECORDING:
            assert rows.time.size == 200
            continue
        expected, there, _ = everything(timeline(expand(earlier)[0]))
        for name, column in expected._asdict().items():
            if name == "write_slot":  # of the last row: who would have read it
                column, got = column[:-1], rows.write_slot[:-1]
            else:
                got = getattr(rows, name)
            np.testing.assert_array_equal(got, column, name)
        for outcome in (Outcome.APPLIED, Outcome.IN_FLIGHT):
            counts = [(j.outcome == outcome).sum() for j in (jobs, there)]
            assert abs(counts[0] - counts[1]) <= 1


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    study = scenario()
    folder = tmp_path / "there"
    record(study.replaced(replicates=2), folder)
    synchronous = {"kind": "synchronous"}
    problem = study.model_dump()["problem"]
    problem["partition"]["parties"] = 3
    for changes, message in (
        ({"protocol": synchronous}, "whose protocol.kind are synchronous"),
        ({"problem": problem}, "whose clients are 3, but"),
        ({"replicates": 3}, "must hold a run 'base' with replicate 2"),
    ):
        with pytest.raises(ScenarioError, match=message):
            studies.simulate(replaying(study, folder, **changes), tmp_path / "no")
    with pytest.raises(StudyError, match="has no manifest"):
        studies.simulate(replaying(study, tmp_path / "nowhere"), tmp_path / "no")
    studies.simulate(study, tmp_path / "learned")
    with pytest.raises(ScenarioError, match="holds no rows"):
        studies.simulate(replaying(study, tmp_path / "learned"), tmp_path / "no")


def test_clients_may_be_left_out_of_a_replay(tmp_path: Path) -> None:
    study = scenario()
    record(study, tmp_path / "recorded")
    assert_same(*both(study, tmp_path, clients=None), "commits", "evaluations")


@pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "asynchronous"},
        {"kind": "bounded", "staleness_bound": 2},
        {"kind": "buffered", "size": 3},
        {"kind": "rounds"},
        {"kind": "gossip"},
        {"kind": "gossip", "average": "neighbours"},
    ],
    ids=lambda p: "-".join(map(str, p.values())),
)
def test_a_replay_ends_with_the_bytes_that_are_sent(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    tree = {
        "name": "w",
        "clients": {"number": 4, "compute": {"law": "expon", "scale": "m"}},
        "protocol": protocol,
        "job": {"upload_bytes": 7, "download_bytes": 3},
    }
    study = WorldScenario.model_validate({**tree, "stop": {"commits": 60}})
    record(study, tmp_path)
    for most in (7, 50, 101, 222):
        less = WorldScenario.model_validate({**tree, "stop": {"bytes": most}})
        run = expand(less)[0]
        expected, _, reason = everything(timeline(run))
        plan = replayed(timeline(run), Recording(replay=str(tmp_path)), run)
        found, _, why = everything(plan)
        assert why is reason is StopReason.BYTES
        size = found.time.size
        for name in ("time", "kind", "worker", "job", "version"):
            column = getattr(expected, name)[:size]
            np.testing.assert_array_equal(getattr(found, name), column, name)
        # Steps that follow their averaging at once belong to the same event, and are
        # still played; they send nothing.
        rest = expected.time[size:]
        assert not rest.size or protocol["kind"] == "gossip"
        assert (rest == expected.time[size - 1]).all()
        assert (expected.time[size:] == found.time[-1]).all()


def test_a_recording_in_which_nothing_was_applied_is_replayed(tmp_path: Path) -> None:
    tree = {
        "name": "w",
        "clients": {
            "number": 2,
            "compute": {"law": "constant", "value": 1},
            "leave": 0.5,
        },
        "protocol": {"kind": "asynchronous"},
    }
    study = WorldScenario.model_validate({**tree, "stop": {"commits": 9}})
    record(study, tmp_path)
    for stop in ({"commits": 9}, {"commits": 5}):
        run = expand(WorldScenario.model_validate({**tree, "stop": stop}))[0]
        plan = replayed(timeline(run), Recording(replay=str(tmp_path)), run)
        rows, jobs, why = everything(plan)
        assert why is StopReason.STALLED
        assert rows.time.size == 0
        # Both clients had begun at 0 s, and lost it.
        assert jobs.client.tolist() == [0, 1]
        assert jobs.read_time.tolist() == [0, 0]


def test_a_replay_until_the_end_of_the_recording_reaches_its_time(
    tmp_path: Path,
) -> None:
    tree = {
        "name": "w",
        "clients": {"number": 2, "compute": {"law": "expon"}},
        "protocol": {"kind": "asynchronous"},
    }
    record(WorldScenario.model_validate({**tree, "stop": {"time": 20}}), tmp_path)
    for until, reason in ((19, "TIME"), (20, "TIME"), (21, "RECORDING")):
        stop = {"time": until, "commits": 1000}
        run = expand(WorldScenario.model_validate({**tree, "stop": stop}))[0]
        plan = replayed(timeline(run), Recording(replay=str(tmp_path)), run)
        assert everything(plan)[2] is StopReason[reason]


@pytest.mark.parametrize("until", [0.2, 4.5, 17.3, 26.0])
def test_jobs_under_way_at_an_earlier_end_are_as_far_as_they_were(
    until: float, tmp_path: Path
) -> None:
    link = {"latency": {"law": "expon"}}
    tree = {
        "name": "w",
        "clients": {
            "number": 5,
            "compute": {"law": "expon", "scale": "m"},
            "upload": link,
            "download": link,
        },
        "protocol": {"kind": "asynchronous"},
    }
    record(WorldScenario.model_validate({**tree, "stop": {"time": 40}}), tmp_path)
    run = expand(WorldScenario.model_validate({**tree, "stop": {"time": until}}))[0]
    expected = whole(timeline(run))
    recording = Recording(replay=str(tmp_path))
    found = whole(replayed(timeline(run), recording, run))
    going = expected.jobs.outcome == Outcome.IN_FLIGHT
    assert going.sum() == 5
    for moment in ("begun", "computed", "sent"):
        known = np.isfinite(getattr(expected.jobs, f"{moment}_time")[going])
        assert known.any() or until < 5
    # Who reads a version after that end is not known in advance to a world.
    assert_alike(expected, found, but=("write_slot",))


def test_a_round_of_several_versions_is_made_of_single_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a real system may record it, whose slow clients take part in a later round."""
    study = scenario(SGD, PROTOCOLS["synchronous"], {"stop": {"commits": 20}})
    record(study, tmp_path / "recorded")
    again = replaying(study, tmp_path / "recorded")
    assert studies.simulate(again, tmp_path / "alike").manifest["runs"][0]["joint"]
    read = replayed_module.arrays

    def of_two_versions(study: Study, table: str, run: int) -> dict[str, np.ndarray]:
        columns = read(study, table, run)
        if table == "rows":
            late = (columns["row"] == 7) & (columns["place"] == 2)
            columns["read_version"] = columns["read_version"] - late
            columns["read_slot"] = columns["read_version"] % 2
            written = columns["write_slot"] != NO_SLOT
            after = (columns["version"] + 1) % 2
            columns["write_slot"] = np.where(written, after, NO_SLOT)
        return columns

    monkeypatch.setattr(replayed_module, "arrays", of_two_versions)
    found, single = (
        studies.simulate(one, tmp_path / name)
        for name, one in (
            ("several", again),
            ("stepwise", again.replaced(engine={"mode": "stepwise"})),
        )
    )
    assert not found.manifest["runs"][0]["joint"]
    stale = found.table("commits")["staleness_max"]
    assert stale.tolist() == [int(row == 7) for row in range(20)]
    np.testing.assert_allclose(
        *(one.table("commits")["gradient_norm"] for one in (found, single)), 1e-5
    )
