"""The command line, as tests call it: in a process of its own, or in this one."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from stalesim.simulator.cli.commands import app

ENVIRONMENT = {**os.environ, "COLUMNS": "120"}
WAIT_S = 120
"""Real seconds after which something that must happen has not."""


def stalesim(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, as a user does."""
    own: dict[str, Any] = {"env": ENVIRONMENT, "timeout": 300, "check": False}
    own |= {"capture_output": True, "text": True} | options
    return subprocess.run(command(*arguments), **own)


def started(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Starts a command in a process of its own."""
    own: dict[str, Any] = {"env": ENVIRONMENT, "text": True}
    own |= dict.fromkeys(("stdout", "stderr"), subprocess.PIPE) | options
    return subprocess.Popen(command(*arguments), **own)


def run_in(folder: Path, *arguments: str, status: int = 0) -> Any:
    """Runs a command in a folder, where it imports the tests too; returns its end."""
    own = {"COLUMNS": "200", "PYTHONPATH": str(Path.cwd())}
    done = stalesim(*arguments, cwd=folder, env={**os.environ, **own}, timeout=500)
    assert done.returncode == status, done.stderr
    return done


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "stalesim", *map(str, arguments)]


EACH = """
import json, sys
from stalesim.simulator.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["stalesim", *arguments]
    try:
        main()
    except SystemExit as end:
        print("ended with", end.code)
"""


def each(
    *calls: tuple[object, ...], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Calls several commands in one process, and prints how each has ended."""
    texts = json.dumps([[*map(str, arguments)] for arguments in calls])
    own: dict[str, Any] = {"env": ENVIRONMENT, "timeout": 300, "check": True}
    own |= {"capture_output": True, "text": True} | options
    return subprocess.run([sys.executable, "-c", EACH, texts], **own)


def invoked(*arguments: object) -> Result:
    """Calls a command in this process; what it raises, such as a mistake, is raised."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def wait_for(happened: Callable[[], Any]) -> None:
    """Waits until something has happened."""
    until = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)
