"""The figure of the studies of DiLoCo and of pipelines: final losses over rates."""

import json
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from analysis.figures import style
from analysis.figures.files import save_figure

STUDIES = {
    "methods-diloco": "DiLoCo: test loss at 960 s",
    "methods-pipelines": "Pipelines: after 600 steps",
}
METRIC = "final test_loss"
SIZE = (9.6, 5.0)


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
            for number, (name, own) in enumerate(runs.groupby("variant", sort=False)):
                found = own.groupby(rate)[METRIC].agg(["mean", "min", "max"])
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
            axes.set(xscale="log", yscale="log", title=title, xlabel="Rate")
            ticks = (2.3, 2.6, 3, 3.5) if "diloco" in study else (0.1, 0.2, 0.5, 1, 2)
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        save_figure(figure, folder / "methods-rates")
