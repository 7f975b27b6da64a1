"""Executes a study: begins it, continues one that was interrupted, or extends it."""

import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..catalogue.data.arrays import by_name
from ..catalogue.data.own_arrays import Npz
from ..files import inputs
from ..files.reading import files
from ..files.reading.archive import packed
from ..files.study import DISK, Disk, Study, StudyWarning, is_world, load, program
from ..files.study.disk import explained, locked, replace
from ..parts import functions
from ..parts.errors import (
    ScenarioError,
    StudyError,
    check_folder,
    check_type,
    one_line,
)
from ..problem.data.parts import Data
from ..scenario import overrides
from ..scenario.reading import read, validated
from ..scenario.scenario import Scenario
from ..scenario.study import expand
from ..scenario.synonyms import Synonyms
from ..scenario.tuning import refuse_untuned
from . import executors, origins, planning, staged
from .executors import FAILURES, Workers
from .planning import CHECKPOINTS, DATA, LOCKS, OPEN, Task, claims_of
from .progress import Progress, Stages, StudyProgress, bar, silent
from .study_folder import StudyFolder, refuse_others

NAMES = ("x", "y", "x_test", "y_test")
"""Arrays, in the order of a tuple of them."""
Given = Mapping[str, Any] | Sequence[Any]
"""Arrays by their names, or in the order of `NAMES`; several inputs by name."""


def with_objects(
    scenario: Scenario,
    *,
    model: object = None,
    loss: object = None,
    server: object = None,
    work: object = None,
    weights: object = None,
    evaluate: object = None,
) -> Scenario:
    """Returns a scenario that names objects of this program, as `simulate` takes them.

    Raises:
        UserError: An object is missing, cannot be identified, or does not fit the
            scenario.
    """
    changes = _of_work(work, weights, evaluate)
    if model is not None and "model" in changes:
        raise ScenarioError(
            "model must be left out with weights, which take its place, got both; "
            "remove one of them"
        )
    if model is not None:
        named = functions.hand_over("model", model)
        changes["model"] = {"kind": "python", "build": named}
    if loss is not None:
        own = callable(loss)
        changes["loss"] = functions.hand_over("loss", loss) if own else loss
    if server is not None:
        had = scenario.problem.server
        if had is None:
            raise ScenarioError(
                "problem.server is missing; the model of a server needs problem.server "
                "in the scenario: {width: NUMBER}, what a party sends of a sample"
            )
        named = functions.hand_over("server", server)
        changes["server"] = {"width": had.width, "views": had.views, "build": named}
    tree = _entries(scenario)
    return validated({**tree, "problem": {**tree["problem"], **changes}})


def _of_work(work: object, weights: object, evaluate: object) -> dict[str, object]:
    """Returns the entries of a problem that name the functions of clients' work."""
    if weights is None:
        weights = getattr(work, "weights", None)
    if evaluate is None:
        evaluate = getattr(work, "evaluate", None)
    alone = work is None and weights is not None
    if alone or (weights is None) != (evaluate is None):
        raise ScenarioError(
            "work, weights and evaluate must be given together for a model that is "
            "none of the scenario's, or work alone; add what is missing"
        )
    if work is None:
        return {}
    found: dict[str, object] = {"work": functions.hand_over("work", work)}
    if weights is not None:
        own = {"weights": weights, "evaluate": evaluate}
        named = {k: functions.hand_over(k, each) for k, each in own.items()}
        found["model"] = {"kind": "vector", **named}
    return found


def with_data(scenario: Mapping[str, object]) -> Mapping[str, object]:
    """Returns a scenario as a mapping with an entry for data that take its place.

    Options of `problem.data` without a kind, such as their scale, are kept.
    """
    problem = scenario.get("problem")
    if not isinstance(problem, Mapping):
        return scenario
    told = problem.get("data", {})
    if not isinstance(told, Mapping) or "kind" in told:
        return scenario
    data = {"kind": "npz", "path": DATA, **told}
    return {**scenario, "problem": {**problem, "data": data}}


def arrays(given: Given) -> dict[str, np.ndarray]:
    """Returns arrays by their names in a file, several inputs as `x/NAME`.

    Raises:
        ScenarioError: They are neither two nor four, or have other names.
    """
    if not isinstance(given, Mapping):
        check_type("data", given, list | tuple, "arrays x and y, such as (x, y)")
        if len(given) not in (2, 4):
            raise ScenarioError(
                f"data must be x and y, or {', '.join(NAMES)}, got {len(given)} "
                f"arrays; give them by name"
            )
        given = dict(zip(NAMES, given, strict=False))
    return by_name(given)


Source = Scenario | str | Path | Mapping[str, object]
"""A scenario, its file, or its entries as nested mappings."""
CHECKPOINT_S = 300.0
"""Real seconds from one keeping of a run's state to the next."""


def simulate(
    scenario: Source,
    folder: str | Path | None = None,
    *,
    replace: Mapping[str, object] | None = None,
    replicates: int | None = None,
    data: Given | None = None,
    model: object = None,
    loss: object = None,
    server: object = None,
    work: object = None,
    weights: object = None,
    evaluate: object = None,
    jobs: int = 1,
    progress: Progress | None = None,
    checkpoint_s: float | None = CHECKPOINT_S,
    until_decided: staged.Decided | None = None,
    most: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Study:
    """Runs a scenario with all its variants, sweep points and replicates.

    Runs that are in the folder already are not repeated, so that a study which was
    interrupted is continued, and one that has more replicates, variants or points than
    before is extended. Objects that are handed over are known by their content: two
    functions of equal code and equal captured values are one. A run that fails leaves
    the others alone; its `stop` is then `failed`, with a `stop_reason`.

    Args:
        scenario: Scenario to simulate.
        folder: Folder for the study; by default a temporary one, which lives as long
            as the result.
        replace: Entries that take the place of the scenario's, by dotted keys, such as
            `{"clients.number": 8, "sweep.algorithm.learning_rate": [0.1, 0.2]}`; None
            removes one.
        replicates: Replicates of every group; by default the scenario's.
        data: Arrays `x` and `y`, optionally `x_test` and `y_test`, by name or in this
            order, used in place of the scenario's data; kept in the folder, so that the
            study can be repeated. A mapping in place of `x` is of several inputs. They
            are not scaled unless the scenario says so: `problem.data` may have `scale`,
            `limit`, ... without a `kind`.
        model: JAX model in place of the scenario's: a function that makes one, a pair
            of functions `init` and `apply`, or a module of Equinox or Flax.
        loss: Loss in place of the scenario's: a function of outputs and targets, rows
            first, to a loss of each row; or the name of one.
        server: JAX model in place of the network at the server of vertical learning, as
            `model`; its rows are the parties' messages for a sample.
        work: Function that computes the clients' gradients in any framework, in place
            of the scenario's model. It takes `weights`, `client`, `job` and `rows`
            (`problem.own_work.JobRows`), and returns a message (the sum of the
            gradients of the job's batches) and a mapping with `loss`. Its attributes
            `weights` and `evaluate`, where it has them, as `stalesim.torch.worker`
            does, are the defaults of the next two.
        weights: Weights at the start, where the scenario has no model: a vector, or a
            function of a seed.
        evaluate: Function from weights and test rows to metrics by name, likewise.
        jobs: Number of processes that share the runs; 0 for one a core.
        progress: Callback that receives a `studies.progress.StudyProgress`; by default
            a bar in a notebook or terminal, and nothing elsewhere.
        checkpoint_s: Real seconds after which the state of a run is kept again, so that
            a kill loses no more; None for never.
        until_decided: Judge of whether every claim is decided, such as
            `analysis.claims.all_decided`; until then replicates are added in stages, at
            10, 14 and 20 of them, as `staged.looks` plans. Claims are judged by the
            levels of this plan.
        most: Replicates of the last stage; by default 20, or the scenario's own if
            those are more.
        meanwhile: Called in this process while others are at work, to prepare the next
            step.

    Returns:
        The study, as `load` reads it.

    Example:
        `study = stalesim.simulate("quickstart", "my-study", replicates=5)`

    Raises:
        UserError: something in the scenario, the data or the folder is wrong, or every
            run failed.
    """
    rule = 'a mapping such as {"stop.time": 5}'
    check_type("replace", replace, Mapping | None, rule)
    if replicates is not None:
        check_type("replicates", replicates, int | np.integer, "a number, such as 3")
        replace = {**(replace or {}), "replicates": replicates}
    places: overrides.Places = {}
    for key, value in (replace or {}).items():
        text = json.dumps(value, default=np.generic.item)
        scenario = overrides.apply(
            _entries(scenario), f"{key}={text}", places, Synonyms(Scenario)
        )
    if data is not None and isinstance(scenario, Mapping):
        scenario = with_data(scenario)
    scenario = scenario_from(scenario)
    overrides.refuse_swept(scenario, places)
    objects = {"model": model, "loss": loss, "server": server}
    objects |= {"work": work, "weights": weights, "evaluate": evaluate}
    if any(each is not None for each in objects.values()):
        scenario = with_objects(scenario, **objects)
    refuse_untuned(scenario)
    path = new_folder(folder)
    refuse_others(path)  # before a lock is put there
    progress = progress or bar(scenario.name)
    workers = partial(
        executors.chosen, jobs=planning.processes(jobs), meanwhile=meanwhile
    )
    try:
        with locked(path):
            if data is not None:
                scenario = _with_arrays(scenario, arrays(data), path)
            if until_decided is None:
                scenario = staged.continued(scenario, path)
                study = run(
                    scenario, path, workers, progress, checkpoint_s=checkpoint_s
                )
            else:
                stages = staged.stages(scenario, path, most)
                execute = partial(
                    run, path=path, workers=workers, checkpoint_s=checkpoint_s
                )
                study = _grown(stages, execute, until_decided, progress)
    except BaseException:
        if folder is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    # A temporary folder is read lazily by the study, so it lives as long.
    if folder is None:
        weakref.finalize(study, shutil.rmtree, path, ignore_errors=True)
    _refuse_nothing(study)
    return study


def resume(folder: str | Path, **options: Any) -> Study:
    """Runs the rest of a study: interrupted and failed runs.

    Args:
        folder: Folder of the study.
        options: Arguments of `simulate`. A study that was started until its claims are
            decided continues with the same `until_decided`.

    Example:
        `study = stalesim.resume("my-study", jobs=4)`

    Raises:
        UserError: there is no study in the folder, or a reason of `simulate`.
    """
    with where_started(folder):
        scenario = scenario_of(folder)
        if staged.is_looked_at(scenario):
            if "until_decided" not in options:
                warnings.warn(
                    f"{folder}: no interim analysis follows without until_decided, "
                    "such as stalesim.claims.all_decided; pass it to resume(...)",
                    StudyWarning,
                    stacklevel=2,
                )
        else:
            options.pop("until_decided", None)
        return simulate(scenario, folder, **options)


@contextmanager
def where_started(folder: str | Path) -> Iterator[None]:
    """Lets relative paths start from the folder in which a study was started.

    They start from the current folder if that one is gone, as after a move.

    Raises:
        StudyError: there is none in it.
    """
    working = Path(load(folder).manifest.get("working_folder", ""))
    working = working if working.is_dir() else Path()
    with files.looking_in(working.absolute(), files.data_folder().absolute()):
        yield


def scenario_of(folder: str | Path, command: str = "resume") -> Scenario:
    """Returns the scenario of a study in a folder.

    Raises:
        StudyError: there is none, or a timeline without numerics.
    """
    manifest = load(folder).manifest
    if is_world(manifest):
        raise StudyError(
            f"{folder}: must be a study with numerics to be resumed, but is a "
            f"timeline; play it again by `stalesim timeline`"
        )
    try:
        scenario = validated(manifest["scenario"])
    except ScenarioError as error:
        modules = manifest.get("modules", {})
        if not modules:
            raise
        files = (of.get("file") or name for name, of in modules.items())
        needed = " ".join(f"--plugin {one_line(str(file))}" for file in files)
        without = "; ".join(error.lines)
        raise StudyError(
            f"{folder}: the study has parts of a user's own, which must be there: "
            f"stalesim {needed} {command} {folder} (without them: {without})"
        ) from None
    given, here = Path(getattr(scenario.problem.data, "path", "")), Path(folder) / DATA
    moved = given.name == DATA and not given.is_file() and here.is_file()
    return _reading(scenario, here) if moved else scenario


def scenario_from(source: Source) -> Scenario:
    """Returns a scenario from any of its forms."""
    forms = "a file, the name of a shipped scenario, a mapping, or what read returned"
    check_type("scenario", source, Scenario | str | Path | Mapping, forms)
    if isinstance(source, Scenario):
        return source
    return validated(source) if isinstance(source, Mapping) else read(source)


def new_folder(folder: str | Path | None) -> Path:
    """Returns the folder of a study: the given one, or a temporary one."""
    check_folder(folder or "")
    return Path(folder or tempfile.mkdtemp(prefix="stalesim-"))


def _entries(source: Source) -> dict[str, Any]:
    """Returns what is written in a scenario, as nested mappings."""
    if isinstance(source, Mapping):
        return Synonyms(Scenario).replaced(source)
    return scenario_from(source).model_dump(mode="json", exclude_unset=True)


def _grown(
    stages: Iterator[Scenario],
    execute: Callable[..., Study],
    decided: staged.Decided,
    progress: Progress,
) -> Study:
    """Executes a study stage by stage, until every claim is decided."""
    before, study, whole = 0.0, None, None
    for stage in stages:
        after, runs = stage.replicates / stage.looks[-1], len(expand(stage))
        whole = whole or Stages(progress, round(runs / after))
        study = execute(stage, progress=whole.stage(before, after, runs))
        _refuse_nothing(study)
        if decided(study):
            break
        before = after
    assert study is not None  # there is at least one stage
    return study


def run(
    scenario: Scenario,
    path: Path,
    workers: Callable[[list[Task]], Workers],
    progress: Progress = silent,
    disk: Disk = DISK,
    checkpoint_s: float | None = None,
) -> Study:
    """Executes the rest of a study in its locked folder.

    Raises:
        UserError: something in the scenario, the data or the folder is wrong.
    """
    folder, tasks = started(scenario, path, disk, checkpoint_s=checkpoint_s)
    session = folder.manifest["session"]
    whole = len(folder.manifest["runs"])
    before = whole - sum(len(task.runs) for task in tasks)

    def hear(now: StudyProgress) -> None:
        progress(now._replace(ended=before + now.ended, runs=whole))

    try:
        for done in executors.execute(tasks, path, workers(tasks), hear, disk):
            folder.note(done)
    except KeyboardInterrupt:
        folder.interrupt()
        raise
    folder.clear(CHECKPOINTS)
    study = folder.end()
    # Not before: a process that was given up may still live, and ask what is done.
    folder.clear(claims_of(path, session).name)
    folder.clear(LOCKS)
    return study


def started(
    scenario: Scenario,
    path: Path,
    disk: Disk = DISK,
    *,
    shared: bool = False,
    checkpoint_s: float | None = None,
) -> tuple[StudyFolder, list[Task]]:
    """Plans the rest of a study, and writes the plan into its locked folder.

    Raises:
        UserError: something in the scenario, the data or the folder is wrong.
    """
    folder = StudyFolder(path, disk)
    runs = expand(scenario)
    folder.read(inputs.collect(run.scenario for run in runs))
    with inputs.held(folder.inputs):
        runs = folder.numbered(runs)
        known = folder.planned(runs)
        planned = {run.number for task in known for run in task.runs}
        new = [run for run in runs if run.number not in planned]
        planning.check(new)
        added = planning.of_runs(new, folder.num_tasks)
        tasks = planning.roomy(folder.left(known) + added)
        if tasks:
            folder.check_versions()
        differ = planning.regrouped(runs, known + added) if known and added else None
        folder.begin(scenario, runs, tasks, differ, shared=shared)
    return folder, of_session(folder, tasks, checkpoint_s)


def of_session(
    folder: StudyFolder, tasks: list[Task], checkpoint_s: float | None
) -> list[Task]:
    """Returns tasks as they may be executed in the session of a study."""
    session = folder.manifest["session"]
    here = {
        "inputs": folder.inputs,
        "checkpoint_s": checkpoint_s,
        "session": session,
        "program": program((*origins.LIBRARIES, *folder.inputs.libraries)),
    }
    return [task._replace(**here) for task in tasks]


def _with_arrays(
    scenario: Scenario, data: dict[str, np.ndarray], folder: Path
) -> Scenario:
    """Writes arrays into the study's folder; returns the scenario that reads them."""
    file = folder / DATA
    if file.exists():
        _check_arrays(file, data)
    else:
        content = packed(data, tight=True)
        size = sum(np.asarray(array).nbytes for array in data.values())
        if size > files.limit(len(content)):  # packed so tight, it would not be read
            content = packed(data)
        with explained(folder):
            replace(DISK, file, content)
    return _reading(scenario, file)


def _reading(scenario: Scenario, file: Path) -> Scenario:
    """Returns a scenario that reads the arrays of a file in place of its data."""
    problem = scenario.problem
    # A default of the set itself, such as the scale of its pixels, is of no other.
    said = Data.model_fields.keys() & problem.data.model_fields_set
    options = {key: getattr(problem.data, key) for key in said}
    given = Npz(path=str(file.resolve()), **options)
    return scenario.model_copy(
        update={"problem": problem.model_copy(update={"data": given})}
    )


def _check_arrays(file: Path, data: dict[str, np.ndarray]) -> None:
    """Refuses to continue a study with other arrays than at its start."""
    try:
        with np.load(file) as known:
            same = {*known} == {*data}
            same = same and all(np.array_equal(known[key], data[key]) for key in data)
    except (OSError, ValueError, BadZipFile) as error:
        raise StudyError(
            f"{file}: must hold the study's arrays, but it is damaged; choose another "
            f"folder"
        ) from error
    if not same:
        raise StudyError(
            f"{file}: must hold the arrays that are given, but has others; choose "
            f"another folder"
        )


def _refuse_nothing(study: Study) -> None:
    """Raises what went wrong where no run has a result."""
    runs = study.manifest["runs"]
    if runs and all(run["stop"] in OPEN for run in runs):
        noted = sorted((study.folder / FAILURES).glob("*.txt"))
        raise StudyError(
            f"{study.folder}: every run failed; the first ({runs[0]['label']}): "
            f"{runs[0]['stop_reason']}"
        ) from (RuntimeError(f"\n{noted[0].read_text()}") if noted else None)
