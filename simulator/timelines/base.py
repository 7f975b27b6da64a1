"""The interface of every timeline of a run, whether simulated or recorded."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm, nan
from operator import itemgetter

import numpy as np

from ..files.job_steps import JobSteps
from ..files.study import Categorical
from ..files.timeline import SINCE, TIMED, Chunk, Incident, StopReason, effects
from ..parts.expressions import up
from ..parts.stop import Stop
from ..world.answers import AnswerLog
from ..world.clients import Clients, tariffs
from ..world.expenses import Tariff
from ..world.laws.base import Population
from ..world.protocol import Cadence, Protocol
from ..world.protocol_abilities import MixesModels
from ..world.streams import Purpose, Streams
from ..world.workload import Workload

FOREVER = 2**62


@dataclass(frozen=True)
class RunTimeline(ABC):
    """The timeline of one run; every iteration gives the same one.

    Attributes:
        clients: Laws of the clients' cycle; None where data are pooled.
        protocol: Protocol by which clients and server exchange messages.
        num_clients: Number of clients, `K`.
        seed: Seed of the run.
        stop: Ends of the run (all but the target, which needs numbers).
        workload: Work and messages of a job.
        answer_log: The training's answers, in an adaptive world; else None.
        job_steps: Local steps of each job so far, where they change; else None.
    """

    clients: Clients | None
    protocol: Protocol
    num_clients: int
    seed: int
    stop: Stop
    workload: Workload
    answer_log: AnswerLog | None = field(default=None, kw_only=True)
    job_steps: JobSteps | None = field(default=None, kw_only=True)

    @cached_property
    def digest(self) -> str:
        """Hash of everything that the timeline depends on."""
        return self._digest()

    @property
    @abstractmethod
    def made_by(self) -> str:
        """Its simulator, and the reason against a faster one."""

    @abstractmethod
    def _digest(self) -> str: ...

    @abstractmethod
    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Yields chunks of at most `num_rows` rows, from the start.

        Raises:
            UserError: there can be no such timeline.
        """

    @cached_property
    def cadence(self) -> Cadence:
        """How its rows, commits and rounds come."""
        return self._cadence()

    @property
    def horizon(self) -> float | None:
        """Moment at which it ends at the latest, virtual seconds, if that is known."""
        return self.stop.time

    @cached_property
    def tariffs(self) -> list[Tariff]:
        """Energy that its clients draw, by groups of them."""
        if self.clients is None or not self.clients.rated:
            return []
        everyone = Population(self.num_clients, Streams(self.seed))
        return tariffs(self.clients, everyone, self.workload)

    @property
    def in_flight(self) -> int:
        """Jobs that can be in flight at once."""
        selection = self.clients.selection if self.clients else None
        most = selection.in_flight if selection else self.num_clients
        return min(most, self.num_clients)

    @property
    def least_clients(self) -> int:
        """Clients that there must be for a further commit."""
        selected = self.clients is not None and self.clients.selection is not None
        return self.protocol.least_clients(self.num_clients, selected=selected)

    def _cadence(self) -> Cadence:
        return self.protocol.cadence(self.num_clients, self.in_flight)

    @property
    def width(self) -> int:
        """Most workers of a row, `W`."""
        return self.cadence.width

    @property
    def num_registers(self) -> int:
        """Registers that suffice."""
        return self.cadence.num_registers

    @property
    def commits_per_epoch(self) -> float:
        """Commits that make a pass over the data; NaN where their size changes."""
        if not self.cadence.is_steady:
            return nan
        return (
            self.workload.contributions_per_epoch
            / self.cadence.contributions_per_commit
        )

    @property
    def samples_noted(self) -> dict[str, object]:
        """Samples of a job, and of a local step where jobs differ, for the manifest."""
        work = self.workload
        found: dict[str, object] = {"samples_per_job": work.samples_per_job}
        if self.job_steps is None:
            return found
        return found | {"samples_per_step": work.samples / work.steps}

    @property
    def reported(self) -> str:
        """The clients' reports for it without noise, a sentence; or nothing.

        Norms of messages reveal no more than these.
        """
        log = self.answer_log
        asked = [each for each in log.asks if each != "norms"] if log else []
        return f"{log.why} asks for {' and '.join(asked)}" if log and asked else ""

    @cached_property
    def uploads_per_mixing(self) -> int:
        """Messages of an averaging of all workers with their neighbours."""
        if not isinstance(self.protocol, MixesModels):
            return 0
        streams = Streams(self.seed)
        return self.protocol.uploads_per_mixing(
            self.num_clients, lambda number: streams.at(Purpose.GRAPH, 0, number)
        )

    @cached_property
    def names(self) -> dict[str, Categorical]:
        """Columns of the table `clients` that identify each, as far as is known."""
        groups = self.clients.groups if self.clients else {}
        sizes = [group.number for group in groups.values()]
        if not sizes:
            return {}
        codes = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return {"client_group": Categorical(codes, tuple(groups))}

    @cached_property
    def limits(self) -> tuple[tuple[StopReason, int], tuple[StopReason, int]]:
        """Why a run ends, and with how many turns or how many contributions.

        A turn is a row that a limit on rounds counts.
        """
        stop, cadence = self.stop, self.cadence
        each = self.workload.contributions_per_epoch
        epochs = up(stop.epochs * each) if stop.epochs else FOREVER
        turns = {
            StopReason.COMMITS: stop.commits or FOREVER,
            StopReason.ROUNDS: (stop.rounds or FOREVER) * cadence.turns_per_round,
        }
        counted = {
            StopReason.CONTRIBUTIONS: stop.contributions or FOREVER,
            StopReason.EPOCHS: epochs,
        }
        if not cadence.commits_are_turns:
            counted[StopReason.COMMITS] = turns.pop(StopReason.COMMITS)
        first = (min(limits.items(), key=itemgetter(1)) for limits in (turns, counted))
        return next(first), next(first)

    @cached_property
    def weights(self) -> tuple[int, int, int]:
        """Bytes of a contribution, of another upload, and in all, in a common unit.

        The unit is one byte, or a part of one where a contribution's share of the
        messages is not whole.
        """
        up, down = self.workload.upload_bytes, self.workload.download_bytes
        uploads, downloads = map(Fraction, self.cadence.messages)
        unit = lcm(uploads.denominator, downloads.denominator)
        each = (uploads * up + downloads * down) * unit
        return int(each), up * unit, (self.stop.bytes or FOREVER) * unit


class Ending:
    """The end of a timeline, from its chunks."""

    def __init__(self, num_clients: int, least: int) -> None:
        self._num_clients, self._least = num_clients, least
        self._last, self._gone = 0.0, set[int]()
        self._at_rest: int | None = None

    def add(self, chunk: Chunk) -> None:
        """Takes up the next chunk."""
        made = chunk.rows.time[effects(chunk.rows.kind).commits]
        if made.size:
            self._last = float(made[-1])
        left = chunk.incidents.incident == Incident.LEFT
        self._gone.update(chunk.incidents.client[left].tolist())
        self._at_rest = chunk.gone

    def words(self, stop: StopReason) -> str:
        """Returns why the run ended."""
        here = self._num_clients - max(len(self._gone), self._at_rest or 0)
        lacks, stalled = here < self._least, stop is StopReason.STALLED
        rests = stalled or self._at_rest is not None
        if not (lacks or rests) or not (stalled or stop in TIMED):
            return stop.value
        since = f"{SINCE} {self._last:.4g} s"
        left = f"{here} of {self._num_clients} clients are left"
        if not lacks:
            return f"{since}, and nothing more could happen: {left}"
        awaited = f", {self._least} are waited for" if self._least > 1 else ""
        return f"{since}: {left}{awaited}"

    def state(self) -> tuple[float, list[int]]:
        """Returns the totals to which the rest of the run adds."""
        return self._last, sorted(self._gone)

    def restore(self, state: tuple[float, list[int]]) -> None:
        """Takes up what `state` has returned."""
        self._last, self._gone = state[0], set(state[1])
