"""Figures of refuted claims: critical rates, large noise, MAPA's parameters."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from stalesim.analysis.bounds import exact, interval
from stalesim.analysis.claims.measured import Measured, read_csv
from stalesim.analysis.claims.numbers import final
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

ACCURACY = "Final test accuracy"
CASE3, NOISE, PARAMETERS = "adp2sgd-case3", "adp2sgd-large-noise", "mapa-params-cnn"
RATES = {
    "sigma over batch as published": {"adp": "A(DP)²SGD", "sync": "SYNC"},
    "noise of section 5.7": {"spec-adp": "A(DP)²SGD", "spec-sync": "SYNC"},
}
"""Panels of the critical rates: titles, and variants with their labels."""
LEARNERS = {
    "sync": "SYNC",
    "ring": "Ring, no staleness",
    "adp-every": "A(DP)²SGD, twice the averagings",
    "adp": "A(DP)²SGD",
    "sync-falling": "SYNC, falling rates",
    "adp-falling": "A(DP)²SGD, falling rates",
    "sync-long": "SYNC, falling, three times as long",
    "adp-long": "A(DP)²SGD, falling, three times as long",
}
OVER = {
    "batch": "Batch",
    "sigma": "Standard deviation of samples, sigma",
    "smoothness": "Smoothness L",
    "delta": "delta",
}
"""Panels of MAPA's parameters: their variants, and labels of their axes."""
LENGTHS = {"{}": "25,000, sigma² = 30", "early-{}": "500, sigma² = 30"}
OLDER = {"{}-sigma30": "25,000, sigma = 30"}


class Levels(NamedTuple):
    """Final accuracies along a sweep: where, their medians and their intervals."""

    at: list[float]
    medians: list[float]
    ends: tuple[list[float], list[float]]


def draw(results: Path, folder: Path) -> None:
    """Draws the figures of those studies that have results of their present form.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    drawn = {CASE3: critical_rates, NOISE: large_noise, PARAMETERS: parameters}
    needs = {CASE3: "spec-sync", NOISE: "adp-long", PARAMETERS: "early-batch"}
    for name, function in drawn.items():
        kept = results / name / "values.csv"
        if not kept.exists():
            continue
        measured = read_csv(kept)
        if measured.groups(needs[name]):
            with style.context():
                save_figure(function(measured), folder / name)


def critical_rates(measured: Measured) -> Figure:
    """Returns final accuracies against the step size, a panel for each noise."""
    figure = Figure((7.16, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, variants) in zip(panels, RATES.items(), strict=True):
        for colour, (variant, label) in zip(
            style.palette(), variants.items(), strict=False
        ):
            _draw(axes, _line(measured, variant), colour, label)
        ticks = _line(measured, next(iter(variants))).at
        axes.set(title=title, xscale="log", xlabel="Step size")
        axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend()
    panels[0].set(ylabel=f"{ACCURACY}; 0: diverged", ylim=(-0.05, 1.05))
    return figure


def large_noise(measured: Measured) -> Figure:
    """Returns final accuracies of methods and rates at large noise, a row each."""
    figure = Figure((7.16, 3.2), layout="constrained")
    axes = figure.subplots()
    for place, variant in enumerate(LEARNERS):
        (group,) = measured.groups(variant)
        median, low, high = interval(exact(_finals(measured, group)))
        is_sync = variant.startswith(("sync", "ring"))
        axes.errorbar(
            median,
            place,
            xerr=[[median - low], [high - median]],
            fmt="s" if is_sync else "o",
            c=style.palette()[1 if is_sync else 0],
        )
    axes.set_yticks(range(len(LEARNERS)), list(LEARNERS.values()))
    axes.invert_yaxis()
    axes.set_xlabel(f"{ACCURACY}, median and 95 % interval")
    return figure


def parameters(measured: Measured) -> Figure:
    """Returns final accuracies against four parameters of MAPA, early and late."""
    figure = Figure((7.16, 5.0), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True)
    for axes, (name, label) in zip(panels.flat, OVER.items(), strict=True):
        for colour, (form, length) in zip(
            style.palette(), (LENGTHS | OLDER).items(), strict=False
        ):
            if measured.groups(form.format(name)):
                _draw(axes, _line(measured, form.format(name)), colour, length)
        axes.set(xscale="log", xlabel=label)
        ticks = _line(measured, name).at
        axes.set_xticks(ticks, [f"{one:.2g}" for one in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in panels[:, 0]:
        axes.set_ylabel(ACCURACY)
    lines = panels[0, 0].get_legend_handles_labels()
    figure.legend(*lines, title="Iterations", loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Axes, line: Levels, colour: str, label: str) -> None:
    axes.errorbar(
        line.at,
        line.medians,
        yerr=line.ends,
        fmt="o-",
        c=colour,
        label=label,
        capsize=2,
    )


def _line(measured: Measured, variant: str) -> Levels:
    """Returns final accuracies of the groups of a variant, which sweeps one key."""
    found = {}
    for group in measured.groups(variant):
        (value,) = measured.parameters(group).values()
        found[float(value)] = interval(exact(_finals(measured, group)))
    at = sorted(found)
    medians = [found[x].mean for x in at]
    below = [found[x].mean - found[x].low for x in at]
    above = [found[x].high - found[x].mean for x in at]
    return Levels(at, medians, (below, above))


def _finals(measured: Measured, group: str) -> np.ndarray:
    """Returns a group's final accuracies; that of a run that diverged is 0."""
    numbers = measured.of(final("test_accuracy"), group)
    return np.where(numbers.diverged, 0, numbers.low)
