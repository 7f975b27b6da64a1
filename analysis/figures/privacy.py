"""The cost of privacy: final values against the spent epsilon."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from ...simulator.files.study import StudyError
from ..frames import Study, accounts, configurations, first_metric, swept_columns
from ..spending import protected, swept
from ..statistics import t_interval
from ..targets import final_quantities, final_values
from . import layout, style
from .lines import split, worded
from .sweeps import FINAL, is_wide


def utility(study: Study, metric: str = "test_accuracy") -> pd.DataFrame:
    """Returns each group's final value and the epsilon that its runs have spent.

    Returns:
        Columns variant, group, the swept keys, epsilon (mean over replicates of the
        largest of a client, by the first accountant; NaN where privacy is not accounted
        for, infinite where nothing protects), mean, low, high (95 % t-interval over the
        replicates that did not diverge), replicates (those).

    Raises:
        StudyError: The metric was not evaluated, or no run accounts for privacy.
    """
    finals, spent = final_values(study, metric), final_quantities(study, "epsilon")
    rows, known = [], configurations(study)
    for group in known["group"]:
        values, epsilons = (
            table.loc[table["group"] == group, "value"].dropna().to_numpy(np.float64)
            for table in (finals, spent)
        )
        epsilon = float(epsilons.mean()) if epsilons.size else float("nan")
        rows.append((epsilon, *t_interval(values), values.size))
    names = pd.Index(["epsilon", "mean", "low", "high", "replicates"])
    return known.join(pd.DataFrame(rows, columns=names))


CAPTIONS = {
    "-against-privacy$": "Final values (of the last tenth of evaluations) against the "
    "privacy that clients spent"
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the first metric against epsilon, where a sweep gives it its values.

    Where it does not, the notes of the closing table explain why.
    """
    if accounts(study) and swept(study)[0]:
        metric = first_metric(study.manifest)
        yield f"{metric}-against-privacy", privacy_utility(study, metric)


def privacy_utility(study: Study, metric: str = "test_accuracy") -> Figure:
    """Draws final values against the epsilon spent.

    Where a swept key gives each point a different epsilon, there is a line for each
    variant and, where other keys are swept as well, for each of their values; points
    have the value of the swept key. Else points are not joined, and the note gives the
    reason: epsilon was not swept, runs ended at one budget, or it depends on several
    keys. Bars are 95 % t-intervals over replicates, cut at the metric's limits. A group
    without a finite epsilon is a dashed horizontal line.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.

    Raises:
        StudyError: The metric was not evaluated, or no run's epsilon is finite.
    """
    table = utility(study, metric)
    finite = np.isfinite(table["epsilon"].to_numpy(np.float64))
    if not finite.any():
        raise StudyError(
            f"study {study.manifest['name']!r} has no finite epsilon to draw against; "
            f"add noise to its messages"
        )
    spent = table.loc[finite]
    (over, others, why), columns = swept(study), swept_columns(study)
    lines = split(study, spent, ["variant", *others])
    free = table.loc[~finite]
    of_line = {
        label: label if others else str(mine["variant"].iloc[0])
        for label, mine in lines.items()
    }
    looks = style.looks(dict.fromkeys([*of_line.values(), *free["variant"]]))
    unspent = (f"{layout.name(study, group)} (no ε)" for group in free["group"])
    labels = [style.text(name.strip()) for name in (*lines, *unspent)]
    with style.context():
        figure, axes = layout.single(study, 5.2, 3.6)
        handles: list[Artist] = []
        cut = layout.Cut(study, metric)
        for number, (name, mine) in enumerate(lines.items()):
            mine = mine.sort_values("epsilon")  # lines go from left to right
            mean, low, high = mine[["mean", "low", "high"]].to_numpy(np.float64).T
            low, high = cut.within(low, high)
            look = looks[of_line[name]]
            look = look._replace(linestyle="none") if why else look
            bars = axes.errorbar(
                mine["epsilon"], mean, layout.arms(mean, low, high),
                marker="o", ms=3.5, capsize=2, **look._asdict(),
            )  # fmt: skip
            handles.append(cast(Artist, bars))
            for _, point in () if why else mine.iterrows():
                axes.annotate(
                    style.text(worded(point[columns[over]])),
                    (point["epsilon"], point["mean"]), (3, (3, -9)[number % 2]),
                    textcoords="offset points", fontsize=layout.small(),
                    color=look.color,
                )  # fmt: skip
        # A group without noise has no finite epsilon: a level for all of the axis.
        for _, row in free.iterrows():
            look = looks[row["variant"]]._replace(linestyle=style.DASHED)
            handles.append(axes.axhline(row["mean"], zorder=1, **look._asdict()))
        if is_wide(spent["epsilon"]):
            axes.set_xscale("log")
        label, _ = layout.axis(study, "epsilon")
        axes.set(xlabel=label, ylabel=style.final_label(metric, study))
        layout.add_legend(figure, handles, labels)
        note = (
            FINAL,
            f"points: means over {layout.replicates(table['replicates'])}",
            f"bars: 95 % t-intervals{cut}",
            f"not joined, as {why}" if why else f"swept: {over}",
            protected(study),
        )
        layout.add_note(figure, note)
    return figure
