"""What privacy costs: final values against the privacy that was spent for them."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.drawing import Size
from analysis.frames import Study, runs
from analysis.statistics import t_interval
from analysis.swept import is_wide
from analysis.targets import final_quantities, final_values
from simulator.trace import StudyError


def utility(study: Study, metric: str = "test_accuracy") -> pd.DataFrame:
    """Returns each group's final value and the epsilon that its runs have spent.

    Args:
        study: finished or not.
        metric: a column of evaluations.

    Returns:
        Columns variant, group, epsilon (mean over replicates of the largest of a
        client, by the first accountant; NaN where privacy is not accounted for,
        infinite where nothing protects), mean, low, high (95 % t-interval over the
        replicates that did not diverge), replicates (those).

    Raises:
        StudyError: the metric was not evaluated, or no run accounts for privacy.
    """
    finals, spent = final_values(study, metric), final_quantities(study, "epsilon")
    rows = []
    for group, first in (
        runs(study).drop_duplicates("group").set_index("group").iterrows()
    ):
        values, epsilons = (
            table.loc[table["group"] == group, "value"].dropna().to_numpy(np.float64)
            for table in (finals, spent)
        )
        epsilon = float(epsilons.mean()) if epsilons.size else float("nan")
        interval = t_interval(values)
        rows.append((first["variant"], group, epsilon, *interval, values.size))
    names = ["variant", "group", "epsilon", "mean", "low", "high", "replicates"]
    return pd.DataFrame(rows, columns=pd.Index(names))


def privacy_utility(
    study: Study, metric: str = "test_accuracy", size: Size | None = None
) -> Figure:
    """Draws final values against the epsilon spent, a line for each variant.

    Bars are 95 % t-intervals over replicates, as far as the metric can go. A group
    without a finite epsilon is a dashed horizontal line.

    Args:
        study: finished or not.
        metric: a column of evaluations.
        size: inches, such as `style.size("one")`; by default as the legend needs.

    Raises:
        StudyError: the metric was not evaluated, or no run's epsilon is finite.
    """
    table = utility(study, metric)
    finite = np.isfinite(table["epsilon"].to_numpy(np.float64))
    if not finite.any():
        raise StudyError(
            f"study {study.manifest['name']!r} has no finite epsilon to draw against; "
            f"add noise to its messages"
        )
    variants = list(dict.fromkeys(table["variant"]))
    looks = style.looks(variants)
    names = [
        *dict.fromkeys(table.loc[finite, "variant"]),
        *(f"{group} (no ε)" for group in table.loc[~finite, "group"]),
    ]
    labels = [style.text(name) for name in names]
    with style.context():
        width, height, _ = drawing.legend_size(labels)
        figure = drawing.titled(study, size or (5.2 + width, max(3.6, 0.2 + height)))
        axes = figure.add_subplot()
        handles: list[Artist] = []
        least, most = style.BOUNDS.get(metric, (-np.inf, np.inf))
        for variant in dict.fromkeys(table.loc[finite, "variant"]):
            mine = table.loc[finite & (table["variant"] == variant)]
            mine = mine.sort_values("epsilon")
            mean = mine["mean"].to_numpy(np.float64)
            low, high = (
                np.clip(mine[end].to_numpy(np.float64), least, most)
                for end in ("low", "high")
            )
            errors = np.nan_to_num(np.array([mean - low, high - mean]))
            bars = axes.errorbar(
                mine["epsilon"], mean, errors,
                marker="o", ms=3.5, capsize=2, **looks[str(variant)]._asdict(),
            )  # fmt: skip
            handles.append(bars)  # pyright: ignore[reportArgumentType]
        for _, row in table.loc[~finite].iterrows():
            look = looks[row["variant"]]._replace(linestyle=style.DASHED)
            handles.append(axes.axhline(row["mean"], zorder=1, **look._asdict()))
        if is_wide(table.loc[finite, "epsilon"]):
            axes.set_xscale("log")
        axis = drawing.axis(study, "epsilon")
        axes.set(xlabel=axis.label, ylabel=style.metric_label(metric))
        drawing.add_legend(figure, handles, labels, size)
    return figure
