"""Studies and writers that are killed or interrupted at any moment."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from stalesim.simulator.files.study import Study, load
from stalesim.simulator.parts.errors import UserError
from tests.attacks.cases import (
    STOOD,
    UGLY,
    WRONG,
    Case,
    call,
    differs,
    finish,
    start,
    ugly,
)
from tests.attacks.cases import scenario as written

OPTIONS = ("-j", "2", "--no-plots", "--checkpoint", "1")
HANGS_S = 60.0
"""Seconds after which a process that was to end, or one that it started, hangs; those
that a whole study takes here count thrice on top, since a machine may be busy."""
ORPHANS_S = 3.0
"""Seconds in which a worker whose main process is gone may still write."""


def _group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def _main(process: subprocess.Popen[str]) -> None:
    process.kill()


def _worker(process: subprocess.Popen[str]) -> None:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    children = path.read_text().split()
    if children:
        os.kill(int(random.choice(children)), signal.SIGKILL)


def _interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def _terminate(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def _twice(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    time.sleep(random.uniform(0, 0.3))
    if process.poll() is None:
        process.send_signal(signal.SIGINT)


KINDS = {
    "SIGKILL of all processes": _group,
    "SIGKILL of the main process alone": _main,
    "SIGKILL of a worker": _worker,
    "SIGINT": _interrupt,
    "SIGTERM": _terminate,
    "SIGINT twice": _twice,
}


def studies(folder: Path, number: int, seed: int) -> Iterator[Case]:
    """Yields studies that were interrupted once or twice, and then run to their end.

    Args:
        folder: to work in.
        number: of studies.
        seed: of the moments.
    """
    random.seed(seed)
    scenario = written(folder)
    begun = time.monotonic()
    call("run", scenario, "-o", folder / "whole", *OPTIONS)
    lasts = time.monotonic() - begun
    whole = load(folder / "whole")
    names = list(KINDS)
    for index in range(number):
        kind, place = names[index % len(names)], folder / f"s{index}"
        yield _interrupted(kind, place, scenario, lasts, whole)


def _interrupted(
    kind: str, place: Path, scenario: Path, lasts: float, whole: Study
) -> Case:
    notes = []
    for _ in range(random.choice((1, 1, 2))):
        process = start("run", scenario, "-o", place, *OPTIONS)
        time.sleep(random.uniform(0.1, lasts))
        if process.poll() is None:
            KINDS[kind](process)
        done = finish(process, timeout_s=HANGS_S + 3 * lasts)
        if found := ugly(done):
            notes.append(found)
    again = call("run", scenario, "-o", place, *OPTIONS)
    if again.status or ugly(again):
        return Case(kind, UGLY, ugly(again) or again.err.strip()[-200:])
    if "main process" in kind:
        time.sleep(ORPHANS_S)
    try:
        found = differs(place, whole)
    except UserError as error:
        return Case(kind, UGLY, str(error))
    if found:
        return Case(kind, WRONG, found)
    return Case(kind, UGLY if notes else STOOD, "; ".join(notes))


def writers(folder: Path, number: int, seed: int) -> Iterator[Case]:
    """Yields commands that were killed while they wrote, and were repeated at once."""
    random.seed(seed)
    scenario = written(folder)
    call("run", scenario, "-o", folder / "study", *OPTIONS)
    commands = {
        "report": ("report", folder / "study"),
        "plot": ("plot", folder / "study"),
        "timeline": ("timeline", scenario, "-o", folder / "timeline"),
    }
    lasts = {}
    for name, command in commands.items():
        begun = time.monotonic()
        first = call(*command)
        assert first.status == 0, first
        lasts[name] = time.monotonic() - begun
        if name == "timeline":
            subprocess.run(["rm", "-r", folder / name], check=True)
    for index in range(number):
        name = list(commands)[index % len(commands)]
        process = start(*commands[name])
        time.sleep(random.uniform(0.2, lasts[name]))
        _group(process)
        finish(process)
        done = call(*commands[name])
        over = name == "timeline" and process.returncode == 0
        what = f"{name} killed and repeated"
        if over or (done.status == 0 and not ugly(done)):
            yield Case(what, STOOD)
        elif "must be a new or empty folder" in done.err and _complete(folder, name):
            yield Case(what, STOOD)  # it was killed after its end
        else:
            yield Case(what, UGLY, ugly(done) or done.err.strip())
        subprocess.run(["rm", "-rf", folder / "timeline"], check=True)


def _complete(folder: Path, name: str) -> bool:
    try:
        return name == "timeline" and load(folder / name).complete
    except UserError:
        return False
