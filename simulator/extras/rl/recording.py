"""Plays every run of a scenario of samples, and writes what happened into a folder.

The folder is a study without numerics, as `timelines.saved` writes it; its tables are
`steps`, `samples` and `sample_ages`, and its manifest has the measures of each run.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path

import numpy as np

from ....analysis.facts import Entry
from ...files import inputs
from ...files.study import COLUMNS, Categorical, Study, Writer
from ...files.timeline import StopReason
from ...scenario.study import Run, expand
from ...studies.saved import Progress, write_all
from .scenario import RolloutScenario
from .world import Rollouts, SampleOutcome, play
from .world.measures import RolloutLoad, ages, measured, workload

KIND = "samples"
"""Of the manifest."""
ENDS = {
    "steps": "the stated number of steps was made",
    "samples": "the stated number of samples was trained",
    "time": StopReason.TIME.value,
    "log": "the log has ended",
}
"""Reasons by the ends of a record."""
OUTCOMES = tuple(fate.name for fate in SampleOutcome)


Columns = Mapping[str, np.ndarray | Categorical]
Played = tuple[Rollouts, RolloutLoad, dict[str, float]]
"""The result of a run: its record, the closed forms' inputs, its measures."""


class RolloutSource:
    """A world of samples, to be written."""

    def __init__(
        self, identity: Entry, world: RolloutScenario, play: Callable[[], Played]
    ) -> None:
        self.play = play
        self.entry = {
            **identity,
            "protocol": "rollouts",
            "num_clients": world.generation.num_slots,
            "stop_reason": "the run has not ended",
            "stop": "incomplete",
            "facts": world.described(),
            "scenario": world.model_dump(mode="json"),
        }

    def write(self, writer: Writer, *, whole: bool) -> Iterator[float]:
        """Writes the run; yields its fraction, and completes its entry."""
        started, run = time.perf_counter(), self.entry["run"]
        record, known, values = self.play()
        for name, columns in _tables(record, whole=whole).items():
            first = next(iter(columns.values()))
            assert isinstance(first, np.ndarray)
            writer.append(name, {"run": np.full(first.size, run), **columns})
        yield 1.0
        self.entry.update(
            player=record.player,
            stop=record.stop,
            stop_reason=ENDS[record.stop],
            commits=int(values["steps"]),
            contributions=int(values["samples_trained"]),
            virtual_s=record.end_time,
            workload={key: _finite(value) for key, value in known.items()},
            measures={key: _finite(value) for key, value in values.items()},
            slot_seconds=record.slot_seconds,
            elapsed_s=time.perf_counter() - started,
            rows=writer.rows.get(run, {}),
        )


def sources_of(scenario: RolloutScenario, first: int = 0) -> list[RolloutSource]:
    """Returns the runs of a scenario, numbered from `first`."""
    runs = (run._replace(number=run.number + first) for run in expand(scenario))
    return [
        RolloutSource(run.identity, run.scenario, partial(_play, run)) for run in runs
    ]


def _play(run: Run) -> Played:
    world, seed = run.scenario, run.seed
    record = play(world, seed)
    return record, workload(world, seed), measured(world, seed, record)


def record_rollouts(
    scenario: RolloutScenario, folder: str | Path, progress: Progress = lambda _: None
) -> Study:
    """Plays every run of a scenario, and writes what happened.

    Raises:
        UserError: something in the scenario or the folder is wrong.
    """
    read = inputs.collect(run.scenario for run in expand(scenario))
    with inputs.held(read):
        tree, told = scenario.model_dump(mode="json"), inputs.manifest_entries(read)
        sources = sources_of(scenario)
        return write_all(
            Path(folder), tree, sources, told, kind=KIND, progress=progress
        )


def _finite(value: object) -> object:
    if not isinstance(value, float):
        return value
    return float(value) if isfinite(value) else None


def _tables(record: Rollouts, *, whole: bool) -> dict[str, Columns]:
    samples, steps = record.samples, record.steps
    tables: dict[str, Columns] = {
        "steps": {"step": np.arange(1, steps["start_time"].size + 1), **steps},
        "sample_ages": ages(record),
    }
    if whole:
        own = {name: samples[name] for name in COLUMNS["samples"] if name in samples}
        tables["samples"] = {
            "sample": np.arange(1, samples["group"].size + 1),
            **own,
            "outcome": Categorical(samples["outcome"], OUTCOMES),
        }
    return tables
