"""From a scenario to a testbed's log, its timeline, and the study that replays it."""

import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.federated.chain import AttackPart, ReadPart, StagePart
from ...config.errors import ScenarioError, UserError
from ...config.parts import tag
from ...config.text import shown, suggestion
from ...engine import device
from ...scenario.reading import validated
from ...scenario.setting import BaseScenario
from ...scenario.study import Run, expand
from ...timeline import Chunk, StopReason, check
from ...timelines import saved
from ...timelines.of_run import timeline
from ...timelines.simulated import SimulatedTimeline
from ...trace import Study
from .broker import BrokerLost, MqttChannels
from .clock import Interrupted
from .faults import parsed
from .fleet import Channels, ClientProcesses, Reception, TcpChannels
from .learner import Learner
from .log import Log
from .world import RealWorld, refuse

COMPUTE = ("sleep", "gradients")
MOST_CLIENTS = 256
TIMELINE, STUDY, LOG, MODEL = "timeline", "study", "log", "model"
"""Folders and files in the folder of a testbed."""
LISTEN = "127.0.0.1", 0
ALL = 2**40
Say = Callable[[str], None]


class Options(NamedTuple):
    """How a scenario is acted out.

    Attributes:
        compute: `sleep`, for as long as the laws say, or `gradients` as well.
        time_scale: Real seconds of a virtual one, > 0.
        host: Address to listen at.
        port: Port; 0 for a free one.
        kill: Clients that are killed (`faults.parsed`).
        pause: Clients that are paused.
        slow: Clients that are slowed.
        broker: MQTT broker over which messages go: `start`, or where it is
            (`broker.address_of`); None for TCP.
    """

    compute: str = "sleep"
    time_scale: float = 1.0
    host: str = LISTEN[0]
    port: int = LISTEN[1]
    kill: tuple[str, ...] = ()
    pause: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    broker: str | None = None


class Recorded(NamedTuple):
    """What a testbed has left.

    Attributes:
        timeline: Its timelines, as `stalesim timeline` writes them.
        study: The study that replays them; None of a world without learning.
        interrupted: Whether the user has ended it.
    """

    timeline: Study
    study: Study | None
    interrupted: bool


class _Stage:
    """What the runs of a testbed share."""

    def __init__(
        self, options: Options, scenario: Any, folder: Path, several: bool, say: Say
    ) -> None:
        self.options, self.say = options, say
        self.scenario = scenario.model_dump(mode="json", exclude_unset=True)
        self.interrupted = False
        self.measured: dict[int, dict[str, float]] = {}
        self._folder, self._several = folder, several

    def path(self, name: str, run: Run, ending: str) -> Path:
        """Returns the path of a file of a run."""
        number = f"-{run.number + 1}" if self._several else ""
        return self._folder / f"{name}{number}.{ending}"


@dataclass(frozen=True)
class RealTimeline(SimulatedTimeline):
    """The timeline of one run, acted out as it is asked for; once only.

    Attributes:
        run: Run of a study.
        stage: What the runs of a testbed share.
    """

    run: Any = None
    stage: Any = field(default=None, repr=False)

    @property
    def made_by(self) -> str:
        """What makes it."""
        options: Options = self.stage.options
        over = ", over MQTT" if options.broker else ""
        return (
            f"a testbed, by {options.compute}, a virtual second {options.time_scale:g} "
            f"s{over}"
        )

    def _digest(self) -> str:
        """Returns what no other has: the same scenario never takes the same time."""
        return secrets.token_hex(8)

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Acts it out, and yields all of it.

        Raises:
            UserError: It cannot be acted out.
        """
        del num_rows
        stage: _Stage = self.stage
        if stage.interrupted:
            raise KeyboardInterrupt
        yield self._acted_out(stage)

    def _acted_out(self, stage: _Stage) -> Chunk:
        options = stage.options
        faults = [
            fault
            for what in ("kill", "pause", "slow")
            for fault in parsed(what, getattr(options, what), self.num_clients)
        ]
        learner = Learner(self.workload)
        if options.compute == "gradients":
            device.before_import()
            from .gradients import Gradients

            device.use_cache()
            learner = Gradients(self.run, stage.scenario)
        secret = secrets.token_bytes(32)
        processes = ClientProcesses()
        lines = self._lines(secret, learner.most, processes)
        log = Log(stage.path(LOG, self.run, "csv"))
        try:
            world = RealWorld(self, lines, processes, learner, options.time_scale)
            world.clock_of_testbed.interrupted = lambda: stage.interrupted
            recorder = self.protocol.recorder(
                world, self.width, self._batch, self.num_samples
            )
            world.job_of = recorder.current_job
            world.staleness_of = recorder.staleness
            self._confirm_inputs()
            joining = {**lines.joining, "secret": secret.hex(), "most": learner.most}
            processes.begin(joining, self.num_clients)
            next(super().chunks(1), None)  # loads what laws draw with
            world.gather()
            self._limit_time(world)
            world.attend(recorder, log, faults)
            self.protocol.play(world, recorder)
            try:
                reason = self._run(world.env, recorder, ALL)
            except Interrupted:
                reason = StopReason.INTERRUPTED
            except BrokerLost as error:  # what is recorded is kept
                stage.say(str(error))
                stage.interrupted, reason = True, StopReason.INTERRUPTED
            for client in range(self.num_clients):
                lines.send(client, {"type": "end"})
            with suppress(BrokerLost):
                lines.poll(0)
        except BaseException:
            processes.close(0)
            raise
        finally:
            processes.close()
            lines.close()
            log.close()
        learner.catch_up()
        if (model := learner.model()) is not None:
            np.save(stage.path(MODEL, self.run, "npy"), model)
            stage.measured[self.run.number] = learner.measured()
        assert isinstance(reason, StopReason)
        rows, jobs = recorder.take(world.seconds, final=True)
        check(rows, self.num_registers)
        return Chunk(rows, jobs, reason, world.incidents(float(world.env.now)))

    def _lines(self, secret: bytes, most: int, processes: ClientProcesses) -> Channels:
        """Returns the conversations with the clients."""
        options, say, known = self.stage.options, self.stage.say, self.num_clients
        if options.broker is not None:
            ended = processes.ended
            return MqttChannels(options.broker, secret, known, most, say, ended)
        reception = partial(Reception, secret, known, most)
        return TcpChannels(reception, say, options.host, options.port)


def act_out(
    scenario: Any,
    folder: Path,
    options: Options,
    say: Say = lambda line: None,
    progress: Callable[[float], None] = lambda part: None,
) -> Recorded:
    """Lets real processes act out a scenario on this machine.

    The folder gets `log.csv` (`log-1.csv` and so on of several runs), `timeline`, which
    is what `stalesim timeline` writes of a simulated world, and where the scenario has
    a problem `study`, which replays it through the engine. With real gradients it gets
    `model.npy`, the server's model at the end.

    Args:
        scenario: Scenario with or without a problem.
        folder: New or empty folder.
        options: How.
        say: Says one line to the user.
        progress: Called with the fraction that is done.

    Raises:
        UserError: Something in the scenario, the options or the folder is wrong.
    """
    _check(scenario, options)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UserError(
            f"{folder}: must be a new or empty folder, but there is something; choose "
            f"another by --out"
        )
    stage = _Stage(options, scenario, folder, len(expand(scenario)) > 1, say)

    def made(run: Run) -> RealTimeline:
        simulated: Any = timeline(run)
        refuse(simulated, MOST_CLIENTS)
        if options.compute == "gradients":
            _refuse_undivided(run.scenario)
        known = {f.name: getattr(simulated, f.name) for f in fields(SimulatedTimeline)}
        return RealTimeline(**known, run=run, stage=stage)

    with _interruptible(stage):
        recorded = saved.record(scenario, folder / TIMELINE, progress, made)
    if stage.interrupted or not hasattr(scenario, "problem"):
        return Recorded(recorded, None, stage.interrupted)
    from ... import studies

    replayed = {"replay": str((folder / TIMELINE).absolute())}
    tree = validated(stage.scenario | {"timeline": replayed})
    study = studies.simulate(tree, folder / STUDY)
    for number, own in stage.measured.items():
        say(_compared(study, number, own))
    return Recorded(recorded, study, interrupted=False)


def _check(scenario: Any, options: Options) -> None:
    if not isinstance(scenario, BaseScenario):
        raise UserError(
            "testbed must have a scenario of clients, got another world; simulate it "
            "(stalesim timeline)"
        )
    replayed = getattr(scenario, "timeline", None)
    if replayed is not None and getattr(replayed, "replay", None) is not None:
        raise UserError(
            "timeline.replay must not be set on a testbed, which makes a timeline of "
            "its own; remove it"
        )
    given = options.compute
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
    if options.broker is not None and (options.host, options.port) != LISTEN:
        raise UserError(
            "--listen must not be set with --broker, which is what listens; remove one"
        )
    if not 0 < options.time_scale < float("inf"):
        raise UserError(
            f"--time-scale must be > 0 real seconds of a virtual one, got "
            f"{options.time_scale:g}; change it"
        )


def _compared(study: Study, number: int, own: dict[str, float]) -> str:
    """Returns a line on the server's model, and on that of the replay of its run."""
    evaluations = study.table("evaluations")
    last = evaluations[evaluations["run"] == number].tail(1)  # none of a failed run
    pairs = (f"{name} {one:.6g} ({last[name].max():.6g})" for name, one in own.items())
    label = study.manifest["runs"][number]["label"]
    return f"{label}: the server's model (its replay's): {', '.join(pairs)}"


def _refuse_undivided(scenario: Any) -> None:
    if scenario.problem.work is not None:
        raise ScenarioError(
            f"problem.work must be left out with --compute gradients, whose clients "
            f"compute the model's own, got {scenario.problem.work!r}; take --compute "
            f"sleep"
        )
    if not scenario.algorithm.divided:
        raise ScenarioError(
            f"algorithm.kind must be one whose clients compute by themselves with "
            f"--compute gradients, got {scenario.algorithm.kind!r}; remove the option, "
            f"or take another"
        )
    for stage in scenario.algorithm.stages:
        if (why := _not_on_the_wire(stage)) is not None:
            keys = "algorithm", *scenario.algorithm.keys_of(stage)
            raise ScenarioError(
                f"{'.'.join(map(str, keys))} must be left out with --compute "
                f"gradients, {why}, got {tag(type(stage))!r}; take --compute sleep"
            )


def _not_on_the_wire(stage: StagePart) -> str | None:
    """Returns why messages would not be those of a stage; None if they are."""
    if isinstance(stage, AttackPart):
        return "whose clients send what they have computed, and nothing in its place"
    shortens = type(stage).sent_bytes is not StagePart.sent_bytes
    if shortens or isinstance(stage, ReadPart):
        return "whose messages are whole arrays"
    return None


@contextmanager
def _interruptible(stage: _Stage) -> Iterator[None]:
    """Lets an interruption end the run where everything is in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum: int, frame: object) -> None:
        del signum, frame
        stage.interrupted = True

    before = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
