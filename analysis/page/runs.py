"""How the runs of a study ended, and which have no results."""

from collections import Counter

import pandas as pd

from ...simulator.files.study import StudyError, is_world
from ...simulator.parts.errors import ranges
from ..facts import Entry
from ..frames import UNFINISHED, Study

TROUBLED = (*UNFINISHED, "interrupted", "diverged")
"""Ends of runs that a page reports one by one."""
OF_LEARNING = {
    "evaluate": {"metrics": list, "every": dict},
    "problem": {"data": dict, "partition": dict},
    "stop": {},
}
"""Components of a scenario with training, and their requirements."""
OF_ENDED = {"commits": int, "virtual_s": int | float, "elapsed_s": int | float}
"""Further entries that a run that has ended must have."""


def check(manifest: Entry, place: str) -> None:
    """Refuses a study that lacks data for a page, beyond the checks of reading.

    Raises:
        StudyError: The manifest lacks something; one line.
    """
    if not is_world(manifest):
        scenario, told = manifest["scenario"], f"{place}, scenario"
        _check(scenario, dict.fromkeys(("protocol", *OF_LEARNING), dict), told)
        for part, needed in OF_LEARNING.items():
            _check(scenario[part], needed, f"{told}, {part}")
    for run in ended(manifest):
        _check(run, OF_ENDED, f"{place}, run {run['run']}")


def ended(manifest: Entry) -> list[Entry]:
    """Returns the runs that have results."""
    return [run for run in manifest["runs"] if run["stop"] not in UNFINISHED]


def status(manifest: Entry) -> tuple[str, bool]:
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


def reasons(manifest: Entry) -> pd.DataFrame:
    """Returns why runs ended, and how many did for that reason."""
    counts = Counter(run["stop_reason"] for run in manifest["runs"])
    return pd.DataFrame({"why runs ended": list(counts), "runs": list(counts.values())})


def troubled(manifest: Entry) -> pd.DataFrame:
    """Returns failed, diverged or incomplete runs; one row for identical ones."""
    alike: dict[tuple[str, str, str], list[Entry]] = {}
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


def under_way(study: Study) -> pd.DataFrame:
    """Returns the last evaluation so far of each run that has not ended."""
    last = study.so_far().groupby("run").tail(1)
    of_run = {run["run"]: run for run in study.manifest["runs"]}
    metrics = study.manifest["scenario"].get("evaluate", {}).get("metrics", ())
    told = {
        "group": [of_run[run]["label"] for run in last["run"]],
        "replicate": [of_run[run]["replicate"] for run in last["run"]],
        "commits": last["commits"],
        "time (virtual s)": last["time"],
        **{metric: last[metric] for metric in metrics if metric in last},
    }
    return pd.DataFrame(told)


def _check(tree: Entry, needed: Entry, place: str) -> None:
    for key, kind in needed.items():
        value = tree.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StudyError(
                f"{place}: must have the entry {key!r}, got {str(value)[:60]!r}; is it "
                f"damaged, or of another version?"
            )
