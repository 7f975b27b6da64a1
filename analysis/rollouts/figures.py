"""Figures of recorded worlds of samples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..figures import style
from ..figures.files import save_figure
from .tables import compared, swept_keys, table_of

MOST = 8
"""Groups that one histogram shows."""
SHARE = "generation.machines", "trainer.machines"
"""Swept keys that divide machines between both sides."""


def save_figures(
    told: dict[str, Any], folder: str | Path, forms: str | Sequence[str] = "png"
) -> list[Path]:
    """Draws what can be drawn of a recorded world into its folder `figures`.

    Args:
        told: The facts of its manifest.
        folder: Its folder.
        forms: Formats of the figures.

    Returns:
        Paths of the files.
    """
    paths = []
    with style.context():
        for name, figure in figures(told, folder):
            paths += save_figure(figure, Path(folder) / "figures" / name, forms)
    return paths


def figures(told: dict[str, Any], folder: str | Path) -> Iterator[tuple[str, Figure]]:
    """Yields the histogram, what is swept, and the best split, as far as there are."""
    yield "staleness", histogram(told, table_of(folder, "ages"))
    frame = compared(told)
    keys = [key for key in swept_keys(told) if _numbers(frame[key]).notna().all()]
    if {*SHARE} <= {*keys}:
        yield "best_split", best_split(frame)
    elif keys:
        yield "swept", swept(frame, keys[0])


def histogram(told: dict[str, Any], ages: pd.DataFrame) -> Figure:
    """Draws the shares of trained samples, and of tokens, by staleness.

    Args:
        told: The facts of a recorded world.
        ages: Its table `ages`.
    """
    label = {run["run"]: run["label"] for run in told["runs"]}
    ages = ages.assign(group=ages["run"].map(label))
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    one, two = figure.subplots(1, 2, sharey=True)
    for axes, what in ((one, "samples"), (two, "tokens")):
        table = ages.pivot_table(what, "staleness", "group", "sum", sort=False)
        for name in list(table.columns)[:MOST]:
            share = table[name].fillna(0) / table[name].sum()
            axes.plot(share.index, share, marker="o", ms=3, label=style.text(str(name)))
        axes.set(xlabel="Staleness (versions)", title=f"Trained {what}")
    one.set_ylabel("Share")
    if len(label) > 1:
        two.legend()
    return figure


def swept(frame: pd.DataFrame, key: str) -> Figure:
    """Draws staleness and seconds per step over a swept key, closed forms dashed.

    Args:
        frame: As `compared` has it.
        key: Swept key whose values are numbers.
    """
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    one, two = figure.subplots(1, 2)
    for colour, (name, rows) in zip(_colours(), _lines(frame, key), strict=False):
        at = _numbers(rows[key])
        one.plot(at, rows["staleness_mean"], "o-", ms=3, c=colour, label=name)
        one.plot(at, rows["predicted_staleness_mean"], "--", lw=1, c=colour)
        two.plot(at, rows["seconds_per_step"], "o-", ms=3, c=colour, label=name)
    one.set(xlabel=key, ylabel="Staleness (versions)", ylim=(0, None))
    two.set(xlabel=key, ylabel="Virtual seconds per step", ylim=(0, None))
    one.set_title("Mean; dashed: closed form")
    if len({*frame["variant"]}) > 1:
        two.legend()
    return figure


def best_split(frame: pd.DataFrame) -> Figure:
    """Draws seconds per step and staleness over the machines that generate.

    Args:
        frame: As `compared` has it, swept over both sides' machines.
    """
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    one, two = figure.subplots(1, 2)
    for colour, (name, rows) in zip(_colours(), _lines(frame, SHARE[0]), strict=False):
        at = _numbers(rows[SHARE[0]]).to_numpy()
        seconds = rows["seconds_per_step"].to_numpy()
        one.plot(at, seconds, "o-", ms=3, c=colour, label=name)
        best = int(np.nanargmin(seconds))
        one.plot(at[best], seconds[best], "*", ms=12, c=colour)
        _frontier(two, rows, at, colour, best)
    one.set(xlabel="Machines that generate", ylabel="Virtual seconds per step")
    one.set(title="Star: the shortest steps", ylim=(0, None))
    two.set(xlabel="Staleness (versions)", ylabel="Virtual seconds per step")
    two.set(title="Numbers: machines that generate", ylim=(0, None))
    if len({*frame["variant"]}) > 1:
        one.legend()
    return figure


def _frontier(
    axes: Axes, rows: pd.DataFrame, at: np.ndarray, colour: str, best: int
) -> None:
    x, y = rows["staleness_mean"].to_numpy(), rows["seconds_per_step"].to_numpy()
    axes.plot(x, y, "o-", ms=3, lw=1, c=colour)
    axes.plot(x[best], y[best], "*", ms=12, c=colour)
    for number, *place in zip(at, x, y, strict=True):
        offset = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 7}
        axes.annotate(f"{number:g}", (place[0], place[1]), **offset)


def _lines(frame: pd.DataFrame, key: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, rows in frame.groupby("variant", sort=False):
        order = _numbers(rows[key]).argsort()
        yield style.text(str(name)), rows.iloc[order]


def _numbers(values: pd.Series) -> pd.Series:
    return pd.to_numeric(values, errors="coerce")


def _colours() -> tuple[str, ...]:
    return style.palette() * 4
