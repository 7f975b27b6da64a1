"""A bar in a notebook while a study is run."""

import datetime as dt
import html
import sys
import time
from typing import Any

from ..config.progress import Speed
from .progress import Progress, StudyProgress, silent

EVERY_S = 0.5
"""Real seconds from one drawing of the bar to the next."""


def bar(name: str) -> Progress:
    """Returns what shows how far a study is, if this is a notebook; else what does not.

    Args:
        name: Name of the study.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal, or no IPython at all
        return silent
    return NotebookBar(name)


class NotebookBar:
    """A bar that is drawn in the cell's output, in place of the one before.

    A bar of `rich` would need ipywidgets.

    Args:
        name: Name of the study.
    """

    def __init__(self, name: str) -> None:
        self._name, self._speed = name, Speed()
        self._since = time.monotonic()
        self._shown_at = -EVERY_S
        self._handle: Any = None

    def __call__(self, now: StudyProgress) -> None:
        """Draws how far the study is, twice a second at most, and at its end."""
        spent = time.monotonic() - self._since
        over = now.ended >= now.runs
        said = [f"{100 * now.fraction:.0f} %", self._speed.words(now)]
        if not over and spent - self._shown_at < EVERY_S:
            return
        self._shown_at = spent
        if over:
            said.append(f"took {dt.timedelta(seconds=round(spent))}")
        text = f"{self._name}: {', '.join(filter(None, said))}"
        label = html.escape(text)
        bar = f'<progress max="1" value="{now.fraction:.4f}" aria-label="{label}">'
        self._show({"text/plain": text, "text/html": f"{bar}</progress> {label}"})

    def _show(self, shown: dict[str, str]) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
