"""The studies of DiLoCo and of pipelines: final losses over rates, and at the best.

What is compared is each variant at the best of its own rates; a rate that is the least
or the largest of those tried says so, because a better one may lie beyond.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from stalesim.analysis.claims.measured import read_csv
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from .formulas import markdown

STUDIES = {
    "methods-diloco": "DiLoCo: test loss at 960 s",
    "methods-pipelines": "Pipelines: after 600 steps",
}
METRIC = "final test_loss"
SIZE = (9.6, 5.0)
WAITS, DELAYED = "synchronous", "delayed Nesterov"
PAGES = {
    "methods-diloco": (
        "methods.md",
        (
            ("DyLU, grace", WAITS),
            ("DyLU, look-ahead", WAITS),
            (f"{DELAYED}, DyLU", WAITS),
            ("momentum at each arrival", WAITS),
            (DELAYED, WAITS),
            ("momentum at each arrival", DELAYED),
            ("DyLU, look-ahead", f"{DELAYED}, DyLU"),
        ),
    ),
    "methods-pipelines": (
        "pipelines.md",
        (
            ("PipeDream", "one stage"),
            ("AdamW", "one stage, AdamW"),
            ("Muon", "one stage, Muon"),
            ("PipeMare", "PipeDream"),
        ),
    ),
}
"""The page with the tables of a study, and the pairs of variants that are compared."""


def at_best_rates(path: Path) -> pd.DataFrame:
    """Returns the runs of each variant at its best rate, that of the least mean loss.

    Args:
        path: Values of a study, as `evidence/generate.py` keeps them.

    Returns:
        A row per variant, the least mean first: `variant`, `rate`, `edge` (whether it
        is the smallest or the largest that was tried; else empty), `mean`, and
        `losses`, one of each replicate. A rate of which a run diverged is not chosen.
    """
    measured = read_csv(path)
    runs = measured.table.assign(
        rate=[sum(each.values()) for each in measured.table["parameters"]],
        loss=measured.high[METRIC],  # infinite where it diverged
    )
    rows = []
    for variant, own in runs.sort_values("replicate").groupby("variant"):
        means = own.groupby("rate")["loss"].mean()
        rates, ends = means.index.to_numpy(np.float64), means.to_numpy(np.float64)
        at = int(ends.argmin())
        edge = {0: "the smallest", ends.size - 1: "the largest"}.get(at, "")
        losses = own.loc[own["rate"] == rates[at], "loss"].to_numpy(np.float64)
        rows.append((variant, rates[at], edge, ends[at], losses))
    columns = ["variant", "rate", "edge", "mean", "losses"]
    return pd.DataFrame(rows, columns=pd.Index(columns)).sort_values("mean")


def tables(path: Path, pairs: tuple[tuple[str, str], ...]) -> str:
    """Returns two tables: variants at their best rates, and differences of pairs.

    Args:
        path: As in `at_best_rates`.
        pairs: A variant, and the one whose losses are taken from its own. So few
            replicates decide nothing: signs and ranges are shown, and no test.
    """
    best = at_best_rates(path)
    edges = best["edge"].map(lambda edge: edge and f", {edge}")
    losses = best.set_index("variant")["losses"]
    shown = pd.DataFrame(
        {
            "variant": best["variant"],
            "best rate": best["rate"].map("{:.3g}".format) + edges,
            "test loss": best["mean"].map("{:.3f}".format),
        }
    )
    rows = []
    for one, other in pairs:
        found = losses[one] - losses[other]
        ends = f"{found.min():.3f} to {found.max():.3f}"
        lower = f"{(found < 0).sum()} of {found.size}"
        rows.append((one, other, f"{np.median(found):.3f}", ends, lower))
    columns = pd.Index(["variant", "less", "median", "least to largest", "lower in"])
    differences = pd.DataFrame(rows, columns=columns)
    return f"{markdown(shown)}\n\n{markdown(differences)}"


def pages(results: Path, docs: Path) -> dict[Path, str]:
    """Returns the pages with their tables as the results are, by file.

    Args:
        results: Folder of the results of studies.
        docs: Folder of the pages, each of which marks where its tables stand.
    """
    found = {}
    for study, (page, pairs) in PAGES.items():
        first, last = f"<!-- {study}: generated -->", f"<!-- end of {study} -->"
        before, rest = (docs / page).read_text(encoding="utf-8").split(first)
        after = rest.split(last)[1]
        text = tables(results / study / "values.csv", pairs)
        found[docs / page] = f"{before}{first}\n\n{text}\n\n{last}{after}"
    return found


def ranges(axes: Axes, runs: pd.DataFrame, over: str, column: str) -> None:
    """Draws mean and range of each variant's replicates over what was varied.

    Args:
        axes: Where they are drawn.
        runs: A row per run: `variant`, and the other two columns.
        over: Column of what was varied.
        column: Column of the values.
    """
    for number, (name, own) in enumerate(runs.groupby("variant", sort=False)):
        found = own.groupby(over)[column].agg(["mean", "min", "max"])
        spread = [found["mean"] - found["min"], found["max"] - found["mean"]]
        axes.errorbar(
            *(found.index, found["mean"], spread),
            color=style.palette()[number % len(style.palette())],
            fmt="o-" if number < len(style.palette()) else "s--",
            capsize=2,
            ms=3,
            lw=1,
            label=name,
        )


def rates(results: Path, folder: Path) -> None:
    """Draws each variant's final loss over its rates: mean, least and largest.

    Nothing where a study has no results.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    if not all((results / study / "values.csv").exists() for study in STUDIES):
        return
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(1, 2).flat
        for axes, (study, title) in zip(panels, STUDIES.items(), strict=True):
            runs = pd.read_csv(results / study / "values.csv")
            rate = runs["parameters"].map(
                lambda each: sum(json.loads(str(each)).values())
            )
            ranges(axes, runs.assign(rate=rate), "rate", METRIC)
            axes.set(xscale="log", yscale="log", title=title, xlabel="Rate")
            ticks = (2.3, 2.6, 3, 3.5) if "diloco" in study else (0.1, 0.2, 0.5, 1, 2)
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        save_figure(figure, folder / "methods-rates")
