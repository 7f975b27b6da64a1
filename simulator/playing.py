"""From a scenario to the timeline of each of its runs. No JAX in here.

What messages weigh follows from the algorithm's configuration and the shapes of the
data, so that a world is played without any numerics.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from simulator import inputs
from simulator.algorithms.part import ProblemShape
from simulator.config.base import Config
from simulator.config.errors import ScenarioError
from simulator.metrics import metric
from simulator.privacy import ledger
from simulator.privacy.releases import Guarantee
from simulator.problems.data.base import Dataset
from simulator.problems.sampler import Sampler
from simulator.scenario.scenario import Problem, Scenario
from simulator.scenario.setting import WorldScenario
from simulator.scenario.study import Run
from simulator.storage import files
from simulator.streams import Purpose, Streams
from simulator.timelines.base import RunTimeline
from simulator.timelines.replayed import replayed
from simulator.timelines.simulated import SimulatedTimeline
from simulator.world.workload import Workload

MOST_WEIGHTS = 250_000_000
"""Of all clients' models, 1 GB in float32; their registers take as much again."""
MOST_REMEMBERED = 8
"""Data sets and problems that a process keeps."""

OVERLAP = 2**32
"""Position, in the stream of partitions, of the samples that parties have in common."""
KNOWN_MINIMUM = ("softmax", "sigmoid")
"""Losses whose least value is computed for a linear model."""


class Plan(NamedTuple):
    """What a run plays, and the counts and samples that follow from its data.

    Attributes:
        played: its timeline.
        sampler: its minibatches.
        data: that it learns from.
        shape: counts that messages depend on.
        num_features: columns of each client.
        num_samples: rows of each client.
        common: whether the workers of a row share one batch.
    """

    played: RunTimeline
    sampler: Sampler
    data: Dataset
    shape: ProblemShape
    num_features: tuple[int, ...]
    num_samples: tuple[int, ...]
    common: bool


def timeline(run: Run) -> RunTimeline:
    """Returns the timeline of a run of either kind of scenario.

    Raises:
        ScenarioError: the parts of the scenario do not fit each other or the data.
        DataError: a data file is missing or damaged.
    """
    scenario = run.scenario
    if not isinstance(scenario, WorldScenario):
        return plan(run).played
    job = scenario.job
    central = scenario.protocol.pooled
    num_clients = 1 if central else scenario.num_clients
    return SimulatedTimeline(
        clients=_clients(scenario),
        protocol=scenario.protocol,
        num_clients=num_clients,
        seed=run.seed,
        stop=scenario.stop,
        workload=Workload(
            upload_bytes=job.upload_bytes,
            download_bytes=job.download_bytes,
            contributions_per_epoch=num_clients,
            steps=job.steps,
            samples=job.samples,
        ),
        server=scenario.server,
    )


def plan(run: Run) -> Plan:
    """Returns what a run plays, and the counts and samples that it needs.

    Raises:
        ScenarioError: the parts of the scenario do not fit each other or the data.
        DataError: a data file is missing or damaged.
    """
    scenario: Scenario = run.scenario
    config = scenario.problem
    data = dataset(config.data)
    _check_metrics(scenario, data)
    _check_frames(config, data)
    N, P = data.x_train.shape
    central = scenario.protocol.pooled
    num_clients = 1 if central else scenario.num_clients
    common = _common(scenario)
    pools, features = _shares(scenario, data, run.seed)
    smallest = min(pool.size for pool in pools)
    sampler = Sampler(
        run.seed,
        pools,
        scenario.algorithm.batch_size(smallest),
        sampling=scenario.algorithm.sampling,
        steps=scenario.algorithm.batches_per_job,
        common=common,
        by_round=scenario.protocol.batch_per_round,
    )
    outputs = num_outputs(config, data)
    weights = sum(config.model.num_weights(own, outputs) for own in widths(config))
    if weights > MOST_WEIGHTS:
        raise ScenarioError(
            f"problem.model must have at most {MOST_WEIGHTS:,} weights, got "
            f"{weights:,}; make it smaller"
        )
    exchanged = outputs
    if config.transfer is not None:
        exchanged = config.model.hidden * (config.model.hidden + 2)
    shape = ProblemShape(N, P, outputs, num_clients, weights, sampler.size, exchanged)
    num_samples = tuple(pool.size for pool in pools) * (num_clients // len(pools))
    played = _played(scenario, run.seed, shape, sampler, common=common)
    played = replace(played, quota=_quota(scenario, shape, num_samples))
    if scenario.timeline is not None:
        played = replayed(played, scenario.timeline, run)
    return Plan(
        played=played,
        sampler=sampler,
        data=data,
        shape=shape,
        num_features=features,
        num_samples=num_samples,
        common=common,
    )


def promises(
    scenario: Scenario, shape: ProblemShape, num_samples: tuple[int, ...]
) -> tuple[Guarantee, ...]:
    """Returns what one message of each client releases; nothing without noise.

    Args:
        scenario: of the run.
        shape: counts of its problem.
        num_samples: rows of each client.

    Raises:
        UserError: a budget of the noise cannot be reached.
    """
    return scenario.algorithm.guarantees(num_samples, shape.batch, shape.num_weights)


def _check_metrics(scenario: Scenario, data: Dataset) -> None:
    """Refuses metrics that the data or the model do not have.

    Raises:
        ScenarioError: saying which, and what to do.
    """
    problem, metrics = scenario.problem, scenario.evaluate.metrics
    known = problem.model.is_linear and loss(problem, data) in KNOWN_MINIMUM
    for name in metrics:
        metric(name).refuse(data.num_classes, data.name, minimum=known)


def _check_frames(config: Problem, data: Dataset) -> None:
    """Refuses models that do not have as many frames as the data's rows.

    Raises:
        ScenarioError: saying what fits.
    """
    model, frames = config.model, data.num_frames
    if frames is not None and config.partition.family != "horizontal":
        raise ScenarioError(
            f"problem.partition.kind must be one by rows for {data.name}, whose "
            f"columns are {frames} frames, got {config.partition.kind!r}; take iid"
        )
    own = model.frames if model.sequential else None
    if frames is None and own is not None:
        raise ScenarioError(
            f"problem.model.kind must be for one class a row, as {data.name} has it, "
            f"got {model.kind!r}; take linear, or the data speech"
        )
    if frames is not None and own is None:
        raise ScenarioError(
            f"problem.model.kind must be sequential for {data.name}, each of whose "
            f"rows has {frames} frames with classes of their own, got {model.kind!r}; "
            "take lstm"
        )
    if own != frames:
        raise ScenarioError(
            f"problem.model.frames must be the {frames} of problem.data.frames, got "
            f"{own}; change one of them"
        )


def _quota(
    scenario: Scenario, shape: ProblemShape, num_samples: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Returns how many messages each client may send, if that is limited."""
    privacy = scenario.privacy
    if privacy is None or privacy.budget is None:
        return None
    first = privacy.names(scenario.algorithm.noise_law or "")[0]
    made = promises(scenario, shape, num_samples)
    return ledger.limits(made, first, privacy.delta, privacy.budget)


def remembered(build: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps the last few results of a function of a configuration, by its content.

    What its data are read from belongs to that.
    """
    results: dict[Any, Any] = {}

    @wraps(build)
    def remembering(config: Config, *rest: Any, **options: Any) -> Any:
        content = type(config).__name__, config.model_dump_json()
        read = inputs.state(config)
        key = (*content, read, rest, tuple(sorted(options.items())))
        if key not in results:
            while len(results) >= MOST_REMEMBERED:
                results.pop(next(iter(results)))
            results[key] = build(config, *rest, **options)
        return results[key]

    return remembering


@remembered
def dataset(config: Any) -> Dataset:
    """Returns the data of a configuration, once for all runs that share it.

    Raises:
        DataError: a file is missing, damaged, or has changed since the study began.
    """
    with files.noted() as read:
        data = config.make()
    inputs.confirm(config, "problem.data", read)
    return data


def loss(
    config: Problem, data: Dataset
) -> Literal["softmax", "sigmoid", "hinge", "taylor"]:
    """Returns the loss that a problem says, or that its classes call for.

    Raises:
        ScenarioError: it is one for two classes, and there are more.
    """
    if config.loss in ("sigmoid", "taylor") and data.num_classes > 2:
        raise ScenarioError(
            f"problem.loss must be softmax for {data.num_classes} classes, "
            f"got {config.loss}; leave it out"
        )
    if config.loss != "auto":
        return config.loss
    return "sigmoid" if data.num_classes == 2 else "softmax"


def num_outputs(config: Problem, data: Dataset) -> int:
    """Returns how many logits a sample has: one per class, or one for two classes.

    Only `softmax` has two for two classes.
    """
    one = data.num_classes == 2 and loss(config, data) != "softmax"
    return 1 if one else data.num_classes


def widths(config: Problem) -> tuple[int, ...]:
    """Returns how many columns each model is applied to: a party's, or all of them."""
    data = dataset(config.data)
    if config.partition.family == "horizontal":
        return (data.x_train.shape[1],)
    columns = config.partition.make(data)
    return tuple(part.size for part in columns)


def _shares(
    scenario: Scenario, data: Dataset, seed: int
) -> tuple[list[Int[np.ndarray, " _"]], tuple[int, ...]]:
    """Returns who holds which samples, and how many columns each client holds."""
    N, P = data.x_train.shape
    partition = scenario.problem.partition
    if scenario.protocol.pooled:
        return [np.arange(N)], (P,)
    if partition.family == "vertical":
        columns = partition.make(data)
        samples = common_samples(scenario.problem, N)
        return [samples], tuple(part.size for part in columns)
    pools = partition.make(data, seed)
    return pools, (P,) * len(pools)


def common_samples(config: Problem, num_samples: int) -> Int[np.ndarray, " n"]:
    """Returns the samples that all parties of a vertical problem hold.

    All of them, but in transfer learning, where a random set overlaps; like the
    division into training and test rows, it is fixed by `split_seed`.
    """
    if config.transfer is None:
        return np.arange(num_samples)
    size = max(1, round(config.transfer.overlap * num_samples))
    draw = Streams(config.data.split).at(Purpose.PARTITION, OVERLAP, 0)
    return np.sort(draw.permutation(num_samples)[:size])


def mixing(scenario: Scenario, seed: int) -> Float[np.ndarray, "Q K K"] | None:
    """Returns by which matrices gossip mixes all models, in turn; None in pairs."""
    streams = Streams(seed)
    return scenario.protocol.mixing(
        scenario.num_clients,
        lambda number: streams.at(Purpose.GRAPH, 0, number),
        pushes=scenario.algorithm.pushes,
    )


def _common(scenario: Scenario) -> bool:
    """Says whether the workers of a row share one batch."""
    if scenario.algorithm.samples is not None:
        return scenario.algorithm.samples == "common"
    meets = scenario.protocol.common_batch
    return meets and scenario.algorithm.family == "vertical"


def _played(
    scenario: Scenario,
    seed: int,
    shape: ProblemShape,
    sampler: Sampler,
    *,
    common: bool,
) -> SimulatedTimeline:
    messages = scenario.algorithm.messages(shape, common=common)
    size = {
        way: sum(m.bytes for m in messages if m.direction == way)
        for way in ("up", "down")
    }
    central = scenario.protocol.pooled
    clients = shape.num_clients
    looks = scenario.protocol.refresh_bound > 0 and scenario.algorithm.uploads_batch
    vertical = scenario.algorithm.family == "vertical"
    steps = scenario.algorithm.steps_per_job
    return SimulatedTimeline(
        clients=_clients(scenario),
        protocol=scenario.protocol,
        num_clients=clients,
        seed=seed,
        stop=scenario.stop,
        workload=Workload(
            upload_bytes=0 if central else size["up"],
            download_bytes=0 if central else size["down"],
            contributions_per_epoch=(clients if vertical else 1)
            * (sampler.num_samples if vertical else shape.num_samples)
            / (shape.batch * scenario.algorithm.batches_per_job),
            steps=steps,
            samples=shape.batch * steps,
            overhead_s=0 if central else scenario.algorithm.overhead_s(shape),
        ),
        batch=sampler.batch if looks else None,
        num_samples=shape.num_samples,
        samples_key=f"{shape.num_samples}/{shape.batch}" if looks else "",
        server=scenario.server,
    )


def _clients(scenario: Any) -> Any:
    return None if scenario.protocol.pooled else scenario.clients
