"""How figures look: colours, fonts, and what their axes are called."""

import re
import textwrap
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib as mpl

INK = "#000000"
OKABE_ITO = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#F0E442",
    INK,
)
"""Colours that most colour-blind readers can tell apart; hard ones come last.

Source: Okabe and Ito, Color Universal Design (2008).
"""

SOLID, DASHED = "-", (0, (4, 1.5))
LINE_STYLES = (SOLID, "-.", ":", (0, (1, 3)))
"""One for each turn of the palette; dashes are kept for references and privacy."""

RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#808080",
    "axes.grid": True,
    "axes.labelsize": 9.0,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.0,
    "figure.constrained_layout.use": True,
    "figure.titlesize": 10.0,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # text in a PDF stays text
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
}

METRICS = {
    "test_accuracy": "Test accuracy",
    "test_loss": "Test loss (nats)",
    "test_auc": "Test AUC",
    "objective": "Objective (nats)",
    "gradient_norm_squared": "Squared norm of the gradient",
    "optimality_gap": "Optimality gap (nats)",
}
"""Labels of metrics, columns of `evaluations`."""

LOGARITHMIC = ("gradient_norm_squared", "optimality_gap")
"""Metrics that go to zero, whose decay is read off a logarithmic axis."""


BOUNDS = {"test_accuracy": (0.0, 1.0), "test_auc": (0.0, 1.0)}
"""Metrics that cannot leave an interval, though an interval of their mean may."""


class Axis(NamedTuple):
    """A quantity on an axis.

    Attributes:
        label: with the unit shown.
        scale: multiplies the column to give that unit.
    """

    label: str
    scale: float = 1.0


AXES = {
    "time": Axis("Virtual time (s)"),
    "commits": Axis("Commits"),
    "contributions": Axis("Contributions applied"),
    "epochs": Axis("Passes over the data"),
    "upload_bytes": Axis("Data uploaded (MB)", 1e-6),
    "download_bytes": Axis("Data downloaded (MB)", 1e-6),
    "rounds": Axis("Communication rounds"),
    "messages": Axis("Messages"),
    "computation_s": Axis("Time of computation (s)"),
    "communication_s": Axis("Time of communication (s)"),
}
"""What curves are drawn against, columns of `evaluations`."""

STALENESS = {
    "contribution": "Staleness of contributions (commits)",
    "embedding": "Age of embeddings when used (commits)",
}
"""Labels of staleness, by `quantity` of its table."""


class Look(NamedTuple):
    """Colour and line style of a group, the same in every figure of a study."""

    color: str
    linestyle: str | tuple[float, tuple[float, ...]]


def looks(groups: Iterable[str]) -> dict[str, Look]:
    """Returns the look of every group.

    A group with `private` in its name is dashed, and has the colour of the group that
    is named like it otherwise, if there is one.

    Args:
        groups: all of a study's, in order.
    """
    groups = list(groups)
    public = {_words(group): group for group in groups if "private" not in group}
    twins = {
        group: public[_words(group)]
        for group in groups
        if "private" in group and _words(group) in public
    }
    alone = [group for group in groups if group not in twins]
    found = {}
    for number, group in enumerate(alone):
        turn, color = divmod(number, len(OKABE_ITO))
        dashes = LINE_STYLES[turn % len(LINE_STYLES)]
        dashes = DASHED if "private" in group else dashes
        found[group] = Look(OKABE_ITO[color], dashes)
    found |= {
        group: Look(found[public_].color, DASHED) for group, public_ in twins.items()
    }
    return {group: found[group] for group in groups}


def _words(group: str) -> tuple[str, ...]:
    """Returns what a group's name says beside its privacy."""
    return tuple(word for word in re.split(r"[-_ ,]+", group) if word != "private")


def metric_label(metric: str) -> str:
    """Returns the label of a metric; a user's own is called what its column is."""
    return METRICS.get(metric, metric.replace("_", " ").capitalize())


def axis(column: str) -> Axis:
    """Returns label and scale of a column that curves are drawn against."""
    return AXES.get(column, Axis(metric_label(column)))


def text(name: str, width: int = 34) -> str:
    """Returns a user's name as text: wrapped, and its `$` no mathematics.

    Args:
        name: of a group or study.
        width: characters of a line.
    """
    lines = textwrap.wrap(name, width) or [name]
    shown = "\n".join(lines).replace("$", r"\$")
    # Matplotlib leaves names with an underscore in front out of legends.
    return f" {shown}" if shown.startswith("_") else shown


def context() -> AbstractContextManager[None]:
    """Returns a context in which figures are drawn and saved in this style."""
    return mpl.rc_context(RC)
