"""Learning curves: means over replicates, against time or what else is counted."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.curves import mean_curves
from analysis.figures import layout, style
from analysis.figures.layout import Size
from analysis.figures.sweeps import is_wide
from analysis.frames import Study, evaluations, groups, metric_of, runs
from analysis.phases import evaluations_by
from analysis.targets import (
    final_values,
)
from simulator.trace import StudyError, metric_of_study

CAPTIONS = {"^convergence-": "Mean over replicates with its 95 % interval"}
"""Captions of the standard figures, by a pattern of their names."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the first metric against time and commits, the others against commits.

    Where all protocols have rounds, these are counted in place of commits: a sequential
    round has several commits, a parallel one has one.
    """
    first, *others = study.manifest["scenario"]["evaluate"]["metrics"]
    counted = "rounds" if set(runs(study)["protocol"]) == {"rounds"} else "commits"
    for against in ("time", counted):
        yield f"convergence-{against}", convergence(study, first, against)
    for other in others:
        yield f"convergence-{counted}-{other}", convergence(study, other, counted)


def convergence(
    study: Study,
    metric: str = "test_accuracy",
    against: str = "time",
    size: Size | None = None,
) -> Figure:
    """Draws each group's mean curve with its 95 % t-interval over replicates.

    An interval is drawn as far as the metric can go: an accuracy is not above 1. A note
    below says what is drawn. A centralised group is a dashed horizontal line at the
    mean of its final values: its time is not that of any clients. So is a group that
    counts no such thing, as one without privacy against epsilon.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        against: Count on the axis, of `frames.COUNTED` or `phases.PHASES`.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            legend needs.

    Raises:
        StudyError: There is no such column, or nothing is counted in any group.
    """
    known = groups(study)
    looks, axis = style.looks(known), layout.axis(study, against)
    references = _references(study, against)
    own = [group for group in known if group not in references]
    curves = mean_curves(study, own, metric, against)
    labels = [style.text(layout.label(study, group)) for group in known]
    with style.context():
        width, height, _ = layout.legend_size(labels)
        figure = layout.titled(study, size or (5.2 + width, max(3.6, 0.2 + height)))
        axes = figure.add_subplot()
        # Different groups may be cut at different ends; the longest words cover all.
        handles, cuts = [], dict.fromkeys([""])
        for group in known:
            if group in references:  # its time is not that of any clients
                final = _final_mean(study, group, metric)
                look = looks[group]._replace(linestyle=style.DASHED)
                handles.append(axes.axhline(final, zorder=2, **look._asdict()))
                continue
            curve = curves[group]
            x = axis.scale * curve["x"].to_numpy()
            low, high, cut = layout.within(
                study, metric, curve["low"].to_numpy(), curve["high"].to_numpy()
            )
            cuts[cut] = None
            color = looks[group].color
            band = {"color": color, "alpha": 0.2, "lw": 0, "zorder": 1}
            axes.fill_between(x, low, high, step="post", **band)
            line = {"drawstyle": "steps-post", "zorder": 3, **looks[group]._asdict()}
            handles += axes.plot(x, curve["mean"], **line)
        ends = pd.Series([curve["x"].iloc[-1] for curve in curves.values()])
        # Budgets may differ by powers of ten; a linear axis shows only the last.
        if against == "epsilon" and is_wide(ends):
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
        record = metric_of_study(study.manifest, metric)
        if record is not None and record.logarithmic:
            layout.make_logarithmic(axes)
        axes.set(xlabel=axis.label, ylabel=style.metric_label(metric, study))
        layout.add_legend(figure, handles, labels, size)
        counts = {int(curve["replicates"].iloc[0]) for curve in curves.values()}
        layout.add_note(
            figure,
            (
                _bands(counts, max(cuts, key=len)),
                "dashed: mean final value" if references else "",
                _content(study, known) if against == "commits" else "",
            ),
            legend_below=size is not None,
        )
    return figure


def _bands(counts: set[int], cut: str) -> str:
    """Returns what lines and bands of mean curves are."""
    if max(counts) < 2:
        return "Lines: one replicate of each"
    several = layout.replicates(counts)
    return f"Lines: means over {several}; bands: 95 % t-intervals{cut}"


def _content(study: Study, known: list[str]) -> str:
    """Returns how much a commit applies, where that differs between groups."""
    last = evaluations(study).groupby("run").last()
    ends = last.loc[last["commits"] > 0]
    each = (ends["contributions"] / ends["commits"]).groupby(ends["group"]).mean()
    of = [float(each[group]) for group in known if group in each.index]
    if len(of) < 2 or max(of) <= 1.01 * min(of):
        return ""
    return f"a commit applies {min(of):.3g} to {max(of):.3g} contributions, by group"


def _references(study: Study, against: str) -> set[str]:
    """Returns the groups that are lines: centralised, or with nothing to count.

    Centralised ones are curves where there are no others to compare with them.

    Raises:
        StudyError: Nothing is counted in any group.
    """
    table = runs(study)
    found = set(table.loc[table["protocol"] == "centralised", "group"])
    found = set() if len(found) == table["group"].nunique() else found
    evaluated = evaluations_by(study, against)
    ends = metric_of(evaluated, against).groupby(evaluated["group"]).max()
    counted = set(ends.index[np.isfinite(ends.to_numpy(np.float64))])
    if not counted:
        raise StudyError(f"no run of the study has {against} to be counted")
    return found | (set(table["group"]) - counted)


def _final_mean(study: Study, group: str, metric: str) -> float:
    values = final_values(study, metric)
    return float(values.loc[values["group"] == group, "value"].mean())
