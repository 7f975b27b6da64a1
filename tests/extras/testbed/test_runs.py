"""Scenarios that real processes act out, in seconds, and what they leave."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.files.study import Study, load
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import read_any, validated
from stalesim.simulator.scenario.setting import WorldScenario

TREE: dict[str, Any] = {
    "name": "bench",
    "clients": {
        "number": 3,
        "compute": {"law": "expon", "scale": 0.01},
        "upload": {"latency": {"law": "constant", "value": 0.002}},
    },
    "job": {"upload_bytes": 300, "download_bytes": 5000},
    "protocol": {"kind": "asynchronous"},
    "stop": {"commits": 12},
}


def acted_out(
    folder: Path, options: dict[str, Any] | None = None, **changes: Any
) -> Bench:
    world = WorldScenario.model_validate({**TREE, **changes})
    said: list[str] = []
    return act_out(Bench(world, folder, said.append, **options or {}))


def end_of(study: Study) -> dict[str, Any]:
    return study.manifest["runs"][0]


def applied(study: Study) -> list[list[int]]:
    """Returns version, version read and client of all applied jobs."""
    jobs = study.table("jobs")
    if "kind" in jobs:  # of bounded delay, which embeds again between
        jobs = jobs[jobs["kind"] == "work"]
    used = jobs.loc[jobs["outcome"] == "APPLIED", ["commit", "read_version", "client"]]
    return sorted(used.astype(int).to_numpy().tolist())


def logged(log: Path) -> list[list[int]]:
    """Returns the same of the rows of a log."""
    rows = pd.read_csv(log)
    used = rows.loc[rows["outcome"] == "applied", ["commit", "read_version", "client"]]
    return sorted(used.astype(int).to_numpy().tolist())


of_protocols = pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "asynchronous"},
        {"kind": "asynchronous", "staleness_bound": 1, "beyond": "wait"},
        {"kind": "asynchronous", "staleness_bound": 1, "beyond": "stop"},
        {"kind": "buffered", "size": 3},
        {"kind": "synchronous"},
        {"kind": "t_synchronous", "t": 2},
        {"kind": "collect", "count": 4},
        {"kind": "bounded", "staleness_bound": 1},
    ],
    ids=lambda protocol: "-".join(map(str, protocol.values())),
)


@of_protocols
def test_a_log_says_of_every_job_what_the_server_did(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    found = acted_out(tmp_path / "bed", protocol=protocol)
    assert end_of(found.timeline)["stop"] == "commits"
    # With `wait` one arrival may let two be applied, in a simulation as well.
    most = 13 if protocol.get("beyond") == "wait" else 12
    assert 12 <= end_of(found.timeline)["commits"] <= most
    rows = logged(tmp_path / "bed" / "log.csv")
    assert rows == applied(found.timeline)
    assert len(rows) >= 12
    jobs = found.timeline.table("jobs")
    done = jobs[(jobs["outcome"] == "APPLIED") & (jobs["kind"] == "work")]
    order = ["read_time", "begun_time", "computed_time", "sent_time", "arrived_time"]
    moments = done[order].to_numpy()
    assert (np.diff(moments, axis=1) >= 0).all()
    # A sleep is never shorter than it should be.
    assert (done["arrived_time"] - done["sent_time"] >= 0.002).all()


@of_protocols
def test_its_log_is_imported_as_its_timeline(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    logs = pytest.importorskip("stalesim.simulator.extras.logs.timelines")
    found = acted_out(tmp_path / "bed", protocol=protocol)
    again = logs.import_log(tmp_path / "bed" / "log.csv", tmp_path / "again")
    jobs, clients = again.table("jobs"), again.table("clients").set_index("client")
    if "client_label" in clients:  # of numbers, without a client that ended no job
        jobs["client"] = jobs["client"].map(clients["client_label"].astype(int))
    used = jobs.loc[jobs["outcome"] == "APPLIED", ["commit", "read_version", "client"]]
    rows = sorted(used.astype(int).to_numpy().tolist())
    assert rows == applied(found.timeline)


DIGITS = {"data": {"kind": "digits", "scale": "unit"}, "model": {"kind": "linear"}}


def test_a_study_replays_every_row_of_a_testbed(tmp_path: Path) -> None:
    tree = {
        "name": "bed",
        "problem": {**DIGITS, "partition": {"kind": "vertical", "parties": 3}},
        "clients": {"compute": {"law": "expon", "scale": 0.01}},
        "protocol": {"kind": "bounded", "staleness_bound": 1},
        "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 8, "upload": "batch"},
        "stop": {"commits": 20},
        "evaluate": {"every": {"commits": 20}},
    }
    found = act_out(Bench(validated(tree), tmp_path / "bed"))
    assert found.study is not None
    rows, replayed = found.timeline.table("rows"), found.study.table("commits")
    rows = rows[rows["place"] == 0].reset_index(drop=True)
    assert len(set(rows["kind"])) == 2  # commits, and refreshes
    assert rows["kind"].tolist() == replayed["kind"].tolist()
    assert rows["time"].tolist() == replayed["time"].tolist()
    commits = rows["kind"] == "COMMIT"
    stale = (rows["version"] - rows["read_version"])[commits]
    assert stale.tolist() == replayed.loc[commits, "staleness_max"].tolist()
    rows = logged(tmp_path / "bed" / "log.csv")
    assert rows == applied(found.timeline) == applied(found.study)


def test_the_laws_are_those_of_the_simulation(tmp_path: Path) -> None:
    """Each job sleeps its own draw: real times are those of the simulation, or more."""
    from stalesim.simulator.studies.saved import record

    found = acted_out(tmp_path / "bed", stop={"commits": 20})
    world = WorldScenario.model_validate({**TREE, "stop": {"commits": 60}})
    simulated = record(world, tmp_path / "sim").table("jobs")
    real = found.timeline.table("jobs")
    both = real[real["outcome"] == "APPLIED"].merge(
        simulated, on=["client", "job"], suffixes=("", "_sim")
    )
    assert len(both) == 20
    slept = both["computed_time"] - both["begun_time"]
    drawn = both["computed_time_sim"] - both["begun_time_sim"]
    assert (slept >= drawn - 1e-9).all()


def test_a_client_that_is_killed_is_missed_and_comes_back(tmp_path: Path) -> None:
    options = {"kill": ("1@0.1+0.1", "2@0.15"), "slow": ("3@0.05x2",)}
    found = acted_out(tmp_path / "bed", options, stop={"time": 2.5})
    assert end_of(found.timeline)["stop"] == "time"
    incidents = found.timeline.table("incidents")
    joining = set(zip(incidents["client"], incidents["incident"], strict=True))
    assert (2, "LEFT") in joining
    assert (2, "REJOINED") not in joining
    jobs = found.timeline.table("jobs")
    last = jobs.groupby("client")["read_time"].max()
    assert last[1] > 0.2
    assert last[2] < 0.5


def test_a_run_whose_clients_are_all_killed_ends(tmp_path: Path) -> None:
    options = {"kill": ("1@0.05", "2@0.07", "3@0.06")}
    found = acted_out(tmp_path / "bed", options, stop={"commits": 10**6})
    assert end_of(found.timeline)["stop"] == "stalled"


def test_a_round_waits_for_a_client_that_is_paused(tmp_path: Path) -> None:
    options = {"pause": ("2@0.02+0.3",)}
    found = acted_out(tmp_path / "bed", options, protocol={"kind": "synchronous"})
    rows = found.timeline.table("rows")
    assert np.diff(rows["time"].unique(), prepend=0).max() > 0.2


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"protocol": {"kind": "cyclic"}}, {}, "protocol.kind must be one that"),
        ({}, {"kill": ("9@1",)}, "--kill must be CLIENT@TIME"),
        ({}, {"slow": ("1@1",)}, "--slow must be CLIENT@TIMExFACTOR"),
        ({}, {"time_scale": 0}, "--time-scale must be > 0"),
        ({"server": {"upload_bandwidth": 10}}, {}, "a shared link of server must not"),
        (
            {},
            {"broker": "start", "listen": ("127.0.0.1", 1)},
            "--listen must not be set with --broker",
        ),
        (
            {},
            {"listen": ("203.0.113.1", 0)},
            "--listen must be an address of this machine",
        ),
    ],
)
def test_what_cannot_be_acted_out_is_refused_in_one_line(
    changes: dict[str, Any], options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said) as error:
        acted_out(tmp_path / "bed", options, **changes)
    assert "\n" not in str(error.value)


def test_a_choice_by_what_clients_have_told_is_refused(tmp_path: Path) -> None:
    prefer = {"kind": "power_of_choice", "candidates": 2}
    tree = {
        "name": "bed",
        "problem": {**DIGITS, "partition": {"kind": "iid", "clients": 3}},
        "clients": {
            "compute": {"law": "expon", "scale": 0.01},
            "selection": {"in_flight": 1, "prefer": prefer},
        },
        "protocol": {"kind": "synchronous"},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
        "stop": {"commits": 20},
        "evaluate": {"every": {"commits": 20}},
    }
    with pytest.raises(UserError, match="must not need training on a testbed"):
        act_out(Bench(validated(tree), tmp_path / "bed"))


def test_an_interrupted_run_keeps_what_it_has_recorded(tmp_path: Path) -> None:
    path, folder = tmp_path / "bench.yaml", tmp_path / "bed"
    path.write_text(
        "name: bench\nclients: {number: 3, compute: {law: expon, scale: 0.02}}\n"
        "protocol: {kind: asynchronous}\nstop: {time: 1000}\n"
    )
    assert read_any(path)
    program = "from stalesim.simulator.cli import main; main()"
    command = [sys.executable, "-c", program, "testbed", str(path), "-o", str(folder)]
    with subprocess.Popen(
        [*command, "--no-plots"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as bed:
        log = folder / "log.csv"
        end = time.monotonic() + 60
        while not (log.exists() and log.read_bytes().count(b"\n") > 10):
            assert time.monotonic() < end
            time.sleep(0.05)
        children = _children(bed.pid)
        bed.send_signal(signal.SIGINT)
        _, err = bed.communicate(timeout=60)
    assert bed.returncode == 130, err
    assert b"Traceback" not in err
    assert end_of(load(folder / "timeline"))["stop"] == "interrupted"
    applied = load(folder / "timeline").table("jobs")
    assert len(pd.read_csv(log)) == (applied["outcome"] == "APPLIED").sum() > 10
    assert len(children) == 3
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_client_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    path, folder = tmp_path / "bench.yaml", tmp_path / "bed"
    path.write_text(
        "name: bench\nclients: {number: 3, compute: {law: expon, scale: 0.02}}\n"
        "protocol: {kind: asynchronous}\nstop: {time: 1000}\n"
    )
    program = "from stalesim.simulator.cli import main; main()"
    command = [sys.executable, "-c", program, "testbed", str(path), "-o", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as bed:
        log, end = folder / "log.csv", time.monotonic() + 60
        while not (log.exists() and log.read_bytes().count(b"\n") > 10):
            assert time.monotonic() < end
            time.sleep(0.05)
        children = _children(bed.pid)
        os.kill(children[0], signal.SIGSTOP)  # also one that is paused
        bed.kill()
    assert len(children) == 3
    end = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(logged(log)) > 9  # what was written is whole


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(child) for child in tasks.read_text().split()]


FRESH = """
import sys
from pathlib import Path
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.extras.testbed.world import RealWorld

def give(self, *args, before=RealWorld.give):
    loaded = set(sys.modules)
    before(self, *args)
    print(sorted(set(sys.modules) - loaded))

RealWorld.give = give
act_out(Bench(read_any(sys.argv[1]), Path(sys.argv[2])))
"""


def test_nothing_is_loaded_once_the_time_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(
        "name: bench\nclients: {number: 1, compute: {law: gamma, a: 2, scale: 0.01}}\n"
        "protocol: {kind: asynchronous}\nstop: {commits: 2}\n"
    )
    command = [sys.executable, "-c", FRESH, str(path), str(tmp_path / "bed")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"[]"}
