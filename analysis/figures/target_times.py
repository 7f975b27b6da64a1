"""Times to a target over a swept number."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure

from ..frames import Study
from ..statistics import MEDIANS
from ..targets import default_target, resolution, times_to_target
from .layout import Size
from .lines import swept_key
from .medians import medians_over, taken_by
from .names import plain
from .speed_ups import axis_label, target_words

LOW = 3.0
"""Inches below which a figure is low."""
CAPTIONS = {
    "^time-to-target-over-": "Virtual time until the target over what is swept, with "
    f"95 % intervals of medians; {MEDIANS}"
}
"""Captions of the standard figures, by a pattern of their names."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the time to the study's target over the swept number, if there is one."""
    key, target = swept_key(study), default_target(study)
    if key is not None and target.is_known:
        figure = time_to_target_over(study, key, target.metric, target.value)
        yield f"time-to-target-over-{plain(key)}", figure


def time_to_target_over(
    study: Study,
    key: str,
    metric: str,
    value: float,
    at: Mapping[str, Any] | None = None,
    size: Size | None = None,
) -> Figure:
    """Draws the virtual time to a target against a swept number.

    Medians with 95 % intervals. A replicate that did not reach the target
    is a hollow triangle at its end, or at the study's if it diverged or stalled; a line
    has a gap where half of them or more did not. Lines are those of `final_over`: only
    replicates are pooled.

    Args:
        study: Study, finished or not.
        key: Key swept over numbers.
        metric: Column of the table `evaluations`.
        value: Value of the metric to reach.
        at: Values of other keys that are swept, to which the figure is confined.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            legend needs.

    Raises:
        StudyError: The key is not swept over numbers, others have too many values, the
            metric was not evaluated or cannot have the value.
    """
    times = times_to_target(study, metric, value)
    words = (resolution(times), target_words(study, metric, value))
    said = "; ".join(filter(None, words))
    taken = taken_by(times)
    figure, axes = medians_over(study, key, taken, said, at, size)
    # The label is longer than the axis, in a low figure also in two lines.
    breaks = r" (?=to )| (?=[≥≤])" if figure.get_figheight() < LOW else r" (?=to )"
    axes.set_ylabel(re.sub(breaks, "\n", axis_label(study, metric, value)))
    return figure
