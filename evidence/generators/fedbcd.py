"""Tables of FedBCD: the cost of reaching a target."""

import math
from collections.abc import Container, Sequence

import pandas as pd

from stalesim.analysis.frames import Study
from stalesim.analysis.targets import time_to_target

COUNTED = ("rounds", "messages", "computation_s", "communication_s", "time")
"""Quantities counted until a target is reached."""


def exchange_table(
    study: Study, metric: str, targets: Sequence[float], per: float = 1.0
) -> pd.DataFrame:
    """Returns the cost of each target in each group: medians.

    Medians of parts need not add up to the median of the whole.

    Args:
        study: finished or not.
        metric: a column of evaluations.
        targets: values of the metric.
        per: virtual seconds in the unit in which times are given, such as 60.

    Returns:
        Columns target, group, reached (such as `3/5`) and those of `COUNTED`, without
        their unit; infinite where half or more of the replicates did not reach it.

    Raises:
        StudyError: the metric was not evaluated.

    Source: FedBCD, tables 1 and 2.
    """
    rows = []
    for target in targets:
        found = {
            what: time_to_target(study, metric, target, what).set_index("group")
            for what in COUNTED
        }
        for group, first in found["rounds"].iterrows():
            row = {
                "target": target,
                "group": group,
                "reached": f"{first['reached']:.0f}/{first['replicates']:.0f}",
            }
            for what, table in found.items():
                median = float(table.loc[group, "median"])  # pyright: ignore
                timed = what == "time" or what.endswith("_s")
                row[what.removesuffix("_s")] = median / per if timed else median
            rows.append(row)
    return pd.DataFrame(rows)


TUNED, OWN = "-tuned", "-own"
"""Ends of groups whose eta_0 is tuned at Q = 1 and kept, or for their own Q (F-06)."""


def base_of(group: str, to: str, groups: Container[str]) -> str:
    """Returns the group that another is compared with: with an eta_0 chosen alike."""
    tuned = group.endswith((TUNED, OWN)) and to + TUNED in groups
    return to + TUNED if tuned else to


def ratios(table: pd.DataFrame, to: str, what: str = "rounds") -> pd.Series:
    """Returns the cost of one group over that of each row, for the same target.

    Args:
        table: table of `exchange_table`.
        to: name of the group in the numerator; that whose eta_0 was tuned, if there is
            one, for groups with a tuned eta_0.
        what: compared column.
    """
    groups = {*table["group"]}
    known = table.set_index(["target", "group"])[what]
    base = [
        known[target, base_of(group, to, groups)]
        for target, group in zip(table["target"], table["group"], strict=True)
    ]
    found = pd.Series(base, table.index) / table[what]
    return found.where(table[what].map(math.isfinite))
