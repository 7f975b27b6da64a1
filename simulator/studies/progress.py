"""How far a study is, as those report it who wait for it."""

import datetime as dt
import html
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..parts.progress import Speed, StudyProgress

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

__all__ = ["Progress", "Stages", "StudyProgress", "silent"]


Progress = Callable[[StudyProgress], None]
"""Called a few times a second while a study is run."""
EVERY_S = 0.5
"""Real seconds from one drawing of a notebook's bar to the next."""


class Stages:
    """Tells of executions that follow each other as if they were one.

    Args:
        report: Called with how far the whole is.
        runs: Most runs of the whole, those that had ended before among them.
    """

    def __init__(self, report: Progress, runs: int) -> None:
        self._report, self._runs, self._commits = report, runs, 0

    def stage(self, begin: float, end: float, runs: int) -> Progress:
        """Returns what hears of one execution.

        Args:
            begin: Part of the whole that is done before it.
            end: Part that is done after it.
            runs: Runs of the study after it.
        """
        before = self._commits

        def report(now: StudyProgress) -> None:
            self._commits = before + now.commits
            whole = now._replace(
                fraction=min(1.0, begin + now.fraction * (end - begin)),
                ended=runs - now.runs + now.ended,
                runs=self._runs,
                commits=self._commits,
                at_most=True,
            )
            self._report(whole)

        return report


def silent(progress: StudyProgress) -> None:
    """Ignores the progress of a study."""


def bar(name: str) -> Progress:
    """Returns what shows how far a study is; nothing, outside of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal, or no IPython at all
        return silent
    return NotebookBar(name)


class NotebookBar:
    """A bar that is drawn in the cell's output, in place of the one before.

    A bar of `rich` would need ipywidgets.
    """

    def __init__(self, name: str) -> None:
        self._name, self._speed = name, Speed()
        self._since = time.monotonic()
        self._shown_at = -EVERY_S
        self._handle: DisplayHandle | None = None

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
