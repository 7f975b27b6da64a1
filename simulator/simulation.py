"""Joins the world and the numerics: runs in, tables out.

This is the one module that knows both sides.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from simulator import inputs, playing
from simulator.algorithms.base import Algorithm, Context, Revealing
from simulator.algorithms.part import ProblemShape
from simulator.algorithms.step_rules import Constants, resolve
from simulator.config.errors import ScenarioError
from simulator.engine import compiler
from simulator.engine import execute as execution
from simulator.engine.drive import Drive, Target, Window
from simulator.engine.execute import Program
from simulator.engine.feed import Feed, Source
from simulator.metrics import Need, metric
from simulator.privacy.ledger import Ledger
from simulator.privacy.releases import Guarantee
from simulator.problems import convex, horizontal, losses, transfer, vertical
from simulator.problems.estimates import Estimates, estimate
from simulator.problems.sampler import Sampler
from simulator.results import Results
from simulator.scenario.scenario import Problem, Scenario
from simulator.scenario.study import Run
from simulator.streams import Purpose
from simulator.timelines import cached
from simulator.timelines.base import RunTimeline
from simulator.trace import Writer

SAMPLE_BYTES = 64 * 2**20
"""Most memory for the samples of one buffer of rows."""

Progress = Callable[[float], None]
"""Called with the fraction of a task's virtual horizon that is done."""


@runtime_checkable
class Keeper(Protocol):
    """Keeps the state of runs that take long."""

    def due(self) -> bool:
        """Says whether it is time to keep it."""
        ...

    def save(self, state: dict[str, Any]) -> None:
        """Keeps nested mappings and lists of arrays, numbers and words."""
        ...


@dataclass(frozen=True)
class Prepared:
    """Everything that one run needs, built from its scenario.

    Attributes:
        run: which of the study.
        played: its timeline.
        sampler: its minibatches.
        algorithm: with its hyper-parameters as arrays.
        problem: on the device.
        dataset: name of the data.
        shape: counts that messages depend on.
        num_features: columns of each client.
        num_samples: rows of each client.
        samples: shape of a row's samples, `V` and `S`.
        uploads_all: whether an upload carries all samples.
    """

    run: Run
    played: RunTimeline
    sampler: Sampler
    algorithm: Algorithm
    problem: Any
    dataset: str
    shape: ProblemShape
    num_features: tuple[int, ...]
    num_samples: tuple[int, ...]
    samples: tuple[int, int]
    uploads_all: bool


@playing.remembered
def _problem(
    config: Problem, precision: str, *, with_minimum: bool, bias: bool = True
) -> Any:
    """Builds a problem and puts it on the device, once for all runs that share it."""
    data = playing.dataset(config.data)
    loss: losses.Loss = playing.loss(config, data)
    outputs = playing.num_outputs(config, data)
    least = float("nan")
    if with_minimum:
        x, y = data.x_train, data.y_train
        least = convex.minimum(x, y, loss, outputs, config.l2, bias=bias)
    options = {
        "loss": loss,
        "reduction": config.reduction,
        "l2": config.l2,
        "minimum": least,
        "dtype": precision,
    }
    if config.partition.family == "vertical":
        columns = config.partition.make(data)
        width = max(part.size for part in columns)
        family = "transfer" if config.transfer else "vertical"
        embedding = config.model.make(outputs, width, family)
        found = vertical.build(data, columns, embedding, **options)
        if config.transfer is None:
            return found
        common = playing.common_samples(config, len(data.x_train))
        alpha = jnp.asarray(config.transfer.alpha, precision)
        return transfer.Transfer(found, jnp.asarray(common), alpha)
    classifier = config.model.make(outputs, data.x_train.shape[1], "horizontal")
    clients = config.partition.num_clients
    return horizontal.build(data, classifier, clients, **options)


def _constants(config: Problem, *, bias: bool) -> Constants:
    """Returns what is known of a convex objective; little of others."""
    partition = config.partition
    data = playing.dataset(config.data)
    loss = playing.loss(config, data)
    if not config.model.is_linear or loss == "hinge":
        return Constants(num_clients=partition.num_clients)
    return Constants(
        smoothness=lambda: _smoothness(config, bias=bias),
        strong_convexity=config.l2 or None,
        num_clients=partition.num_clients,
        of_parties=lambda: _smoothness_of_parties(config),
    )


@playing.remembered
def _smoothness(config: Problem, *, bias: bool) -> float:
    """Returns L of a convex objective; an eigenvalue of its features."""
    data = playing.dataset(config.data)
    loss = playing.loss(config, data)
    return convex.smoothness(data.x_train, loss, config.l2, bias=bias)


@playing.remembered
def _smoothness_of_parties(config: Problem) -> tuple[float, ...]:
    """Returns L_k of each party's block; nothing where there are no parties."""
    partition = config.partition
    if partition.family != "vertical":
        return ()
    data = playing.dataset(config.data)
    loss = playing.loss(config, data)
    columns = partition.make(data)
    return convex.smoothness_of_parties(data.x_train, columns, loss, config.l2)


@playing.remembered
def _estimates(config: Problem, precision: str, seed: int) -> Estimates:
    """Measures a horizontal problem's constants where a run of this seed starts."""
    problem = _problem(config, precision, with_minimum=False)
    return estimate(problem, key_of(seed))


def prepare(run: Run) -> Prepared:
    """Builds everything that a run needs.

    Raises:
        ScenarioError: the parts of the scenario do not fit each other or the data.
        DataError: a data file is missing or damaged.
        UserError: this process compiles the run's precision wrongly.
    """
    compiler.check(run.scenario.engine.precision)
    # Otherwise data and constants of a run in double precision would be rounded.
    with jax.enable_x64(run.scenario.engine.precision == "float64"):
        return _prepare(run)


def _prepare(run: Run) -> Prepared:
    scenario: Scenario = run.scenario
    config, algorithm = scenario.problem, scenario.algorithm
    plan = playing.plan(run)
    played, common = plan.played, plan.common
    N, batch = plan.shape.num_samples, plan.shape.batch
    needed = {need for m in scenario.evaluate.metrics for need in metric(m).needs}
    wants_minimum = Need.MINIMUM in needed
    precision = scenario.engine.precision
    problem = _problem(
        config, precision, with_minimum=wants_minimum, bias=algorithm.has_bias
    )
    fresh = algorithm.family == "vertical" and common
    fresh = fresh and scenario.protocol.common_batch
    horizontally = algorithm.family == "horizontal"
    context = Context(
        num_registers=played.num_registers,
        num_clients=played.num_clients,
        num_weights=plan.shape.num_weights,
        num_noised=problem.model.num_noised if horizontally else 0,
        num_samples=N,
        num_each=plan.num_samples,
        batch=batch,
        coordinated=fresh,
        transfers=config.transfer is not None,
        bound=scenario.protocol.refresh_bound,
        constants=_constants(config, bias=algorithm.has_bias)._replace(
            commits_per_epoch=played.commits_per_epoch
        ),
        estimates=lambda: _estimates(config, precision, run.seed),
        mixing=playing.mixing(scenario, run.seed),
    )
    made = algorithm.make(context)
    for part, key in (
        (config.partition, "problem.partition"),
        (config.model, "problem.model"),
        (algorithm, "algorithm"),
    ):
        inputs.confirm(part, key)
    if scenario.probe is not None and not isinstance(made, Revealing):
        raise ScenarioError(
            f"probe must not be set for the algorithm {algorithm.kind!r}, which does "
            f"not reveal its messages; remove it"
        )
    return Prepared(
        run=run,
        played=played,
        sampler=plan.sampler,
        algorithm=made,
        problem=problem,
        dataset=plan.data.name,
        shape=plan.shape,
        num_features=plan.num_features,
        num_samples=plan.num_samples,
        samples=(1 if common else played.width, plan.sampler.width),
        uploads_all=algorithm.uploads_all and not fresh,
    )


def check(run: Run) -> None:
    """Finds what is wrong with a run before anything is executed.

    Raises:
        ScenarioError: the parts of the scenario do not fit each other or the data.
        DataError: a data file is missing or damaged.
        UserError: this process compiles the run's precision wrongly.
    """
    scenario: Scenario = run.scenario
    compiler.check(scenario.engine.precision)
    plan = playing.plan(run)
    _ledger(scenario, playing.promises(scenario, plan.shape, plan.num_samples))
    if scenario.algorithm.step_size is not None:
        bias = scenario.algorithm.has_bias
        known = _constants(scenario.problem, bias=bias)._replace(
            commits_per_epoch=plan.played.commits_per_epoch
        )
        resolve(scenario.algorithm.step_size, known)


def state_bytes(prepared: Prepared, num_runs: int, *, shared: bool) -> int:
    """Returns the bytes of models, registers and buffers of rows of runs alike.

    Twice each: a step makes the next state, and a buffer is filled while another one is
    executed.

    Args:
        prepared: one of the runs.
        num_runs: that are executed together.
        shared: whether they have the same rows.
    """
    start = partial(execution.start, num_registers=prepared.played.num_registers)
    with jax.enable_x64(prepared.run.scenario.engine.precision == "float64"):
        carry = jax.eval_shape(
            start, prepared.algorithm, prepared.problem, key_of(prepared.run.seed)
        )
    leaves = jax.tree.leaves(carry)
    one = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    copies = 1 if shared else num_runs
    rows = 4 * math.prod(prepared.samples) * _buffer_rows(prepared, copies) * copies
    return 2 * (num_runs * one + rows)


def _buffer_rows(prepared: Prepared, copies: int) -> int:
    """Returns the rows of a buffer, which is fewer where their samples are many."""
    row_bytes = 4 * math.prod(prepared.samples) * copies
    return max(16, min(prepared.run.scenario.engine.chunk, SAMPLE_BYTES // row_bytes))


def key_of(seed: int) -> jax.Array:
    """Returns the key of all numerics of a run."""
    return jax.random.fold_in(jax.random.key(seed), len(Purpose))


def execute(
    runs: list[Prepared],
    mode: str,
    writer: Writer,
    progress: Progress = lambda _: None,
    *,
    timelines: Path | None = None,
    keeper: Keeper | None = None,
    saved: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Executes some runs together and writes what happened.

    Args:
        runs: several only if `mode` is batched; then all of one structure.
        mode: `stepwise`, `compiled`, `batched` or `shared` (batched, on one timeline).
        writer: of the tables.
        progress: hears how far the runs are.
        timelines: folder in which timelines are kept for other runs, if any share them.
        keeper: keeps the state of the runs every so often.
        saved: state that was kept, to go on from.

    Returns:
        For each run, what the manifest says of its end.
    """
    since = time.perf_counter() - (saved["elapsed_s"] if saved else 0)
    if mode == "shared" and len({prepared.played.digest for prepared in runs}) > 1:
        raise AssertionError(
            "runs that share a timeline must have the same one; this is a defect of "
            "the simulator, please report it"
        )
    results = [_results(prepared, writer) for prepared in runs]
    precision = runs[0].run.scenario.engine.precision
    with jax.enable_x64(precision == "float64"):
        drive = _drive(runs, mode, timelines)
        if saved is not None:
            drive.restore(saved["drive"])
            writer.restore(saved["writer"])
            for result, state in zip(results, saved["results"], strict=True):
                result.restore(state)
        pauses = (lambda: False) if keeper is None else keeper.due
        for record in drive.records(pauses):
            if record is not None:
                results[record.run].add(record)
                progress(sum(result.fraction for result in results) / len(results))
            elif keeper is not None:
                keeper.save(
                    {
                        "drive": drive.state(),
                        "results": [result.state() for result in results],
                        "writer": writer.state(),
                        "elapsed_s": time.perf_counter() - since,
                    }
                )
    elapsed = (time.perf_counter() - since) / len(runs)
    return [
        {
            **result.finish(),
            "mode": mode,
            "batch": len(runs),
            "elapsed_s": elapsed,
            "timeline": prepared.played.digest,
            "dataset": prepared.dataset,
            "num_clients": prepared.played.num_clients,
            "protocol": prepared.run.scenario.protocol.kind,
            "algorithm": prepared.run.scenario.algorithm.kind,
        }
        for result, prepared in zip(results, runs, strict=True)
    ]


def _results(prepared: Prepared, writer: Writer) -> Results:
    scenario, shape = prepared.run.scenario, prepared.shape
    guarantees = playing.promises(scenario, shape, prepared.num_samples)
    return Results(
        run=prepared.run.number,
        played=prepared.played,
        num_parties=prepared.run.scenario.num_clients,
        num_features=prepared.num_features,
        num_samples=prepared.num_samples,
        sampling_ratio=1.0 if prepared.uploads_all else shape.batch / shape.num_samples,
        perturbation=scenario.algorithm.embedding_noise,
        writer=writer,
        guarantees=guarantees,
        ledger=_ledger(scenario, guarantees),
    )


def _ledger(scenario: Scenario, guarantees: tuple[Guarantee, ...]) -> Ledger | None:
    """Returns what accounts for the messages, if anything does."""
    privacy = scenario.privacy
    if privacy is None:
        return None
    names = privacy.names(scenario.algorithm.noise_law or "")
    return Ledger(guarantees, names, privacy.delta)


def _drive(runs: list[Prepared], mode: str, timelines: Path | None = None) -> Drive:
    first = runs[0]
    scenario = first.run.scenario
    batched = mode in ("batched", "shared")
    shared = mode != "batched"
    algorithm = first.algorithm
    keys = jnp.stack([key_of(prepared.run.seed) for prepared in runs])
    if batched:
        algorithms = [prepared.algorithm for prepared in runs]
        algorithm = jax.tree.map(lambda *leaves: jnp.stack(leaves), *algorithms)
    length = _buffer_rows(first, 1 if shared else len(runs))
    played = runs[:1] if shared else runs
    feeds = [_feed(prepared, length, timelines) for prepared in played]
    target, windowed = scenario.stop.target, scenario.stop.windowed
    return Drive(
        Program(
            algorithm,
            first.problem,
            batched=batched,
            shared=shared,
            stepwise=mode == "stepwise",
        ),
        feeds,
        keys if batched else keys[0],
        num_registers=first.played.num_registers,
        width=first.played.width,
        samples=first.samples,
        metrics=scenario.evaluate.metrics,
        length=length,
        num_runs=len(runs),
        target=Target(*next(iter(target.items()))) if target else None,
        window=Window(windowed.column, windowed.below, windowed.commits)
        if windowed
        else None,
        probe=scenario.probe.what if scenario.probe else (),
    )


def _feed(prepared: Prepared, length: int, timelines: Path | None = None) -> Feed:
    played = prepared.played
    source = Source(
        chunks=played.chunks(length)
        if timelines is None
        else cached.chunks(played, length, timelines),
        width=played.width,
        contributions_per_epoch=played.workload.contributions_per_epoch,
        horizon=played.stop.time,
        commits_per_round=played.cadence.commits_per_round,
        uploads_of_all=played.uploads_per_mixing,
        rounds_end_mixed=played.cadence.ends_mixed,
    )
    scenario = prepared.run.scenario
    probe = scenario.probe.every if scenario.probe else None
    return Feed(source, prepared.sampler, scenario.evaluate.every, probe)
