"""The page of a study that is being run: written again until the study is complete."""

import time
from pathlib import Path

from ...simulator.trace import Study, StudyError, load
from .writing import html, write_html

EVERY_S = 5.0
"""Real seconds from one look at the study to the next, and from reload to reload."""
RELOAD = f'<meta http-equiv="refresh" content="{EVERY_S:g}">\n'
ATTEMPTS = 3
"""Looks in a row at tables whose files another process may be joining."""


def watch(study: Study, file: str | Path | None = None) -> None:
    """Writes a study's page again and again, until the study is complete.

    The page reloads itself for as long.

    Args:
        study: Study that another process runs.
        file: As in `write`.

    Raises:
        StudyError: As in `write`.
    """
    text, before, failures = "", None, 0
    try:
        while True:
            try:
                now = study.manifest, study.files, len(study.so_far())
                if now != before:
                    text = html(study, so_far=True)
                    reloading = text.replace("<head>\n", f"<head>\n{RELOAD}", 1)
                    write_html(study, reloading, file)
                before, failures = now, 0
                if study.complete:
                    return
            except StudyError:
                failures += 1
                if before is None or failures == ATTEMPTS:
                    raise
            time.sleep(EVERY_S)
            study = load(study.folder, quietly=True)
    finally:
        if text:
            write_html(study, text, file)
