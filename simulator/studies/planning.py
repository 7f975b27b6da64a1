"""The fixed rule by which runs are executed together, and their entries and places."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..engine import checking, device
from ..engine.algorithm import Algorithm
from ..engine.of_run import sampler
from ..files import inputs
from ..files.inputs import Inputs
from ..files.study import Files
from ..files.study.disk import Ends
from ..files.study.study import LOCKS, done_by
from ..parts.errors import TAGS, UserError, brief, check_type
from ..parts.json_text import Tree
from ..problem.capabilities import HasStages, noise_of
from ..problem.sampler import Sampler
from ..scenario.reading import without_nothing
from ..scenario.scenario import Scenario
from ..scenario.study import Run, expand
from ..scenario.tuning import refuse_untuned
from ..timelines.replayed import recorded_run
from ..world.protocol_abilities import RefreshesEmbeddings

MOST_RUNS = 64
"""Runs of one batch."""


class Task(NamedTuple):
    """Runs that one process executes together.

    Attributes:
        mode: `stepwise`, `compiled`, `waves`, `batched`, `shared` (batched on one
            timeline) or `host` (work of the user's own).
        runs: Several only where the mode is one of the last two.
        number: Number among the tasks of the study, part of its files' names.
        session: Session of the study's folder, in which alone it may be executed.
        checkpoint_s: Real seconds from one keeping of its state to the next; None for
            never.
        inputs: Files and modules that the study's runs read.
        batches: Batches of a job that its program has room for, at least.
        program: Libraries and code by which alone it may be executed; by default any.
    """

    mode: str
    runs: tuple[Run, ...]
    number: int = 0
    session: int = 0
    checkpoint_s: float | None = None
    inputs: Inputs | None = None
    batches: int = 0
    program: Mapping[str, str | None] = {}


def structure(scenario: Scenario) -> str:
    """Identifies the program that a run needs; runs that agree in it can be batched."""
    selection = scenario.clients.selection if scenario.clients else None
    algorithm: Algorithm = scenario.algorithm
    stages = algorithm.stages if isinstance(algorithm, HasStages) else ()
    options = [option for part in (algorithm, *stages) for _, option in part]
    parts = {
        "problem": scenario.problem.model_dump(mode="json"),
        "protocol": scenario.protocol.model_dump(mode="json"),
        "in_flight": selection.in_flight if selection else None,
        "algorithm": algorithm.structure(),
        "step_sizes": [getattr(option, "num_values", 0) for option in options],
        "evaluate": scenario.evaluate.model_dump(mode="json"),
        "target": scenario.stop.target,
        "windowed": scenario.stop.model_dump(mode="json")["windowed"],
        "probe": scenario.probe.model_dump(mode="json") if scenario.probe else None,
        "engine": scenario.engine.model_dump(mode="json"),
        "asks": scenario.asks,
        "alone": scenario.plays_alone,
    }
    return json.dumps(parts, sort_keys=True)


def timeline(run: Run) -> str:
    """Identifies the timeline and the minibatches of a run among one structure."""
    scenario = run.scenario
    clients = scenario.clients.model_dump(mode="json") if scenario.clients else None
    stop = scenario.stop.model_dump(mode="json")
    server = scenario.server.model_dump(mode="json")
    source = scenario.timeline.model_dump() if scenario.timeline else None
    parts = [run.seed, clients, server, stop, source]
    if scenario.replays:
        parts.append(recorded_run(scenario.timeline, run))
    privacy, algorithm = scenario.privacy, scenario.algorithm
    stated = privacy is not None and privacy.budget is not None
    if stated or noise_of(algorithm).calibrated is not None:
        # A budget ends the timeline, by what a message costs.
        parts += [privacy and privacy.model_dump(), algorithm.model_dump()]
    return json.dumps(parts, sort_keys=True)


def plan(runs: list[Run], *, backend: str) -> list[Task]:
    """Decides which runs are executed together: a fixed rule, never a stopwatch.

    On a GPU all runs that fit together are batched. On CPU runs are batched where they
    share a timeline; all others are single-threaded runs, spread over processes. So are
    those of adaptive worlds, which have no timeline beforehand, or whose jobs differ in
    local steps. Batching others would gain less than half where the model is tiny, lose
    where it is not, and make a run's last digits depend on how many replicates there
    are.
    """
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        group = groups.setdefault(structure(run.scenario), {})
        group.setdefault(timeline(run), []).append(run)
    tasks: list[Task] = []
    for group in groups.values():
        scenario = next(iter(group.values()))[0].scenario
        if scenario.problem.work is not None:
            tasks += [Task("host", (run,)) for same in group.values() for run in same]
            continue
        mode = scenario.engine.mode
        alone: list[Run] = []
        for same in group.values():
            shares = mode in ("auto", "batched") and not scenario.plays_alone
            if len(same) > 1 and shares:
                tasks += _batches("shared", same)
            else:
                alone += same
        together = mode == "batched" or (mode == "auto" and backend != "cpu")
        protocol = scenario.protocol
        unlike = scenario.plays_alone or protocol.traits.own_registers
        unlike = unlike or isinstance(protocol, RefreshesEmbeddings)
        if together and len(alone) > 1 and not unlike:
            tasks += _batches("batched", alone)
        else:
            single = mode if mode in ("stepwise", "waves") else "compiled"
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
    refuse_untuned(scenario)
    runs = expand(scenario)
    read = inputs.collect(run.scenario for run in runs)
    with inputs.held(read):
        check(runs)
        return runs, [task._replace(inputs=read) for task in roomy(of_runs(runs))]


def roomy(tasks: list[Task]) -> list[Task]:
    """Gives tasks of one program room for the longest job of all: it is compiled once.

    Epochs have as many batches as a client has samples for, and the longest job has
    others in each replicate. Room that is left holds no samples, and is not computed.
    """
    samplers: dict[str, list[tuple[int, Sampler]]] = {}
    for index, task in enumerate(tasks):
        mine = samplers.setdefault(structure(task.runs[0].scenario), [])
        if not mine or mine[0][1].own_steps is not None:  # others are as long for all
            mine += [(index, sampler(run)) for run in task.runs]
    found = list(tasks)
    for those in samplers.values():
        # One batch alone is a program without a loop; batches of a size are compiled.
        several = [(i, each) for i, each in those if each.steps > 1]
        for size in {each.size for _, each in several}:
            same = [(i, each.steps) for i, each in several if each.size == size]
            most = max(steps for _, steps in same)
            for index, _ in same:
                found[index] = found[index]._replace(batches=most)
    return found


def regrouped(runs: list[Run], tasks: list[Task]) -> list[int]:
    """Returns the runs that were or are executed otherwise than in a study run at once.

    An extended study does not repeat finished runs. So new runs may be batched without
    the old ones, and the other way round; float32 numbers of such runs may differ in
    their last digits from those of a study of all runs.
    """

    def company(tasks: list[Task]) -> dict[int, tuple[str, frozenset[int]]]:
        found = {}
        for task in tasks:
            numbers = frozenset(run.number for run in task.runs)
            found |= dict.fromkeys(numbers, (task.mode, numbers))
        return found

    actual, at_once = company(tasks), company(of_runs(runs))
    return sorted(run for run in actual if actual[run] != at_once[run])


def processes(jobs: int) -> int:
    """Returns a number of processes: as requested, or one per core for 0."""
    import joblib

    check_type("jobs", jobs, int, "a number of processes, such as 2")
    if jobs < 0:
        raise UserError(f"jobs must be >= 0, got {jobs}; write 0 for one per core")
    return jobs or joblib.cpu_count()


def check(runs: list[Run]) -> None:
    """Checks all runs for mistakes before the first one is executed.

    Raises:
        UserError: a run's parts do not fit each other or the data.
    """
    for run in runs:
        checking.check(run)


def of_runs(runs: list[Run], first: int = 0) -> list[Task]:
    """Returns the plan of execution of runs on this machine."""
    device.before_import()
    device.use_cores(processes(0))  # before JAX is asked for its devices
    import jax

    tasks = plan(runs, backend=jax.default_backend())
    return [task._replace(number=first + i) for i, task in enumerate(tasks)]


DATA = "data.npz"
"""Arrays in place of a data set."""
TUNING = "tuning"
"""Folder, in a comparison's folder, of the study of its trials."""
CHECKPOINTS = ".checkpoints"
"""Folder, in a study's folder, of the states of its tasks while it is run."""
CLAIMS = ".shared-"
"""Prefix of the name of the folder, in a study's folder, of a session's claims."""


def task_name(number: int) -> str:
    """Returns the name of a task's parts among those of the study."""
    return f"{number:05d}"


def done_of(folder: Path, session: int, task: int) -> Path:
    """Returns the file in which a task notes its result, before its study does."""
    return folder / LOCKS / f"{task_name(task)}{done_by(session)}"


def claims_of(folder: Path, session: int) -> Path:
    """Returns the folder in which processes that share a session claim its tasks."""
    return folder / f"{CLAIMS}{session}"


def checkpoint_of(folder: Path, task: int) -> Path:
    """Returns the path of a task's state."""
    return folder / CHECKPOINTS / task_name(task)


WORDS = (
    *("name", "source", "question", "claims", "replicates", "seed", "looks", "tune"),
)
"""Entries of a scenario that a run's numbers do not depend on; it has its own seed."""
OPEN = ("incomplete", "failed")
"""Ends of runs that are still to be made."""
UNFINISHED = {"stop": "incomplete", "stop_reason": "the run has not ended"}
"""Entries of a run that is still to be made."""


class Done(NamedTuple):
    """The results of a task.

    Attributes:
        ends: Ends of its runs.
        files: Files that hold their rows.
    """

    ends: Ends
    files: Files


def content(run: Run) -> str:
    """Returns a hash of everything that a run's numbers depend on.

    Inputs count by their content, not by their names.
    """
    tree = inputs.identified(run.scenario)
    parts = {key: value for key, value in tree.items() if key not in WORDS}
    text = json.dumps({"seed": run.seed, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def known_by(identity: Tree) -> tuple[str, str, int]:
    """Returns a run's identity in its study, whatever its number.

    Args:
        identity: Entry of the run in a manifest, or `Run.identity`.
    """
    parameters = json.dumps(identity["parameters"], sort_keys=True)
    return identity["variant"], parameters, identity["replicate"]


def entry_of(run: Run, task: Task) -> Tree:
    """Returns the entry of a run in the manifest before it is executed."""
    return {
        **run.identity,
        "content": content(run),
        "task": task.number,
        "mode": task.mode,
        "protocol": run.scenario.protocol.kind,
        "algorithm": run.scenario.algorithm.kind,
        "num_clients": run.scenario.num_clients,
        **UNFINISHED,
        "facts": run.scenario.described(),
        "scenario": run.scenario.model_dump(mode="json"),
    }


def difference(
    then: Mapping[str, object], now: Mapping[str, object], leaving: tuple[str, ...] = ()
) -> str:
    """Returns which entry of a scenario is not as it was; "" where all are."""
    first, second = (
        {k: v for k, v in without_nothing(tree).items() if k not in leaving}
        for tree in (then, now)
    )
    return _first(first, second, "")


def _first(then: object, now: object, place: str) -> str:
    if then == now:
        return ""
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        return f"{place} was {brief(str(then))} and is {brief(str(now))}"
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    # What a part is called explains its other entries.
    first = next((key for key in keys if key in TAGS), keys[0])
    below = f"{place}.{first}" if place else first
    if first not in then:
        return f"{below} is {brief(str(now[first]))} and was not set"
    if first not in now:
        return f"{below} was {brief(str(then[first]))} and is not set"
    return _first(then[first], now[first], below)
