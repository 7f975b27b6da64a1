"""Runs of small studies, for tests of the numerics; the rest is in `tests.support`."""

from typing import Any

import numpy as np

from simulator import simulation
from simulator.scenario.study import Run
from simulator.simulation import Prepared, prepare
from simulator.timeline import Rows
from tests.support import Memory, everything, scenario


def prepared(*changes: dict[str, Any], seed: int = 1, number: int = 0) -> Prepared:
    """Returns everything that a run of the small study needs."""
    return prepare(Run(number, "base", {}, 0, seed, scenario(*changes)))


def execute(runs: list[Prepared], mode: str = "compiled") -> tuple[Memory, list[dict]]:
    """Executes runs together; returns their tables and their ends."""
    memory = Memory()
    ends = simulation.execute(runs, mode, memory)  # pyright: ignore
    return memory, ends


def rows_of(plan: Prepared) -> tuple[Rows, np.ndarray]:
    """Returns all rows of a run and their samples."""
    rows, _, _ = everything(plan.timeline)
    return rows, plan.sampler.attach(rows)
