"""What an attack has shown, and how the command line is called by one."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stalesim.simulator.files.study import COLUMNS, Study, load
from stalesim.simulator.scenario.reading import read

STOOD, REFUSED, WRONG, UGLY = "stood", "refused", "wrong", "ugly"
"""As if nothing had been; refused in one line that says what to do; numbers that are
wrong without a word; a traceback, a hang, or words that mislead."""
OUTCOMES = (STOOD, REFUSED, WRONG, UGLY)
USER_ERROR = 2
LONGEST = 1000
"""Characters of a message that one can read."""
ROOT = Path(__file__).parents[2]
SCENARIO = """\
name: attacked
seed: 1
problem:
  data: {kind: breast_cancer, scale: standard}
  partition: {kind: vertical, parties: 3}
clients:
  compute: {law: poisson, mu: "2*m", scale: "1/(2*M)", shift: 1.0e-6}
protocol: {kind: asynchronous}
algorithm: {kind: vafl, step_size: 0.1, batch: 8, upload: batch}
stop: {time: 60}
evaluate: {every: {time: 2}}
engine: {mode: compiled}
replicates: 2
variants:
  async: {}
  sync: {protocol: {kind: synchronous}}
claims:
  - {faster: async, than: sync, to: {test_accuracy: 0.8}, says: "as in figure 2"}
"""


class Case(NamedTuple):
    """One attack.

    Attributes:
        what: was done.
        outcome: one of `OUTCOMES`.
        note: what was seen, where that is not expected.
    """

    what: str
    outcome: str
    note: str = ""


class Result(NamedTuple):
    """How a command ended."""

    status: int | None
    out: str
    err: str


def environment(**also: str) -> dict[str, str]:
    """Returns the environment of a command that runs this copy of the program."""
    return {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT), **also}


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Starts a command in a session of its own, so that it can be killed whole."""
    env = environment(**options.pop("also", {}))
    command = [sys.executable, "-m", "stalesim", *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        command, text=True, env=env, start_new_session=True, **pipes, **options
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 600) -> Result:
    """Waits for a command; one that hangs is killed and has no status."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # closes its pipes
        return Result(None, "", "")
    return Result(process.returncode, out, err)


def call(*arguments: object, timeout_s: float = 600, **options: Any) -> Result:
    """Calls a command and waits for its end."""
    return finish(start(*arguments, **options), timeout_s)


def ugly(done: Result) -> str:
    """Returns what nobody should see of a command; "" if there is nothing."""
    if done.status is None:
        return "it hangs"
    if "Traceback" in done.err + done.out:
        return done.err.strip().splitlines()[-1][:200]
    # Warnings, a line each, may stand before the line that says why it has ended.
    lines = [
        line
        for line in done.err.strip().splitlines()
        if not line.startswith("stalesim: warning: ")
    ]
    if done.status == USER_ERROR and len(lines) > 1:
        return f"{len(lines)} lines: {done.err[:200]}"
    return ""


def judged(what: str, done: Result) -> Case:
    """Returns the case of a command that may be refused."""
    if found := ugly(done):
        return Case(what, UGLY, found)
    if done.status == USER_ERROR:
        return Case(what, REFUSED, done.err.strip())
    return Case(what, STOOD if done.status == 0 else UGLY, done.err.strip()[-200:])


def scenario(folder: Path) -> Path:
    """Writes the scenario that is attacked."""
    path = folder / "attacked.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    read(path)
    return path


def differs(folder: Path, whole: Study) -> str:
    """Returns in what a study differs from an undisturbed one; "" if in nothing."""
    study = load(folder)
    if not study.complete:
        return f"the study is {study.manifest['status']}"
    for name in COLUMNS:
        one, other = (_sorted(each, name) for each in (study, whole))
        if len(one) != len(other):
            return f"table {name} has {len(one)} rows, not {len(other)}"
        for column in other:
            a, b = one[column].to_numpy(), other[column].to_numpy()
            same = a == b
            if a.dtype.kind == "f":
                same |= np.isnan(a) & np.isnan(b)
            if not same.all():
                return f"table {name}, column {column}"
    return ""


def _sorted(study: Study, name: str) -> pd.DataFrame:
    """Returns a table with runs called by group and replicate.

    An extended study numbers its runs in the order in which they came.
    """
    runs = study.manifest["runs"]
    names = {run["run"]: f"{run['label']} {run['replicate']}" for run in runs}
    table = study.table(name)
    table["run"] = table["run"].map(names).astype(str)
    return table.sort_values("run", kind="stable", ignore_index=True)
