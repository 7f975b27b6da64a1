"""A study that is served, and what a browser asks for."""

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np

from stalesim.analysis.serving import PageServer
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.trace import live
from tests.support import write_study
from tests.unit.studies.watched import WATCHED


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[PageServer]:
    """Serves a study on a free port."""
    server = PageServer(folder, 0)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(20)


def ask(server: PageServer, path: str, **headers: str) -> tuple[int, str, Any]:
    """Returns status, content and headers of an answer."""
    request = urllib.request.Request(server.address + path, headers=headers)
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers
    with answer:
        return answer.status, answer.read().decode(), answer.headers


def piece(server: PageServer, name: str) -> str:
    """Returns a piece of the page."""
    status, text, _ = ask(server, f"pieces/{name}")
    assert status == 200
    return text


def write_half(folder: Path, **manifest: Any) -> None:
    """Writes a study of four runs: one has ended, one failed, two have not."""
    scenario = validated(WATCHED).model_dump(mode="json")
    stops = ("commits", "failed", "incomplete", "incomplete")
    about = {"protocol": "asynchronous", "num_clients": 5, "scenario": scenario}
    runs = [
        {"run": k, "label": ("fast", "slow")[k % 2], "replicate": k // 2, "task": k}
        | {"stop": stop, "stop_reason": f"because {k}", **about}
        for k, stop in enumerate(stops)
    ]
    runs[0] |= {"commits": 200, "contributions": 200, "virtual_s": 40.0}
    runs[0] |= {"elapsed_s": 2.0, "dataset": "digits"}
    evaluations = {
        "run": np.zeros(3, np.int32),
        "time": np.array([0.0, 20.0, 40.0]),
        "commits": np.array([0, 100, 200]),
        "contributions": np.array([0, 100, 200]),
        "epochs": np.zeros(3),
        "upload_bytes": np.zeros(3, np.int64),
        "download_bytes": np.zeros(3, np.int64),
        "rounds": np.full(3, np.nan),
        "messages": np.zeros(3, np.int64),
        "test_accuracy": np.array([0.1, 0.8, 0.9]),
    }
    told = {"name": "<half>", "question": "<b>?", "runs": runs, "scenario": scenario}
    told |= {"status": "incomplete", **manifest}
    write_study(folder, told, {"evaluations": evaluations})


def write_standing(folder: Path, *, ago_s: float = 0.0, session: int = 1) -> None:
    """Writes a sign of life, as a study that is run does: task 2 is half done."""
    (folder / live.LIVE).mkdir(exist_ok=True)
    now = time.time() - ago_s
    told = {
        "session": session,
        "since": now - 100,
        "now": now,
        "fraction": 0.25,
        "ended": 1,
        "runs": 4,
        "at": "fast",
        "commits": 1000,
        "tasks": [[2, 0.5, 400, now - 10]],
    }
    (folder / live.LIVE / f"{live.PROGRESS}1.json").write_text(json.dumps(told))


def write_rows(folder: Path, *, half: bool = False) -> None:
    """Writes evaluations of a run under way, the last line perhaps half."""
    rows = [
        {"run": 2, "time": 10.0 * k, "commits": 50 * k, "test_accuracy": 0.2 * k}
        for k in range(4)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / live.LIVE / "00002-1.jsonl").write_text(text + '{"run": 2, "ti' * half)
