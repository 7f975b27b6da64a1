"""A timeline that is played: a world, a protocol and a seed."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, EventPriority

from simulator.protocols.recorder import Batch, Recorder
from simulator.scenario.base import Config
from simulator.scenario.catalogue import factory
from simulator.scenario.clients import Clients, Server
from simulator.scenario.errors import ScenarioError
from simulator.scenario.stop import Stop
from simulator.timeline import Chunk, StopReason, check
from simulator.world.world import Job, World

TIMED = ("deadline", "timeout", "window")
"""Options of protocols that are times, and on no law's lattice."""
FOREVER = 2**62
SERVER = Server()
"""One that takes no time and shares no link."""
AFTER_ALL = EventPriority(NORMAL + 1)
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
    """

    upload_bytes: int
    download_bytes: int
    contributions_per_epoch: float
    steps: int = 1
    samples: int = 1


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
    server: Server = SERVER

    @cached_property
    def width(self) -> int:
        """Most workers of a row, `W`."""
        kind = getattr(self.protocol, "kind", "")
        if kind in ("synchronous", "bounded"):
            return self.num_clients
        return getattr(self.protocol, "t", 1)

    @property
    def num_registers(self) -> int:
        """Registers that suffice: a job in flight of every client, and the current."""
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
            "stop": self.stop.model_dump(mode="json", exclude={"target"}),
            "traffic": vars(self.traffic),
            "samples": self.samples_key,
        }
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Plays the world and yields chunks of at most `num_rows` rows.

        Raises:
            ScenarioError: a law gave an impossible duration, or time stands still.
        """
        step = getattr(self.protocol, "step", None)
        traffic = self.traffic
        job = Job(
            traffic.upload_bytes,
            traffic.download_bytes,
            traffic.steps,
            traffic.samples,
        )
        clients, seed = self.clients, self.seed
        lattice = not any(getattr(self.protocol, name, None) for name in TIMED)
        world = World(
            clients, self.num_clients, seed, step, self.server, job, lattice=lattice
        )
        recorder = Recorder(world, self.width, self.batch, self.num_samples)
        over: list[StopReason] = []
        self._limit_time(world, over)
        factory(self.protocol, "protocols")(self.protocol, world, recorder)
        reason = None
        stuck_at, stuck_rows = -1.0, 0
        while reason is None:
            # One row more than is asked for: the last one is not finished yet.
            reason = self._run(world.env, recorder, num_rows + 1, over)
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
        over: list[StopReason],
    ) -> StopReason | None:
        """Runs events until a chunk is full; returns why the run ended, if it did."""
        step = env.step
        stop, upload = self.stop, self.traffic.upload_bytes
        message = upload + self.traffic.download_bytes
        commits = min(stop.commits or FOREVER, stop.rounds or FOREVER)
        epochs = ceil((stop.epochs or FOREVER) * self.traffic.contributions_per_epoch)
        contributions = min(stop.contributions or FOREVER, epochs)
        spendable = stop.bytes or FOREVER
        try:
            while recorder.num_rows < num_rows:
                step()
                if over:
                    return over[0]
                made, applied = recorder.version, recorder.num_contributions
                if made >= commits:
                    rounds = commits == stop.rounds and commits != stop.commits
                    return StopReason.ROUNDS if rounds else StopReason.COMMITS
                if applied >= contributions:
                    at_epochs = contributions != stop.contributions
                    return StopReason.EPOCHS if at_epochs else StopReason.CONTRIBUTIONS
                if applied * message + recorder.num_refreshes * upload >= spendable:
                    return StopReason.BYTES
        except EmptySchedule:
            return StopReason.STALLED
        return None

    def _limit_time(self, world: World, over: list[StopReason]) -> None:
        """Ends the run after everything that happens at the last instant."""
        if self.stop.time is None:
            return
        limit = self.stop.time
        if world.tick is not None:
            limit = int(Fraction(repr(limit)) / world.tick)
        event = simpy.Event(world.env)
        event.callbacks.append(  # pyright: ignore[reportOptionalMemberAccess]
            lambda _: over.append(StopReason.TIME)
        )
        event._ok, event._value = True, None
        world.env.schedule(event, priority=AFTER_ALL, delay=limit)
