"""Measures scenarios/external/: what other papers and programs have published.

    python -m evidence.studies.external               # all of them: two minutes
    python -m evidence.studies.external dutta_pareto  # some

Writes `evidence/results/external/measured.csv`, of which `evidence/pages/external.md`
is made: means and 95 % t-intervals over replicates, of every pair of group and quantity
that the files name, and of seconds a commit and contributions a second.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import stalesim
from stalesim.analysis import frames, speeds, timelines
from stalesim.analysis.statistics import t_interval
from stalesim.simulator.cli.runs import recorder_of
from stalesim.simulator.files.study import Study, is_world
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.setting import BaseScenario

from ..generators import sheets

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios" / "external"
MEASURED = ROOT / "evidence" / "results" / "external" / "measured.csv"
USUAL = tuple(speeds.MEASURES)
"""Quantities of every variant."""
KEYS = ["scenario", "group", "quantity", "over"]


def of_runs(file: Path, overrides: tuple[str, ...] = ()) -> pd.DataFrame:
    """Plays a scenario.

    Args:
        file: The scenario.
        overrides: Entries to replace, as `--set` of the command has them.

    Returns:
        Row per run: group, replicate, commit_s (virtual s), contributions_per_s, and
        what its kind has: `commits`, `virtual_s` and `View.by_run` of a world;
        `batch_mean`, contributions a commit; `delays_and_ages`, the sum over
        contributions and jobs in flight, a commit; `staleness_mean of` each group of
        clients; `optimality_gap`, mean over the second half of the evaluations,
        `gap_growth`, that of the last quarter over that of the one before, and
        `target_s` (virtual s) until the target; `within_graham`, the share of batches.
    """
    scenario = read_any(file, overrides)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        if getattr(scenario, "problem", None) is not None:
            return _of_learning(stalesim.simulate(scenario, folder))
        study = recorder_of(scenario)(scenario, folder, lambda _: None)
        if not is_world(study.manifest):
            raise SystemExit(f"{file}: must be a world or a problem")
        of_clients = isinstance(scenario, BaseScenario)
        return _of_world(study) if of_clients else _of_samples(study)


def _of_world(study: Study) -> pd.DataFrame:
    jobs, seen = frames.joined(study, "jobs"), timelines.View(study)
    runs, found = seen.runs, seen.by_run.drop(columns="group")
    found["commit_s"] = 1 / found["commits_per_s"]
    found["batch_mean"] = found["contributions_per_s"] * found["commit_s"]
    done = jobs[jobs["outcome"] == "APPLIED"].merge(
        runs[["run", "start_s", "commits", "num_clients"]], on="run"
    )
    # Of each job in flight the commits since it read: its delay up to now.
    under_way = jobs[jobs["outcome"] == "IN_FLIGHT"].merge(runs[["run", "commits"]])
    ages = (under_way["commits"] - under_way["read_version"]).groupby(under_way["run"])
    delays = done.groupby("run")["staleness"].sum() + ages.sum()
    commits = runs.set_index("run")["commits"]
    found["delays_and_ages"] = found["run"].map(delays / commits)
    if "client_group" in done:
        late = done[~(done["applied_time"] <= done["start_s"])]
        each = late.pivot_table("staleness", index="run", columns="client_group")
        for name in each:
            found[f"staleness_mean of {name}"] = found["run"].map(each[name])
    known = ["run", "group", "replicate", "commits", "virtual_s"]
    return runs[known].merge(found, on="run")


def _of_learning(study: Study) -> pd.DataFrame:
    runs, evaluations = speeds.by_run(study), frames.evaluations(study)
    last = evaluations.groupby("run", sort=False)["time"].max()
    part = evaluations["time"] / evaluations["run"].map(last)

    def mean(low: float, high: float) -> Any:
        within = evaluations[(part > low) & (part <= high)]
        return within.groupby("run", sort=False)["optimality_gap"].mean()

    growth = mean(0.75, 1) / mean(0.5, 0.75)
    more = {"optimality_gap": mean(0.5, 1), "gap_growth": growth}
    target = study.manifest["scenario"]["stop"].get("target") or {}
    for metric, value in target.items():
        reached = evaluations[evaluations[metric] <= value]
        more["target_s"] = reached.groupby("run", sort=False)["time"].min()
    return runs.assign(**{name: runs["run"].map(each) for name, each in more.items()})


def _of_samples(study: Study) -> pd.DataFrame:
    samples: Any = study.table("samples")
    rows = []
    for run in study.manifest["runs"]:
        made = samples[(samples["run"] == run["run"]) & (samples["step"] > 0)]
        seconds = made["finish_time"] - made["start_time"]
        steps = made.assign(seconds=seconds).groupby("step")
        slots = run["workload"]["slots"]
        span = steps["finish_time"].max() - steps["start_time"].min()
        longest = (1 - 1 / slots) * steps["seconds"].max()
        bound = steps["seconds"].sum() / slots + longest
        values = run["measures"]
        rows.append(
            {
                "group": run["label"],
                "replicate": run["replicate"],
                **values,
                "commit_s": values["seconds_per_step"],
                "contributions_per_s": values["samples_trained"] / values["virtual_s"],
                "within_graham": (span <= bound * (1 + 1e-9)).mean(),
            }
        )
    return pd.DataFrame(rows)


def measured(runs: pd.DataFrame, group: str, quantity: str, over: str) -> list[Any]:
    """Returns replicates, mean and ends of the interval of a quantity of a group.

    Args:
        runs: Table of `of_runs`.
        group: Name of the group.
        quantity: Column.
        over: Group by whose value it is divided, replicate by replicate; "" for none.
    """
    by = runs.set_index(["group", "replicate"])[quantity]
    values = by.loc[group] / by.loc[over] if over else by.loc[group]
    interval = t_interval(np.asarray(values, np.float64))
    return [len(values), *interval]


def main() -> None:
    """Measures the scenarios that are named, and keeps the numbers of the others."""
    names = sys.argv[1:] or sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
    listed = sheets.numbers(ROOT)
    parts = []
    if MEASURED.exists():
        before = pd.read_csv(MEASURED, keep_default_na=False)
        parts.append(before[~before["scenario"].isin(names)])
    for name in names:
        runs = of_runs(SCENARIOS / f"{name}.yaml")
        wanted = [(g, q, "") for g in dict.fromkeys(runs["group"]) for q in USUAL]
        mine = listed[listed["scenario"] == name]
        wanted += mine[["group", "quantity", "over"]].itertuples(index=False, name=None)
        rows = [[name, *each, *measured(runs, *each)] for each in dict.fromkeys(wanted)]
        columns = [*KEYS, "replicates", "mean", "low", "high"]
        parts.append(pd.DataFrame(rows, columns=pd.Index(columns)))
        print(f"{name}: {len(runs)} runs", flush=True)
    MEASURED.parent.mkdir(exist_ok=True)
    found = pd.concat(parts).sort_values("scenario", kind="stable")
    found.to_csv(MEASURED, index=False, float_format="%.8g")


if __name__ == "__main__":
    main()
