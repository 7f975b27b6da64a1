"""The processes of a study: what they inherit, and what their model has done."""

import os
import signal
import subprocess
import sys

import pytest

from stalesim.simulator.engine import processes


def _told(name: str) -> tuple[str | None, int, list[str]]:
    import sys

    from stalesim import simulator

    return os.environ.get(name), os.getpid(), [sys.executable, simulator.__file__]


def test_processes_are_like_the_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    from stalesim import simulator

    monkeypatch.setenv("STALESIM_TOLD", "one")
    first = processes.pool(2).submit(_told, "STALESIM_TOLD").result(60)
    assert first[0] == "one"
    assert first[1] != os.getpid()
    assert first[2] == [sys.executable, simulator.__file__]
    monkeypatch.setenv("STALESIM_TOLD", "two")  # the model was started before
    assert processes.pool(2).submit(_told, "STALESIM_TOLD").result(60)[0] == "two"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_hear_no_interruption() -> None:
    code = (
        "import re\n"
        "from multiprocessing import forkserver\n"
        "from pathlib import Path\n"
        "from stalesim.simulator.engine import processes\n"
        "processes.begin()\n"
        "server = forkserver._forkserver._forkserver_pid\n"
        "status = Path(f'/proc/{server}/status').read_text()\n"
        "print(re.search(r'SigBlk:\\s*(\\w+)', status)[1])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(found.stdout, 16) & 1 << (signal.SIGINT - 1)


def test_nothing_that_is_imported_before_computes() -> None:
    code = (
        f"import threading, {processes.PRELOADED}\n"
        "from jax._src import xla_bridge\n"
        "print(xla_bridge.backends_are_initialized(), threading.active_count())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["False", "1"]
