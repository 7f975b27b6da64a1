"""Plays every run of a scenario of samples, and writes what happened into a folder.

The folder holds `rollouts.json` (scenario, measures of each run, provenance), the
tables `steps`, `ages` and `samples` as Parquet, and `scenario.yaml` to play it again.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import inputs
from ..config.errors import StudyError
from ..rollouts import Fate, Rollouts, play
from ..rollouts.measures import RolloutLoad, ages, measured, workload
from ..scenario.rollouts import RolloutScenario
from ..scenario.study import Run, expand
from ..scenario.writing import to_yaml
from ..trace import DISK, provenance
from ..trace.disk import LOCK, explained, locked, replace

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "rollouts.json"
LIBRARIES = ("numpy", "scipy", "stalesim")
ROWS = 4_000_000
"""Most rows of the table of samples that are kept in memory; then they are left out of
it, with a note."""
SHOWN = (
    *("group", "prompt", "member", "attempt", "slot", "tokens", "start_time"),
    *("finish_time", "ready_time", "outcome", "start_version", "ready_version"),
    "step",
)
"""Columns of the table of samples."""


class LoggedRun(NamedTuple):
    """A run of a real system, from its log.

    Attributes:
        found: Its record.
        entry: Its entry in the manifest.
        fits: Facts on the laws that were fitted.
        remarks: What the scenario has otherwise, each in a line.
    """

    found: Rollouts
    entry: dict[str, Any]
    fits: list[dict[str, Any]]
    remarks: list[str]


def record_rollouts(
    scenario: RolloutScenario,
    folder: str | Path,
    progress: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Plays every run of a scenario, and writes what happened.

    Args:
        scenario: The scenario.
        folder: New or empty folder.
        progress: Called with the fraction that is played.

    Returns:
        What `rollouts.json` holds.

    Raises:
        UserError: something in the scenario or the folder is wrong.
    """
    folder = Path(folder)
    with new_folder(folder):
        return write_rollouts(scenario, folder, progress)


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Holds a folder that is new or empty.

    Raises:
        StudyError: it is not.
    """
    with locked(folder):
        if others := {*DISK.names(folder)} - {LOCK}:
            raise StudyError(
                f"{folder}: must be a new or empty folder, but there is "
                f"{min(others)}; choose another by --out"
            )
        yield


def write_rollouts(
    scenario: RolloutScenario,
    folder: Path,
    progress: Callable[[float], None],
    logged: LoggedRun | None = None,
) -> dict[str, Any]:
    """Writes what `record_rollouts` does into a folder that is held already.

    Args:
        scenario: The scenario.
        folder: The folder.
        progress: Called with the fraction that is played.
        logged: Run of a real system that comes before those of the scenario.
    """
    runs = expand(scenario)
    told: dict[str, Any] = {
        "kind": "rollouts",
        "name": scenario.name,
        "source": scenario.source,
        "question": scenario.question,
        "scenario": scenario.model_dump(mode="json"),
        "runs": [],
        **provenance(LIBRARIES),
    }
    tables: dict[str, list[dict[str, Any]]] = {"steps": [], "ages": [], "samples": []}
    first = 0
    if logged is not None:
        first, told["fits"], told["remarks"] = 1, logged.fits, logged.remarks
        told["runs"].append(logged.entry)
        for name, columns in _tables(0, logged.found, whole=True).items():
            tables[name].append(columns)
    read = inputs.collect(run.scenario for run in runs)
    with inputs.held(read):
        kept = 0
        for number, run in enumerate(runs, first):
            found = play(run.scenario, run.seed)
            kept += found.samples["group"].size
            whole = scenario.record == "everything" and kept <= ROWS
            entry = _played(run._replace(number=number), found, whole=whole)
            told["runs"].append(entry)
            for name, columns in _tables(number, found, whole=whole).items():
                tables[name].append(columns)
            progress((number + 1 - first) / len(runs))
        for name, pieces in tables.items():
            if pieces:
                write_table(folder / f"{name}.parquet", pieces)
        with explained(folder):
            replace(DISK, folder / "scenario.yaml", to_yaml(scenario).encode())
            text = json.dumps(told, indent=1, allow_nan=False)
            replace(DISK, folder / NAME, f"{text}\n".encode())
    return told


def _played(run: Run, found: Rollouts, *, whole: bool) -> dict[str, Any]:
    known = workload(run.scenario, run.seed)
    values = measured(run.scenario, run.seed, found)
    return entry(run.identity, found, known, values, whole=whole)


def entry(
    identity: dict[str, Any],
    found: Rollouts,
    known: RolloutLoad,
    values: dict[str, float],
    *,
    whole: bool,
) -> dict[str, Any]:
    """Returns the facts of a run; absent numbers are null.

    Args:
        identity: Entries that tell it from others.
        found: Its record.
        known: What closed forms know of it.
        values: Its measures.
        whole: Whether its samples are in the table.
    """
    return {
        **identity,
        "player": found.player,
        "stop": found.stop,
        "has_samples": whole,
        "workload": {key: _finite(value) for key, value in known._asdict().items()},
        "measures": {key: _finite(value) for key, value in values.items()},
        "slot_seconds": found.slot_seconds,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, str | int):
        return value
    return float(value) if isfinite(value) else None


def _tables(run: int, found: Rollouts, *, whole: bool) -> dict[str, dict[str, Any]]:
    steps = {"step": np.arange(1, found.steps["start_time"].size + 1), **found.steps}
    tables = {"steps": steps, "ages": ages(found)}
    if whole:
        size = found.samples["group"].size
        mine = {"sample": np.arange(1, size + 1)}
        tables["samples"] = mine | {name: found.samples[name] for name in SHOWN}
    return {
        name: {"run": np.full(next(iter(columns.values())).size, run), **columns}
        for name, columns in tables.items()
    }


def write_table(path: Path, pieces: list[dict[str, Any]]) -> None:
    """Writes a table; fates stand in it as words.

    Args:
        path: The file.
        pieces: Columns of its parts, one after the other.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = {name: [piece[name] for piece in pieces] for name in pieces[0]}
    arrays = {name: _column(name, values) for name, values in columns.items()}
    with explained(path.parent):
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table(arrays), sink)
        replace(DISK, path, sink.getvalue().to_pybytes())


def _column(name: str, values: list[np.ndarray]) -> "pa.Array":
    import pyarrow as pa

    whole = np.concatenate(values)
    if name != "outcome":
        return pa.array(whole)
    words = [fate.name for fate in Fate]
    return pa.DictionaryArray.from_arrays(pa.array(whole, pa.int8()), words)
