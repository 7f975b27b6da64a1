"""Worlds of samples from the log of a real system.

- `reading`: the log's columns, and what is refused.
- `record`: what it says happened, like a simulated world.
- `fitting`: laws of lengths, steps and tokens, each with a test that may refuse it.
- `worlds`: a scenario of the fitted world, and of the replay.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...rollouts.measures import measures
from ...rollouts.record import Fate
from ...scenario.reading import read_any
from ...trace import DISK
from ...trace.disk import explained, replace
from ..rollouts import (
    LoggedRun,
    entry,
    new_folder,
    write_rollouts,
    write_table,
)
from .reading import read_samples
from .record import load_of, record
from .worlds import LogWorld, world_of

__all__ = ["import_samples"]

LOG = {"run": 0, "label": "log", "variant": "log", "parameters": {}, "replicate": 0}


def import_samples(
    log: str | Path,
    folder: str | Path,
    overrides: Sequence[str] = (),
    progress: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Writes what a log of samples says, with its fitted world and its replay.

    Args:
        log: CSV, JSON Lines or Parquet, with columns as `reading` has them.
        folder: New or empty; the scenario in it finds its tables there.
        overrides: `dotted.key=value`, each replacing an entry of the scenario.
        progress: Called with the fraction that is played.

    Returns:
        What `rollouts.json` holds: as for a scenario, with the run `log` before the
        others, and `fits` and `remarks`.

    Raises:
        UserError: something in the log, an override or the folder is wrong.
    """
    path, folder = Path(log), Path(folder)
    read = read_samples(path)
    found = record(read)
    world = world_of(read, found, path.stem, folder, overrides)
    with new_folder(folder):
        for name, columns in world.tables.items():
            write_table(folder / f"{name}.parquet", [columns])
        text = json.dumps(world.tree, indent=1)  # YAML, too
        with explained(folder):
            replace(DISK, folder / "scenario.yaml", f"{text}\n".encode())
        scenario = read_any(folder / "scenario.yaml", overrides)
        known = load_of(read, found)
        drawn = read.tokens[np.isfinite(read.finish) & (read.outcome != Fate.ABORTED)]
        values = measures(found, known.slots, read.optimizer_steps, drawn)
        told = entry({**LOG, "seed": 0}, found, known, values, whole=True)
        logged = LoggedRun(found, told, _fits(world), world.remarks)
        return write_rollouts(scenario, folder, progress, logged)


def _fits(world: LogWorld) -> list[dict[str, Any]]:
    return [
        {**fit._asdict(), "p": None if np.isnan(fit.p) else fit.p} for fit in world.fits
    ]
