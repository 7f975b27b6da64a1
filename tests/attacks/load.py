"""Sizes at which a program that was never tried with them gives up."""

import re
import resource
import time
from collections.abc import Iterable, Iterator
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


def worlds(folder: Path, numbers: Iterable[int]) -> Iterator[Case]:
    """Yields timelines of so many clients, with tables and figures."""
    for number in numbers:
        path = folder / f"world-{number}.yaml"
        text = WORLD.format(number=number, busy=number // 10, commits=number)
        path.write_text(text, encoding="utf-8")
        what = f"timeline of {number:,} clients"
        yield _timed(what, "timeline", path, "-o", folder / f"w{number}")


def studies(folder: Path, variants: int, most: int) -> Iterator[Case]:
    """Yields a study of many variants, its figures and report; and long runs.

    Args:
        folder: to work in.
        variants: of the study.
        most: commits of the longest run.
    """
    small = scenario(folder)
    tree = yaml.safe_load(small.read_text())
    tree |= {"name": "variants", "claims": [], "replicates": 1, "stop": {"commits": 5}}
    tree["evaluate"] = {"every": {"commits": 5}}
    tree["variants"] = {
        f"v{i}": {"algorithm": {"step_size": 0.001 * (i + 1)}} for i in range(variants)
    }
    path = folder / "variants.yaml"
    path.write_text(yaml.safe_dump(tree))
    run = ("run", path, "-o", folder / "v", "-j", "1", "--no-plots")
    yield _timed(f"run of {variants} variants", *run)
    yield _timed(f"plot of {variants} variants", "plot", folder / "v")
    yield _timed(f"report of {variants} variants", "report", folder / "v")
    del tree["variants"]
    for commits in (most // 10, most):
        every = {"every": {"commits": commits // 10}}
        path = folder / f"c{commits}.yaml"
        long = tree | {"stop": {"commits": commits}, "evaluate": every}
        path.write_text(yaml.safe_dump(long))
        run = ("run", path, "-j", "1", "--no-plots", "-o", folder / f"c{commits}")
        yield _timed(f"run of {commits:,} commits", *run)


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
