"""The sizes of a study, counted before it is run: memory, models, jobs."""

from typing import NamedTuple

import numpy as np

from .planning import Task, processes, structure

PROGRAM = 400 * 2**20
"""Bytes of a process with JAX and its compiled programs; measured, see
docs/performance.md."""


class MemoryEstimate(NamedTuple):
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


def memory(tasks: list[Task], jobs: int) -> MemoryEstimate:
    """Returns the memory that executing tasks will take.

    Models and registers are counted exactly, from the shapes that their programs have;
    one task of each shape is looked at.

    Args:
        tasks: Tasks of a study whose runs were checked.
        jobs: Number of processes, or 0 for one a core.
    """
    from ..engine import simulation
    from ..files import inputs

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
    return MemoryEstimate(
        min(processes(jobs), len(tasks)), PROGRAM, data, max(sizes.values(), default=0)
    )


class ModelSize(NamedTuple):
    """What is counted of a model and a job.

    Attributes:
        data: Name of the data.
        scaling: Words on how its features are scaled.
        model: Kind of the model, or the name of the user's own.
        num_weights: Weights of all models together.
        upload_bytes: Bytes of a client's message to the server.
        download_bytes: Bytes of the server's message to a client.
        samples: Samples of a job; of the longest one, where clients differ.
        variants: Those that have it.
    """

    data: str
    scaling: str
    model: str
    num_weights: int
    upload_bytes: int
    download_bytes: int
    samples: int
    variants: tuple[str, ...] = ()


def sizes(tasks: list[Task]) -> list[ModelSize]:
    """Returns the distinct sizes of a study's models and jobs, in order.

    Args:
        tasks: Tasks of a study whose runs were checked.
    """
    from ..engine.of_run import set_up
    from ..files import inputs

    found: dict[str, ModelSize] = {}
    whose: dict[str, list[str]] = {}
    for task in tasks:
        scenario = task.runs[0].scenario
        shape = structure(scenario)
        whose.setdefault(shape, []).extend(run.variant for run in task.runs)
        if shape in found:
            continue
        with inputs.held(task.inputs):
            setup = set_up(task.runs[0])
        job, model = setup.timeline.workload, scenario.problem.model
        found[shape] = ModelSize(
            setup.shares.data.name,
            setup.shares.data.scaling,
            getattr(model, "build", model.kind),
            setup.shape.num_weights,
            job.upload_bytes,
            job.download_bytes,
            max(job.own_samples, default=job.samples),
        )
    of: dict[ModelSize, list[str]] = {}
    for shape, size in found.items():
        of.setdefault(size, []).extend(whose[shape])
    return [
        size._replace(variants=tuple(dict.fromkeys(names)))
        for size, names in of.items()
    ]
