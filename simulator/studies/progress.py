"""How far a study is, as those report it who wait for it."""

import datetime as dt
import html
import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from ..parts.errors import one_line
from ..parts.progress import Speed, StudyProgress

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

__all__ = ["Progress", "Stages", "StudyProgress", "silent"]


Progress = Callable[[StudyProgress], None]
"""Called a few times a second while a study is run."""
EVERY_S = 0.5
"""Real seconds from one drawing of a notebook's bar to the next."""


class Stages:
    """Reports successive executions as if they were one.

    Args:
        report: Called with how far the whole is.
        runs: Most runs of the whole, including those that had ended before.
    """

    def __init__(self, report: Progress, runs: int) -> None:
        self._report, self._runs, self._commits = report, runs, 0

    def stage(self, begin: float, end: float, runs: int) -> Progress:
        """Returns the callback of one execution.

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
    """Returns a display of a study's progress: a bar; nothing outside a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return NotebookBar(name)
    return TerminalBar(name) if sys.stderr.isatty() else silent


class TerminalBar:
    """A line of standard error that is written again and again.

    Args:
        name: Name of the study.
    """

    def __init__(self, name: str) -> None:
        self._name, self._speed = name, Speed()
        self._since = time.monotonic()
        self._shown_at = -EVERY_S

    def __call__(self, now: StudyProgress) -> None:
        """Shows how far the study is, twice a second at most, and at its end."""
        spent = time.monotonic() - self._since
        over = now.ended >= now.runs
        words = [f"{100 * now.fraction:.0f} %", self._speed.words(now)]
        if not over and spent - self._shown_at < EVERY_S:
            return
        self._shown_at = spent
        if over:
            words.append(f"took {dt.timedelta(seconds=round(spent))}")
        text = f"{self._name}: {', '.join(filter(None, words))}"
        self._show(one_line(text), now.fraction, over=over)

    def _show(self, text: str, fraction: float, *, over: bool) -> None:
        width = shutil.get_terminal_size().columns - 1
        end = "\n" if over else ""
        sys.stderr.write(f"\r{text[:width]:{width}}{end}")
        sys.stderr.flush()


class NotebookBar(TerminalBar):
    """A bar that is drawn in the cell's output, in place of the one before.

    A bar of `rich` would need ipywidgets.
    """

    _handle: "DisplayHandle | None" = None

    @override
    def _show(self, text: str, fraction: float, *, over: bool) -> None:
        label = html.escape(text)
        bar = f'<progress max="1" value="{fraction:.4f}" aria-label="{label}">'
        shown = {"text/plain": text, "text/html": f"{bar}</progress> {label}"}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
