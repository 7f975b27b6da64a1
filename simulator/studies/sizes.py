"""The sizes of a study's models and jobs, as they are counted before it is run."""

from typing import NamedTuple

from .planning import Task


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
        flops: Operations of the gradient of one sample, of all clients or each party.
        server_flops: The same of the server; 0 where rows are divided.
        variants: Those that have it.
    """

    data: str
    scaling: str
    model: str
    num_weights: int
    upload_bytes: int
    download_bytes: int
    samples: int
    flops: tuple[int, ...]
    server_flops: int
    variants: tuple[str, ...] = ()


def sizes(tasks: list[Task]) -> list[ModelSize]:
    """Returns the distinct sizes of a study's models and jobs, in order.

    Args:
        tasks: Tasks of a study whose runs were checked.
    """
    from .. import inputs
    from ..timelines.of_run import set_up
    from .planning import structure

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
            counted = setup.learning.numerics.work
        job, model = setup.timeline.workload, scenario.problem.model
        found[shape] = ModelSize(
            setup.shares.data.name,
            setup.shares.data.scaling,
            getattr(model, "build", model.kind),
            setup.shape.num_weights,
            job.upload_bytes,
            job.download_bytes,
            max(job.own_samples, default=job.samples),
            counted.clients,
            counted.server,
        )
    of: dict[ModelSize, list[str]] = {}
    for shape, size in found.items():
        of.setdefault(size, []).extend(whose[shape])
    return [
        size._replace(variants=tuple(dict.fromkeys(names)))
        for size, names in of.items()
    ]
