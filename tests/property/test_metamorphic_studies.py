"""A study in two parts is the study; a timeline that is replayed is the timeline."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator import studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.study import Study
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.scenario.setting import Recording, WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import TimelineSource, record, write_all
from stalesim.simulator.timelines.replayed import replayed
from tests.drawn_worlds import PROTOCOLS, timeline_scenario
from tests.property.whole import assert_alike, whole
from tests.support import of_extras
from tests.unit.studies.test_studies import TABLES, TREE

TIMELINE = ("rows", "jobs", "incidents", "clients")
SCALES = "clients.compute.scale"
WORLD: dict[str, Any] = {
    "name": "world",
    "replicates": 2,
    "clients": {
        "number": 4,
        "compute": {"law": "lognorm", "s": 1},
        "crashes": {"after": {"law": "expon", "scale": 9}, "down": {"law": "expon"}},
    },
    "protocol": {"kind": "asynchronous"},
    "stop": {"time": 60},
}


def assert_union(parts: list[Study], together: Study, tables: tuple[str, ...]) -> None:
    """Compares every run of a study with the one of its label in one of the parts."""
    found = {
        (run["label"], run["replicate"]): (part, run["run"])
        for part in parts
        for run in part.manifest["runs"]
    }
    runs = together.manifest["runs"]
    assert found.keys() == {(run["label"], run["replicate"]) for run in runs}
    for run in runs:
        part, number = found[run["label"], run["replicate"]]
        for table in tables:
            whole_table, of_part = together.table(table), part.table(table)
            mine = whole_table[whole_table["run"] == run["run"]].drop(columns="run")
            same = of_part[of_part["run"] == number].drop(columns="run")
            assert len(mine) > 0 or table == "incidents"
            assert mine.reset_index(drop=True).equals(same.reset_index(drop=True))


def test_a_recording_in_two_parts_is_the_recording(tmp_path: Path) -> None:
    def made(name: str, *scales: float) -> Study:
        tree = WORLD | {"sweep": {SCALES: list(scales)}}
        return record(WorldScenario.model_validate(tree), tmp_path / name)

    together = made("all", 0.5, 1, 2, 4)
    assert_union([made("a", 0.5, 4), made("b", 1, 2)], together, TIMELINE)


@pytest.mark.parametrize(
    ("swept", "values", "mode"),
    [
        # Of their own timelines, runs are executed one by one.
        (SCALES, (0.5, 1, 2), "auto"),
        # Runs that share a timeline are batched, and differ in the last digits with
        # their company, unless the mode says that each is executed by itself.
        ("algorithm.step_size", (0.05, 0.1, 0.2), "compiled"),
    ],
    ids=["delays", "step sizes"],
)
def test_a_sweep_in_two_parts_is_the_sweep(
    swept: str, values: tuple[float, ...], mode: str, tmp_path: Path
) -> None:
    engine = {"mode": mode, "chunk": 64}

    def made(name: str, *some: float) -> Study:
        tree = TREE | {"sweep": {swept: list(some)}, "engine": engine}
        return studies.simulate(tree, tmp_path / name)

    together = made("all", *values)
    parts = [made("a", values[0], values[2]), made("b", values[1])]
    assert_union(parts, together, TABLES)


def test_replicates_in_two_goes_are_the_replicates(tmp_path: Path) -> None:
    tree = TREE | {"sweep": {}, "engine": {"mode": "auto", "chunk": 64}}
    for replicates in (1, 3):
        study = studies.simulate(tree | {"replicates": replicates}, tmp_path / "goes")
    together = studies.simulate(tree | {"replicates": 3}, tmp_path / "once")
    assert_union([study], together, TABLES)


def assert_replayed(study: WorldScenario) -> None:
    """Plays, records, replays, and records what is replayed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = record(study, folder / "recorded")
        run = expand(study)[0]
        played = timeline(run)
        again = replayed(played, Recording(replay=str(folder / "recorded")), run)
        assert again.digest == played.digest
        first = whole(played, 64)
        for chunk in (1, 50):
            assert_alike(first, whole(again, chunk))
        entry = dict(recorded.manifest["runs"][0])
        source = TimelineSource(
            entry,
            lambda: again.chunks(37),
            played.workload,
            again.horizon,
            again.names,
        )
        tree = study.model_dump(mode="json")
        copied = write_all(folder / "copied", tree, [source], {})
        for table in TIMELINE:
            assert recorded.table(table).equals(copied.table(table)), table
        (ended,), (began,) = copied.manifest["runs"], recorded.manifest["runs"]
        for key in ("stop", "commits", "contributions", "virtual_s", "rows"):
            assert ended[key] == began[key], key


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 3000))
def test_a_replay_is_the_timeline(seed: int) -> None:
    study = timeline_scenario(seed)
    assert_replayed(study)


OTHERS: tuple[dict[str, Any], ...] = (
    {"kind": "bounded", "staleness_bound": 2},
    {"kind": "ssp", "slack": 1},
    {"kind": "growing_bound", "beyond": "stop"},
    {"kind": "collect", "quota": 2, "allotted": 1.0},
    {"kind": "collect", "allotment": {"jobs": 4, "spread": 0.2}},
    {"kind": "hierarchy", "edges": 2, "within": {"edges": 2, "cloud": "asynchronous"}},
    *({"kind": kind, **of} for kind, of in of_extras("PROTOCOLS").items()),
)


@pytest.mark.parametrize("protocol", OTHERS, ids=lambda p: "-".join(map(str, p)))
def test_a_replay_of_another_protocol_is_the_timeline(protocol: dict) -> None:
    tree = WORLD | {"protocol": protocol, "replicates": 1}
    assert_replayed(WorldScenario.model_validate(tree))


def test_every_protocol_is_replayed_here() -> None:
    here = {*PROTOCOLS, *(protocol["kind"] for protocol in OTHERS)}
    assert here == {tag(part) for part in parts("protocols")}
