"""Sizes, colours, fonts and labels of figures.

An ordinary Matplotlib style overrides any of it: `plt.style.context` around the calls
that draw and save, or `using`.
"""

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib import style as styles_of_matplotlib
from matplotlib.typing import RcKeyType

from ...simulator.files.study import Study, metric_of_study
from ...simulator.parts.errors import (
    UserError,
    documented_key,
    printable,
    shortened,
    suggestion,
)
from ..facts import within_sentence
from .venues import VENUES, Venue

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
"""Colours that most colour-blind readers can distinguish; hard ones come last.

Source: Okabe and Ito, Color Universal Design (2008).
"""

COLORMAP = "cividis"
"""Colours of heat maps, the same to colour-blind readers.

Source: Nunez, Anderton and Renslow, Optimizing colormaps with consideration for color
vision deficiency (2018).
"""
BLANK = "#f0f0f0"
"""Colour behind the hatches of cells without a number."""

SOLID, DASHED = "-", (0, (4, 1.5))
LINE_STYLES = (SOLID, "-.", ":", (0, (1, 3)))
"""A style for each turn of the palette; dashes mark references and privacy."""

RC: dict[RcKeyType, str | float | bool] = {
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
    "svg.hashsalt": "stalesim",  # the same figure gives the same bytes
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
}

LONGEST = 120
"""Characters of a name in a figure."""
TELLING = 4
"""Letters of a key that is clear by itself: `batch` is, `b` is not."""
VAGUE = ("kind", "number", "scale", "value")
"""Keys that occur in many places of a scenario."""


AXES = {
    "time": "Virtual time (s)",
    "commits": "Server updates",
    "contributions": "Client updates applied",
    "epochs": "Passes over the data",
    "bytes": "Data sent (MB)",
    "upload_bytes": "Data uploaded (MB)",
    "download_bytes": "Data downloaded (MB)",
    "rounds": "Communication rounds",
    "messages": "Messages",
    "epsilon": "Privacy spent, ε of the client that spent most",
    "joules": "Energy (J)",
    "computation_s": "Time of computation (s)",
    "communication_s": "Time of communication (s)",
}
"""Labels of horizontal axes of curves, columns of `evaluations`."""
MEGABYTES = ("bytes", "upload_bytes", "download_bytes")

STALENESS = {
    "contribution": "Staleness of client updates (server updates)",
    "embedding": "Age of embeddings when used (server updates)",
}
"""Labels of staleness, by `quantity` of its table."""

SHARE = "Share per unit of staleness"


class Look(NamedTuple):
    """Colour and line style of a group, the same in every figure of a study."""

    color: str
    linestyle: str | tuple[float, tuple[float, ...]]


def looks(groups: Iterable[str]) -> dict[str, Look]:
    """Returns the style of every group.

    A group with `private` in its name is dashed, and has the colour of the group that
    is named like it otherwise, if there is one.
    """
    groups, colors = list(groups), palette()
    public = {_words(group): group for group in groups if "private" not in group}
    # A private group is drawn like its twin, if there is one.
    like = {g: public.get(_words(g), g) if "private" in g else g for g in groups}
    alone = [group for group in groups if like[group] == group]
    found = {}
    for group in groups:
        turn, color = divmod(alone.index(like[group]), len(colors))
        dashes = DASHED if "private" in group else LINE_STYLES[turn % len(LINE_STYLES)]
        found[group] = Look(colors[color], dashes)
    return found


def _words(group: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[-_ ,]+", group) if word != "private")


def metric_label(metric: str, study: Study | None = None) -> str:
    """Returns the label of a metric; a user's own is named like its column."""
    of_study = {"runs": []} if study is None else study.manifest
    known = metric_of_study(of_study, metric)
    if known is None:
        return text(metric.replace("_", " ").capitalize(), 60)
    return text(known.title, LONGEST)


def in_words(metric: str, study: Study | None = None) -> str:
    """Returns the name of a metric within a sentence, without its unit."""
    return within_sentence(metric_label(metric, study))


def final_label(metric: str, study: Study | None = None) -> str:
    """Returns the label of final values of a metric, as in `metric_label`."""
    label = metric_label(metric, study)
    return f"Final {label[0].lower()}{label[1:]}"


def key_label(key: str, study: Study | None = None) -> str:
    """Returns the label of a swept key: its last part, with whose it is if need be.

    Args:
        key: Dotted key, such as `algorithm.step_size` or `clients.compute.s`.
        study: Study that is drawn, whose scenario has the key.
    """
    *owners, last = documented_key(key).split(".")
    if (len(last) >= TELLING and last not in VAGUE) or not owners:
        return metric_label(last) if len(last) >= TELLING else text(key, 60)
    tree: object = {} if study is None else study.manifest["scenario"]
    for part in owners:
        tree = tree.get(part) if isinstance(tree, dict) else None
    law = tree.get("law") if isinstance(tree, dict) else None
    of_group = owners.index("groups") + 1 if "groups" in owners[:-2] else None
    group = "" if of_group is None else f" ({owners[of_group]})"
    whose = owners[-1].replace("_", " ")
    of_law = f" of {law}" if law else ""
    return text(f"{whose[:1].upper()}{whose[1:]}{group}: {last}{of_law}", 60)


def axis(column: str) -> tuple[str, float]:
    """Returns the label of an axis, and the factor of its column in the shown unit."""
    return AXES.get(column) or metric_label(
        column
    ), 1e-6 if column in MEGABYTES else 1.0


def text(name: str, width: int = 34) -> str:
    r"""Returns a user's name as text: wrapped, and its `$` no mathematics.

    Of a very long one the middle is left out. Control characters, and letters that the
    fonts lack, are escapes such as `\u5feb`.
    """
    name = printable(shortened(" ".join(name.split()), LONGEST))
    if not name.isascii():
        name = "".join(map(_drawn, name))
    lines = textwrap.wrap(name, width) or [name]
    shown = "\n".join(lines).replace("$", r"\$")
    # Matplotlib leaves names with an underscore in front out of legends.
    return f" {shown}" if shown.startswith("_") else shown


def _drawn(character: str) -> str:
    """Returns a character as it is if a font of the style has it, else an escape."""
    families = mpl.rcParams["font.family"]
    if any(ord(character) in _letters(_file(family)) for family in families):
        return character
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _file(family: str) -> str:
    properties = font_manager.FontProperties(family=[family])
    return str(font_manager.findfont(properties))


@functools.cache
def _letters(file: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(file).get_charmap())


def palette() -> tuple[str, ...]:
    """Returns the colours of groups: those of a Matplotlib style that sets some."""
    cycle = mpl.rcParams["axes.prop_cycle"]
    colors = cycle.by_key().get("color", ())
    own = cycle != mpl.rcParamsDefault["axes.prop_cycle"] and colors
    return tuple(colors) if own else OKABE_ITO


def ink() -> str:
    """Returns the colour of text, for marks of the same colour."""
    return mpl.rcParams["text.color"]


_CHOSEN: ContextVar[tuple[str | Path, ...]] = ContextVar("_CHOSEN", default=())


@contextmanager
def using(*styles: str | Path) -> Iterator[None]:
    """Lets Matplotlib styles override this one, the last of them all others.

    Unlike `plt.style.context` it also keeps settings equal to Matplotlib's defaults.
    The name of a venue (`venues.VENUES`) sets fonts and sizes, and leaves titles and
    notes to the caption.

    Args:
        styles: Venues, names of Matplotlib's styles, or files.

    Raises:
        UserError: There is no such style.
    """
    token = _CHOSEN.set((*_CHOSEN.get(), *styles))
    try:
        with mpl.rc_context():
            for chosen in styles:
                try:
                    _use(chosen)
                except (OSError, ValueError) as error:
                    available = (*VENUES, *styles_of_matplotlib.available)
                    raise UserError(
                        "style must be a venue, a file of Matplotlib settings, or "
                        f"the name of a Matplotlib style, got {str(chosen)!r}; "
                        f"{suggestion(chosen, available)}"
                    ) from error
            yield
    finally:
        _CHOSEN.reset(token)


def venue() -> Venue | None:
    """Returns the venue that figures are drawn for, if one was chosen."""
    names = [name for name in _CHOSEN.get() if name in VENUES]
    return VENUES[str(names[-1])] if names else None


def _use(chosen: str | Path) -> None:
    if chosen in VENUES:
        mpl.rcParams.update(VENUES[str(chosen)].settings())
    else:
        styles_of_matplotlib.use(chosen)


@contextmanager
def context() -> Iterator[None]:
    """Draws and saves figures in this style, as far as the user has set no other."""
    default = mpl.rcParamsDefault
    free: dict[RcKeyType, object] = {
        key: v for key, v in RC.items() if mpl.rcParams[key] == default[key]
    }
    with mpl.rc_context(free):
        for chosen in _CHOSEN.get():
            _use(chosen)
        yield
