"""Commits until runs stopped at their target, over a swept number."""

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure

from ..frames import Study
from ..targets import commits_to_stop, resolution
from .layout import Size
from .lines import swept_key
from .medians import medians_over, taken_by
from .names import plain

CAPTIONS = {"^commits-over-": "Commits until the target over what is swept"}
"""Captions of the standard figures, by a pattern of their names."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the figure if runs stop at a diagnostic and a number is swept."""
    key = swept_key(study)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{plain(key)}", commits_over(study, key)


def commits_over(
    study: Study,
    key: str,
    at: Mapping[str, Any] | None = None,
    size: Size | None = None,
) -> Figure:
    """Draws the commits until runs stopped at their target against a swept number.

    Medians with 95 % intervals. A run that did not stop there is a hollow
    triangle at the commits that it made; a line has a gap where half or more of the
    replicates did. Lines are those of `final_over`.

    Args:
        study: Study, finished or not, whose runs stop at a target.
        key: Key swept over numbers.
        at: Values of other keys that are swept, to which the figure is confined.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            legend needs.

    Raises:
        StudyError: The key is not swept over numbers, or others have too many values.
    """
    commits = commits_to_stop(study)
    said, taken = resolution(commits, "commits"), taken_by(commits)
    figure, axes = medians_over(study, key, taken, said, at, size)
    axes.set_ylabel("Commits to the target")
    return figure
