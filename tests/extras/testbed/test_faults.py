"""What goes wrong on a testbed: the run continues, and its log has all of it."""

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator.extras.testbed import fleet
from stalesim.simulator.extras.testbed.client import TcpChannel, greet
from stalesim.simulator.extras.testbed.running import act_out
from stalesim.simulator.extras.testbed.timeline import Bench
from stalesim.simulator.extras.testbed.wire import HEAD, MAGIC, NO_MAC, WireError
from stalesim.simulator.files.study import Study
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.setting import WorldScenario
from tests.extras.testbed.test_runs import TREE, applied, end_of, logged

CLOCK_THAT_GOES_BACK = """\
import itertools, time
_seconds = itertools.count(2e9, -1000.0)
time.time = lambda: next(_seconds)
time.time_ns = lambda: int(1e9 * next(_seconds))
"""


def whole(study: Study, folder: Path) -> pd.DataFrame:
    """Returns the log of a run; it has every job that its timeline has."""
    log, jobs = pd.read_csv(folder / "bed/log.csv"), study.table("jobs")
    ended = ~jobs["outcome"].isin(["IN_FLIGHT", "BUFFERED"]) & (jobs["kind"] == "work")
    assert len(log) == ended.sum()
    assert logged(folder / "bed/log.csv") == applied(study)
    return log


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "asynchronous"},
        {"kind": "buffered", "size": 3},
        {"kind": "synchronous"},
        {"kind": "t_synchronous", "t": 2},
        {"kind": "bounded", "staleness_bound": 1},
    ],
    ids=lambda protocol: protocol["kind"],
)
def test_clients_are_killed_at_twenty_random_moments(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(20)
    kill = tuple(
        f"{client}@{time:.3f}+{away:.3f}"
        for client, time, away in zip(
            rng.integers(1, 4, 20),
            rng.uniform(0.05, 4.0, 20),
            rng.uniform(0, 0.1, 20),
            strict=True,
        )
    )
    tree = {**TREE, "protocol": protocol, "stop": {"time": 5.0}}
    world = WorldScenario.model_validate(tree)
    found = act_out(Bench(world, tmp_path / "bed", kill=kill))
    assert end_of(found.timeline)["stop"] == "time"
    log = whole(found.timeline, tmp_path)
    assert (log["outcome"] == "applied").sum() > 20
    incidents = found.timeline.table("incidents")["incident"]
    assert (incidents == "CRASHED").any()  # on a busy machine few are back in time
    assert not (incidents == "LEFT").any()


def test_clocks_that_are_set_back_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK_THAT_GOES_BACK)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # the clients'
    monkeypatch.setattr(time, "time", time.time)
    monkeypatch.setattr(time, "time_ns", time.time_ns)
    exec(CLOCK_THAT_GOES_BACK, {})
    assert time.time() > time.time() + 500
    found = act_out(Bench(WorldScenario.model_validate(TREE), tmp_path / "bed"))
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    stages = ["read_time", "begun_time", "computed_time", "sent_time", "arrived_time"]
    moments = log[stages].to_numpy()
    assert (np.diff(moments, axis=1) >= 0).all()
    assert 0 <= moments.min() <= moments.max() < 600


Says = Callable[[TcpChannel, dict[str, Any]], None]


def unknown(line: TcpChannel, job: dict[str, Any]) -> None:
    line.send({"type": "nonsense", "serial": job["serial"]})


def too_short(line: TcpChannel, job: dict[str, Any]) -> None:
    line.send({"type": "update", "serial": job["serial"], "times": [0, 1]}, b"123")


def without_times(line: TcpChannel, job: dict[str, Any]) -> None:
    times = [float("nan"), "later"]
    line.send({"type": "update", "serial": job["serial"], "times": times}, bytes(300))


def raw(data: bytes) -> Says:
    return lambda line, job: line._socket.sendall(data)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (unknown, "client 3 says 'nonsense'"),
        (too_short, "an update has another size"),
        (without_times, "times must be 2 numbers"),
        (raw(b"\x16\x03\x01 hello"), "it is no message of a testbed"),
        (raw(HEAD.pack(MAGIC, 9, 2, 0, NO_MAC) + b"{}"), "it speaks version 9"),
        (raw(HEAD.pack(MAGIC, 1, 2, 2**50, NO_MAC)), "is too long"),
    ],
    ids=["unknown", "short", "times", "garbage", "version", "long"],
)
def test_a_client_that_talks_nonsense_is_dropped_and_the_run_continues(
    says: Says, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of three clients is played here, and knows the secret."""
    failed: list[BaseException] = []

    def play(joining: dict[str, Any]) -> None:
        try:
            line = TcpChannel(tuple(joining["address"]), joining["most"])
            greet(line, bytes.fromhex(joining["secret"]), 2)
            line.send({"type": "ready"})
            while (message := line.wait(30)) and message.header["type"] != "model":
                line.send({"type": "read", "number": message.header["number"]})
            assert message is not None
            says(line, message.header)
            with pytest.raises((WireError, OSError)):
                line.wait(30)
            line.close()
        except BaseException as error:
            failed.append(error)

    def begin(self: Any, joining: dict[str, Any], num_clients: int) -> None:
        self._joining = joining
        for client in range(num_clients - 1):
            self.start(client)
        threading.Thread(target=play, args=(joining,), daemon=True).start()

    monkeypatch.setattr(fleet.ClientProcesses, "begin", begin)
    world = WorldScenario.model_validate({**TREE, "stop": {"commits": 200}})
    lines: list[str] = []
    found = act_out(Bench(world, tmp_path / "bed", lines.append))
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    assert not failed
    assert set(log.loc[log["outcome"] == "applied", "client"]) == {1, 2}
    assert [line for line in lines if said in line] == lines != []
    incidents = found.timeline.table("incidents")
    left = incidents.loc[incidents["incident"] == "LEFT", "client"]
    assert left.tolist() == [3]


def test_strangers_change_nothing_of_a_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    over = threading.Event()

    def knock() -> None:
        while not over.wait(0.01):
            for data in (b"GET / HTTP/1.1\r\n\r\n", b"", b"ssim", bytes(10**5)):
                try:
                    with socket.create_connection(("127.0.0.1", port), 1) as guest:
                        guest.settimeout(0.05)
                        guest.sendall(data)
                        guest.recv(4096)
                except OSError:
                    continue

    stranger = threading.Thread(target=knock)
    stranger.start()
    lines: list[str] = []
    world = WorldScenario.model_validate({**TREE, "stop": {"commits": 60}})
    try:
        found = act_out(
            Bench(world, tmp_path / "bed", lines.append, listen=("127.0.0.1", port))
        )
    finally:
        over.set()
        stranger.join()
    assert end_of(found.timeline)["stop"] == "commits"
    log = whole(found.timeline, tmp_path)
    assert set(log["client"]) == {1, 2, 3}
    assert any("no message of a testbed" in line for line in lines)
    assert 1 <= len(lines) <= fleet.LINES


def test_a_client_that_dies_before_all_are_ready_is_named_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said to be late by 300 seconds, after three."""
    start = fleet.ClientProcesses.start

    def dying(self: fleet.ClientProcesses, client: int) -> None:
        start(self, client)
        if client == 1:
            self.signal(client, signal.SIGKILL)

    monkeypatch.setattr(fleet.ClientProcesses, "start", dying)
    world = WorldScenario.model_validate(TREE)
    with pytest.raises(UserError, match=r"client 2 must live .* killed by signal 9;"):
        act_out(Bench(world, tmp_path / "bed"))
