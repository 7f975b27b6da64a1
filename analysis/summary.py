"""The closing table of a study."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations, groups, joined, runs
from analysis.statistics import Interval, t_interval
from analysis.targets import default_target, final_values, time_to_target


def summary(study: Study) -> pd.DataFrame:
    """Returns a row per group: how fast, how good, how stale, at what cost.

    Columns: group; virtual seconds to the target (median, k of n that reached it; if
    the scenario states no target, 95 % of the best group's final value); final value;
    mean and largest staleness (commits); MB sent by and to all clients; commits;
    commits per second of real time; why the runs ended. Means over replicates.

    Staleness is that of stored embeddings in vertical studies, of contributions else.
    The final value of a metric is the mean of the last tenth of a run's evaluations;
    its interval is a 95 % t-interval over the replicates that did not diverge, which
    are counted where some did.
    """
    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    target = default_target(study)
    goal = (
        f"{target.value:.3g}" if target.stated else f"95 % of best, {target.value:.3g}"
    )
    times = time_to_target(study, target.metric, target.value)
    times = times.set_index("group").to_dict("index")
    finals = final_values(study, metric)
    stale = staleness(study).reindex(groups(study))
    ended, last = runs(study), evaluations(study).groupby("run").last()
    rows = []
    for group in groups(study):
        mine = ended[ended["group"] == group]
        time = times[group]
        median = f"{time['median']:.4g}" if np.isfinite(time["median"]) else "never"
        final = finals.loc[finals["group"] == group, "value"].to_numpy(np.float64)
        sent = last.reindex(mine["run"])[["upload_bytes", "download_bytes"]].sum(axis=1)
        rows.append(
            {
                "group": group,
                f"s to {goal}": (
                    f"{median} ({int(time['reached'])}/{int(time['replicates'])})"
                ),
                "final": _plus_minus(final),
                "stale: mean": stale.loc[group, "mean"],
                "max": _whole(stale.loc[group, "max"]),
                "MB": float(sent.mean()) / 1e6,
                "commits": float(mine["commits"].mean()),
                "updates/s": float((mine["commits"] / mine["elapsed_s"]).mean()),
                "stop": ", ".join(dict.fromkeys(mine["stop"])),
            }
        )
    return pd.DataFrame(rows)


def staleness(study: Study) -> pd.DataFrame:
    """Returns mean and maximum staleness per group, commits; columns mean, max.

    A mean over contributions, or over uses of stored embeddings where there are any.
    NaN where nothing was measured.
    """
    table = joined(study, "clients")
    tallied = joined(study, "staleness")
    uses = tallied.loc[tallied["quantity"] == "embedding"]
    uses = uses.groupby(["run", "client"])["count"].sum().rename("uses")
    table = table.join(uses, on=["run", "client"])
    rows = {}
    for group, mine in table.groupby("group", sort=False):
        quantity, weight = "staleness", mine["num_applied"]
        if "embedding_staleness_mean" in mine and bool(
            mine["embedding_staleness_mean"].notna().any()
        ):
            quantity, weight = "embedding_staleness", mine["uses"].fillna(0)
        means = mine[f"{quantity}_mean"]
        total = float(weight[means.notna()].sum())
        rows[group] = (
            float((means * weight).sum()) / total if total else float("nan"),
            float(mine[f"{quantity}_max"].max()),
        )
    columns = pd.Index(["mean", "max"])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _plus_minus(values: np.ndarray) -> str:
    """Returns mean and half-width of its interval, and how many values are there."""
    known = values[np.isfinite(values)]
    interval: Interval = t_interval(known)
    text = f"{interval.mean:.4g}" if known.size else "none"
    if np.isfinite(interval.low):
        text += f" ± {(interval.high - interval.low) / 2:.2g}"
    return text if known.size == values.size else f"{text} ({known.size}/{values.size})"


def _whole(value: Any) -> float | int:
    """Returns a count as an integer, if there is one."""
    return int(value) if np.isfinite(value) else value
