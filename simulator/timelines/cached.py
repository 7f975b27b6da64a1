"""Timelines that several runs of a study share: played by the first, read by others."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..files.timeline import Chunk, Incidents, Jobs, Rows, StopReason
from .base import RunTimeline

PARTS = {"rows": Rows, "jobs": Jobs, "incidents": Incidents}


DAMAGED = (OSError, ValueError, LookupError, EOFError, NotImplementedError, BadZipFile)
"""Errors of reading a file that is not as it was written; zip has checksums."""


def chunks(timeline: RunTimeline, num_rows: int, folder: Path) -> Iterator[Chunk]:
    """Yields the chunks of a timeline; simulates it if no run has done so to its end.

    Where the cache is damaged or gone, the world is simulated from there on.

    Raises:
        ScenarioError: there can be no such timeline.
    """
    # Players number registers otherwise: no timeline begins by one and ends by another.
    player = timeline.made_by.partition(",")[0]
    place = folder / f"{timeline.digest}-{num_rows}-{player}"
    if place.exists():
        done = 0
        with contextlib.suppress(*DAMAGED):
            for chunk in _read(place):
                yield chunk
                done += 1
            return
        yield from islice(timeline.chunks(num_rows), done, None)
        return
    folder.mkdir(exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder))
    try:
        kept = True
        for number, chunk in enumerate(timeline.chunks(num_rows)):
            kept = kept and _write(partial / f"{number:06d}.npz", chunk)
            if kept and chunk.stop is not None:
                with contextlib.suppress(OSError):  # another run was first
                    partial.rename(place)
            yield chunk
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(path: Path, chunk: Chunk) -> bool:
    """Keeps a chunk; returns whether there was room for it."""
    arrays = {
        f"{part}.{name}": values
        for part in PARTS
        for name, values in getattr(chunk, part)._asdict().items()
    }
    stop = chunk.stop.name if chunk.stop else ""
    gone = [] if chunk.gone is None else [chunk.gone]
    try:
        np.savez(path, stop=stop, gone=gone, **arrays)
    except OSError:
        return False
    return True


def _read(place: Path) -> Iterator[Chunk]:
    for number in count():
        path = place / f"{number:06d}.npz"
        with path.open("rb") as file, np.load(file) as arrays:
            parts = {
                part: kind(*(arrays[f"{part}.{name}"] for name in kind._fields))
                for part, kind in PARTS.items()
            }
            stop = str(arrays["stop"])
            gone = next(iter(arrays["gone"].tolist()), None)
        reason = StopReason[stop] if stop else None
        yield Chunk(**parts, stop=reason, gone=gone)
        if stop:
            return
