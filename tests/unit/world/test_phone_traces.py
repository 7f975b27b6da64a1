"""Availability of phones in FedScale's, FLASH's and FLHetBench's own formats."""

import json
import pickle
import re
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.worlds.phone_traces import (
    FedScaleTrace,
    FlashTrace,
    FLHetBenchTrace,
)
from stalesim.simulator.files.timeline import NO_COMMIT
from stalesim.simulator.parts.errors import DataError
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.base import Population
from stalesim.simulator.world.streams import Streams
from stalesim.simulator.world.workload import Workload
from tests.support import everything, played

FEDSCALE = {
    "7": {
        "duration": 211625,
        "inactive": [100, 300],
        "finish_time": 400,
        "active": [50, 250],
        "model": "CPH1801",
    },
    "9": {"duration": 9, "inactive": [], "finish_time": 50, "active": [], "model": ""},
}
MESSAGES = """
2020-01-02 00:10:00\tscreen_off
2020-01-02 00:10:00\tscreen_lock
2020-01-02 00:20:00\twifi
2020-01-02 00:30:00\tbattery_charged_on
2020-01-02 00:30:00\t51.0%
2020-01-02 00:40:00\tscreen_unlock
2020-01-02 00:50:00\tscreen_lock
2020-01-02 01:00:00\t4G
2020-01-02 01:10:00\tUnknown
"""
FLASH = {"0": {"guid": "a", "model": "M", "messages": MESSAGES}}
TIMERS = {
    "37": {
        "isSuccess": True,
        "trace_start": 2410196.0,
        "trace_end": 2411196.0,
        "ready_time": [[2410200, 2410210], [2410300, 2410300], [2410900, 2411196]],
    },
    "5": {"isSuccess": False, "trace_start": None, "trace_end": None, "ready_time": []},
}
"""Phone 37 is ready in 306 of 1,000 s, and phone 5 never."""


def presence(part: Any, content: Any, folder: Path, size: int, first: int = 0) -> Any:
    path = folder / "traces.json"
    path.write_bytes(content if isinstance(content, bytes) else _text(content))
    found = part(path=str(path))
    return found.make(Population(size, Streams(1), first=first))


def _text(content: Any) -> bytes:
    return json.dumps(content).encode()


def fedscale_is_active(trace: dict[str, Any], time: float) -> bool:
    """As the first phones of FedScale's simulator: any of the intervals, again."""
    norm = time % trace["finish_time"]
    ends = zip(trace["active"], trace["inactive"], strict=True)
    return any(start <= norm < end for start, end in ends)


def test_converted_speeds_take_the_time_that_fedscale_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phones = {"1": {"computation": 162.0, "communication": 5648.1}}
    phones["7"] = {"computation": 8, "communication": 900}
    text = Path("docs/how-to/stragglers.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n# phones.py.*?^```$", text, re.DOTALL | re.M)
    monkeypatch.chdir(tmp_path)
    Path("CAPACITY.json").write_bytes(_text(phones))
    exec(code.strip("`").removeprefix("python"), {})
    entries = json.loads(Path("phones.yaml").read_text())["clients"]
    clients = Clients(**entries, number=2)
    work = Workload(upload_bytes=3000, download_bytes=5000, steps=4, samples=40)
    _, jobs, _ = everything(played(Asynchronous(), clients, 2, 1, work, commits=40))
    took = jobs.arrived_time - jobs.read_time
    for number, phone in enumerate(phones.values()):
        kbits = 8000 / 1024 * 8
        expected = 120 * phone["computation"] / 1000 + kbits / phone["communication"]
        mine = took[(jobs.client == number) & (jobs.commit != NO_COMMIT)]
        assert mine.size
        np.testing.assert_allclose(mine, expected, rtol=1e-9)


def test_fedscale_repeats_by_each_phone(tmp_path: Path) -> None:
    found = presence(FedScaleTrace, FEDSCALE, tmp_path, 2)
    times = np.arange(0, 1300, 7.0)
    there = [found.since(0, time) == time for time in times]
    assert there == [fedscale_is_active(FEDSCALE["7"], time) for time in times]
    assert found.since(0, 310.0) == 450
    assert found.since(1, 3.0) == inf  # never there
    later = presence(FedScaleTrace, FEDSCALE, tmp_path, 1, first=1)
    assert later.since(1, 3.0) == inf


def test_flash_is_ready_while_locked_on_wifi_and_charging(tmp_path: Path) -> None:
    found = presence(FlashTrace, FLASH, tmp_path, 1)
    minute = 60.0
    # Ready at 30 to 40 and 50 to 60 minutes; the window is of 60, from minute 10 on.
    assert found.since(0, 0.0) == 30 * minute
    assert found.since(0, 35 * minute) == 35 * minute
    assert found.since(0, 40 * minute) == 50 * minute
    assert found.since(0, 60 * minute) == 90 * minute
    start, length = 10 * minute, 60 * minute
    ready = [(30 * minute, 40 * minute), (50 * minute, 60 * minute)]
    for time in np.arange(0, 4 * length, 90.0):  # as the authors' `ready` has it
        now = (time - start) % length + start
        there = any(early <= now < late for early, late in ready)
        assert (found.since(0, time) == time) == there


def test_a_window_that_wraps_at_time_zero(tmp_path: Path) -> None:
    late = MESSAGES.replace("01:10:00", "01:00:30").replace("00:10:00", "00:25:30")
    found = presence(FlashTrace, {"0": {"messages": late}}, tmp_path, 1)
    # A window of 35 minutes: minutes 30 to 40 are its 30th to 35th and 0th to 5th.
    assert found.since(0, 4 * 60.0) == 4 * 60.0
    assert found.since(0, 29 * 60.0) == 30 * 60.0
    assert found.since(0, 34 * 60.0) == 34 * 60.0


def test_messages_out_of_order_are_joined_as_by_the_authors(tmp_path: Path) -> None:
    # Ready from 50 to 60 and, by messages that came late, from 20 to 55 and 56 to 54.
    lines = MESSAGES.strip().splitlines()
    late = [
        "2020-01-02 00:20:00\twifi",
        "2020-01-02 00:55:00\t4G",
        "2020-01-02 00:56:00\twifi",
        "2020-01-02 00:54:00\t4G",
    ]
    messages = "\n".join([*lines[:-1], *late, lines[-1]])
    found = presence(FlashTrace, {"0": {"messages": messages}}, tmp_path, 1)
    minute = 60.0
    assert found.since(0, 16 * minute) == 20 * minute
    assert found.since(0, 45 * minute) == 45 * minute
    assert found.since(0, 60 * minute) == 80 * minute  # the window is of an hour


def flhetbench_is_ready(timer: dict[str, Any], time: float) -> bool:
    """As FLHetBench's metrics have it: a place in a window that repeats."""
    start, end = timer["trace_start"], timer["trace_end"]
    now = (time - start) % (end - start) + start
    return any(early <= now < late for early, late in timer["ready_time"])


def test_flhetbench_repeats_a_window(tmp_path: Path) -> None:
    found = presence(FLHetBenchTrace, TIMERS, tmp_path, 2)
    times = np.arange(0, 3000, 3.0)
    there = [found.since(0, time) == time for time in times]
    assert there == [flhetbench_is_ready(TIMERS["37"], time) for time in times]
    assert 0.29 < np.mean(there) < 0.32
    assert found.since(1, 0.0) == inf


def test_a_sampled_case_is_a_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = [[1000.0, 4000], [250.0], [8000.0, 16000, 32000]]
    phones = [{"id": "a", "tcp_speed_results": speed} for speed in speeds]
    timers = {**TIMERS, "9": TIMERS["37"] | {"ready_time": [[2410196, 2411196]]}}
    written = {"state/case2.json": ["9", "37", "9"], "device/case1.json": phones}
    for name, content in {**written, "cached_timers.json": timers}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(_text(content))
    text = Path("docs/how-to/stragglers.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n# flhetbench.*?^```$", text, re.DOTALL | re.M)
    monkeypatch.chdir(tmp_path)
    exec(code.strip("`").removeprefix("python"), {})
    law = {"law": "empirical", "path": "transfers.csv", "column": "seconds",
           "client": "client", "order": "resample"}  # fmt: skip
    clients = Clients.model_validate({
        "number": 3, "compute": {"law": "constant", "value": 60},
        "upload": {"latency": law},
        "availability": {"kind": "flhetbench", "path": "states.json"},
    })  # fmt: skip
    work = Workload(upload_bytes=3000, download_bytes=5000, steps=4, samples=40)
    _, jobs, _ = everything(played(Asynchronous(), clients, 3, 1, work, commits=300))
    done = jobs.commit != NO_COMMIT
    kbits = 4 * 85_800_194 / 1024 * 8
    for client, mine in enumerate(speeds):
        seconds = (jobs.arrived_time - jobs.sent_time)[done & (jobs.client == client)]
        expected = kbits / np.array(mine)
        assert {*np.abs(seconds[:, None] - expected).argmin(axis=1)} == {
            *range(len(mine))
        }
        nearest = np.abs(seconds[:, None] - expected).min(axis=1)
        np.testing.assert_allclose(nearest, 0, atol=1e-6)
    begun = jobs.begun_time[done & (jobs.client == 1)]
    assert all(flhetbench_is_ready(timers["37"], time) for time in begun)


def changed(**entries: Any) -> dict[str, Any]:
    return {"7": FEDSCALE["7"] | entries}


@pytest.mark.parametrize(
    ("part", "content", "words"),
    [
        (FedScaleTrace, pickle.dumps(FEDSCALE), "got a pickle.*convert it where you"),
        (FedScaleTrace, b"{", "is not JSON"),
        (FedScaleTrace, [1], "at least 1 phones, one for each client, got 0"),
        (FedScaleTrace, {"7": {}}, "phone '7' lacks 'active'"),
        (FedScaleTrace, changed(active=[1]), "as many active as inactive"),
        (FedScaleTrace, changed(active=[50, 90]), "times that rise"),
        (FedScaleTrace, changed(finish_time=200), "0 to its period of 200 s"),
        (FedScaleTrace, changed(active=[], inactive=[], finish_time=0), "above 0 s"),
        (FedScaleTrace, changed(active=["a", 2]), "could not convert"),
        (FlashTrace, {"0": {"messages": "2020-01-02\twifi"}}, "does not match format"),
        (FlashTrace, {"0": {"messages": "\n"}}, "more than one time"),
        (
            FlashTrace,
            {"0": {"messages": MESSAGES + "2020-01-02 02:00:00\tx"}},
            "FLASH's states, got",
        ),
        (FLHetBenchTrace, {"3": {}}, "phone '3' lacks 'isSuccess'"),
        (
            FLHetBenchTrace,
            {"3": TIMERS["37"] | {"ready_time": [[0, 9]]}},
            "phone '3' must have ready_time from trace_start to trace_end",
        ),
    ],
)
def test_what_is_not_of_the_format_is_refused(
    part: Any, content: Any, words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words) as refused:
        presence(part, content, tmp_path, 1)
    assert "\n" not in str(refused.value)


def test_too_few_phones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at least 3 phones.*got 2; take fewer"):
        presence(FedScaleTrace, FEDSCALE, tmp_path, 3)
