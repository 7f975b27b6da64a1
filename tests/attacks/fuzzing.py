"""Scenarios that were changed at random, as text or tree: read, some executed."""

import copy
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import MOST, read_any
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import planned, simulate
from tests.attacks.cases import LONGEST, REFUSED, ROOT, STOOD, UGLY, Case

READ_S, RUN_S = 12.0, 120.0
"""Seconds of processor time of reading, and of a short run, at most."""
NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 10**9, 10**18, 10**30, -(10**30), 0.5, -0.5, 1e-300,
    1e300, float("nan"), float("inf"), float("-inf"), "", " ", "x", "x" * 5000, "0",
    "1e3", "~", "[/b]", "../../etc/passwd", "a\nb", "=1+1", "\x1b[31m", "{}", "2*m",
    "m**m**m", "__import__('os')", "9**9**9", [], {}, [1], [[1]], [None], {1: 2},
    {"kind": "x"}, {"law": "expon"},
    {"law": "gamma", "shape": -1}, {"kind": "asynchronous"},
)  # fmt: skip


class Slow(BaseException):
    """Time is over; no exception of a program's, so that none catches it."""


@contextmanager
def _limit(kind: int, number: int, seconds: float) -> Iterator[None]:
    def over(*_: object) -> None:
        raise Slow

    before = signal.signal(number, over)
    signal.setitimer(kind, seconds)
    try:
        yield
    finally:
        signal.setitimer(kind, 0)
        signal.signal(number, before)


def _places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = enumerate(tree) if isinstance(tree, list) else ()
    for key, value in tree.items() if isinstance(tree, dict) else items:
        yield (*at, key)
        yield from _places(value, (*at, key))


def _changed_tree(tree: Any, rng: random.Random) -> str:
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            break
        *way, key = rng.choice(places)
        part = tree
        for step in way:
            part = part[step]
        match rng.randrange(5):
            case 0:
                del part[key]
            case 1 if isinstance(part, dict) and isinstance(key, str):
                part[key[:-1] + rng.choice("xs_ ")] = part.pop(key)
            case 2 if isinstance(part[key], int | float):
                part[key] = part[key] * rng.choice((-1, 1e6, 1e-6, 0, 1000))
            case _:
                part[key] = copy.deepcopy(rng.choice(NASTY))
    return yaml.safe_dump(tree, allow_unicode=True)


def _changed_text(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        line = lines[at]
        match rng.randrange(6):
            case 0:
                lines[at] = ""
            case 1:
                lines[at] = line + line
            case 2:
                lines[at] = rng.choice(("  ", "\t", "-", "&a ", "*a ", "!x ")) + line
            case 3:
                place = rng.randrange(len(line) + 1)
                letter = chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x500))))
                lines[at] = line[:place] + letter + line[place + 1 :]
            case 4:
                lines[at] = line[: rng.randrange(len(line) + 1)]
            case 5:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], line
    return "".join(lines)


def _mutants(folder: Path, number: int, seed: int) -> Iterator[tuple[str, Path]]:
    rng = random.Random(seed)
    sources = sorted((ROOT / "scenarios").rglob("*.yaml"))
    trees = [yaml.safe_load(path.read_text()) for path in sources]
    for index in range(number):
        which = rng.randrange(len(sources))
        text = sources[which].read_text(encoding="utf-8")
        by_tree = rng.random() < 0.6
        text = _changed_tree(trees[which], rng) if by_tree else _changed_text(text, rng)
        path = folder / "mutant.yaml"
        path.write_text(text, encoding="utf-8")
        yield f"{sources[which].stem} {index}", path


def reading(folder: Path, number: int, seed: int) -> Iterator[Case]:
    """Yields changed scenarios that were read and planned."""
    for name, path in _mutants(folder, number, seed):
        yield _read(name, path)


def _read(name: str, path: Path) -> Case:
    needed = path.name  # what is wrong with the text is said with its line
    try:
        with _limit(signal.ITIMER_PROF, signal.SIGPROF, READ_S):
            scenario = read_any(path)
            needed = ""
            if isinstance(scenario, Scenario):
                planned(scenario)
            else:
                expand(scenario)
    except UserError as error:
        lines = str(error).split("\n")[:MOST]  # a mistake each; the next counts
        if any(len(line) > LONGEST or needed not in line for line in lines):
            return Case(name, UGLY, f"{len(lines)} lines: {lines[0][:200]!r}")
        return Case(name, REFUSED)
    except Slow:
        return Case(name, UGLY, f"more than {READ_S:g} s of processor time")
    except Exception as error:  # what it is, is to be found
        return Case(name, UGLY, f"{type(error).__name__}: {error!s:.200}")
    return Case(name, STOOD)


def running(folder: Path, number: int, seed: int) -> Iterator[Case]:
    """Yields changed scenarios that were accepted, and run for six commits."""
    found = 0
    for name, path in _mutants(folder, 100 * number, seed + 1):
        try:
            with _limit(signal.ITIMER_PROF, signal.SIGPROF, READ_S):
                scenario = read_any(path)
        except (UserError, Slow):
            continue
        if not isinstance(scenario, Scenario):
            continue
        found += 1
        yield _run(name, scenario)
        if found == number:
            return


def _run(name: str, scenario: Scenario) -> Case:
    tree = scenario.model_dump(mode="json")
    tree |= {"replicates": 1, "variants": {}, "sweep": {}, "claims": []}
    tree["stop"] = {"commits": 6}
    begun = time.monotonic()
    try:
        with _limit(signal.ITIMER_PROF, signal.SIGPROF, RUN_S):
            simulate(tree)
    except UserError as error:
        text = str(error)
        ugly = "\n" in text or len(text) > LONGEST or "Error:" in text
        return Case(name, UGLY if ugly else REFUSED, text[:300])
    except Slow:
        return Case(name, UGLY, f"more than {time.monotonic() - begun:.0f} s")
    except Exception as error:  # what it is, is to be found
        return Case(name, UGLY, f"{type(error).__name__}: {error!s:.200}")
    return Case(name, STOOD)
