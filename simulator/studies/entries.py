"""Runs as a study's manifest has them: what they depend on, and how they ended."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..files import inputs
from ..files.study import Files
from ..parts.text import TAGS, brief
from ..scenario.reading import without_nothing
from ..scenario.study import Run
from .planning import Task

WORDS = (
    *("name", "source", "question", "claims", "replicates", "seed", "looks", "tune"),
)
"""Entries of a scenario that a run's numbers do not depend on; it has its own seed."""
OPEN = ("incomplete", "failed")
"""Ends of runs that are still to be made."""
UNFINISHED = {"stop": "incomplete", "stop_reason": "the run has not ended"}
"""Entries of a run that is still to be made."""

Ends = dict[int, dict[str, Any]]
"""Ends of runs in the manifest, by the runs' numbers."""


class Done(NamedTuple):
    """The results of a task.

    Attributes:
        ends: Ends of its runs.
        files: Files that hold their rows.
    """

    ends: Ends
    files: Files


def content(run: Run) -> str:
    """Returns a hash of everything that a run's numbers depend on.

    What it reads counts by its content, not by its name.
    """
    tree = inputs.identified(run.scenario)
    parts = {key: value for key, value in tree.items() if key not in WORDS}
    text = json.dumps({"seed": run.seed, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def known_by(identity: dict[str, Any]) -> tuple[str, str, int]:
    """Returns what tells a run from others of its study, whatever their numbers.

    Args:
        identity: Entry of the run in a manifest, or `Run.identity`.
    """
    parameters = json.dumps(identity["parameters"], sort_keys=True)
    return identity["variant"], parameters, identity["replicate"]


def entry_of(run: Run, task: Task) -> dict[str, Any]:
    """Returns the entry of a run in the manifest before it is executed."""
    return {
        **run.identity,
        "content": content(run),
        "task": task.number,
        "mode": task.mode,
        "protocol": run.scenario.protocol.kind,
        "algorithm": run.scenario.algorithm.kind,
        "num_clients": run.scenario.num_clients,
        **UNFINISHED,
        "facts": run.scenario.described(),
        "scenario": run.scenario.model_dump(mode="json"),
    }


def difference(
    then: Mapping[str, Any], now: Mapping[str, Any], leaving: tuple[str, ...] = ()
) -> str:
    """Returns which entry of a scenario is not as it was; "" where all are.

    Args:
        then: Entries of the scenario as it was, as a manifest has them.
        now: Entries as they are.
        leaving: Entries at the top that do not count.
    """
    first, second = (
        {k: v for k, v in without_nothing(tree).items() if k not in leaving}
        for tree in (then, now)
    )
    return _first(first, second, "")


def _first(then: Any, now: Any, place: str) -> str:
    if then == now:
        return ""
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        return f"{place} was {brief(str(then))} and is {brief(str(now))}"
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    # What a part is called explains its other entries.
    first = next((key for key in keys if key in TAGS), keys[0])
    below = f"{place}.{first}" if place else first
    if first not in then:
        return f"{below} is {brief(str(now[first]))} and was not set"
    if first not in now:
        return f"{below} was {brief(str(then[first]))} and is not set"
    return _first(then[first], now[first], below)
