"""The sizes of a study, counted before it is run: memory, models, jobs."""

import numpy as np

from ..parts.errors import counted
from .planning import Task, processes, structure

PROGRAM = 400 * 2**20
"""Bytes of a process with JAX and its compiled programs; measured, see
evidence/pages/speed.md."""


def memory(tasks: list[Task], jobs: int) -> tuple[int, int, int]:
    """Returns the memory that executing tasks will take, next to `PROGRAM`.

    Models and registers are counted exactly, from the shapes that their programs have;
    one task of each shape is looked at.

    Returns:
        Number of processes at the same time; bytes of each for the largest data set of
        its runs, once as it was read and once on the device; and bytes of each for the
        models, registers and buffers of the largest batch.
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
    return min(processes(jobs), len(tasks)), data, max(sizes.values(), default=0)


def sizes(tasks: list[Task]) -> dict[tuple[str, str, str], list[str]]:
    """Returns the distinct sizes of a study's models and jobs, in order.

    Returns:
        Variants that have each size: name of the data, how its features are scaled,
        and a line of words on model and jobs with `{}` for whose they are.
    """
    from ..engine.of_run import set_up
    from ..files import inputs

    of: dict[str, tuple[str, str, str]] = {}
    found: dict[tuple[str, str, str], list[str]] = {}
    for task in tasks:
        scenario = task.runs[0].scenario
        shape = structure(scenario)
        if shape not in of:
            with inputs.held(task.inputs):
                setup = set_up(task.runs[0])
            job, model = setup.timeline.workload, scenario.problem.model
            samples = max(job.own_samples, default=job.samples)
            words = (
                f"model {getattr(model, 'build', model.kind)}{{}}: "
                f"{counted(setup.shape.num_weights, 'weight')}; a job uploads "
                f"{job.upload_bytes:,} bytes, downloads {job.download_bytes:,} and "
                f"uses at most {counted(samples, 'sample')}"
            )
            of[shape] = setup.shares.data.name, setup.shares.data.scaling, words
        mine = found.setdefault(of[shape], [])
        mine += [run.variant for run in task.runs if run.variant not in mine]
    return found
