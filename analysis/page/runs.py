"""How the runs of a study ended, and which have no results."""

from collections import Counter
from typing import Any

import pandas as pd

from ...simulator.config.text import ranges
from ...simulator.trace import StudyError, is_world
from ..frames import UNFINISHED

TROUBLED = (*UNFINISHED, "interrupted", "diverged")
"""Ends of runs that a reader should know of one by one."""
OF_STUDY = {"name": str, "status": str, "scenario": dict, "runs": list}
OF_RUN = {
    "run": int,
    "label": str,
    "variant": str,
    "parameters": dict,
    "replicate": int,
    "seed": int,
    "stop": str,
    "stop_reason": str,
}
"""Entries that a manifest, and each of its runs, must have, and their types."""
OF_LEARNING = {
    "evaluate": {"metrics": list, "every": dict},
    "problem": {"data": dict, "partition": dict},
    "stop": {},
}
"""Parts of a scenario with numerics, and what they must have."""
OF_ENDED = {"commits": int, "virtual_s": int | float, "elapsed_s": int | float}
"""Further entries that a run that has ended must have."""


def check(manifest: Any, place: str) -> None:
    """Refuses a manifest that no version of ours can have written.

    Args:
        manifest: Manifest to look at.
        place: File that it was read from.

    Raises:
        StudyError: The manifest lacks something; one line.
    """
    _check(manifest, OF_STUDY, place)
    scenario = manifest["scenario"]
    if not is_world(manifest):
        _check(scenario, {"protocol": dict}, f"{place}, scenario")
        _check(scenario, dict.fromkeys(OF_LEARNING, dict), f"{place}, scenario")
        for part, needed in OF_LEARNING.items():
            _check(scenario[part], needed, f"{place}, scenario, {part}")
    for number, run in enumerate(manifest["runs"]):
        _check(run, OF_RUN, f"{place}, run {number}")
    for run in ended(manifest):
        _check(run, OF_ENDED, f"{place}, run {run['run']}")


def ended(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the runs that have results."""
    return [run for run in manifest["runs"] if run["stop"] not in UNFINISHED]


def status(manifest: dict[str, Any]) -> tuple[str, bool]:
    """Returns in a sentence how much of a study there is, and whether it is all."""
    runs, done = manifest["runs"], len(ended(manifest))
    count = f"{done} of {len(runs)} runs have ended"
    failed = sum(run["stop"] == "failed" for run in runs)
    if failed:
        count += f", {failed} failed"
    if manifest["status"] == "complete":
        word = "Complete" if done == len(runs) else "Not all runs have results"
        return f"{word}: {count}.", done == len(runs)
    word = "Interrupted" if manifest.get("interrupted") else "Incomplete"
    return f"{word}: {count}; all that follows is of those.", False


def reasons(manifest: dict[str, Any]) -> pd.DataFrame:
    """Returns why runs ended, and how many did for that reason."""
    counts = Counter(run["stop_reason"] for run in manifest["runs"])
    return pd.DataFrame({"why runs ended": list(counts), "runs": list(counts.values())})


def troubled(manifest: dict[str, Any]) -> pd.DataFrame:
    """Returns runs that failed, diverged or are incomplete; a row for those alike."""
    alike: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in manifest["runs"]:
        if run["stop"] in TROUBLED:
            key = run["label"], run["stop"], run["stop_reason"]
            alike.setdefault(key, []).append(run)
    rows = []
    for (label, stop, reason), runs in alike.items():
        at = [
            run["diverged_at_commit"] for run in runs if run.get("diverged_at_commit")
        ]
        when = f", at commit {ranges(at)}" if at else ""
        rows.append((label, ranges(r["replicate"] for r in runs), stop, reason + when))
    columns = pd.Index(["group", "replicates", "end", "reason"])
    return pd.DataFrame(rows, columns=columns)


def _check(tree: Any, needed: dict[str, Any], place: str) -> None:
    for key, kind in needed.items():
        value = tree.get(key) if isinstance(tree, dict) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StudyError(
                f"{place}: must have the entry {key!r}, got {str(value)[:60]!r}; is it "
                f"damaged, or of another version?"
            )
