"""How many replicates would decide what is undecided, by the spread of those there are.

    python -m evidence.power     # writes power.csv from the numbers in results/

A claim is judged by how many replicates lie on one side of a border. From the mean and
the spread of n numbers the next one lies there with a chance that Student's t with
n - 1 degrees of freedom gives, which is less sure the fewer there are. Of numbers that
are not all finite, and of those without spread, it is (k + 1) / (n + 2) for k of n on
that side (Laplace). The judge then gets, in place of its p-values, those that N such
replicates have with a chance of `POWER`, and the least N that decides is the answer.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import stats

from stalesim.analysis import bounds
from stalesim.analysis.bounds import Sample
from stalesim.analysis.claims import UNDECIDED, judge, verdict
from stalesim.analysis.claims.measured import read_csv
from stalesim.analysis.claims.sequential import ERROR, least
from stalesim.simulator.scenario.reading import read

from . import rejudge
from . import rows as experiments

LISTED = Path("evidence/power.csv")
KEY = ["study", "origin", "claim", "says"]
POWER = 0.8
MOST = 20
"""Replicates beyond which an interval is stated in place of a verdict."""
BEYOND, INTERVAL = f"over {MOST}", "interval"


def needed() -> dict[tuple[str, ...], str]:
    """Returns what the table says, by study, origin, claim and its words."""
    table = pd.read_csv(experiments.ROOT / LISTED, dtype=str, keep_default_na=False)
    keys = table[KEY].itertuples(index=False, name=None)
    return dict(zip(keys, table["needed"], strict=True))


def stated(row: Any, asked: str) -> str:
    """Returns the verdict on a claim, or that its interval takes the place of one.

    Args:
        row: Row of `claims.csv`.
        asked: Replicates that it needs.
    """
    has_interval = row.replicates >= least(1)
    return INTERVAL if asked == BEYOND and has_interval else row.verdict


def main() -> int:
    """Writes the table, a row for each undecided claim whose numbers are kept."""
    frames = [
        of_study(folder)
        for folder in sorted(rejudge.RESULTS.iterdir())
        if (folder / "values.csv").exists() and (folder / "claims.csv").exists()
    ]
    pd.concat(frames).to_csv(experiments.ROOT / LISTED, index=False)
    return 0


def of_study(folder: Path) -> pd.DataFrame:
    """Returns the replicates that each undecided claim of a study needs.

    Claims of which nothing was measured are left out.

    Holm's factor is the number of undecided claims of the family: those that are
    decided come first, and the others are taken to come all at once.
    """
    found = pd.read_csv(folder / "claims.csv", keep_default_na=False)
    found = found[found["verdict"].isin(UNDECIDED)].assign(study=folder.name)
    factor = found.groupby("origin")["claim"].transform("size")
    open_ = found.assign(factor=factor, needed=BEYOND)[found["replicates"] > 0]
    if not len(open_):
        return open_[[*KEY, "needed"]]
    scenario = read(experiments.ROOT / experiments.file_of(folder.name))
    measured = read_csv(folder / "values.csv")
    says = {*open_["says"]}
    claims = [claim for claim in scenario.claims if claim.says in says]
    for n in range(MOST, 1, -1):
        above = {"above": chance(n)}
        with (
            mock.patch.multiple(bounds, **above),
            mock.patch.multiple(verdict, **above),
        ):
            judged = judge(measured, claims, n)
        p = judged.assign(study=folder.name).drop_duplicates(KEY).set_index(KEY)["p"]
        mine = p.reindex(pd.MultiIndex.from_frame(open_[KEY])).to_numpy(np.float64)
        passes = mine * open_["factor"].to_numpy() <= ERROR
        if not passes.any():
            break
        open_.loc[passes, "needed"] = str(n)
    return open_[[*KEY, "needed"]]


def chance(replicates: int) -> Callable[[Sample, float], float]:
    """Returns the p-value that N replicates reach with a chance of `POWER`."""

    def above(sample: Sample, border: float) -> float:
        k = stats.binom.ppf(1 - POWER, replicates, share(sample, border))
        return float(stats.binom.sf(k - 1, replicates, 0.5))

    return above


def share(sample: Sample, border: float) -> float:
    """Returns the chance that another replicate lies above a border for certain."""
    low: Any = sample.low
    n = low.size
    spread = low.std(ddof=1) if n > 1 and np.isfinite(low).all() else 0.0
    if not spread > 0:
        return float(((low > border).sum() + 1) / (n + 2))
    away = (low.mean() - border) / (spread * np.sqrt(1 + 1 / n))
    return float(stats.t.cdf(away, n - 1))


if __name__ == "__main__":
    sys.exit(main())
