"""The tables of `reality.md`: predictions of the testbed, and what was measured.

Rules, written before any held-out run was measured: errors of throughput and of the
time to the target are relative; that of mean staleness is good within 10 % or 0.3
versions; W1 is the mean distance of quantiles of staleness. Order: Kendall's tau over
all rows. A pair of rows of one number of clients and one day is decided if the ranges
of its repetitions do not overlap; a prediction agrees if its difference has the same
sign. The floor is how far apart repetitions of a row are, as a share of their mean.
"""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from . import figure8
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
    measured = pd.read_csv(folder / "measured.csv")
    predicted = pd.read_csv(folder / "predictions.csv")
    by = measured.groupby("row", sort=False)
    real = by.mean(numeric_only=True)
    ways = [
        _of_way(str(way), mine.set_index("row").loc[real.index], real, by)
        for way, mine in predicted.groupby("way", sort=False)
    ]
    fitted = predicted[predicted["way"] == FIT].set_index("row").loc[real.index]
    parts = [
        page.partition(MARK)[0] + MARK,
        f"{len(measured)} runs of {len(real)} rows.\n",
        "### The testbed against itself\n",
        markdown(_floor(by)),
        "\n### Ways of predicting\n",
        markdown(pd.DataFrame(ways).set_index("way").T.rename_axis("").reset_index()),
        _told_apart(predicted, by),
        f"\n### Each row, by `{FIT}`\n",
        markdown(_rows(fitted, real)),
        "\n" + figure8.tables(folder),
        "\n### ByteDance's jobs without stragglers\n",
        markdown(_stragglers(pd.read_csv(folder / "stragglers.csv"))),
    ]
    return "\n".join(parts) + "\n"


def _stragglers(found: pd.DataFrame) -> pd.DataFrame:
    """Returns what the authors and we say of each job, side by side."""
    rows = []
    for measure, mine in found.groupby("measure", sort=False):
        row = {"": str(measure)}
        for job, theirs, ours in zip(*(mine[c] for c in ("job", "authors", "ours")),
                                     strict=True):  # fmt: skip
            said = "not said" if np.isnan(theirs) else f"{theirs:.4g}"
            row |= {f"{job}: authors": said, f"{job}: here": f"{ours:.4g}"}
        rows.append(row)
    return pd.DataFrame(rows)


def _floor(by: Any) -> pd.DataFrame:
    names = {**MEASURES, "staleness_mean": "mean staleness"}
    apart = {
        said: ((by[name].max() - by[name].min()) / by[name].mean())
        for name, said in names.items()
    }
    return pd.DataFrame(
        {
            "repetitions are apart by": said,
            "mean": f"{found.mean():.1%}",
            "largest": f"{found.max():.1%}",
        }
        for said, found in apart.items()
    )


def _told_apart(predicted: pd.DataFrame, by: Any) -> str:
    """Returns in how many rows repetitions could tell the fit from constants."""
    throughput = predicted.pivot_table("contributions_per_s", "row", "way")
    real = by["contributions_per_s"]
    floor = ((real.max() - real.min()) / real.mean()).mean()
    apart = (throughput[FIT] / throughput["constant mean"] - 1).abs() > 3 * floor
    return (
        "\nThe fit and constants foretell throughputs that differ by more than three\n"
        f"times what repetitions do in {apart.sum()} of {len(apart)} rows.\n"
    )


def _of_way(way: str, mine: pd.DataFrame, real: pd.DataFrame, by: Any) -> dict:
    quantiles = [name for name in real if str(name).startswith("staleness_q")]
    w1 = (mine[quantiles] - real[quantiles]).abs().mean(axis=1)
    found = {"way": way}
    for name, said in MEASURES.items():
        error = (mine[name] / real[name] - 1).dropna()
        both = mine[name].notna() & real[name].notna()
        tau: Any = stats.kendalltau(mine.loc[both, name], real.loc[both, name])
        agree, decided = _verdicts(mine[name], by[name])
        found |= {
            f"{said}: mean absolute error": f"{error.abs().mean():.1%}",
            f"{said}: mean error": f"{error.mean():+.1%}",
            f"{said}: largest": f"{error[error.abs().idxmax()]:+.1%}",
            f"{said}: within 5 %": _of(error.abs() <= 0.05),
            f"{said}: within 10 %": _of(error.abs() <= 0.1),
            f"{said}: tau": f"{tau.statistic:.3f}",
            f"{said}: verdicts that agree": f"{agree} of {decided}",
        }
    near = _near(mine, real)
    error = (mine["contributions_per_s"] / real["contributions_per_s"] - 1).abs()
    known = real.index.str.startswith("asynchronous")
    found |= {
        "calibrated protocol: throughput within 5 %": _of(error[known] <= 0.05),
        "other protocols: throughput within 10 %": _of(error[~known] <= 0.1),
    }
    return found | {
        "staleness: good": _of(near),
        "staleness: mean W1": f"{w1.mean():.2f}",
    }


def _of(good: "pd.Series[bool]") -> str:
    return f"{good.sum()} of {len(good)}"


def _near(mine: pd.DataFrame, real: pd.DataFrame) -> "pd.Series[bool]":
    off = (mine["staleness_mean"] - real["staleness_mean"]).abs()
    return off <= np.maximum(0.3, 0.1 * real["staleness_mean"])


def _rows(mine: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    table: dict[str, Any] = {"protocol, clients, day": real.index}
    for name, said in MEASURES.items():
        table[said] = [f"{value:.3g}" for value in real[name]]
        table[f"{said}: error"] = [f"{e:+.1%}" for e in mine[name] / real[name] - 1]
    table["mean staleness"] = [f"{value:.2f}" for value in real["staleness_mean"]]
    off = mine["staleness_mean"] - real["staleness_mean"]
    table["mean staleness: error"] = [f"{value:+.2f}" for value in off]
    return pd.DataFrame(table)


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
