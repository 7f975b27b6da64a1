"""Runs of small studies, for tests of the numerics; the rest is in `tests.support`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim import simulator
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.files.timeline import Rows
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import Run
from tests.support import Memory, everything, scenario

TINY = """\
name: tiny
problem:
  data: {kind: breast_cancer, scale: standard}
  partition: {kind: iid, clients: 3}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
"""
"""A scenario of some milliseconds; its end, period and variants are yet to be added."""


def tiny_study(factory: pytest.TempPathFactory, rest: str) -> Path:
    """Returns the folder of a study of `TINY`, with the rest of its scenario."""
    place = factory.mktemp("tiny") / "study"
    simulator.simulate(loads(TINY + rest, "tiny.yaml"), place)
    return place


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
