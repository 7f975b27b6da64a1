"""Worlds of samples from the log of a real system.

- `reading`: the log's columns, and its checks.
- `record`: the log's events, like a simulated world.
- `fitting`: laws of lengths, steps and tokens, each with a test that may refuse it.
- `worlds`: a scenario of the fitted world, and of the replay.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....files import inputs
from ....files.study import DISK, Study, load
from ....files.study.disk import explained, replace
from ....scenario.reading import read_any, to_yaml
from ....scenario.study import expand
from ....studies.saved import Progress, emptied, write_held
from ..recording import KIND, RolloutSource, sources_of
from ..world.measures import measures
from ..world.record import SampleOutcome
from .reading import read_samples
from .record import load_of, record
from .worlds import world_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["import_samples", "log_of"]

LOG = {
    "run": 0,
    "label": "log",
    "variant": "log",
    "parameters": {},
    "replicate": 0,
    "seed": 0,
}


def import_samples(
    log: str | Path,
    folder: str | Path,
    overrides: Sequence[str] = (),
    progress: Progress = lambda _: None,
) -> Study:
    """Writes the record of a log of samples, with its fitted world and its replay.

    Args:
        log: CSV, JSON Lines or Parquet, with columns as `reading` has them.
        folder: New or empty; the scenario in it finds its tables there.
        overrides: `dotted.key=value`, each replacing an entry of the scenario.
        progress: Called with the fraction that is played.

    Returns:
        The study, as for a scenario, with the run `log` before the others; its manifest
        has `fits` and `remarks`.

    Raises:
        UserError: something in the log, an override or the folder is wrong.
    """
    import pyarrow as pa
    from pyarrow import parquet

    path, folder = Path(log), Path(folder)
    read = read_samples(path)
    found = record(read)
    tree, fits, remarks, tables = world_of(read, found, path.stem, folder, overrides)
    drawn = read.tokens[
        np.isfinite(read.finish) & (read.outcome != SampleOutcome.ABORTED)
    ]
    known = load_of(read, found)
    values = measures(found, known["slots"], read.optimizer_steps, drawn)
    file = folder / "scenario.yaml"
    with emptied(folder), explained(folder):
        for name, columns in tables.items():
            sink = pa.BufferOutputStream()
            parquet.write_table(pa.table(columns), sink)
            replace(DISK, folder / f"{name}.parquet", sink.getvalue().to_pybytes())
        replace(DISK, file, json.dumps(tree, indent=1).encode())  # YAML, too
        scenario = read_any(file, overrides)
        replace(DISK, file, to_yaml(scenario).encode())
        read_too = inputs.collect(run.scenario for run in expand(scenario))
        with inputs.held(read_too):
            told = inputs.manifest_entries(read_too)
            told["inputs"] |= inputs.of_log(log)
            entries = [
                {**fit._asdict(), "p": None if np.isnan(fit.p) else fit.p}
                for fit in fits
            ]
            told |= {"fits": entries, "remarks": remarks}
            first = RolloutSource(LOG, scenario, lambda: (found, known, values))
            first.entry["scenario"] = {}  # the log itself has none
            tree, sources = scenario.model_dump(mode="json"), sources_of(scenario, 1)
            return write_held(folder, tree, [first, *sources], told, KIND, progress)


def log_of(folder: str | Path, run: int = 0) -> "pd.DataFrame":
    """Returns a recorded run as a log, a row per sample.

    `stalesim rl import` reads it again once it is written: `to_csv`,
    `to_parquet`, or `to_json` with `orient="records", lines=True`.

    Args:
        folder: Folder that `stalesim timeline` wrote of a scenario with generation,
            with its samples.
        run: Number of the run.

    Returns:
        Columns as in `reading`; samples in training when the run ended have no step.
    """
    study = load(folder)
    samples, steps = (study.table(name) for name in ("samples", "steps"))
    samples, steps = (table[table["run"] == run] for table in (samples, steps))
    trained = samples["outcome"] == "TRAINED"
    step = samples["step"].where(trained)
    log = samples[["sample", "start_time", "finish_time", "tokens", "start_version"]]
    times = steps.set_index("step")[["start_time", "end_time"]].astype(np.float64)
    return log.assign(
        prompt=samples["group"],
        step=step,
        step_start_time=step.map(times["start_time"]),
        step_end_time=step.map(times["end_time"]),
        outcome=samples["outcome"].str.lower(),
    ).reset_index(drop=True)
