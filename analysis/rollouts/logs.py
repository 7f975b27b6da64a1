"""The log that a real system would have written of a simulated run of samples."""

from pathlib import Path

import numpy as np
import pandas as pd

from ...simulator.trace import load


def log_of(folder: str | Path, run: int = 0) -> pd.DataFrame:
    """Returns a recorded run as a log, a row per sample.

    `stalesim timeline --import` reads it again once it is written: `to_csv`,
    `to_parquet`, or `to_json` with `orient="records", lines=True`.

    Args:
        folder: Folder that `stalesim timeline` wrote of a scenario with generation,
            with its samples.
        run: Number of the run.

    Returns:
        Columns as `simulator.rollouts.logs.reading` has them; what was in training
        when the run ended has no step.
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
