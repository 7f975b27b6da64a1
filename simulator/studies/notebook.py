"""A bar in a notebook while a study is run, and lines of a script."""

import datetime as dt
import html
import sys
import time
from typing import Any

from ..config.progress import ProgressLines, Speed, TimeLeft, in_words
from ..config.text import one_line
from .progress import Progress, StudyProgress

EVERY_S = 0.5
"""Real seconds from one drawing of the bar to the next."""


def bar(name: str) -> Progress:
    """Returns what shows how far a study is: a bar in a notebook, else a line at times.

    A script's lines go to standard error, twice a minute.

    Args:
        name: Name of the study.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal, or no IPython at all
        lines, speed = ProgressLines(name, _say), Speed()
        return lambda now: lines.show(now.fraction, in_words(now, speed))
    return NotebookBar(name)


def _say(line: str) -> None:
    sys.stderr.write(f"{one_line(line)}\n")


class NotebookBar:
    """A bar that is drawn in the cell's output, in place of the one before.

    Args:
        name: Name of the study.
    """

    def __init__(self, name: str) -> None:
        self._name, self._speed, self._left = name, Speed(), TimeLeft()
        self._since = time.monotonic()
        self._shown_at = -EVERY_S
        self._handle: Any = None

    def __call__(self, now: StudyProgress) -> None:
        """Draws how far the study is, twice a second at most, and at its end."""
        spent = time.monotonic() - self._since
        over = now.ended >= now.runs
        words = in_words(now, self._speed)
        left = self._left.words(now.fraction, spent)
        if not over and spent - self._shown_at < EVERY_S:
            return
        self._shown_at = spent
        took = f"took {dt.timedelta(seconds=round(spent))}"
        self._show(
            now.fraction, ", ".join(filter(None, (words, took if over else left)))
        )

    def _show(self, fraction: float, words: str) -> None:
        shown = Shown(self._name, fraction, words)
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


class Shown:
    """What a notebook shows of a study under way.

    Args:
        name: Name of the study.
        fraction: Part of it that is done, in [0, 1].
        words: Runs, speed and time left.
    """

    def __init__(self, name: str, fraction: float, words: str) -> None:
        self._name, self._fraction, self._words = name, fraction, words

    def __repr__(self) -> str:
        said = filter(None, (f"{100 * self._fraction:.0f} %", self._words))
        return f"{self._name}: {', '.join(said)}"

    def _repr_html_(self) -> str:
        label = html.escape(repr(self))
        return (
            f'<progress max="1" value="{self._fraction:.4f}" aria-label="{label}">'
            f"</progress> {label}"
        )
