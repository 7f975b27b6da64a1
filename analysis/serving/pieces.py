"""Pieces of a study's page: made when they are asked for, kept until more is known."""

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...simulator.config.errors import StudyError
from ...simulator.config.text import one_line
from ..page.writing import environment
from ..watching import Watched, look, mark
from . import pictures, words

SOONEST_S = 5.0
"""Real seconds from one drawing of runs under way to the next."""
ATTEMPTS = 3
"""Readings of tables that are being joined."""
NOTHING_YET = "Nothing to show yet: no run has ended."


class Piece(NamedTuple):
    """A part of the page.

    Attributes:
        name: Last part of its address.
        title: Heading.
        every_s: Real seconds from one look of a browser at it to the next.
    """

    name: str
    title: str
    every_s: int


PIECES = (
    Piece("curves", "Learning curves so far", 5),
    Piece("runs", "Runs", 2),
    Piece("claims", "Claims so far", 5),
    Piece("staleness", "Staleness so far", 5),
    Piece("timeline", "Timeline", 10),
)
"""Parts of the page in their order; the sentence above them is `progress`."""


class _Kept(NamedTuple):
    mark: tuple[Any, int]
    since: float
    html: str


class Pieces:
    """The pieces of one study's page. Safe to be asked by several threads.

    Args:
        folder: Folder of the study.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._looking, self._drawing = threading.Lock(), threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._closed = False
        self._templates = environment("stalesim.analysis.serving")
        self._made: dict[str, Callable[[Watched], str]] = {
            "curves": lambda seen: self._figures(pictures.curves(seen)),
            "claims": self._claims,
            "staleness": lambda seen: self._figures(pictures.staleness(seen)),
            "timeline": self._timeline,
        }

    def page(self) -> str:
        """Returns the page, whose slower pieces come later.

        Raises:
            StudyError: There is no study in the folder, or it is damaged.
        """
        seen = self._look()
        return self._render(
            "serving.html.j2",
            manifest=seen.manifest,
            folder=str(self._folder),
            pieces=PIECES,
            progress=self.piece("progress"),
            runs=self.piece("runs"),
        )

    def piece(self, name: str) -> str:
        """Returns a piece as HTML; where it cannot be made, one line that says why.

        Args:
            name: `progress`, or the name of one of `PIECES`.
        """
        try:
            return self._piece(name)
        except Exception as error:  # the study is being written; the next look is later
            if not isinstance(error, StudyError):
                error = StudyError(f"{type(error).__name__}: {error}")
            return self._render("note.html.j2", words=one_line(str(error)))

    def close(self) -> None:
        """Makes no more pieces, and waits for what is being made.

        A thread that is in the middle of a library may abort a process that ends.
        """
        with self._drawing, self._looking:
            self._closed = True

    def trace_events(self) -> dict[str, Any] | None:
        """Returns trace events of the first run that has ended; None without one."""
        with self._drawing:
            return pictures.trace_events(self._look())

    def _piece(self, name: str) -> str:
        if name == "progress":
            return self._render(
                "progress.html.j2", progress=words.progress(self._look())
            )
        if name == "runs":
            return self._render("runs.html.j2", queue=words.queue(self._look()))
        with self._drawing:  # Matplotlib's settings are those of the whole process
            for attempt in range(ATTEMPTS):
                before = mark(self._folder)
                try:
                    return self._drawn(name, before)
                except StudyError:
                    # The study may have joined files meanwhile, which is noted first.
                    if mark(self._folder) == before or attempt == ATTEMPTS - 1:
                        raise
            raise AssertionError("the last attempt returns or raises")

    def _drawn(self, name: str, before: tuple[Any, ...]) -> str:
        """Returns a piece that takes long, as it was last if nothing has changed."""
        seen, kept = self._look(), self._kept.get(name)
        rows = len(seen.rows) if name == "curves" else 0
        if kept is not None and kept.mark[0] == before:
            soon = rows and time.monotonic() - kept.since < SOONEST_S
            if kept.mark[1] == rows or soon:
                return kept.html
        made = self._made[name](seen)
        self._kept[name] = _Kept((before, rows), time.monotonic(), made)
        return made

    def _look(self) -> Watched:
        with self._looking:
            if self._closed:
                raise StudyError("the study is no longer served")
            return look(self._folder)

    def _figures(self, found: list[pictures.Picture]) -> str:
        return self._render("figures.html.j2", figures=found, nothing=NOTHING_YET)

    def _claims(self, seen: Watched) -> str:
        made = seen.manifest["scenario"].get("claims")
        found = words.verdicts(seen) if seen.ended else []
        left = len(seen.runs) - len(seen.ended)
        facts = {"claims": found, "made": bool(made), "left": left}
        return self._render("claims.html.j2", **facts, nothing=NOTHING_YET)

    def _timeline(self, seen: Watched) -> str:
        found = pictures.timeline(seen)
        return self._render("timeline.html.j2", figures=found, nothing=NOTHING_YET)

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(**values)


def tag(content: bytes) -> str:
    """Returns a mark of content, which differs where the content does."""
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def style_sheet() -> str:
    """Returns the report's style sheet with what this page adds."""
    templates = environment("stalesim.analysis.serving")
    return "\n".join(
        templates.get_template(name).render() for name in ("page.css", "serving.css")
    )


def script() -> str:
    """Returns the script by which the page follows the study."""
    return environment("stalesim.analysis.serving").get_template("serving.js").render()
