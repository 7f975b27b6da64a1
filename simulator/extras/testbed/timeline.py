"""A timeline that real processes act out, and the log of their jobs."""

import csv
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from typing_extensions import override

from ...engine import device
from ...files.study import Study
from ...files.timeline import NO_COMMIT, Chunk, Outcome, StopReason, check
from ...parts.errors import UserError
from ...parts.json_text import Tree
from ...scenario.setting import Varied
from ...scenario.study import Run, expand
from ...timelines.simulated import SimulatedTimeline
from .broker import BrokerLost, MqttChannels
from .fleet import Channels, ClientProcesses, TcpChannels
from .learner import Learner
from .world import Interrupted, RealWorld, parsed

LOG, MODEL = "log", "model"
"""Files of a run in the folder of a testbed."""
LISTEN = "127.0.0.1", 0
ALL = 2**40
Say = Callable[[str], None]
COLUMNS = (
    *("client", "read_time", "begun_time", "computed_time", "sent_time"),
    *("arrived_time", "applied_time", "outcome", "read_version", "commit"),
)
"""Those of the log of any real system."""


class Log:
    """The log of one run, a CSV file; each row is with the system when it is written.

    Raises:
        UserError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"{path}: cannot be written: {error.strerror}; choose a folder by --out"
            ) from None
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(COLUMNS)
        self._file.flush()

    def add(self, entry: Sequence[int], times: Sequence[float], now: float) -> None:
        """Writes a job that has ended.

        Args:
            entry: Client, job, whether it is a refresh, read version, commit, outcome
                and uploads, as a recorder has them.
            times: When it was read, started, computed, sent, arrived and applied,
                below 0 for never.
            now: Present, virtual seconds.
        """
        client, _, is_refresh, read_version, commit, outcome, _ = entry
        if is_refresh:
            return
        read, began, computed, sent, arrived, applied = times
        word = "lost"
        if outcome == Outcome.REJECTED or commit != NO_COMMIT:
            word = "rejected" if commit == NO_COMMIT else "applied"
        arrived = now if arrived < 0 else arrived  # of a lost one: when it was given up
        stages = (arrived if t < 0 else t for t in (began, computed, sent))
        is_applied = word == "applied"
        row = [client + 1, read, *stages, arrived]
        row += [applied if is_applied else "", word, read_version]
        self._rows.writerow([*row, commit if is_applied else ""])
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Bench:
    """Settings for emulating the runs of a testbed, and their files.

    Args:
        scenario: Scenario with or without a problem.
        folder: New or empty folder.
        say: Prints one line for the user.
        compute: `sleep`, for the laws' durations, or `gradients` as well.
        time_scale: Real seconds of a virtual one, > 0.
        listen: Address and port to listen at; port 0 for a free one.
        broker: MQTT broker over which messages go: `start`, or where it is
            (`broker.address_of`); None for TCP.
        faults: `kill`, `pause` and `slow`: clients to which that happens, as
            `world.parsed` reads them.

    Attributes:
        timeline: Their timelines, as `stalesim timeline` writes them.
        study: The study that replays them; None of a world without learning.
        interrupted: Whether the user has ended it.
        measured: Metrics of the server's own model, by the numbers of runs.
    """

    timeline: Study
    study: Study | None = None

    def __init__(
        self,
        scenario: Varied,
        folder: Path,
        say: Say = lambda line: None,
        *,
        compute: str = "sleep",
        time_scale: float = 1.0,
        listen: tuple[str, int] = LISTEN,
        broker: str | None = None,
        **faults: Sequence[str],
    ) -> None:
        self.scenario, self.folder, self.say = scenario, folder, say
        self.compute, self.time_scale = compute, time_scale
        self.listen, self.broker, self.faults = listen, broker, faults
        self.interrupted = False
        self.measured: dict[int, dict[str, float]] = {}
        self._several = len(expand(scenario)) > 1

    @property
    def tree(self) -> Tree:
        """The scenario as nested mappings, without defaults."""
        return self.scenario.model_dump(mode="json", exclude_unset=True)

    def path(self, name: str, run: Run, ending: str) -> Path:
        """Returns the path of a file of a run."""
        number = f"-{run.number + 1}" if self._several else ""
        return self.folder / f"{name}{number}.{ending}"


@dataclass(frozen=True)
class RealTimeline(SimulatedTimeline):
    """The timeline of one run, emulated on demand; once only."""

    run: Run = field(kw_only=True)
    bench: Bench = field(kw_only=True, repr=False)

    @property
    @override
    def made_by(self) -> str:
        bench = self.bench
        over = ", over MQTT" if bench.broker else ""
        return (
            f"a testbed, by {bench.compute}, a virtual second {bench.time_scale:g} "
            f"s{over}"
        )

    @override
    def _digest(self) -> str:
        """Returns what no other has: the same scenario never takes the same time."""
        return secrets.token_hex(8)

    @override
    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        if self.bench.interrupted:
            raise KeyboardInterrupt
        yield self._acted_out()

    def _acted_out(self) -> Chunk:
        bench = self.bench
        faults = {
            what: parsed(what, written, self.num_clients)
            for what, written in bench.faults.items()
        }
        learner = Learner(self.workload)
        if bench.compute == "gradients":
            device.before_import()
            from .gradients import Gradients

            device.use_cache()
            learner = Gradients(self.run, bench.tree)
        secret = secrets.token_bytes(32)
        processes = ClientProcesses()
        lines = self._lines(secret, learner.most, processes)
        log = Log(bench.path(LOG, self.run, "csv"))
        try:
            world = RealWorld(self, lines, processes, learner, bench.time_scale)
            world.clock_of_testbed.interrupted = lambda: bench.interrupted
            recorder = self._new_recorder(world)
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
                bench.say(str(error))
                bench.interrupted, reason = True, StopReason.INTERRUPTED
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
            np.save(bench.path(MODEL, self.run, "npy"), model)
            bench.measured[self.run.number] = learner.measured()
        assert isinstance(reason, StopReason)
        rows, jobs = recorder.take(final=True)
        check(rows, self.num_registers)
        return Chunk(rows, jobs, reason, recorder.incidents(float(world.env.now)))

    def _lines(self, secret: bytes, most: int, processes: ClientProcesses) -> Channels:
        bench, known = self.bench, self.num_clients
        if bench.broker is not None:
            ended = processes.ended
            return MqttChannels(bench.broker, secret, known, most, bench.say, ended)
        return TcpChannels(secret, known, most, bench.say, *bench.listen)
