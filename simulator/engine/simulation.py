"""Joins the world and the numerics: runs in, tables out.

This is the one module that imports both sides.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..files import inputs
from ..files.study import Writer
from ..parts.errors import ScenarioError
from ..parts.functions import UserFunction
from ..problem import sampler
from ..problem.capabilities import SumsOutputs
from ..problem.keys import key_of
from ..problem.numerics import DeviceProblem
from ..problem.own_work import OwnWork
from ..scenario.scenario import Scenario
from ..scenario.study import Run
from . import checking, compiler
from . import execute as execution
from .client_work import Divided
from .execute import Program
from .host import Host
from .kernel import Kernel, Probeable
from .of_run import set_up
from .results import Results
from .row_stream import EvaluationPoint, RowStream
from .runner import Runner
from .setup import RunSetup
from .waves import Waves

SAMPLE_BYTES = 64 * 2**20
"""Most memory for the samples of one buffer of rows."""

COPIES_BYTES = 2 * 2**30
"""Most memory for the copies of the data on the devices that share waves."""

Progress = Callable[[float, int], None]
"""Called with the fraction of a task's virtual horizon that is done, and the commits
that were made since it was started or taken up again."""


@runtime_checkable
class Keeper(Protocol):
    """Keeps the state of runs that take long."""

    def due(self) -> bool:
        """Returns whether it is time to keep it."""
        ...

    def save(self, state: dict[str, PyTree]) -> None:
        """Keeps nested mappings and lists of arrays, numbers and words."""
        ...


@dataclass(frozen=True)
class Prepared(RunSetup):
    """A run with its numerics, ready to be executed.

    Attributes:
        problem: The problem on the device.
        kernel: The algorithm, with its hyper-parameters as arrays.
    """

    problem: DeviceProblem
    kernel: Kernel


def prepare(run: Run) -> Prepared:
    """Builds everything that a run needs.

    Raises:
        ScenarioError: The parts of the scenario do not fit each other or the data.
        DataError: A data file is missing or damaged.
        UserError: This process compiles the run's precision wrongly.
    """
    return prepare_together([run])[0]


def prepare_together(runs: Sequence[Run], batches: int = 0) -> list[Prepared]:
    """Builds everything that runs need which are executed together.

    Args:
        runs: Runs of one structure, of any samples.
        batches: Least number of batches of a job with a place (`Task.batches`).

    Raises:
        ScenarioError, DataError, UserError: As `prepare` does.
    """
    precision = runs[0].scenario.engine.precision
    compiler.check(precision)
    setups = [set_up(run) for run in runs]
    samplers = sampler.alike([setup.sampler for setup in setups], batches)
    # Otherwise data and constants of a run in double precision would be rounded.
    with jax.enable_x64(precision == "float64"):
        prepared = [
            _with_numerics(replace(setup, sampler=sampler))
            for setup, sampler in zip(setups, samplers, strict=True)
        ]
    for run in runs:
        _confirm(run.scenario)
    return prepared


def _with_numerics(setup: RunSetup) -> Prepared:
    scenario, numerics = setup.scenario, setup.learning.numerics
    algorithm, metrics = scenario.algorithm, scenario.evaluate.metrics
    constants = checking.constants(setup)
    numerics.check_functions(metrics)
    problem = numerics.problem(metrics, bias=not isinstance(algorithm, SumsOutputs))
    checking.refuse_coupled_rows(setup)
    checking.refuse_waves(scenario)
    if setup.timeline.answer_log is not None:
        checking.refuse_feedback(setup, setup.timeline.answer_log)
    kernel = algorithm.make(setup, constants)
    if scenario.probe is not None and not isinstance(kernel, Probeable):
        raise ScenarioError(
            f"probe must not be set for the algorithm {algorithm.kind!r}, which does "
            f"not reveal its messages; remove it"
        )
    facts = {field.name: getattr(setup, field.name) for field in fields(setup)}
    return Prepared(**facts, problem=problem, kernel=kernel)


def _confirm(scenario: Scenario) -> None:
    """Refuses files of parts that have changed since the study began.

    Those of the data were confirmed when they were read, for all runs that share them.
    """
    for part, key in (
        (scenario.problem.partition, "problem.partition"),
        (scenario.problem.model, "problem.model"),
        (scenario.algorithm, "algorithm"),
    ):
        inputs.confirm(part, key)


def state_bytes(prepared: Prepared, num_runs: int, *, shared: bool) -> int:
    """Returns the bytes of models, registers and row buffers of equal runs.

    Twice each: a step makes the next state, and a buffer is filled while another one is
    executed.
    """
    start = partial(execution.start, num_registers=prepared.timeline.num_registers)
    with jax.enable_x64(prepared.run.scenario.engine.precision == "float64"):
        carry = jax.eval_shape(
            start, prepared.kernel, prepared.problem, key_of(prepared.run.seed)
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


def execute(
    runs: list[Prepared],
    mode: str,
    writer: Writer,
    progress: Progress = lambda *_: None,
    *,
    keeper: Keeper | None = None,
    saved: dict[str, PyTree] | None = None,
) -> list[dict[str, PyTree]]:
    """Executes some runs together and writes what happened.

    Args:
        runs: several only if `mode` is batched; then all of one structure.
        mode: `stepwise`, `compiled`, `waves`, `batched`, `shared` (batched, on one
            timeline) or `host` (work of the user's own).
        writer: Writer of the tables.
        progress: called with the progress of the runs.
        keeper: keeps the state of the runs every so often.
        saved: state that was kept, to continue from.

    Returns:
        For each run, the manifest's entry on its end.
    """
    since = time.perf_counter() - (saved["elapsed_s"] if saved else 0)
    if mode == "shared" and len({prepared.timeline.digest for prepared in runs}) > 1:
        raise AssertionError(
            "runs that share a timeline must have the same one; this is a defect of "
            "the simulator, please report it"
        )
    results = [Results(prepared, writer) for prepared in runs]
    precision = runs[0].run.scenario.engine.precision
    with jax.enable_x64(precision == "float64"):
        program = _program(runs, mode)
        runner = _runner(runs, program)
        if saved is not None:
            runner.restore(saved["drive"])
            writer.restore(saved["writer"])
            for result, state in zip(results, saved["results"], strict=True):
                result.restore(state)
        before = sum(result.commits for result in results)
        pauses = (lambda: False) if keeper is None else keeper.due

        def tell() -> None:
            part = sum(result.fraction for result in results) / len(results)
            progress(part, sum(result.commits for result in results) - before)

        def passed(run: int, point: EvaluationPoint) -> None:
            results[run].pass_by(point)
            tell()

        for record in runner.records(pauses, passed):
            if record is not None:
                results[record.run].add(record)
                tell()
            elif keeper is not None:
                keeper.save(
                    {
                        "drive": runner.state(),
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
            "devices": program.num_devices,
            "joint": bool(_joined(runs, mode)),
            "batch": len(runs),
            "elapsed_s": elapsed,
            "timeline": prepared.timeline.digest,
            "player": prepared.timeline.made_by,
            **_feedback(prepared),
            "dataset": prepared.shares.data.name,
            "scaling": prepared.shares.data.scaling,
            "num_clients": prepared.timeline.num_clients,
            "protocol": prepared.run.scenario.protocol.kind,
            "algorithm": prepared.run.scenario.algorithm.kind,
        }
        for result, prepared in zip(results, runs, strict=True)
    ]


def _feedback(prepared: Prepared) -> dict[str, PyTree]:
    """Returns why events and numerics alternate, and what a replay needs, if so."""
    timeline, log = prepared.timeline, prepared.timeline.answer_log
    if log is None:
        return {}
    return {
        "feedback": f"{log.why} asks for {' and '.join(log.asks)}",
        "width": timeline.width,
        "num_registers": timeline.num_registers,
    }


def _program(runs: list[Prepared], mode: str) -> Program:
    first = runs[0]
    if mode in ("waves", "host"):
        assert isinstance(first.kernel, Divided)  # a scenario divides no other
        if mode == "host":
            return Host(first.kernel, first.problem, _own_work(first))
        return Waves(first.kernel, first.problem, _devices_of_waves(first))
    kernels = _joined(runs, mode) or [prepared.kernel for prepared in runs]
    kernel, batched = kernels[0], mode in ("batched", "shared")
    if batched:
        kernel = jax.tree.map(lambda *leaves: jnp.stack(leaves), *kernels)
    return Program(
        kernel,
        first.problem,
        batched=batched,
        shared=mode != "batched",
        stepwise=mode == "stepwise",
        short_buffers=first.timeline.answer_log is not None,
    )


def _own_work(prepared: Prepared) -> OwnWork:
    problem = prepared.scenario.problem
    assert problem.work is not None
    return OwnWork(
        UserFunction(problem.work, "problem.work"),
        problem.model.measured_by,
        prepared.shares.data,
        prepared.sampler.steps,
        prepared.run.seed,
    )


def _joined(runs: list[Prepared], mode: str) -> list[Kernel]:
    """Returns kernels that make one gradient of a row; none unless that of all runs do.

    Stepwise, they are made one by one, which is the reference. Devices other than a CPU
    have not been measured.
    """
    if mode not in ("compiled", "batched", "shared") or jax.default_backend() != "cpu":
        return []
    kernels = [
        prepared.kernel.joined(prepared.problem)
        for prepared in runs
        if prepared.timeline.width > 1
        # Last digits may decide who acts next.
        and prepared.timeline.answer_log is None
        and prepared.timeline.cadence.reads_alike
    ]
    found = [kernel for kernel in kernels if kernel is not None]
    if len(found) < len(runs):
        return []
    return [] if any(run.learning.numerics.coupling for run in runs) else found


def _devices_of_waves(prepared: Prepared) -> Sequence[object]:
    data = sum(leaf.nbytes for leaf in jax.tree.leaves(prepared.problem))
    most = min(prepared.timeline.in_flight, COPIES_BYTES // max(data, 1))
    return jax.local_devices()[: max(most, 1)]


def _runner(runs: list[Prepared], program: Program) -> Runner:
    first, shared = runs[0], program.shared
    length = _buffer_rows(first, 1 if shared else len(runs))
    fed = runs[:1] if shared else runs
    feeds = [_row_stream(each, length) for each in fed]
    return Runner(program, feeds, [*runs], length)


def _row_stream(setup: RunSetup, length: int) -> RowStream:
    return RowStream(setup, setup.timeline.chunks(length))
