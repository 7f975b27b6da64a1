"""Results of runs of samples, next to closed forms."""

import numpy as np
import pandas as pd

from ....analysis.frames import UNFINISHED, Study, parameters, swept_columns
from ...scenario.study import short_names
from .theory import rollout_staleness
from .world.measures import RolloutLoad

COLUMNS = {
    "staleness_mean": "staleness",
    "in_generation": "in generation",
    "in_queue": "in queue",
    "seconds_per_step": "s/step",
    "samples_dropped": "dropped",
    "samples_masked": "masked",
    "tokens_wasted": "tokens wasted",
    "trainer_idle": "trainer idle",
    "slots_idle": "slots idle",
    "length_bias": "length bias",
}
"""Measures of the closing table, and how it calls them."""


def predictions(workload: RolloutLoad) -> dict[str, float]:
    """Returns the closed forms of a run, NaN where they do not hold.

    They hold below rho = 1, where the trainer waits for samples; above, the published
    ones are approximations, whose errors cancel in their sum alone.
    """
    names = ("staleness_mean", "in_generation", "in_queue")
    if workload["exempt"] or workload["rho"] >= 1:
        return dict.fromkeys(names, np.nan)
    # The queue's bound plays no part below rho = 1.
    found = rollout_staleness(
        workload["slots"], workload["batch"], 1, workload["rho"], workload["tail"]
    )
    return dict(zip(names, (sum(found), *found), strict=True))


def of_runs(study: Study) -> pd.DataFrame:
    """Returns a row for each run that has ended, with the columns of `compared`."""
    rows = []
    for run in study.manifest["runs"]:
        if run["stop"] in UNFINISHED:
            continue
        values = {k: np.nan if v is None else v for k, v in run["measures"].items()}
        bias = values["tokens_trained"] / values["tokens_drawn"] - 1
        closed = predictions(run["workload"])
        rows.append(
            {
                "label": run["label"],
                "variant": run["variant"],
                **{key: str(value) for key, value in parameters(run).items()},
                **values,
                "length_bias": bias,
                "rho": run["workload"]["rho"],
                **{f"predicted_{key}": value for key, value in closed.items()},
            }
        )
    return pd.DataFrame(rows)


def compared(study: Study) -> pd.DataFrame:
    """Returns a row for each variant and point: means over replicates.

    Returns:
        Columns `label`, `variant`, every swept key, every measure, `length_bias` (mean
        length of trained samples over the mean of all, less 1), `rho`, and the closed
        forms as `predicted_...`, NaN where they do not hold.
    """
    words = ["label", "variant", *swept_columns(study)]
    grouped = of_runs(study).groupby(words, sort=False, dropna=False)
    return grouped.mean(numeric_only=True).reset_index()


def closing(study: Study) -> pd.DataFrame:
    """Returns the closing table: measured, and the closed form in brackets."""
    frame, keys = compared(study), swept_columns(study)
    table = pd.DataFrame()
    if len({*frame["variant"]}) > 1 or not keys:
        table["variant"] = frame["variant"]
    for key, name in short_names(tuple(keys)).items():
        table[name] = frame[key]
    for key, name in COLUMNS.items():
        if key == "samples_masked" and not frame[key].any():
            continue
        texts = [f"{value:.3g}" for value in frame[key]]
        if (closed := f"predicted_{key}") in frame:
            texts = [
                text if np.isnan(other) else f"{text} ({other:.3g})"
                for text, other in zip(texts, frame[closed], strict=True)
            ]
        table[name] = texts
    return table


def fitted(study: Study) -> pd.DataFrame:
    """Returns the laws that were fitted to a log of samples, a row for each."""
    return pd.DataFrame(
        {
            "entry": fit["key"],
            "law": fit["says"],
            "values": fit["values"],
            "p": "" if fit["p"] is None else f"{fit['p']:.3g}",
            "verdict": "refused" if fit["why"] else "taken",
        }
        for fit in study.manifest["fits"]
    )
