"""The study of enemies: final accuracy over their share, as a table and a figure."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stalesim.analysis.claims.measured import read_csv
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from .formulas import markdown
from .methods import ranges

STUDY = "methods-byzantine"
METRIC = "final test_accuracy"
FIRST, LAST = f"<!-- {STUDY}: generated -->", f"<!-- end of {STUDY} -->"


def final(results: Path) -> pd.DataFrame:
    """Returns final accuracies, a row per run: `variant`, `share`, `accuracy`.

    A run that diverged has 0, which no model has of ten classes.

    Args:
        results: Folder of the results of studies.
    """
    measured = read_csv(results / STUDY / "values.csv")
    table, found = measured.table, measured.low[METRIC].to_numpy(np.float64)
    return pd.DataFrame(
        {
            "variant": table["variant"],
            "share": [sum(each.values()) for each in table["parameters"]],
            "accuracy": np.where(np.isfinite(found), found, 0.0),
        }
    )


def pages(results: Path, docs: Path) -> dict[Path, str]:
    """Returns the page with its table as the results are, by file.

    Args:
        results: Folder of the results of studies.
        docs: Folder of the pages.
    """
    page = docs / "extras" / "robust.md"
    before, rest = page.read_text(encoding="utf-8").split(FIRST)
    runs = final(results)
    means = runs.pivot_table(
        index="variant", columns="share", values="accuracy", sort=False
    )
    means.columns = [f"{share:g}" for share in means.columns]
    shown = means.map("{:.3f}".format).reset_index()
    return {
        page: f"{before}{FIRST}\n\n{markdown(shown)}\n\n{LAST}{rest.split(LAST)[1]}"
    }


def breakdown(results: Path, folder: Path) -> None:
    """Draws each variant's final accuracy over the share of enemies: mean and range.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    runs = final(results)
    with style.context():
        figure = Figure(layout="constrained")
        axes = figure.add_subplot()
        ranges(axes, runs, "share", "accuracy")
        axes.set(xlabel="Share of enemies", ylabel="Final test accuracy")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
        save_figure(figure, folder / STUDY)
