"""A timeline that is played: a world, a protocol and a seed."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from operator import itemgetter
from typing import Any

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, EventPriority

from simulator import inputs
from simulator.protocols.gossip_recorder import GossipRecorder
from simulator.protocols.plain_recorder import PlainRecorder
from simulator.protocols.recorder import Batch, Recorder
from simulator.scenario.base import Config
from simulator.scenario.catalogue import factory
from simulator.scenario.clients import Clients, Server
from simulator.scenario.errors import ScenarioError
from simulator.scenario.protocols import Asynchronous, Gossip, Rounds, rows_of
from simulator.scenario.stop import Stop
from simulator.streams import Purpose, Streams
from simulator.timeline import Chunk, StopReason, check
from simulator.world.quota import Quota, QuotaIsSpent
from simulator.world.world import Job, World

TIMED = ("deadline", "timeout", "window")
"""Options of protocols that are times, and on no law's lattice."""
FOREVER = 2**62
AFTER_ALL = EventPriority(NORMAL + 2)
"""Priority of what happens last at an instant."""
STUCK = 100_000
"""Rows at one instant, beyond 100 per client, after which time stands still."""


@dataclass(frozen=True)
class Traffic:
    """What one contribution sends, and how many make an epoch.

    Attributes:
        upload_bytes: to the server.
        download_bytes: to the client.
        contributions_per_epoch: of all clients together.
        steps: local steps of a job.
        samples: of a job, over all of its steps.
        overhead_s: virtual seconds of a job beside its client's laws, >= 0.
    """

    upload_bytes: int
    download_bytes: int
    contributions_per_epoch: float
    steps: int = 1
    samples: int = 1
    overhead_s: float = 0

    @property
    def parts(self) -> dict[str, Any]:
        """What a timeline depends on, for its hash; no overhead is not named."""
        parts = dict(vars(self))
        if not self.overhead_s:
            del parts["overhead_s"]
        return parts


@dataclass(frozen=True)
class Played:
    """The timeline of one run; every iteration plays the same one.

    Attributes:
        clients: laws of the cycle.
        protocol: its configuration.
        num_clients: `K`.
        seed: of the run.
        stop: when it ends (all but the target, which needs numbers).
        traffic: bytes and epochs of a contribution.
        batch: the keyed sampler, for protocols that look at samples.
        num_samples: that `batch` chooses from.
        samples_key: identifies the sampler in the hash, `""` if the protocol needs
            none.
        server: what all clients share.
        quota: messages that each client may send before the run ends, if that is
            limited.
    """

    clients: Clients | None
    protocol: Config
    num_clients: int
    seed: int
    stop: Stop
    traffic: Traffic
    batch: Batch | None = None
    num_samples: int = 0
    samples_key: str = ""
    server: Server = field(default_factory=Server)
    quota: tuple[int, ...] | None = None

    @cached_property
    def width(self) -> int:
        """Most workers of a row, `W`."""
        if rows_of(self.protocol) in ("synchronous", "bounded"):
            return self.num_clients
        if isinstance(self.protocol, Rounds):
            return self.num_clients if self.protocol.order == "parallel" else 1
        if isinstance(self.protocol, Gossip):
            return 2
        return getattr(self.protocol, "t", 1)

    @property
    def num_registers(self) -> int:
        """Registers that suffice: a job in flight of every client, and the current.

        In gossip one of each worker.
        """
        if isinstance(self.protocol, Gossip):
            return self.num_clients
        selection = self.clients.selection if self.clients else None
        in_flight = selection.in_flight if selection else self.num_clients
        return min(in_flight, self.num_clients) + 1

    @cached_property
    def digest(self) -> str:
        """Hash of everything that the timeline depends on."""
        parts = {
            "clients": self.clients.model_dump(mode="json") if self.clients else None,
            "server": self.server.model_dump(mode="json"),
            "protocol": self.protocol.model_dump(mode="json"),
            "num_clients": self.num_clients,
            "seed": self.seed,
            "stop": self.stop.model_dump(mode="json", exclude={"target", "windowed"}),
            "traffic": self.traffic.parts,
            "samples": self.samples_key,
        }
        if self.quota is not None:
            parts["quota"] = self.quota
        parts["files"] = [
            sha256
            for key, part in self._world.items()
            for sha256 in inputs.contents(part, key)
        ]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def _world(self) -> dict[str, Any]:
        """What durations are drawn from, by its place in the scenario."""
        parts = ("clients", "server", "protocol")
        return {name: getattr(self, name) for name in parts}

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Plays the world and yields chunks of at most `num_rows` rows.

        Raises:
            ScenarioError: a law gave an impossible duration, or time stands still.
            DataError: a file of measurements has changed since the study began.
        """
        step = getattr(self.protocol, "step", None)
        traffic = self.traffic
        job = Job(
            traffic.upload_bytes,
            traffic.download_bytes,
            traffic.steps,
            traffic.samples,
            traffic.overhead_s,
        )
        clients, seed = self.clients, self.seed
        timed = (*TIMED, *getattr(self.protocol, "timed", ()))
        lattice = not any(getattr(self.protocol, name, None) for name in timed)
        world = World(
            clients, self.num_clients, seed, step, self.server, job, lattice=lattice
        )
        if isinstance(self.protocol, Gossip):
            recorder: Recorder = GossipRecorder(world)
        elif world.is_plain and self._applies_on_arrival:
            recorder = PlainRecorder(world, width=1)
        else:
            recorder = Recorder(world, self.width, self.batch, self.num_samples)
        self._limit_time(world)
        if self.quota is not None:
            world.quota = Quota(self.quota)
        factory(self.protocol, "protocols")(self.protocol, world, recorder)
        for key, part in self._world.items():
            inputs.confirm(part, key)
        reason = None
        stuck_at, stuck_rows = -1.0, 0
        while reason is None:
            # One row more than is asked for: the last one is not finished yet.
            reason = self._run(world.env, recorder, num_rows + 1)
            if recorder.num_rows and world.env.now == stuck_at:
                stuck_rows += num_rows
                if stuck_rows > STUCK + 100 * self.num_clients:
                    raise ScenarioError(
                        f"clients must take time, but {stuck_rows} commits happened at "
                        f"{stuck_at} s; give clients.compute or clients.idle a law "
                        f"that is not always 0"
                    )
            else:
                stuck_at, stuck_rows = world.env.now, 0
            rows, jobs = recorder.take(world.seconds, final=reason is not None)
            check(rows, self.num_registers)
            now = float(world.seconds([world.env.now])[0])
            yield Chunk(rows, jobs, reason, world.incidents(now))

    def _run(
        self,
        env: simpy.Environment,
        recorder: Recorder,
        num_rows: int,
    ) -> StopReason | None:
        """Runs events until a chunk is full; returns why the run ended, if it did."""
        step = env.step
        (by_turns, most_turns), (by_contributions, most) = self._limits
        per_contribution, per_other, spendable = self._weights
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
                # So many rows reach no limit but perhaps with the last of them.
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
        except QuotaIsSpent:
            return StopReason.PRIVACY
        return None

    @property
    def _applies_on_arrival(self) -> bool:
        protocol = self.protocol
        if type(protocol) is not Asynchronous:  # one that inherits may do otherwise
            return False
        return protocol.staleness_bound is None or protocol.beyond == "reject"

    @cached_property
    def _limits(self) -> tuple[tuple[StopReason, int], tuple[StopReason, int]]:
        """Why a run ends, and with how many turns or how many contributions.

        A commit is a turn, and so is a round, but where it has several rows: in
        sequence, and in gossip, where the averaging of all is a turn as well and
        commits are counted as contributions.
        """
        stop, protocol, n = self.stop, self.protocol, self.num_clients
        epochs = ceil((stop.epochs or FOREVER) * self.traffic.contributions_per_epoch)
        made = {
            StopReason.COMMITS: stop.commits or FOREVER,
            StopReason.ROUNDS: stop.rounds or FOREVER,
        }
        counted = {
            StopReason.CONTRIBUTIONS: stop.contributions or FOREVER,
            StopReason.EPOCHS: epochs,
        }
        if isinstance(protocol, Rounds) and protocol.order == "sequential":
            made[StopReason.ROUNDS] *= n
        if isinstance(protocol, Gossip) and protocol.in_rounds:
            made[StopReason.ROUNDS] *= n + 1
            counted[StopReason.COMMITS] = made.pop(StopReason.COMMITS)
        first = (min(limits.items(), key=itemgetter(1)) for limits in (made, counted))
        return next(first), next(first)

    @property
    def contributions_per_commit(self) -> int:
        """Most contributions that one commit applies."""
        protocol, n = self.protocol, self.num_clients
        selection = self.clients.selection if self.clients else None
        match rows_of(protocol):
            case "synchronous":
                asked = min(selection.in_flight, n) if selection else n
                return min(getattr(protocol, "wait_for", None) or asked, asked)
            case "rounds":
                return self.width
            case "t_synchronous":
                return getattr(protocol, "t", 1)
            case "buffered":
                return getattr(protocol, "size", None) or 1
        return 1

    @property
    def commits_per_epoch(self) -> float:
        """Commits that make a pass over the data."""
        return self.traffic.contributions_per_epoch / self.contributions_per_commit

    @property
    def rounds_end_mixed(self) -> bool:
        """Whether a round ends with an averaging of all, not with a commit."""
        protocol = self.protocol
        if not isinstance(protocol, Gossip) or not protocol.in_rounds:
            return False
        return protocol.average == "all" or protocol.order == "step_then_average"

    @cached_property
    def commits_per_round(self) -> int | None:
        """Commits that a round has; None where the protocol has no rounds."""
        kind = rows_of(self.protocol)
        if isinstance(self.protocol, Rounds) and self.protocol.order == "sequential":
            return self.num_clients
        if isinstance(self.protocol, Gossip) and self.protocol.in_rounds:
            return self.num_clients
        return 1 if kind in ("rounds", "synchronous") else None

    @cached_property
    def uploads_of_all(self) -> int:
        """Messages of an averaging of all workers with their neighbours."""
        protocol = self.protocol
        if not (isinstance(protocol, Gossip) and protocol.average == "neighbours"):
            return 0
        streams = Streams(self.seed)
        return sum(
            protocol.num_out(
                self.num_clients, lambda number: streams.at(Purpose.GRAPH, 0, number)
            )
        )

    @cached_property
    def _weights(self) -> tuple[int, int, int]:
        """Bytes of a contribution, of another upload, and in all, in a common unit.

        The unit is one byte, or in rounds, where a party's share need not be whole, one
        divided by the number of parties.
        """
        up, down = self.traffic.upload_bytes, self.traffic.download_bytes
        spendable, protocol = self.stop.bytes or FOREVER, self.protocol
        if isinstance(protocol, Rounds):
            n = self.num_clients
            embeddings, replies = protocol.messages_per_round(n)
            return embeddings * up + replies * down, n * up, n * spendable
        if isinstance(protocol, Gossip) and protocol.average != "all":
            return 0, up, spendable  # gradients stay where they are
        return up + down, up, spendable

    def _limit_time(self, world: World) -> None:
        """Ends the run after everything that happens at the last instant."""
        if self.stop.time is None:
            return
        limit = self.stop.time
        if world.tick is not None:
            limit = int(Fraction(repr(limit)) / world.tick)
        event = simpy.Event(world.env)
        event.callbacks.append(_end_time)  # pyright: ignore[reportOptionalMemberAccess]
        event._ok, event._value = True, None
        world.env.schedule(event, priority=AFTER_ALL, delay=limit)


class _TimeIsOver(Exception):  # noqa: N818
    """The run has reached its virtual time."""


def _end_time(event: simpy.Event) -> None:
    raise _TimeIsOver
