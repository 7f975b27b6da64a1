"""A timeline that a world, a protocol and a seed make, and its end by privacy."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np
import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, EventPriority

from ..files import inputs
from ..files.timeline import NO_COMMIT, NO_SLOT, Chunk, StopReason, check
from ..privacy.ledger import CommitCosts
from ..world.answers import Answers
from ..world.clients import Server
from ..world.links import BudgetExhausted, MessageBudget, Quota
from ..world.protocol import Arrivals, Batch, LockStep, Protocol, Turns
from ..world.protocol_abilities import OwnSteps, RefreshesEmbeddings
from ..world.recorders.recorder import Recorder
from ..world.world import Question, World
from .arrays.arrivals import ArrivalsPlayer
from .arrays.blocks import STUCK, Block, chunks, feedback, free_rule, standstill
from .arrays.lock_step import LockStepPlayer, TurnsPlayer
from .base import RunTimeline

FIRST_PLAY = 4096
"""Rows at a time of the play that counts registers."""
TOGETHER = 8
"""Registers of messages come by as many: so replicates share a compiled program."""
AFTER_ALL = EventPriority(NORMAL + 2)
"""Priority of the last events at an instant."""
CHUNK = 65_536
"""Rows per chunk of a world that is simulated to find the end."""


def before_exceeded(
    played: RunTimeline, most: Sequence[int], tree: int
) -> float | None:
    """Returns a moment just before a commit that a client's privacy does not allow.

    Args:
        played: Timeline of a run that other ends limit.
        most: Most counts of each client's messages in commits (`CommitCosts`).
        tree: Commits of a tree of the noise; 1 without trees.

    Returns:
        None if there is no such commit.
    """
    costs, left = CommitCosts(played.num_clients, tree), np.array(most, np.int64)
    for chunk in played.chunks(CHUNK):
        jobs = chunk.jobs
        applied = jobs.commit != NO_COMMIT
        client, commit = jobs.client[applied], jobs.commit[applied]
        counts = costs.add(client, commit)
        spent = np.bincount(client, counts, left.size).astype(np.int64)
        over = []
        for each in np.flatnonzero(spent > left):
            mine = np.flatnonzero(client == each)
            mine = mine[np.argsort(commit[mine], kind="stable")]
            first = np.argmax(np.cumsum(counts[mine]) > left[each])
            over.append(jobs.applied_time[applied][mine[first]])
        if over:
            return float(np.nextafter(min(over), 0))
        left -= spent
    return None


def ended_by_privacy(played: RunTimeline, at: float, num_rows: int) -> Iterator[Chunk]:
    """Yields the chunks of a timeline that privacy ends at a moment."""
    stop = played.stop.model_copy(update={"time": at})
    for chunk in replace(played, stop=stop).chunks(num_rows):
        timed = chunk.stop is StopReason.TIME
        yield chunk._replace(stop=StopReason.PRIVACY) if timed else chunk


@dataclass(frozen=True)
class SimulatedTimeline(RunTimeline):
    """The timeline that a protocol makes of a world; every iteration simulates it.

    Attributes:
        batch: Sample ids of a client's job, where its upload carries those alone; used
            by protocols that bound the age of each sample's embedding.
        num_samples: Number of samples that `batch` chooses from.
        batch_size: Samples of a local step.
        server: Resources that all clients share.
        quota: Messages that may be sent before the run ends, if that is limited.
        notes_reads: Whether discarded jobs have rows, for an algorithm that remembers
            clients' models.
        player: `simpy` plays every world event by event; else those in which nothing
            feeds back on who acts when are made by arrays, to the same tables.
    """

    batch: Batch | None = None
    num_samples: int = 0
    batch_size: int = 0
    server: Server = field(default_factory=Server)
    quota: Quota | None = None
    notes_reads: bool = False
    player: Literal["fastest", "simpy"] = "fastest"

    def _digest(self) -> str:
        parts = {
            "clients": self.clients.model_dump(mode="json") if self.clients else None,
            "server": self.server.model_dump(mode="json"),
            "protocol": self.protocol.model_dump(mode="json"),
            "num_clients": self.num_clients,
            "seed": self.seed,
            "stop": self.stop.model_dump(mode="json", exclude={"target", "windowed"}),
            "traffic": self.workload.parts,
            "samples": f"{self.num_samples}/{self.batch_size}" if self._batch else "",
        }
        if self.quota is not None:
            parts["quota"] = self.quota.digested
        if self.notes_reads:
            parts["reads"] = "noted"
        if self.answer_log is not None:
            parts["answers"] = self.answer_log.of
        parts["files"] = [
            sha256
            for key, part in self._world.items()
            for sha256 in inputs.contents(part, key)
        ]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def _batch(self) -> Batch | None:
        """Sample ids of a job, if the protocol looks at them."""
        refreshes = isinstance(self.protocol, RefreshesEmbeddings)
        return self.batch if refreshes else None

    @property
    def _world(self) -> dict[str, object]:
        """Parts of the scenario that durations are drawn from, by their keys."""
        parts = ("clients", "server", "protocol")
        return {name: getattr(self, name) for name in parts}

    @cached_property
    def feedback(self) -> str:
        """Why SimPy plays it, mostly feedback on who acts when; or nothing."""
        if self.notes_reads:
            return "a memory of what clients have got"
        return feedback(
            self.protocol,
            self.clients,
            self.server,
            self.num_clients,
            limited=self.quota is not None and not self.quota.by_commit,
        )

    @property
    def made_by(self) -> str:
        if self.player == "simpy":
            return "SimPy"
        return f"SimPy, because of {self.feedback}" if self.feedback else "arrays"

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Makes the timeline and yields chunks of at most `num_rows` rows.

        Raises:
            ScenarioError: a law gave an impossible duration, or time does not advance.
            DataError: a file of measurements has changed since the study began.
            ScenarioError: The world asks, and nothing has answered by the next chunk.
        """
        if self.spent is not None:
            return ended_by_privacy(self._unlimited, self.spent, num_rows)
        if self.made_by != "arrays":
            return self._played(num_rows)
        return chunks(self._blocks(), num_rows)

    @cached_property
    def spent(self) -> float | None:
        """When its commits have spent the privacy that they may; or None."""
        if self.quota is None or not self.quota.by_commit:
            return None
        return before_exceeded(self._unlimited, self.quota.each, self.quota.by_commit)

    @property
    def _unlimited(self) -> "SimulatedTimeline":
        return replace(self, quota=None)

    @property
    def horizon(self) -> float | None:
        return self.stop.time if self.spent is None else self.spent

    def _blocks(self) -> Iterator[Block]:
        world = self._new_world()
        match free_rule(self.protocol):
            case Arrivals() as rule:
                player = ArrivalsPlayer(self, world, rule)
            case Turns() as rule:
                player = TurnsPlayer(self, world, rule)
            case rule:
                assert isinstance(rule, LockStep)
                player = LockStepPlayer(self, world)
        self._confirm_inputs()
        yield from player.blocks()

    def _new_world(self) -> World:
        protocol = self.protocol
        return World(
            self.clients,
            self.num_clients,
            self.seed,
            protocol.step if isinstance(protocol, OwnSteps) else None,
            self.server,
            self.workload,
            lattice=not _is_timed(protocol),
            job_steps=self.job_steps,
        )

    def _new_recorder(self, world: World) -> Recorder:
        if isinstance(self.protocol, RefreshesEmbeddings):
            of_batches = self._batch, self.num_samples
            return self.protocol.recorder(world, self.width, *of_batches)
        return self.protocol.records(world, self.width)

    def _confirm_inputs(self) -> None:
        """Refuses other files than those of the hash; laws have read theirs by now."""
        for key, part in self._world.items():
            inputs.confirm(part, key)

    @property
    def num_registers(self) -> int:
        own = self.protocol.traits.own_registers
        return self._own_registers if own else self.cadence.num_registers

    @cached_property
    def _own_registers(self) -> int:
        least = known = self.cadence.num_registers
        for chunk in self._played(FIRST_PLAY, NO_SLOT):
            used = chunk.rows.read_slot[chunk.rows.read_slot != NO_SLOT]
            known = max(known, 1 + int(used.max(initial=0)))
        return known + (least - known) % TOGETHER

    def _played(self, num_rows: int, registers: int | None = None) -> Iterator[Chunk]:
        """Plays the world by SimPy."""
        protocol, world = self.protocol, self._new_world()
        recorder = self._new_recorder(world)
        recorder.notes_reads, recorder.gathers = self.notes_reads, protocol.gathers
        self._limit_time(world)
        if self.quota is not None and not self.quota.by_commit:
            world.budget = MessageBudget(self.quota)
        if self.answer_log is not None:
            world.answers = Answers(self.num_clients)
        if self.job_steps is not None:
            self.job_steps.clear()
            if self.clients and (rule := self.clients.local_steps_by) is not None:
                rule.start(world, self.job_steps)
        protocol.play(world, recorder)
        self._confirm_inputs()
        reason = None
        stuck_at, stuck_rows, questions = -1.0, 0, 0
        while reason is None:
            # One row more than is asked for: the last one is not finished yet.
            found = self._run(world.env, recorder, num_rows + 1)
            asked = found if isinstance(found, Question) else None
            if asked is not None and not (
                recorder.num_rows or self._is_first(questions)
            ):
                asked.resume(world)  # nothing has come since the last question
                continue
            reason = found if isinstance(found, StopReason) else None
            if recorder.num_rows and world.env.now == stuck_at:
                stuck_rows += min(num_rows, recorder.num_rows)
                if stuck_rows > STUCK + 100 * self.num_clients:
                    raise standstill(stuck_rows, stuck_at)
            else:
                stuck_at, stuck_rows = world.env.now, 0
            if asked is not None:
                recorder.settle()
            rows, jobs = recorder.take(final=reason is not None)
            check(rows, registers or self.num_registers)
            now = float(world.seconds([world.env.now])[0])
            incidents = recorder.incidents(now, final=reason is not None)
            at_rest = reason is StopReason.TIME and world.env.peek() == inf
            stands = at_rest or reason is StopReason.STALLED
            question = now if asked else None
            gone = recorder.gone() if stands else None
            yield Chunk(rows, jobs, reason, incidents, question, gone)
            if self.answer_log is not None and world.answers is not None:
                world.answers.take(jobs)
                if asked is not None:
                    self.answer_log.tell(questions, world.answers)
                    questions += 1
                    asked.resume(world)

    def _is_first(self, questions: int) -> bool:
        """Whether a question is the first, and for the evaluation before all rows."""
        return not questions and "metrics" in getattr(self.answer_log, "asks", ())

    def _run(
        self,
        env: simpy.Environment,
        recorder: Recorder,
        num_rows: int,
    ) -> "StopReason | Question | None":
        """Runs events until a chunk is full; returns a question, or why the run ended.

        None where neither has come.
        """
        step = env.step
        (by_turns, most_turns), (by_contributions, most) = self.limits
        per_contribution, per_other, spendable = self.weights
        dearest = self.width * (per_contribution + per_other) or 1
        try:
            while recorder.num_rows < num_rows:
                made, applied = recorder.turns, recorder.num_contributions
                if made >= most_turns:
                    return by_turns
                if applied >= most:
                    return by_contributions
                sent = applied * per_contribution
                sent += recorder.num_other_uploads * per_other
                if sent >= spendable:
                    return StopReason.BYTES
                # These rows reach no limit but perhaps with the last of them.
                left = min(
                    num_rows - recorder.num_rows,
                    most_turns - made,
                    -(-(most - applied) // self.width),
                    -(-(spendable - sent) // dearest),
                )
                until = recorder.num_rows + left
                while recorder.num_rows < until:
                    step()
        except EmptySchedule:
            return StopReason.STALLED
        except _TimeIsOver:
            return StopReason.TIME
        except BudgetExhausted:
            return StopReason.PRIVACY
        except Question as asked:
            return asked
        return None

    def _limit_time(self, world: World) -> None:
        """Ends the run after everything that happens at the last instant."""
        if self.stop.time is None:
            return
        limit = world.clock(self.stop.time)
        event = simpy.Event(world.env)
        event.callbacks.append(_end_time)  # pyright: ignore[reportOptionalMemberAccess]
        event._ok, event._value = True, None
        world.env.schedule(event, priority=AFTER_ALL, delay=limit)


def _is_timed(part: Protocol) -> bool:
    """Says whether an option in seconds is set, here or in a protocol within."""
    options = (getattr(part, name) for name in part.timed)
    return any(_is_timed(o) if isinstance(o, Protocol) else o for o in options)


class _TimeIsOver(Exception):  # noqa: N818
    """The run has reached its virtual time."""


def _end_time(event: simpy.Event) -> None:
    raise _TimeIsOver
