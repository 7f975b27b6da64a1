"""Contents of an exported run: its configuration, its evaluations and its end."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from ....analysis import staleness
from ....analysis.facts import Entry
from ....analysis.frames import Study
from ...files.study import metric_of_study
from ...scenario.study import OF_STUDY

WITHOUT_RESULTS = ("incomplete", "failed")
"""How runs end that have no results."""
NOT_OF_RUN = {*OF_STUDY, "source", "question"}
"""Entries of a scenario that are the same for all runs of a study."""
LONGEST_NAME = 60
"""Characters of a run's label in its name, so that any file system takes it."""


Row = Mapping[Any, Any]
"""A row of the points of a run, as pandas yields it."""


class RunRecord(NamedTuple):
    """One run, as experiment trackers see it.

    Attributes:
        name: Name that each run of a study has alone, and that a file may have.
        config: Resolved scenario by dotted keys, without null or empty entries.
        tags: Place of the run in its study, and why it ended; unit and better direction
            of each metric; where epsilon is
            accounted for, delta, and by accountant whether it is proved.
        points: One row per evaluation: `commits`, `time` (virtual s), the other
            counters and every metric; epsilon and mu of the client that has spent most,
            by accountant. NaN where something was not measured.
        final: Numbers that are known at the end alone, by name: counts, seconds,
            staleness.
    """

    name: str
    config: dict[str, bool | int | float | str]
    tags: dict[str, str]
    points: pd.DataFrame
    final: dict[str, float]


def has_ended(run: Entry) -> bool:
    """Returns whether a run of a manifest has results."""
    return run["stop"] not in WITHOUT_RESULTS


def records(study: Study) -> Iterator[RunRecord]:
    """Yields every run of a study that has ended."""
    measured, spent = study.table("evaluations"), study.table("privacy")
    stale = study.table("staleness")
    for run in study.manifest["runs"]:
        if not has_ended(run):
            continue
        number = run["run"]
        points = measured.loc[measured["run"] == number].drop(columns="run")
        cost = spent.loc[spent["run"] == number]
        yield RunRecord(
            name=_name(run),
            config=flat(run.get("scenario", {})),
            tags=_tags(study, run) | measures(study, run) | _kind_of(cost),
            points=points.merge(
                _costs(cost), on="time", how="left", validate="many_to_one"
            ),
            final=_final(run, stale.loc[stale["run"] == number]),
        )


def values(row: Row) -> dict[str, float]:
    """Returns the measured values in a row of `RunRecord.points`, by name."""
    return {name: float(value) for name, value in row.items() if not pd.isna(value)}


def flat(scenario: Entry) -> dict[str, bool | int | float | str]:
    """Returns the entries of a run's scenario by dotted keys; lists as JSON.

    Null or empty entries, and those equal for all runs of a study, are left out.
    """
    return dict(_leaves({k: v for k, v in scenario.items() if k not in NOT_OF_RUN}))


def measures(study: Study, run: Entry) -> dict[str, str]:
    """Returns unit and better direction of a run's metrics, `unit_...`, `better_...`.

    Values without a unit have no such entry.
    """
    found = {}
    names = study.manifest["scenario"].get("evaluate", {}).get("metrics", ())
    for name in names:
        known = metric_of_study({**study.manifest, "runs": [run]}, name)
        if known is None:
            continue
        if known.unit:
            found[f"unit_{name}"] = known.unit
        found[f"better_{name}"] = "higher" if known.higher_is_better else "lower"
    return found


def _leaves(tree: Entry, above: str = "") -> Iterator[tuple[str, bool | float | str]]:
    for key, value in tree.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}.")
        elif isinstance(value, list | tuple):
            if value:
                yield name, json.dumps(value)
        elif value is not None:
            yield name, value


def _name(run: Entry) -> str:
    plain = re.sub(r"[^\w.=]+", "-", run["label"], flags=re.ASCII).strip("-.")
    return f"{run['run']:04d}-{plain[:LONGEST_NAME]}-r{run['replicate']}"


def _tags(study: Study, run: Entry) -> dict[str, str]:
    told = {
        "study": study.manifest["name"],
        **{key: run.get(key) for key in ("variant", "label", "replicate", "seed")},
        **{key: run.get(key) for key in ("protocol", "algorithm", "dataset")},
        **{key: run.get(key) for key in ("stop", "stop_reason")},
    }
    return {key: str(value) for key, value in told.items() if value is not None}


def _costs(table: pd.DataFrame) -> pd.DataFrame:
    found = pd.DataFrame({"time": table["time"].unique()})
    for column in ("epsilon", "mu"):
        known = table.dropna(subset=column) if column in table else table.iloc[:0]
        for accountant, mine in known.groupby("accountant"):
            largest = mine.groupby("time")[column].max()
            found[f"{column}_{accountant}"] = found["time"].map(largest)
    return found


def _kind_of(table: pd.DataFrame) -> dict[str, str]:
    """Returns the delta of a run's epsilons, what they protect, and which are formal.

    Of one accountant all rows must be, as some may be approximations.
    """
    found = {}
    if "delta" in table and table["delta"].notna().any():
        found["delta"] = f"{table['delta'].max():g}"
    for words in table["protects"].unique() if "protects" in table else ():
        found["protects"] = words
    for accountant, mine in table.groupby("accountant"):
        found[f"formal_{accountant}"] = "yes" if bool(mine["formal"].all()) else "no"
    return found


def _final(run: Entry, stale: pd.DataFrame) -> dict[str, float]:
    names = ("commits", "contributions", "virtual_s", "elapsed_s", "diverged_at_commit")
    found = {name: float(run[name]) for name in names if run.get(name) is not None}
    for quantity, mine in stale.groupby("quantity"):
        counts = mine.groupby(["low", "high"])["count"].sum().reset_index()
        of = "staleness" if quantity == "contribution" else f"{quantity}_staleness"
        found[f"{of}_mean"] = staleness.mean(counts)
        for part in staleness.QUANTILES:
            found[f"{of}_q{100 * part:g}"] = staleness.quantile(counts, part)
        taken = counts.loc[counts["count"] > 0, "high"]
        if len(taken):
            found[f"{of}_max"] = float(taken.max()) - 1
    return {name: value for name, value in found.items() if not math.isnan(value)}
