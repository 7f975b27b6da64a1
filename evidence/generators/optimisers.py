"""The figure and the rates of the study of optimisers under staleness."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from stalesim.analysis.claims.measured import read_csv
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from .exponents import Scaling, best, largest_stable

STUDY = "optimisers-staleness"
OVER, AGAINST = "algorithm.optimizer.learning_rate", "problem.partition.clients"
METRIC, START = "test_loss", math.log(65)
"""Loss of the start: tinyshakespeare has 65 characters."""
MARGIN = 0.1
"""Nats by which a run must end below the start, or else counts as diverged."""
TITLES = {"sgd": "SGD", "momentum": "momentum", "adamw": "AdamW", "muon": "Muon"}
PANELS = {
    "largest stable": "Largest stable learning rate",
    "best": "Best learning rate",
}
SIZE = (7.16, 4.2)


def scalings(results: Path) -> dict[str, dict[str, Scaling]]:
    """Returns the learning rates of each panel and optimiser, against staleness + 1."""
    measured = read_csv(results / STUDY / "values.csv")
    where = (OVER, AGAINST, METRIC)
    return {
        "largest stable": {
            name: largest_stable(measured, name, *where, START - MARGIN)
            for name in TITLES
        },
        "best": {name: best(measured, name, *where) for name in TITLES},
    }


def staleness(results: Path, folder: Path) -> None:
    """Draws learning rates against staleness; writes them as a table.

    Nothing where the study has no results.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    if not (results / STUDY / "values.csv").exists():
        return
    found = scalings(results)
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(1, 2).flat
        for axes, (what, lines) in zip(panels, found.items(), strict=True):
            for colour, (name, one) in zip(
                style.palette(), lines.items(), strict=False
            ):
                axes.plot(one.at, one.means, "o-", c=colour, label=TITLES[name])
            at = next(iter(lines.values())).at
            axes.plot(at, 0.5 / at, "k:", lw=1, label="-1")
            axes.set(xscale="log", yscale="log", title=PANELS[what])
            axes.set_xlabel("Staleness + 1 (commits)")
            axes.set_xticks(at, [f"{one:g}" for one in at])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.16),
                ncols=2,
            )
        save_figure(figure, folder / STUDY)
    rows = [
        {
            "learning rate": what,
            "optimiser": name,
            **{f"at {at - 1:g}": f"{x:.3g}" for at, x in _points(one)},
            "beyond the sweep": one.beyond,
        }
        for what, lines in found.items()
        for name, one in lines.items()
    ]
    pd.DataFrame(rows).to_csv(results / STUDY / "rates.csv", index=False)


def _points(one: Scaling) -> list[tuple[float, float]]:
    return list(zip(np.asarray(one.at), one.means, strict=True))
