"""The memory that a study will take, estimated without running it."""

from typing import NamedTuple

import numpy as np

from .planning import Task, processes

PROGRAM = 400 * 2**20
"""Bytes of a process with JAX and its compiled programs; measured, see
docs/performance.md."""


class Estimate(NamedTuple):
    """Bytes that a study will take.

    Attributes:
        processes: Number of processes at the same time.
        process: Bytes of each process for the program itself.
        data: Bytes of each process for the largest data set that it learns from, once
            as it was read and once as it lies on the device.
        state: Bytes of each process for the models, registers and buffers of the
            largest batch.
    """

    processes: int
    process: int
    data: int
    state: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.processes * (self.process + self.data + self.state)


def estimate(tasks: list[Task], jobs: int) -> Estimate:
    """Returns the memory that executing tasks will take.

    Models and registers are counted exactly, from the shapes that their programs have;
    one task of each shape is looked at.

    Args:
        tasks: Tasks of a study whose runs were checked.
        jobs: Number of processes, or 0 for one a core.
    """
    from .. import inputs, simulation
    from .planning import structure

    sizes: dict[tuple[str, int], int] = {}
    data = 0
    for task in tasks:
        scenario = task.runs[0].scenario
        shape = structure(scenario), len(task.runs)
        if shape in sizes:
            continue
        with inputs.held(task.inputs):
            [prepared] = simulation.prepare_together(task.runs[:1], task.batches)
            sizes[shape] = simulation.state_bytes(
                prepared, len(task.runs), shared=task.mode != "batched"
            )
        dataset = prepared.shares.data
        arrays = [part for part in dataset if isinstance(part, np.ndarray)]
        data = max(data, 2 * sum(part.nbytes for part in arrays))
    return Estimate(
        min(processes(jobs), len(tasks)), PROGRAM, data, max(sizes.values(), default=0)
    )
