"""The numbers of `reality.md`: predictions of the testbed, and what was measured.

Rules, written before any held-out run was measured: errors of throughput and of the
time to the target are relative. Order: Kendall's tau over all rows. A pair of rows of
one number of clients and one day is decided if the ranges of its repetitions do not
overlap; a prediction agrees if its difference has the same sign. The floor is how far
apart repetitions of a row are, as a share of their mean.
"""

from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from .formulas import markdown

MARK = "<!-- reality: generated -->\n"
MEASURES = {"contributions_per_s": "throughput", "target_s": "time to the target"}
FIT = "stalesim fit"


def document(root: Path) -> str:
    """Returns the page; what stands above its mark is typed by hand.

    Args:
        root: Folder of the repository.
    """
    folder = root / "evidence/results/testbed"
    page = (root / "evidence/pages/reality.md").read_text(encoding="utf-8")
    predicted = pd.read_csv(folder / "predictions.csv")
    by = pd.read_csv(folder / "measured.csv").groupby("row", sort=False)
    real = by.mean(numeric_only=True)
    ways = [
        _of_way(str(way), mine.set_index("row").loc[real.index], real, by)
        for way, mine in predicted.groupby("way", sort=False)
    ]
    parts = [
        page.partition(MARK)[0] + MARK,
        _power(predicted, by, pd.read_csv(folder / "log.csv.gz")),
        markdown(pd.DataFrame(ways).set_index("way").T.rename_axis("").reset_index()),
        "\n" + markdown(_stragglers(pd.read_csv(folder / "stragglers.csv"))),
    ]
    return "\n".join(parts) + "\n"


def _stragglers(found: pd.DataFrame) -> pd.DataFrame:
    """Returns what the authors and we say of each job, side by side."""
    wide = found.pivot_table(["authors", "ours"], "job", "measure")
    return pd.DataFrame(
        {
            "ByteDance's job": wide.index,
            **{
                f"{measure}: {said}": wide[by, measure].map("{:.4g}".format)
                for measure in ("slowdown", "error of a replayed step")
                for by, said in (("authors", "authors"), ("ours", "here"))
            },
            "slowdown of rounds": wide["ours", "slowdown of rounds"].map(
                "{:.4g}".format
            ),
        }
    )


def _power(predicted: pd.DataFrame, by: Any, log: pd.DataFrame) -> str:
    """Returns how much could tell the fit from constants, in sentences."""
    throughput = predicted.pivot_table("contributions_per_s", "row", "way")
    real = by["contributions_per_s"]
    floor = ((real.max() - real.min()) / real.mean()).mean()
    apart = (throughput[FIT] / throughput["constant mean"] - 1).abs() > 3 * floor
    own = (log["computed_time"] - log["begun_time"]).groupby(log["client"])
    between, within = own.mean().var(ddof=0), own.var(ddof=0).mean()
    return (
        f"{real.size().sum()} runs of {len(apart)} rows. Throughputs of repetitions "
        f"are {floor:.1%} apart on average. The fit and constants differ by more than "
        f"three times that in {apart.sum()} of {len(apart)} rows.\n"
        f"In the log {between / (between + within):.0%} of the variance of job times "
        "is between clients, each counted once. Within a client the median coefficient "
        f"of variation is {(own.std() / own.mean()).median():.1%}.\n"
    )


def _of_way(way: str, mine: pd.DataFrame, real: pd.DataFrame, by: Any) -> dict:
    name = "contributions_per_s"
    off = (mine[name] / real[name] - 1).abs()
    known, rounds = (off.index.str.startswith(x) for x in ("async", "synchronous"))
    found = {
        "way": way,
        "throughput, synchronous rows: mean absolute error": _mean(off[rounds]),
        "throughput, all other rows: mean absolute error": _mean(off[~rounds]),
        "throughput, calibrated protocol: within 5 %": _of(off[known] <= 0.05),
        "throughput, other protocols: within 10 %": _of(off[~known] <= 0.1),
    }
    for name, said in MEASURES.items():
        error = (mine[name] / real[name] - 1).dropna()
        both = mine[name].notna() & real[name].notna()
        tau: Any = stats.kendalltau(mine.loc[both, name], real.loc[both, name])
        agree, decided = _verdicts(mine[name], by[name])
        found |= {
            f"{said}: mean absolute error": _mean(error.abs()),
            f"{said}: within 10 %": _of(error.abs() <= 0.1),
            f"{said}: tau": f"{tau.statistic:.3f}",
            f"{said}: verdicts that agree": f"{agree} of {decided}",
        }
    return found


def _mean(errors: "pd.Series[float]") -> str:
    return f"{errors.mean():.1%}"


def _of(good: "pd.Series[bool]") -> str:
    return f"{good.sum()} of {len(good)}"


def _verdicts(mine: "pd.Series[float]", real: Any) -> tuple[int, int]:
    low, high = real.min(), real.max()
    agree = decided = 0
    for one, other in combinations(low.index, 2):
        if one.split(", ")[1:] != other.split(", ")[1:]:  # clients and day
            continue
        if not (low[one] > high[other] or low[other] > high[one]):
            continue
        decided += 1
        agree += (mine[one] > mine[other]) == (low[one] > high[other])
    return agree, decided
