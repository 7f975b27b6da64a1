"""The terminal: its output, its moving lines, and interruptions."""

import contextlib
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from ..parts.errors import one_line, printable
from ..parts.progress import Speed, StudyProgress


class Terminal(Console):
    """Shows text as it is: nothing in it is markup, an emoji's name or an escape.

    All words that are printed come from outside: a scenario, a log, a path.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns a text, also the cell of a table, as it is shown."""
        return super().render_str(printable(text), **options)

    def say(self, text: str, style: str | Style | None = None) -> None:
        """Prints one line of any length, whatever is in its text."""
        self.print(one_line(text), style=style, soft_wrap=True)


out = Terminal()
err = Terminal(stderr=True)

INTERRUPTED = 130
"""Exit status."""

LINE_EVERY_S = 30.0
"""Real seconds from one line on the progress to the next, where is no terminal."""
AGAIN_S = 0.05
"""Real seconds after which an interruption that had no effect is repeated."""

_interrupted = threading.Event()
"""Set by an interruption, in case a library swallows it."""


def accept_any_text() -> None:
    """Lets letters that the terminal's encoding lacks be written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # where it is no substitute
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore


def interrupt(signum: int, frame: object) -> None:
    """Interrupts the current work; to be called by a signal."""
    _interrupted.set()
    raise KeyboardInterrupt


def repeat_interruption(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeats an interruption that came while Python was in a callback.

    There an exception cannot be raised: it is printed and forgotten. To be Python's
    hook for such exceptions.
    """
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
    elif not sys.is_finalizing():
        main = threading.main_thread().ident
        again = threading.Timer(AGAIN_S, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()


def forget_after_interruption(error: threading.ExceptHookArgs) -> None:
    """Shows an error of a thread, unless it was interrupted.

    A library's thread may miss a process that was stopped. To be Python's hook for
    errors of threads.
    """
    if not _interrupted.is_set():
        threading.__excepthook__(error)


def warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Shows a warning, one of ours as one line; to be Python's hook for them."""
    from ..files.study import StudyWarning

    if issubclass(category, StudyWarning):
        err.say(f"stalesim: warning: {message}", style="yellow")
    elif not _interrupted.is_set():  # a library may miss what was interrupted
        text = warnings.formatwarning(message, category, filename, lineno, line)
        (file or sys.stderr).write(text)


@contextlib.contextmanager
def interruptible(folder: Path, remedy: str = "") -> Iterator[None]:
    """Ends with one line, not a traceback, where the user interrupts a run.

    An error after an interruption counts as the interruption: a library that is
    interrupted half-way may raise another error.

    Args:
        folder: Folder that is written.
        remedy: How to continue, the end of the line.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if not (isinstance(error, KeyboardInterrupt) or _interrupted.is_set()):
            raise
        there = f"{folder} holds what was written, marked incomplete{remedy}"
        if not folder.exists():
            there = f"nothing had been written, {folder} does not exist"
        err.say(f"stalesim: interrupted; {there}", style="red")
        raise SystemExit(INTERRUPTED) from None


@contextlib.contextmanager
def progress(name: str) -> Iterator[Callable[[float | StudyProgress], None]]:
    """Shows how far something is: a bar in a terminal, else a line now and then.

    Yields a function to call with the fraction done, or a study's progress. The bar
    appears with the first progress, so after checks for mistakes.
    """
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[words]}", markup=False),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    task = bar.add_task(one_line(name), total=1.0, words="")
    speed, last = Speed(), time.monotonic()

    def hear(now: float | StudyProgress) -> None:
        nonlocal last
        if not isinstance(now, StudyProgress):
            now = StudyProgress(fraction=now, ended=0, runs=1)
        words = speed.words(now)
        bar.start()  # does nothing where it has started
        bar.update(task, completed=now.fraction, words=words)
        if bar.disable and time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            said = filter(None, (f"{100 * now.fraction:.0f} %", words))
            err.say(f"{name}: {', '.join(said)}")
        main = threading.current_thread() is threading.main_thread()
        if main and _interrupted.is_set():
            raise KeyboardInterrupt

    try:
        yield hear
    finally:
        if bar.live.is_started:
            with contextlib.suppress(IndexError):  # interrupted while it started
                bar.stop()


@contextlib.contextmanager
def follow(word: str, folder: Path, into: Path) -> Iterator[None]:
    """Prints the state of a study that is followed while it is run.

    Args:
        word: The activity, such as `Watching`.
        folder: Folder of the study.
        into: The written file.
    """
    out.say(f"{word} {folder}: {into} (Ctrl-C ends it)")
    try:
        yield
    except KeyboardInterrupt:
        out.say(f"No longer {word.lower()} {folder}")
    else:
        out.say(f"Complete: {folder}")


@contextlib.contextmanager
def drawing() -> Iterator[Callable[[int, int], None]]:
    """Shows the progress of figures in a terminal; yields its callback.

    That is of how many kinds of figures all are drawn, and how many kinds there are.
    """
    status = err.status("Drawing figures")

    def count(done: int, of: int) -> None:
        status.update(f"Drawing figures: {done} of {of} kinds")

    with status if err.is_terminal else contextlib.nullcontext():
        yield count
