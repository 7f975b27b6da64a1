"""Many runs: planned into batches by a fixed rule, spread over processes, written."""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.engine import device
from simulator.scenario.problems import Data, Npz
from simulator.scenario.scenario import Scenario
from simulator.scenario.study import Run, expand
from simulator.trace import (
    Study,
    Writer,
    compact,
    git_commit,
    load,
    provenance,
    write_manifest,
)

MOST_RUNS = 64
"""Runs of one batch."""
TINY = 32_768
"""Multiplications of a row's forward pass below which batching runs pays on CPU."""
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "simpy", "equinox", "stalesim")

Progress = Callable[[float], None]
"""Called with the fraction of the whole study that is done."""


class Task(NamedTuple):
    """Runs that one process executes together.

    Attributes:
        mode: `stepwise`, `compiled`, `batched` or `shared` (batched on one timeline).
        runs: several only where the mode is one of the last two.
    """

    mode: str
    runs: tuple[Run, ...]


def structure(scenario: Scenario) -> str:
    """Identifies the program that a run needs; runs that agree in it can be batched."""
    selection = scenario.clients.selection if scenario.clients else None
    parts = {
        "problem": scenario.problem.model_dump(mode="json"),
        "protocol": scenario.protocol.model_dump(mode="json"),
        "in_flight": selection.in_flight if selection else None,
        "algorithm": scenario.algorithm.structure(),
        "step_sizes": [
            getattr(getattr(scenario.algorithm, name, None), "num_values", 0)
            for name in ("step_size", "local_step_size", "server_step_size")
        ],
        "evaluate": scenario.evaluate.model_dump(mode="json"),
        "target": scenario.stop.target,
        "windowed": scenario.stop.model_dump(mode="json")["windowed"],
        "probe": scenario.probe.model_dump(mode="json") if scenario.probe else None,
        "engine": scenario.engine.model_dump(mode="json"),
    }
    return json.dumps(parts, sort_keys=True)


def timeline(run: Run) -> str:
    """Identifies the timeline and the minibatches of a run among one structure."""
    scenario = run.scenario
    clients = scenario.clients.model_dump(mode="json") if scenario.clients else None
    stop = scenario.stop.model_dump(mode="json")
    server = scenario.server.model_dump(mode="json")
    replay = scenario.timeline.model_dump() if scenario.timeline else None
    parts = [run.seed, clients, server, stop, replay]
    if scenario.privacy is not None and scenario.privacy.budget is not None:
        # It ends the timeline, by what a message costs.
        parts += [scenario.privacy.model_dump(), scenario.algorithm.model_dump()]
    return json.dumps(parts, sort_keys=True)


def plan(
    runs: list[Run], *, backend: str, tiny: Callable[[Scenario], bool]
) -> list[Task]:
    """Decides which runs are executed together: a fixed rule, never a stopwatch.

    On a GPU whatever fits together is batched. On CPU runs are batched where they share
    a timeline or the model is tiny; all others are single-threaded runs, spread over
    processes.

    Args:
        runs: of a study.
        backend: JAX's name of the device, `cpu` or another.
        tiny: says whether a scenario's model is.
    """
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        group = groups.setdefault(structure(run.scenario), {})
        group.setdefault(timeline(run), []).append(run)
    tasks: list[Task] = []
    for group in groups.values():
        scenario = next(iter(group.values()))[0].scenario
        mode = scenario.engine.mode
        alone: list[Run] = []
        for same in group.values():
            if len(same) > 1 and mode in ("auto", "batched"):
                tasks += _batches("shared", same)
            else:
                alone += same
        together = mode == "batched" or (
            mode == "auto" and (backend != "cpu" or tiny(scenario))
        )
        if together and len(alone) > 1 and scenario.protocol.kind != "bounded":
            tasks += _batches("batched", alone)
        else:
            single = "stepwise" if mode == "stepwise" else "compiled"
            tasks += [Task(single, (run,)) for run in alone]
    return tasks


def _batches(mode: str, runs: list[Run]) -> list[Task]:
    pieces = (runs[i : i + MOST_RUNS] for i in range(0, len(runs), MOST_RUNS))
    return [Task(mode, tuple(piece)) for piece in pieces]


def planned(scenario: Scenario) -> tuple[list[Run], list[Task]]:
    """Returns the runs of a scenario and how they will be executed.

    Raises:
        UserError: a run's parts do not fit each other or the data.
    """
    device.before_import()
    import jax

    from simulator import simulation

    runs = expand(scenario)
    for run in runs:
        simulation.check(run)
    return runs, plan(
        runs,
        backend=jax.default_backend(),
        tiny=lambda s: simulation.row_work(s) <= TINY,
    )


def simulate(
    scenario: Scenario,
    folder: str | Path | None = None,
    *,
    data: dict[str, np.ndarray] | None = None,
    jobs: int = 1,
    progress: Progress = lambda _: None,
) -> Study:
    """Runs a scenario with all its variants, sweep points and replicates.

    Args:
        scenario: what to simulate.
        folder: new or empty, for the study; by default a temporary one, which lives as
            long as the result.
        data: arrays `x` and `y`, and perhaps `x_test` and `y_test`, to be used in place
            of the scenario's data; kept in the folder, so that the study can be
            repeated.
        jobs: processes that share the runs.
        progress: hears the fraction of the study that is done.

    Returns:
        The study, as `simulator.trace.load` reads it.

    Raises:
        UserError: something in the scenario, the data or the folder is wrong.
    """
    keep = None
    if folder is None:
        keep = tempfile.TemporaryDirectory(prefix="stalesim-")
        folder = keep.name
    path = Path(folder)
    if data is not None:
        scenario = _with_arrays(scenario, data, path)
    runs, tasks = planned(scenario)
    manifest = _manifest(scenario, runs, tasks)
    write_manifest(path, manifest)
    try:
        for ends in _execute(tasks, path, jobs, progress):
            for run, end in ends.items():
                manifest["runs"][run].update(end)
            write_manifest(path, manifest)
    except KeyboardInterrupt:
        manifest["interrupted"] = True
        write_manifest(path, manifest)
        raise
    compact(path)
    manifest["status"] = "complete"
    write_manifest(path, manifest)
    study = load(path)
    study.keep = keep
    return study


def _with_arrays(
    scenario: Scenario, data: dict[str, np.ndarray], folder: Path
) -> Scenario:
    """Writes arrays into the study's folder; returns the scenario that reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "data.npz"
    np.savez_compressed(file, **data)  # pyright: ignore[reportArgumentType]
    problem = scenario.problem
    options = {k: getattr(problem.data, k) for k in Data.model_fields}
    given = Npz(path=str(file.resolve()), **options)
    return scenario.model_copy(
        update={"problem": problem.model_copy(update={"data": given})}
    )


def _execute(
    tasks: list[Task], folder: Path, jobs: int, progress: Progress
) -> Iterator[dict[int, dict[str, Any]]]:
    """Executes the tasks; yields what is to be known of each one's runs."""
    jobs = min(jobs, len(tasks))
    # The longest first, so that no process ends long after the others.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].runs))
    weights = np.array([len(task.runs) for task in tasks]) / sum(
        len(task.runs) for task in tasks
    )
    if jobs == 1:
        done = np.zeros(len(tasks))
        for index in order:

            def hear(fraction: float, index: int = index) -> None:
                done[index] = fraction
                progress(float(done @ weights))

            yield _work(tasks[index], folder, index, hear)
        return
    import joblib

    with tempfile.TemporaryDirectory(prefix="stalesim-") as scratch:
        shared = Path(scratch) / "progress"
        watch = _Watch(shared, weights, progress)
        parallel = joblib.Parallel(
            n_jobs=jobs,
            backend="loky",
            return_as="generator_unordered",
            batch_size=1,  # pyright: ignore[reportArgumentType]
        )
        calls = (
            joblib.delayed(_work_elsewhere)(tasks[i], folder, i, shared) for i in order
        )
        try:
            ends: Any = parallel(calls)
            yield from ends
        finally:
            watch.stop()


class _Watch:
    """Tells how far other processes are, a few times a second.

    Args:
        shared: file to be made, in which the processes note their tasks' fractions.
        weights: of the tasks.
        progress: hears the fraction of all.
    """

    def __init__(self, shared: Path, weights: np.ndarray, progress: Progress) -> None:
        import threading

        self._over = threading.Event()
        self._done: np.ndarray | None = np.memmap(
            shared, np.float64, "w+", shape=weights.shape
        )

        self._thread = threading.Thread(
            target=self._watch, args=(weights, progress), daemon=True
        )
        self._thread.start()

    def _watch(self, weights: np.ndarray, progress: Progress) -> None:
        while not self._over.wait(0.2) and self._done is not None:
            progress(float(self._done @ weights))

    def stop(self) -> None:
        """Stops watching and lets go of the file, so that its folder can be removed."""
        self._over.set()
        self._thread.join()
        self._done = None


def _work_elsewhere(
    task: Task, folder: Path, index: int, shared: Path
) -> dict[int, dict[str, Any]]:
    done = np.memmap(shared, np.float64, "r+")

    def hear(fraction: float) -> None:
        done[index] = fraction

    return _work(task, folder, index, hear)


def _work(
    task: Task, folder: Path, index: int, progress: Progress
) -> dict[int, dict[str, Any]]:
    """Executes one task; returns what is to be known of the end of each of its runs."""
    device.before_import()
    from simulator import simulation

    device.use_cache()
    writer = Writer(folder, f"{index:05d}")
    prepared = [simulation.prepare(run) for run in task.runs]
    ends = simulation.execute(prepared, task.mode, writer, progress)
    writer.flush()
    return {run.number: end for run, end in zip(task.runs, ends, strict=True)}


def _manifest(scenario: Scenario, runs: list[Run], tasks: list[Task]) -> dict[str, Any]:
    import jax

    modes = {run.number: task.mode for task in tasks for run in task.runs}
    return {
        "name": scenario.name,
        "source": scenario.source,
        "question": scenario.question,
        "status": "incomplete",
        "interrupted": False,
        "scenario": scenario.model_dump(mode="json"),
        "runs": [
            {
                "run": run.number,
                "label": run.label,
                "variant": run.variant,
                "parameters": run.parameters,
                "replicate": run.replicate,
                "seed": run.seed,
                "mode": modes[run.number],
                "protocol": run.scenario.protocol.kind,
                "algorithm": run.scenario.algorithm.kind,
                "num_clients": run.scenario.num_clients,
                "stop_reason": "the run has not ended",
                "stop": "incomplete",
                "scenario": run.scenario.model_dump(mode="json"),
            }
            for run in runs
        ],
        "commit": git_commit(),
        **provenance(
            LIBRARIES,
            device=str(jax.devices()[0].device_kind),
            backend=jax.default_backend(),
        ),
    }
