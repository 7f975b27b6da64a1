"""Tidy frames of a study: one row an observation, parameters as columns."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..simulator.files.study import COLUMNS, Study, StudyError, metric_of_study
from ..simulator.files.timeline import NO_COMMIT, staleness
from ..simulator.parts.errors import counted, documented_key, suggestion
from ..simulator.parts.metrics import Metric
from .facts import Entry, short

FIRST_OPTIONAL = {
    "commits": "loss",
    "evaluations": "test_accuracy",
    "clients": "num_features",
    "workers": "worker_accuracy",
    "labels": "label_accuracy",
}
"""First columns of tables that depend on the study; so do those after them."""
NAMES = ("client_group", "client_label", "role")
"""Columns of the table `clients` with the clients' names or kinds."""
OPTIONAL = (
    *("embedding_staleness_mean", "embedding_staleness_max"),
    *("mu", "epsilon", "delta", "protects"),
    *("local_steps", *NAMES),
)
"""Columns of vertical studies, of one way or another of accounting for privacy, of
jobs whose local steps change, and of clients that have names or roles."""
OF_RUN = ("variant", "group", "replicate", "protocol")
"""Columns on the run of every row; those of swept values come with them."""
UNFINISHED = ("incomplete", "failed")
"""Stops of runs that have no results, or not all of them."""
COUNTED = (
    *("time", "commits", "contributions", "epochs", "rounds", "messages"),
    *("upload_bytes", "download_bytes", "bytes", "epsilon", "joules"),
)
"""Counts up to an evaluation, columns of `tidy`."""


def unit_of(counted: str) -> str:
    """Returns the unit of a count as text, such as `s` or `commits`."""
    return "s" if counted == "time" else counted


def validated(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Returns a table unchanged if it has the columns that every trace has.

    Further columns are metrics and diagnostics, a user's own among them.

    Raises:
        StudyError: A column is missing or of another type; the message names it.
    """
    if table not in COLUMNS:
        raise StudyError(f"table must be one of {', '.join(COLUMNS)}, got {table!r}")
    needed = list(COLUMNS[table])
    if table in FIRST_OPTIONAL:
        needed = needed[: needed.index(FIRST_OPTIONAL[table])]
    for column in needed:
        if column not in frame and column not in OPTIONAL:
            raise StudyError(
                f"table {table!r} must have the column {column!r}, got "
                f"{', '.join(map(str, frame.columns))}; was it written by another "
                f"version?"
            )
    for column, of in COLUMNS[table].items():
        if len(frame) and column in frame:
            _check_type(frame[column], of.dtype, table)
    return frame


def _check_type(values: pd.Series, dtype: str, table: str) -> None:
    truth = pd.api.types.is_bool_dtype(values)
    number = pd.api.types.is_numeric_dtype(values) and not truth
    wanted = {"string": "words", "bool": "truth values"}.get(dtype, "numbers")
    if dtype.startswith("list of "):
        return
    found = "truth values" if truth else "numbers" if number else "words"
    if found != wanted:
        raise StudyError(
            f"column {values.name!r} of table {table!r} must hold {wanted}, got "
            f"{values.dtype}; was it written by another version?"
        )


OF_A_RUN = (
    *("scenario", "parameters", "facts", "samples_per_job"),
    *("measures", "workload", "slot_seconds", "tariffs"),
)
"""Entries of a run that are no single values."""


def runs(study: Study) -> pd.DataFrame:
    """Returns one row per run that has ended: who it was and how it ended.

    `group` is the variant with its swept values: runs that differ in replicate alone. A
    swept value that is a list or a sub-tree is abbreviated. Measurements of a world
    alone have their own columns.

    Raises:
        StudyError: No run has ended.
    """
    rows, columns = [], swept_columns(study)
    for run in study.manifest["runs"]:
        if run["stop"] in UNFINISHED:
            continue
        row = {k: v for k, v in run.items() if k not in OF_A_RUN}
        values = parameters(run).items()
        swept = {columns[key]: short(value) for key, value in values}
        measured = run.get("measures", {})
        rows.append(row | measured | {"group": run["label"]} | swept)
    if not rows:
        raise StudyError(
            f"study {study.manifest['name']!r} has no run that has ended yet; wait if "
            f"it is under way, else continue with stalesim resume"
        )
    return pd.DataFrame(rows)


def data_sets(manifest: Entry) -> list[str]:
    """Returns the names of the data that the runs of a study used, each once."""
    found = dict.fromkeys(run.get("dataset") for run in manifest["runs"])
    return [name for name in found if name]


def titled(manifest: Entry) -> str:
    """Returns the first line of a study's tables: its name, and its data's."""
    return " on ".join(filter(None, (manifest["name"], ", ".join(data_sets(manifest)))))


def parameters(run: Entry) -> dict[str, Any]:
    """Returns the swept keys of a run, in the words that pages have, and its values."""
    return {documented_key(key): value for key, value in run["parameters"].items()}


def swept_columns(study: Study) -> dict[str, str]:
    """Returns the swept keys of a study, and the columns that hold their values.

    Keys are in the words that pages have: `algorithm.learning_rate` for `step_size`.
    A column is called like its key, unless each run has a column of that name, as for a
    whole `protocol` that is swept: then it is `sweep.protocol`.
    """
    told = {"group"}.union(*study.manifest["runs"])
    keys = (key for run in study.manifest["runs"] for key in parameters(run))
    return {key: f"sweep.{key}" if key in told else key for key in keys}


def swept_keys(study: Study) -> dict[str, set]:
    """Returns the keys that take two or more values in a study, and these, in order."""
    found: dict[str, set] = {}
    for run in study.manifest["runs"]:
        for key, value in parameters(run).items():
            found.setdefault(key, set()).add(short(value))
    return {key: values for key, values in found.items() if len(values) > 1}


def follow(study: Study, key: str) -> list[str]:
    """Returns the other keys whose values follow from a swept key's value.

    So do those that are zipped with it, unless it takes a value twice. Nothing
    determines a randomly drawn value.
    """
    scenario = study.manifest["scenario"]
    trees = [scenario, *scenario.get("variants", {}).values()]
    random = [(tree.get("sweep") or {}).get("random", ()) for tree in trees]
    drawn = {documented_key(k) for keys in random for k in keys}
    points = [parameters(run) for run in study.manifest["runs"]]
    found = []
    for other in swept_keys(study):
        pairs = {(short(at.get(key)), short(at.get(other))) for at in points}
        alone = len(pairs) == len({value for value, _ in pairs})
        if alone and other != key and not {key, other} <= drawn:
            found.append(other)
    return found


def swept_axes(study: Study) -> list[str]:
    """Returns the swept keys without those that follow from one before them."""
    found: dict[str, list[str]] = {}
    for key in swept_keys(study):
        if not any(key in others for others in found.values()):
            found[key] = follow(study, key)
    return list(found)


def ordered(values: pd.Series) -> list:
    """Returns the different values of a column: numbers in order, words as they come.

    Missing ones are left out.
    """
    known = list(dict.fromkeys(values.dropna()))
    numbers = all(isinstance(x, int | float) for x in known)
    return sorted(known) if numbers else known


def first_metric(manifest: Entry) -> str:
    """Returns the metric that a study is about.

    The objective's metric for a search or comparison, else the first that is evaluated.
    """
    scenario = manifest["scenario"]
    search = scenario.get("tune") or scenario.get("compare") or {}
    sought = search.get("objective") or ""
    metric, known = re.split("[@=]", sought)[0].strip(), scenario["evaluate"]["metrics"]
    return metric if metric in known else known[0]


def groups(study: Study) -> list[str]:
    """Returns the groups of a study in the order of their first runs."""
    return list(dict.fromkeys(runs(study)["group"]))


def who(study: Study) -> pd.DataFrame:
    """Returns variant, group, swept values and replicate of each run that has ended."""
    known = runs(study)
    keys = [key for key in swept_columns(study).values() if key in known]
    return known[["variant", "group", *keys, "replicate"]]


def configurations(study: Study) -> pd.DataFrame:
    """Returns variant, group and swept values of each group, in their order."""
    known = who(study).drop(columns="replicate")
    return known.drop_duplicates("group", ignore_index=True)


def chosen(study: Study, names: Sequence[str] | None) -> list[str]:
    """Returns the groups that are named, or all of a named variant; by default all.

    Raises:
        StudyError: There is no such group; the message says what to write.
    """
    if names is None:
        return groups(study)
    of = dict(zip(*runs(study)[["group", "variant"]].to_numpy().T, strict=True))
    check_groups(study, *(name for name in names if name not in of.values()))
    return [group for group, variant in of.items() if {group, variant} & {*names}]


def check_groups(study: Study, *names: str) -> None:
    """Refuses names of groups that a study does not have.

    Raises:
        StudyError: There is no such group; the message says what to write.
    """
    known = {run["label"]: run["variant"] for run in study.manifest["runs"]}
    for name in names:
        if name in known:
            continue
        if name in known.values():
            swept = [repr(group) for group, of in known.items() if of == name]
            raise StudyError(
                f"variant {name!r} has {counted(len(swept), 'configuration')}; take "
                f"one of them: {', '.join(swept)}"
            )
        names_known = [*known, *known.values()]
        raise StudyError(
            f"the study has no variant {name!r}; {suggestion(name, names_known)}"
        )


def evaluations(study: Study) -> pd.DataFrame:
    """Returns all evaluations, each with the columns of its run.

    Those are its variant, group, replicate, protocol and swept values.
    """
    return joined(study, "evaluations")


def described(study: Study, metric: str) -> Metric:
    """Returns the description of a compared column, in the study's units.

    Raises:
        StudyError: It is a plug-in's metric, the plug-in is not registered here, and
            the study is older than manifests that describe metrics.
    """
    found = metric_of_study(study.manifest, metric)
    if found is not None:
        return found
    if metric in study.manifest["scenario"].get("evaluate", {}).get("metrics", ()):
        raise StudyError(
            f"metric {metric!r} must be a known one, to say which way is better; "
            f"register the module that has it (stalesim.register, or --plugin)"
        )
    return Metric(metric, "")


def metric_of(frame: pd.DataFrame, column: str) -> pd.Series:
    """Returns a column of evaluations.

    Raises:
        StudyError: Nothing of that name was evaluated.
    """
    if column not in frame:
        numbers = frame.select_dtypes("number").columns.difference(["run", "replicate"])
        raise StudyError(
            f"evaluations have no column {column!r}; {suggestion(column, numbers)}"
        )
    return frame[column]


def jobs(study: Study) -> pd.DataFrame:
    """Returns all jobs, each with its `staleness`; NaN where it was not applied.

    That is in commits, as the tables `commits`, `clients` and `staleness` have it.
    """
    table = validated(study.table("jobs"), "jobs")
    at_once = {
        run["run"]: run.get("commits_at_once", 1) for run in study.manifest["runs"]
    }
    made = table["run"].map(at_once).to_numpy(np.int64)
    commit = table["commit"].fillna(NO_COMMIT).to_numpy(np.int64)
    age = staleness(commit - 1, table["read_version"].to_numpy(), made)
    of_applied = pd.Series(age, table.index).where(commit != NO_COMMIT)
    return table.assign(staleness=of_applied)


def joined(study: Study, table: str) -> pd.DataFrame:
    """Returns any table, each row with the columns of its run; jobs as in `jobs`.

    Where clients have names or roles, rows of a client have its `client_group`,
    `client_label` and `role`.

    Raises:
        StudyError: The table is not one of a trace, or no run has ended.
    """
    rows = validated(study.table(table), table) if table != "jobs" else jobs(study)
    more = [key for key in (*OF_RUN, *swept_columns(study).values()) if key not in rows]
    known = runs(study)
    of_run = known[["run", *(key for key in more if key in known)]]
    found = rows.merge(of_run, on="run", how="inner", validate="many_to_one")
    if "client" not in found or table == "clients":
        return found
    clients = study.table("clients")
    named = [name for name in NAMES if name in clients and name not in found]
    if not named:
        return found
    keys = ["run", "client"]
    told = clients[[*keys, *named]]
    return found.merge(told, on=keys, how="left", validate="many_to_one")


def tidy(study: Study) -> pd.DataFrame:
    """Returns everything that was evaluated in a study, a row per evaluation.

    Columns, as far as there are such: who it was (run, variant, group, replicate, seed,
    protocol), the swept keys, what had been counted by then (`COUNTED`, in the units of
    `simulator.trace.COLUMNS`), and the metrics. `bytes` are those up and down together;
    `epsilon` is the largest that a client had spent by the run's first accountant, NaN
    where privacy is not accounted for. `joules` are there where clients have rates.

    Raises:
        StudyError: No run has ended, or a table is damaged.
    """
    from .expenses import joules  # few studies have rates

    table = evaluations(study)
    if "seed" in (known := runs(study)):
        table = table.merge(known[["run", "seed"]], on="run", validate="many_to_one")
    table["bytes"] = table["upload_bytes"] + table["download_bytes"]
    if (drawn := joules(study, table)) is not None:
        table["joules"] = drawn
    table = table.merge(
        spent(study), on=["run", "time"], how="left", validate="many_to_one"
    )
    first = ["run", "variant", "group", "replicate", "seed", "protocol"]
    first += [*dict.fromkeys(swept_columns(study).values()), *COUNTED]
    metrics = [column for column in table if column not in first]
    return table[[column for column in first if column in table] + metrics]


def accounts(study: Study) -> dict[int, Entry]:
    """Returns the entries `privacy` of runs that account for it, by run."""
    entries = {run["run"]: run.get("privacy") or {} for run in study.manifest["runs"]}
    return {k: each for k, each in entries.items() if each.get("delta") is not None}


def spent(study: Study) -> pd.DataFrame:
    """Returns the largest epsilon of a client by each evaluation of a run.

    Columns run, time, epsilon, by the first accountant of each run; without rows where
    privacy is not accounted for.
    """
    first = {run: each["accountants"][0] for run, each in accounts(study).items()}
    if not first:
        types = {"run": "int32", "time": "float64", "epsilon": "float64"}
        return pd.DataFrame({name: pd.Series(dtype=t) for name, t in types.items()})
    table = validated(study.table("privacy"), "privacy")
    mine = table.loc[table["accountant"] == table["run"].map(first)]
    return mine.groupby(["run", "time"])["epsilon"].max().reset_index()
