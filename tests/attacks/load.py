"""Sizes at which a program that was never tried with them gives up."""

import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.attacks.cases import STOOD, UGLY, Case, Result, call, scenario, ugly

ANSWER_S = 120.0
"""Seconds of processor time that a command may take at such a size."""
WORLD = """\
name: many
seed: 1
clients: {{number: {number}, compute: {{law: expon}}, selection: {{in_flight: {busy}}}}}
protocol: {{kind: asynchronous}}
stop: {{commits: {commits}}}
"""


def attacks(folder: Path, *, large: bool = True) -> Iterator[Case]:
    """Yields commands with many clients, runs, variants or commits."""
    numbers = (5_000, 100_000, 1_000_000) if large else (5_000,)
    for number in numbers:
        path = folder / f"world-{number}.yaml"
        text = WORLD.format(number=number, busy=number // 10, commits=number)
        path.write_text(text, encoding="utf-8")
        yield _timed(
            f"timeline of {number:,} clients",
            "timeline",
            path,
            "-o",
            folder / f"w{number}",
        )
    small = scenario(folder)
    if not large:
        return
    tree = yaml.safe_load(small.read_text())
    tree |= {"name": "variants", "claims": [], "replicates": 1, "stop": {"commits": 5}}
    tree["evaluate"] = {"every": {"commits": 5}}
    tree["variants"] = {
        f"v{i}": {"algorithm": {"step_size": 0.001 * (i + 1)}} for i in range(500)
    }
    path = folder / "variants.yaml"
    path.write_text(yaml.safe_dump(tree))
    yield _timed(
        "run of 500 variants", "run", path, "-o", folder / "v", "-j", "1", "--no-plots"
    )
    yield _timed("plot of 500 variants", "plot", folder / "v")
    yield _timed("report of 500 variants", "report", folder / "v")
    alone = ("variants={a: {}}", "claims=[]", "replicates=1")
    for commits in (20_000, 200_000):
        seldom = f"evaluate.every={{commits: {commits // 10}}}"
        options: list[object] = []
        for entry in (*alone, seldom, f"stop={{commits: {commits}}}"):
            options += ["-s", entry]
        run = ("run", small, "-j", "1", "--no-plots", "-o", folder / f"c{commits}")
        yield _timed(f"run of {commits:,} commits", *run, *options)


def _timed(what: str, *command: object) -> Case:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done: Result = call(*command, timeout_s=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds, megabytes = time.monotonic() - begun, after.ru_maxrss / 1024
    note = f"{cpu:.0f} s of processor time, {seconds:.0f} s, "
    note += f"no command so far more than {megabytes:.0f} MB"
    if found := ugly(done):
        return Case(what, UGLY, f"{found}; {note}")
    if done.status:
        return Case(what, UGLY, re.sub(r"\s+", " ", done.err)[-200:])
    return Case(what, STOOD if cpu < ANSWER_S else UGLY, note)
