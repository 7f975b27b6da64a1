"""Tables and figures of a recorded world of samples, with their files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from ....analysis.frames import Study, swept_columns
from .tables import COLUMNS, closing, compared, fitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTIONS = {
    "staleness": "Staleness of trained samples and tokens",
    "swept": "Staleness, with its closed form where it holds, seconds per step, "
    "and losses, over the swept key",
    "best_split": "Seconds per step and staleness, by machines that generate",
}
"""Captions of the figures, by name."""


OUTPUTS = (
    "Staleness of trained samples in versions (those between a sample's start and the "
    "step that trains it), in generation and in the queue; virtual seconds per step; "
    "shares of samples that were dropped or masked, and of tokens that were wasted; "
    "idle shares of trainer and slots; the mean length of trained samples over that of "
    "all, less 1. Means over replicates; in brackets the closed form, where it holds. "
    "Staleness and speed are measured after the first fifth of the steps, shares over "
    "all of a run."
)
"""The measured quantities, for a report."""


def caption(name: str) -> str:
    """Returns the caption of a figure of a world of samples."""
    return CAPTIONS[name]


def view(study: Study) -> Study:
    """Returns the source of tables and figures: the study itself."""
    return study


def measured(study: Study) -> pd.DataFrame:
    """Returns the measures of a world as numbers, means over replicates."""
    return compared(study)


def tables(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yields the closing tables with their titles; cells are text."""
    name = study.manifest["name"]
    if "fits" in study.manifest:
        yield f"{name}: what was fitted", fitted(study)
    title = f"{name}: staleness in versions"
    predicted = compared(study).filter([f"predicted_{key}" for key in COLUMNS])
    if predicted.notna().any(axis=None):
        title += " (closed form)"
    runs = study.manifest["runs"]
    replicates = 1 + max(run["replicate"] for run in runs)
    if replicates > 1:
        title += f", means of {replicates} replicates"
    title += "; dropped, wasted, idle: shares of samples, of tokens, of time"
    left = {run["workload"]["exempt"] for run in runs if "workload" in run} - {""}
    if left:
        title += f"; no closed form where {', or '.join(sorted(left))}"
    yield title, closing(study)


def standard(
    study: Study, seconds: float | None = None
) -> "Iterator[tuple[str, Figure]]":
    """Yields the histogram, the sweep, and the best split, as far as there are."""
    from .figures import SHARE, best_split, histogram, numbers, swept

    yield "staleness", histogram(study)
    frame = compared(study)
    keys = [key for key in swept_columns(study) if numbers(frame[key]).notna().all()]
    if {*SHARE} <= {*keys}:
        yield "best_split", best_split(frame)
    elif keys:
        yield "swept", swept(study, keys[0])
