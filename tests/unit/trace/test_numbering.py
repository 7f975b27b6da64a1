"""Clients count from 1 in files as in scenarios, and from 0 inside."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from stalesim.analysis import timelines
from stalesim.simulator import studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.study import COLUMNS, load
from stalesim.simulator.files.study.columns import NO_CLIENT, inward, outward
from stalesim.simulator.files.timeline import NO_WORKER, SERVER, Kind
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.scenario.setting import Recording, WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from stalesim.simulator.timelines.replayed import replayed
from tests.support import SGD, everything, scenario

NUMBERED = ("client", "worker", "peer", "node")
SLOW = {
    "number": 4,
    "compute": {"law": "constant", "value": 1},
    "slowdowns": [{"kind": "named", "clients": [1], "factor": 10}],
}


def test_numbers_go_out_and_come_back() -> None:
    numbers = np.array([0, 3, NO_CLIENT, 1], np.int32)
    column = outward(numbers)
    assert column.to_pylist() == [1, 4, None, 2]
    assert column.type == pa.int32()
    assert inward(pa.chunked_array([column])).tolist() == numbers.tolist()
    assert outward(np.zeros(0, np.int32)).type == pa.int32()
    assert NO_CLIENT == NO_WORKER == SERVER


def test_every_column_of_client_numbers_is_numbered() -> None:
    for table, columns in COLUMNS.items():
        found = {name for name, column in columns.items() if column.numbered}
        assert found == set(NUMBERED) & set(columns), table


def test_the_client_that_a_scenario_calls_1_is_1_in_every_table(tmp_path: Path) -> None:
    learned = studies.simulate(
        scenario(SGD, {"clients": {k: v for k, v in SLOW.items() if k != "number"}}),
        tmp_path / "learned",
    )
    assert learned.table("clients")["client"].tolist() == [1, 2, 3, 4, 5]
    jobs = learned.table("jobs")
    took = jobs["computed_time"] - jobs["begun_time"]
    assert set(jobs.loc[took == 10, "client"]) == {1}
    slow = learned.table("commits").groupby("client").size()
    assert slow.idxmin() == 1
    assert set(slow.index) == {1, 2, 3, 4, 5}
    assert set(learned.table("staleness")["client"]) == {1, 2, 3, 4, 5}
    world = {"name": "w", "clients": SLOW, "stop": {"time": 40}}
    tree = {**world, "protocol": {"kind": "gossip", "initiator": "every"}}
    study = record(WorldScenario.model_validate(tree), tmp_path / "recorded")
    jobs = timelines.contributions(study.table("jobs"))
    assert jobs.groupby("client").size().to_dict() == {1: 4, 2: 40, 3: 40, 4: 40}


def test_a_record_is_replayed_by_the_clients_that_it_was_made_by(
    tmp_path: Path,
) -> None:
    for kind in ("gossip", "synchronous", "buffered"):
        more = {"size": 2} if kind == "buffered" else {}
        tree = {
            "name": "w",
            "clients": SLOW,
            "protocol": {"kind": kind, **more},
            "stop": {"time": 40},
        }
        config = WorldScenario.model_validate(tree)
        study = record(config, tmp_path / kind)
        run = expand(config)[0]
        played = timeline(run)
        again = replayed(played, Recording(replay=str(tmp_path / kind)), run)
        for a, b in zip(everything(played)[:2], everything(again)[:2], strict=True):
            for name, column in a._asdict().items():
                np.testing.assert_array_equal(column, getattr(b, name), name)
        rows = study.table("rows")
        server = rows["node"].isna()
        assert server.all() if kind != "gossip" else not server.any()
        peers = rows.loc[rows["kind"] == Kind.AVERAGE.name, "peer"]
        assert set(peers) <= {1, 2, 3, 4}
        assert (kind == "gossip") == bool(len(peers))


def test_a_commit_of_several_clients_is_nobodys(tmp_path: Path) -> None:
    study = studies.simulate(
        scenario(SGD, {"protocol": {"kind": "synchronous"}, "stop": {"commits": 3}}),
        tmp_path / "sync",
    )
    commits = study.table("commits")
    assert commits["num_contributions"].tolist() == [5, 5, 5]
    assert commits["client"].isna().all()


def test_an_older_format_is_refused_in_one_line(tmp_path: Path) -> None:
    config = WorldScenario.model_validate(
        {"name": "w", "clients": SLOW, "protocol": {"kind": "synchronous"}}
        | {"stop": {"time": 40}}
    )
    record(config, tmp_path / "s")
    path = tmp_path / "s" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest.pop("format") == 2
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(StudyError, match="must have format 2, got 1; read it"):
        load(tmp_path / "s")
    path.write_text(json.dumps(manifest | {"format": 99}), encoding="utf-8")
    with pytest.raises(StudyError, match="must have format 2, got 99") as caught:
        load(tmp_path / "s")
    assert "\n" not in str(caught.value)
