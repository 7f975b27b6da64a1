"""Figures of findings.md, drawn from what is kept of studies in evidence/results."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from stalesim.analysis.claims.measured import Measured, read_csv
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

LOCAL_STEPS = {
    "fedbcd-credit-tuning": "Credit cards",
    "fedbcd-mfeat-tuning": "Multiple features",
}
"""Studies that sweep eta_0 for several numbers of local steps, with their titles."""
SIZE = (7.16, 2.6)


def local_steps(results: Path, folder: Path) -> None:
    """Draws rounds to a target against eta_0 Q, a line for each Q; every panel a study.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, (name, title) in zip(panels, LOCAL_STEPS.items(), strict=True):
            _draw(axes, read_csv(results / name / "values.csv"), title)
        figure.supxlabel("Step size times local steps, eta_0 Q")
        figure.supylabel("Rounds to the target")
        save_figure(figure, folder / "local-steps")


def _draw(axes: Axes, measured: Measured, title: str) -> None:
    table = measured.table
    (column,) = (name for name in measured.high if str(name).startswith("rounds to "))
    eta = np.array([float(next(iter(step.values()))) for step in table["parameters"]])
    number = np.array([int(name.removeprefix("q-")) for name in table["variant"]])
    # The evaluation at which a run has arrived; infinite where it did not.
    rounds = measured.high[column].to_numpy()
    for colour, Q in zip(style.palette(), np.unique(number), strict=False):
        means = {
            float(step) * Q: np.exp(
                np.log(rounds[(number == Q) & (eta == step)]).mean()
            )
            for step in np.unique(eta)
        }
        arrived = {x: y for x, y in means.items() if np.isfinite(y)}
        axes.plot(*zip(*arrived.items(), strict=True), "o-", c=colour, label=f"Q = {Q}")
    axes.set(xscale="log", yscale="log", title=title)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.legend()
