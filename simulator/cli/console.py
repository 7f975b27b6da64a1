"""The terminal: where is printed, what moves during a run, and what interrupts it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

out = Console()
err = Console(stderr=True)

INTERRUPTED = 130
"""Exit status."""

_interrupted = threading.Event()
"""Where Python raises an interruption in a callback, it is printed and forgotten; this
remembers it."""


def interrupt(signum: int, frame: object) -> None:
    """Interrupts what is being done; to be called by a signal."""
    _interrupted.set()
    raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """Ends with one line, not a traceback, where the user interrupts a run."""
    try:
        yield
    except KeyboardInterrupt:
        err.print(
            f"stalesim: interrupted; {folder} holds what was written, "
            f"marked incomplete",
            style="red",
        )
        raise SystemExit(INTERRUPTED) from None


@contextlib.contextmanager
def progress(name: str) -> Iterator[Callable[[float], None]]:
    """Draws a bar; yields what is to be told the fraction that is done.

    The bar begins when something is done, not when a mistake is still to be found.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=err, transient=True)
    task = bar.add_task(name, total=1.0)

    def hear(fraction: float) -> None:
        bar.start()  # does nothing where it has begun
        bar.update(task, completed=fraction)
        main = threading.current_thread() is threading.main_thread()
        if main and _interrupted.is_set():
            raise KeyboardInterrupt

    try:
        yield hear
    finally:
        if bar.live.is_started:
            bar.stop()
