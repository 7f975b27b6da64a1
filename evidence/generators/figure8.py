"""MAPA's figure 8 on real processes: its figure, from `results/testbed`."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

SIZE = (7.16, 4.8)
NAMES = {"asgd": "ASGD", "audp-tuned": "AUDP, tuned", "mapa": "MAPA"}
BOTH = ("testbed", "simulation")


def draw(folder: Path, figures: Path) -> None:
    """Draws accuracy against virtual time: a panel for each number of edges.

    Args:
        folder: Of the testbed's results.
        figures: Folder of the figures.
    """
    curves = pd.read_csv(folder / "figure8.csv")
    acted_out = curves[curves["clients"] > 0]
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(2, 2, sharey=True).flat
        colours = dict(zip(NAMES, style.palette(), strict=False))
        for axes, (clients, mine) in zip(
            panels, acted_out.groupby("clients"), strict=True
        ):
            for key, run in mine.groupby(["by", "variant", "replicate"]):
                by, variant, _ = key
                dashes = "-" if by == "testbed" else ":"
                axes.plot(
                    *(run["time"], run["test_accuracy"], dashes),
                    color=colours[str(variant)],
                )
            axes.set(title=f"{clients} edges", ylim=(0, 1))
        lines = [Line2D([], [], color=colours[name]) for name in NAMES]
        lines += [Line2D([], [], color=style.ink(), ls=dashes) for dashes in "-:"]
        figure.legend(
            lines, [*NAMES.values(), *BOTH], loc="outside upper center", ncols=5
        )
        figure.supxlabel("Virtual time (s)")
        figure.supylabel("Accuracy on the test set")
        save_figure(figure, figures / "mapa-figure-8")
