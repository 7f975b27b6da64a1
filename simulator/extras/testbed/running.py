"""From a scenario to a testbed's log, its timeline, and the study that replays it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from ...catalogue.algorithms.federated.abilities import Resizes
from ...catalogue.algorithms.federated.chain import Chained
from ...catalogue.algorithms.federated.stage import AttackPart, ReadPart, StagePart
from ...catalogue.protocols.bounded import Bounded
from ...engine.of_run import timeline
from ...files.study import Study
from ...parts.base import tag
from ...parts.errors import ScenarioError, UserError, shown, suggestion
from ...problem.capabilities import DividesRows
from ...scenario.reading import validated
from ...scenario.scenario import Scenario
from ...scenario.setting import BaseScenario
from ...scenario.study import Run
from ...studies import saved
from ...timelines.simulated import SimulatedTimeline
from .timeline import LISTEN, Bench, RealTimeline

COMPUTE = ("sleep", "gradients")
MOST_CLIENTS = 256
TIMELINE, STUDY = "timeline", "study"
"""Folders in the folder of a testbed."""


def act_out(bench: Bench) -> Bench:
    """Lets real processes act out the scenario of a bench; returns the bench.

    The folder gets `log.csv` (`log-1.csv` and so on of several runs), `timeline`, which
    is what `stalesim timeline` writes of a simulated world, and where the scenario has
    a problem `study`, which replays it through the engine. With real gradients it gets
    `model.npy`, the server's model at the end.

    Raises:
        UserError: Something in the scenario, the options or the folder is wrong.
    """
    scenario, folder = _checked(bench), bench.folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UserError(
            f"{folder}: must be a new or empty folder, but there is something; choose "
            f"another by --out"
        )

    def made(run: Run) -> RealTimeline:
        simulated = timeline(run)
        assert isinstance(simulated, SimulatedTimeline)  # `_checked` has made sure
        _refuse(simulated)
        if bench.compute == "gradients":
            _refuse_undivided(run.scenario)
        known = {f.name: getattr(simulated, f.name) for f in fields(SimulatedTimeline)}
        return RealTimeline(**known, run=run, bench=bench)

    with _interruptible(bench):
        bench.timeline = saved.record(scenario, folder / TIMELINE, made=made)
    if bench.interrupted or not hasattr(scenario, "problem"):
        return bench
    from ... import studies

    replayed = {"replay": str((folder / TIMELINE).absolute())}
    tree = validated(bench.tree | {"timeline": replayed})
    bench.study = studies.simulate(tree, folder / STUDY)
    for number, own in bench.measured.items():
        bench.say(_compared(bench.study, number, own))
    return bench


def _checked(bench: Bench) -> BaseScenario:
    scenario, given = bench.scenario, bench.compute
    if not isinstance(scenario, BaseScenario):
        raise UserError(
            "testbed must have a scenario of clients, got another world; simulate it "
            "(stalesim timeline)"
        )
    replayed = getattr(scenario, "timeline", None)
    if replayed is not None and getattr(replayed, "replay", None) is not None:
        raise UserError(
            "timeline.replay must not be set on a testbed, which makes a new "
            "timeline; remove it"
        )
    if given not in COMPUTE:
        raise UserError(
            f"--compute must be {' or '.join(COMPUTE)}, got {shown(given)}; "
            f"{suggestion(given, COMPUTE)}"
        )
    if given == "gradients" and not hasattr(scenario, "problem"):
        raise UserError(
            "--compute must be sleep for a scenario without a problem, got gradients; "
            "add one, or remove the option"
        )
    if bench.broker is not None and bench.listen != LISTEN:
        raise UserError(
            "--listen must not be set with --broker, as that listens; remove one"
        )
    if not 0 < bench.time_scale < float("inf"):
        raise UserError(
            f"--time-scale must be > 0 real seconds of a virtual one, got "
            f"{bench.time_scale:g}; change it"
        )
    return scenario


def _compared(study: Study, number: int, own: dict[str, float]) -> str:
    evaluations = study.table("evaluations")
    last = evaluations[evaluations["run"] == number].tail(1)  # none of a failed run
    pairs = (f"{name} {one:.6g} ({last[name].max():.6g})" for name, one in own.items())
    label = study.manifest["runs"][number]["label"]
    return f"{label}: the server's model (its replay's): {', '.join(pairs)}"


def _refuse(played: SimulatedTimeline) -> None:
    """Refuses what cannot be acted out on one machine."""
    protocol, num_clients = played.protocol, played.num_clients
    if played.quota is not None:
        raise ScenarioError(
            "a budget of privacy must not be set on a testbed, which counts none; "
            "remove it, or simulate it (stalesim run)"
        )
    if played.answer_log is not None:
        raise ScenarioError(
            f"{played.answer_log.why} must not need training on a testbed, which "
            "reports no losses or norms; remove it, or simulate it (stalesim run)"
        )
    if played.job_steps is not None:
        raise ScenarioError(
            "clients.local_steps_by must be left out on a testbed, whose jobs have "
            "all local steps; remove it, or simulate it"
        )
    if not protocol.traits.lone_jobs and not isinstance(protocol, Bounded):
        raise ScenarioError(
            f"protocol.kind must be one that a testbed acts out, got "
            f"{tag(type(protocol))!r}; simulate it (stalesim timeline), or take another"
        )
    if num_clients > MOST_CLIENTS:
        raise ScenarioError(
            f"clients.number must be at most {MOST_CLIENTS} on a testbed, each of "
            f"which is a process, got {num_clients}; take fewer"
        )


def _refuse_undivided(scenario: Scenario) -> None:
    if scenario.problem.work is not None:
        raise ScenarioError(
            f"problem.work must be left out with --compute gradients, whose clients "
            f"compute the model's own, got {scenario.problem.work!r}; take --compute "
            f"sleep"
        )
    algorithm = scenario.algorithm
    if not isinstance(algorithm, DividesRows):
        raise ScenarioError(
            f"algorithm.kind must be one whose clients compute by themselves with "
            f"--compute gradients, got {scenario.algorithm.kind!r}; remove the option, "
            f"or take another"
        )
    if not isinstance(algorithm, Chained):
        return
    for stage in algorithm.stages:
        if (why := _not_on_the_wire(stage)) is not None:
            raise ScenarioError(
                f"{algorithm.key_of(stage)} must be left out with --compute "
                f"gradients, {why}, got {tag(type(stage))!r}; take --compute sleep"
            )


def _not_on_the_wire(stage: StagePart) -> str | None:
    if isinstance(stage, AttackPart):
        return "whose clients send what they have computed, and nothing in its place"
    if isinstance(stage, Resizes | ReadPart):
        return "whose messages are whole arrays"
    return None


@contextmanager
def _interruptible(bench: Bench) -> Iterator[None]:
    """Lets an interruption end the run where everything is in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        bench.interrupted = True

    before = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
