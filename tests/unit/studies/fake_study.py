"""A small study whose numbers cost nothing, for tests of how studies are written."""

import contextlib
import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stalesim.simulator.engine import simulation
from stalesim.simulator.files.study import COLUMNS, Categorical, Disk, Study
from stalesim.simulator.files.study.disk import locked
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import executors, origins, planning, running
from tests.unit.studies.small import SMALL

PATH = Path("/studies/small")
SCENARIO: Any = validated(
    SMALL
    | {
        "replicates": 2,
        "engine": {},
        "variants": {
            "one": {},
            "two": {"algorithm": {"step_size": 0.2}},  # shares the timeline of `one`
            "other": {"clients": {"compute": {"law": "expon", "scale": 2}}},
        },
    }
)
RUNS = expand(SCENARIO)
TASKS = planning.plan(RUNS, backend="cpu")
NUM_ROWS = {"commits": 7, "evaluations": 3}
TABLES = tuple(NUM_ROWS)
MADE_ANEW = ("session", "interrupted", "continued", "checksum", "parts")
"""Entries of a manifest that say how a study came about."""


def rows_of(run: Any, table: str, number: int) -> dict[str, Any]:
    """Returns the rows of a run, which depend on who it is alone."""
    size = NUM_ROWS[table]
    rng = np.random.default_rng([run.seed, *map(ord, run.label)])
    columns: dict[str, Any] = {
        "run": np.full(size, number, np.int32),
        "time": np.sort(rng.random(size)),
    }
    if table == "commits":
        columns["commit"] = np.arange(1, size + 1)
        columns["kind"] = Categorical(np.zeros(size, np.int32), ("COMMIT",))
        columns["loss"] = rng.random(size).astype(np.float32)
    else:
        columns["commits"] = np.arange(size)
        columns["test_accuracy"] = rng.random(size)
    return columns


def execute(runs: Any, mode: str, writer: Any, *rest: Any, **options: Any) -> Any:
    """Stands for the numerics: writes each run's rows, in two parts."""
    for run in runs:
        writer.append("commits", rows_of(run, "commits", run.number))
    writer.flush()
    for run in runs:
        writer.append("evaluations", rows_of(run, "evaluations", run.number))
    return [{"stop": "commits", "stop_reason": "…", "mode": mode} for _ in runs]


def fake(patch: pytest.MonkeyPatch) -> None:
    """Makes a study cost nothing but its files."""
    made = {
        "commit": None,
        "dirty": None,
        "environment": {"stalesim": "1"},
        "command": ["x"],
        "started": "now",
    }
    contents = {(run.seed, run.label): planning.content(run) for run in RUNS}
    patch.setattr(simulation, "prepare_together", lambda runs, _: list(runs))
    patch.setattr(simulation, "execute", execute)
    patch.setattr(planning, "check", lambda runs: None)
    patch.setattr(planning, "roomy", lambda tasks: tasks)
    patch.setattr(
        planning,
        "of_runs",
        lambda runs, first=0: [
            task._replace(number=first + number)
            for number, task in enumerate(
                TASKS if len(runs) == len(RUNS) else planning.plan(runs, backend="cpu")
            )
        ],
    )
    patch.setattr(running, "expand", lambda scenario: RUNS)
    # Here several processes of a play live in one thread.
    patch.setattr(executors, "ONE_AT_A_TIME", contextlib.nullcontext())
    patch.setattr(planning, "content", lambda run: contents[run.seed, run.label])
    patch.setattr(origins, "of_this_program", lambda also=(): made)


class Small:
    """Stands for a scenario where only its name is needed, and little of it."""

    name = source = question = "small"
    num_clients = 5
    tune, compare, looks = None, None, ()
    protocol = algorithm = SimpleNamespace(kind="small")
    evaluate = SimpleNamespace(metrics=())
    problem = SimpleNamespace(model_dump=lambda mode: {})

    def model_dump(self, mode: str) -> dict[str, Any]:
        """Returns nothing."""
        return {}

    def described(self) -> dict[str, Any]:
        """Returns nothing."""
        return {}


def fake_cheaply(patch: pytest.MonkeyPatch) -> None:
    """Makes even the files of a study cost little: for very many of them."""
    fake(patch)
    small = Small()
    runs = [run._replace(scenario=small) for run in RUNS]
    tasks = [
        task._replace(runs=tuple(runs[run.number] for run in task.runs), number=number)
        for number, task in enumerate(TASKS)
    ]
    patch.setattr(running, "expand", lambda scenario: runs)
    patch.setattr(planning, "of_runs", lambda new, first=0: tasks if new else [])
    patch.setitem(globals(), "SCENARIO", small)
    patch.setattr(pq, "write_table", _write_stream)
    patch.setattr(pq, "read_table", _read_stream)


def _write_stream(table: pa.Table, sink: Any, **options: Any) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _read_stream(source: Any, **options: Any) -> pa.Table:
    return pa.ipc.open_stream(source).read_all()


def simulate(disk: Disk, workers: executors.Workers | None = None) -> Study:
    """Runs what is left of the study."""
    with locked(PATH, disk):
        chosen = workers or executors.Here(disk)
        return running.run(SCENARIO, PATH, lambda _: chosen, disk=disk)


@functools.cache
def expected() -> dict[str, pd.DataFrame]:
    """Returns the study's tables, from the definition of their rows."""
    found = {}
    for name in TABLES:
        pieces = []
        for run in RUNS:
            columns = rows_of(run, name, run.number)
            if "kind" in columns:
                columns["kind"] = ["COMMIT"] * NUM_ROWS[name]
            pieces.append(pd.DataFrame(columns))
        found[name] = pd.concat(pieces, ignore_index=True)
    return found


def assert_undisturbed(study: Study, whole: Study) -> None:
    """Asserts that a study is the one that nothing has disturbed."""
    assert study.complete
    for name in COLUMNS:
        if not study.arrow(name).equals(whole.arrow(name)):  # in another order, perhaps
            one, other = study.table(name), whole.table(name)
            pd.testing.assert_frame_equal(one, other, check_exact=True)
    told = [
        {key: value for key, value in s.manifest.items() if key not in MADE_ANEW}
        for s in (study, whole)
    ]
    assert told[0] == told[1]
