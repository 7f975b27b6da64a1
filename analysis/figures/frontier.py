"""What is reached against what it takes, and the groups that nothing beats in both."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from ...simulator.trace import StudyError
from ..expenses import joules_by_end
from ..frames import Study, described, first_metric, groups
from ..spending import protected
from ..statistics import t_interval
from ..targets import final_quantities, final_values
from . import layout, style
from .sweeps import FINAL

CAPTIONS = {
    "-against-joules$": "Final values (of the last tenth of evaluations) against what "
    "clients drew, with 95 % intervals; the line joins what nothing beats in both"
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the first metric against what clients drew, where groups are compared."""
    if len(groups(study)) > 1 and joules_by_end(study) is not None:
        metric = first_metric(study.manifest)
        yield f"{metric}-against-joules", pareto(study, metric)


def undominated(
    cost: Float[np.ndarray, " n"], good: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Says of each point whether no other costs no more and is as good, or better."""
    dearer, worse = cost[:, None] - cost, good - good[:, None]
    beaten = (dearer >= 0) & (worse >= 0) & (dearer + worse > 0)
    return np.logical_not(beaten.any(axis=1))


def pareto(
    study: Study,
    metric: str = "test_accuracy",
    against: str = "joules",
) -> Figure:
    """Draws each group's final value against what its runs took until their end.

    Means over replicates with 95 % t-intervals both ways, and a line through the means
    that no other group beats in both. Runs that diverged are left out.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        against: Quantity, of `stalesim.simulator.metrics.QUANTITIES`.

    Raises:
        StudyError: There is no such column, or nothing is counted in any group.
    """
    axis = layout.axis(study, "time" if against == "virtual_s" else against)
    points, counts = {}, []
    tables = final_quantities(study, against), final_values(study, metric)
    for group in groups(study):
        both = [t.loc[t["group"] == group, "value"].dropna() for t in tables]
        if all(map(len, both)):
            cost, good = (each.to_numpy(np.float64) for each in both)
            points[group] = t_interval(axis.scale * cost), t_interval(good)
            counts.append(good.size)
    if not points:
        raise StudyError(f"no run of the study has {metric} and {against} to be drawn")
    means = np.array([[each.mean for each in both] for both in points.values()]).T
    higher = described(study, metric).higher_is_better
    best = means[:, undominated(means[0], means[1] if higher else -means[1])]
    labels = [style.text(layout.label(study, group)) for group in points]
    with style.context():
        looks = style.looks(groups(study))
        figure, axes = layout.single(study, 5.2, 3.6)
        axes.plot(*best[:, np.argsort(best[0])], color=style.ink(), lw=0.8, zorder=1)
        handles = [
            axes.errorbar(
                cost.mean, good.mean, layout.arms(*good), layout.arms(*cost),
                marker="o", ms=4, capsize=2, ls="none", color=looks[group].color,
            )
            for group, (cost, good) in points.items()
        ]  # fmt: skip
        axes.set(xlabel=axis.label, ylabel=style.final_label(metric, study))
        layout.add_legend(figure, handles, labels)  # pyright: ignore
        words = (
            FINAL,
            f"points: means over {layout.replicates(counts)}; bars: 95 % t-intervals",
            "line: what no other group beats in both",
            protected(study, against),
        )
        layout.add_note(figure, words)
    return figure
