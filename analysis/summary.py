"""The closing table of a study."""

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations, groups, joined, runs
from analysis.statistics import Interval, t_interval
from analysis.targets import default_target, final_values, time_to_target


def summary(study: Study) -> pd.DataFrame:
    """Returns a row per group: how fast, how good, how stale, at what cost.

    Columns: group; virtual seconds to the target (median, k of n that reached it);
    final value; mean and largest staleness (commits); MB sent by and to all clients;
    commits; commits per second of real time; why the runs ended. Means over replicates.

    Staleness is that of stored embeddings in vertical studies, of contributions else.
    The final value of a metric is the mean of the last tenth of a run's evaluations;
    its interval is a 95 % t-interval over replicates.
    """
    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    target_metric, value = default_target(study)
    times = time_to_target(study, target_metric, value).set_index("group")
    finals, stale = final_values(study, metric), staleness(study)
    ended, last = runs(study), evaluations(study).groupby("run").last()
    rows = []
    for group in groups(study):
        mine = ended[ended["group"] == group]
        time = times.loc[group]
        median = f"{time['median']:.4g}" if np.isfinite(time["median"]) else "never"
        final = t_interval(finals.loc[finals["group"] == group, "value"].to_numpy())
        sent = last.loc[mine["run"], ["upload_bytes", "download_bytes"]].sum(axis=1)
        rows.append(
            {
                "group": group,
                f"s to {value:.3g}": (
                    f"{median} ({int(time['reached'])}/{int(time['replicates'])})"
                ),
                "final": _plus_minus(final),
                "stale: mean": stale.loc[group, "mean"],
                "max": int(stale.loc[group, "max"]),
                "MB": float(sent.mean()) / 1e6,
                "commits": float(mine["commits"].mean()),
                "updates/s": float((mine["commits"] / mine["elapsed_s"]).mean()),
                "stop": ", ".join(dict.fromkeys(mine["stop"])),
            }
        )
    return pd.DataFrame(rows)


def staleness(study: Study) -> pd.DataFrame:
    """Returns mean and maximum staleness per group, commits; columns mean, max."""
    table = joined(study, "clients")
    quantity = "staleness"
    rows = {}
    for group, mine in table.groupby("group", sort=False):
        if "embedding_staleness_mean" in mine and bool(
            mine["embedding_staleness_mean"].notna().any()
        ):
            quantity = "embedding_staleness"
            weight = mine[f"{quantity}_mean"].notna().astype(float)
        else:
            quantity = "staleness"
            weight = mine["num_applied"]
        means = mine[f"{quantity}_mean"].fillna(0)
        total = max(float(weight.sum()), 1.0)
        rows[group] = (
            float((means * weight).sum()) / total,
            float(mine[f"{quantity}_max"].max()),
        )
    columns = pd.Index(["mean", "max"])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _plus_minus(interval: Interval) -> str:
    """Returns mean and half-width of an interval."""
    if np.isnan(interval.low):
        return f"{interval.mean:.4g}"
    return f"{interval.mean:.4g} ± {(interval.high - interval.low) / 2:.2g}"
