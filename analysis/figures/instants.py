"""Values of a metric at an instant, such as the accuracy after 60 seconds."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from ..frames import Study, first_metric
from ..instants import in_words, means_at, seen_at, too_late
from ..spending import protected
from . import facets, layout, style
from .files import plain
from .heat_maps import grid_keys, heat_map
from .lines import swept_key
from .sweeps import final_over

CAPTIONS = {"-after-": "Metric after a given time: its last evaluation up to then"}


def at_times(study: Study, times: Sequence[float]) -> Iterator[tuple[str, Figure]]:
    """Yields the study's first metric at some virtual seconds."""
    metric = first_metric(study.manifest)
    for time in times:
        name = f"{metric}-after-{plain(in_words(time))}"
        yield name, _drawn(study, metric, time)


def _drawn(study: Study, metric: str, time: float) -> Figure:
    if (key := swept_key(study)) is not None:
        return final_over(study, key, metric, after=time)
    if (keys := grid_keys(study)) is not None:
        return heat_map(study, metric, keys, after=time)
    return values_after(study, metric, time)


def values_after(
    study: Study, metric: str = "test_accuracy", at: float = 60.0, against: str = "time"
) -> Figure:
    """Draws each group's mean value of a metric at an instant, with its interval.

    Points are means over the replicates that have a value there, lines 95 %
    t-intervals, cut at the metric's limits. Replicates that diverged before count as
    the worst value; a label marks groups with bounded or missing values.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        at: Instant: virtual seconds, or what else is counted.
        against: Count, of `frames.COUNTED` or `phases.PHASES`.

    Raises:
        StudyError: The metric was not evaluated, the count is not known, or no run
            lasted so long.
    """
    table = means_at(study, metric, at, against)
    looks = facets.looks(study)
    if not table["known"].any():
        raise too_late(study, at, against)
    with style.context():
        figure, axes = layout.rows(study, list(table["group"]))
        ends = table["low"].to_numpy(), table["high"].to_numpy()
        cut = layout.Cut(study, metric)
        lows, highs = cut.within(*ends)
        columns = (table[c] for c in ("group", "mean", "known", "replicates"))
        rows = zip(*columns, strict=True)
        for number, (group, mean, known, replicates) in enumerate(rows):
            color = looks[group].color
            axes.plot([mean], [number], "o", ms=4.5, color=color)
            axes.plot([lows[number], highs[number]], [number, number], color=color)
            words = ""
            if known < replicates:
                words = f"{known} of {replicates} lasted so long"
            elif not np.isfinite(mean):
                words = "some diverged: no mean"
            if words:
                blended = axes.get_yaxis_transform()
                here = {"fontsize": layout.small(), "va": "bottom", "ha": "right"}
                axes.text(0.99, number - 0.1, words, transform=blended, **here)
        label = style.metric_label(metric, study)
        axes.set_xlabel(f"{label} after {in_words(at, against)}")
        several = layout.replicates(table["replicates"])
        many = int(table["known"].max()) > 1
        note = (
            f"Points: means over {several}",
            f"lines: 95 % t-intervals{cut}" if many else "",
            seen_at(study, metric, at, against),
            protected(study, against),
        )
        layout.add_note(figure, note)
    return figure
