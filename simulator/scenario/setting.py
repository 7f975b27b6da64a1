"""World of a scenario: its clients, server, protocol and end, without learning."""

import re
from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    FieldSerializationInfo,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_validator,
)

from ..parts.base import MOST_CLIENTS, Config, LocatedError, RecordingPath, Rule, tag
from ..parts.catalogue import AnyPart
from ..parts.stop import Count, Stop
from ..world.answers import Asking
from ..world.clients import Behaviour, Clients, Link, Server, check_rates
from ..world.laws.base import check_cycle, check_parameter
from ..world.protocol import Protocol, refuse_selection
from ..world.protocol_abilities import OwnSteps, OwnTimeline
from .dialect import filled, inherits
from .grid import Swept, points

UNDESCRIBED = "not said by the protocol"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_RULE = (
    "at most 100 letters, digits, dots, _ and -, beginning with a letter or digit"
)
StudyName = Annotated[str, Field(pattern=NAME), Rule(NAME_RULE, "vafl-mnist")]
"""Name of a study, also of its folder."""


def is_study_name(value: object) -> bool:
    """Returns whether a value can be the name of a study."""
    return isinstance(value, str) and re.fullmatch(NAME, value) is not None


class Playing(Config):
    """How a timeline is made."""

    player: Literal["fastest", "simpy"] = "fastest"
    """`simpy` plays every world event by event; else those in which nothing feeds back
    on who acts when are made by arrays, to the same tables."""


class Recording(Playing):
    """How a timeline is made, or one that is there already and is read."""

    replay: RecordingPath | None = None
    """Folder that `stalesim timeline` wrote, from a scenario or from a log; of its runs
    the one with the same label and replicate, or else the only one."""

    @model_validator(mode="after")
    def _one_source(self) -> "Recording":
        if self.replay is not None and self.player != "fastest":
            raise LocatedError(
                "timeline.player must be left out if a timeline is replayed, because "
                "it is not simulated again; remove it, or replay"
            )
        return self


class Varied(Config, ABC):
    """A study of any world: its name, its replicates, and how it is varied."""

    name: StudyName
    """Name of the study, used for its folder and figures."""
    source: str = ""
    """Paper and section of the scenario."""
    question: str = ""
    """Research question of the study."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of everything random."""
    replicates: Count = 1
    """Runs of each variant and swept value. Each replicate has its own seed, the same
    in all variants."""
    variants: dict[str, dict[str, object]] = Field(default_factory=dict)
    """Named variants: each replaces some entries of the scenario (default: none)."""
    sweep: dict[str, Swept] = Field(default_factory=dict)
    """Dotted keys and their values: a list, or a range `{from, to, num, scale, whole}`.
    Every combination is run. `zipped` steps through lists together, `random` draws
    `num` points from distributions."""

    @field_serializer("variants", mode="wrap")
    def _inherited(
        self,
        variants: dict[str, dict[str, object]],
        dump: SerializerFunctionWrapHandler,
        info: FieldSerializationInfo,
    ) -> object:
        """Writes out what variants inherit, where usual values are written out as well.

        Else a reader would take those for what the base has written.
        """
        if info.exclude_unset or not any(map(inherits, variants.values())):
            return dump(variants)
        written = self.model_dump(mode="json", exclude_unset=True)
        try:
            return {
                name: self._free(filled(changes, written, type(self))[0], changes)
                for name, changes in variants.items()
            }
        except LocatedError:  # it is refused where variants are made
            return dump(variants)

    def _free(self, entries: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """Returns a variant's entries without inherited ones that the sweep replaces.

        Args:
            entries: Its own and what they inherit; they are changed.
            own: Its own.
        """
        swept = {} if "sweep" in own else points(self.sweep, self.seed)[0]
        for key in swept:
            tree, mine = entries, own
            *owners, last = key.split(".")
            for owner in owners:
                tree, mine = tree.get(owner, {}), mine.get(owner, {})
            if last not in mine:
                tree.pop(last, None)
        return entries


class BaseScenario(Varied):
    """Clients, server, protocol and end of a study; and how it is varied."""

    clients: Clients | None = None
    """The clients: compute times, links, availability and failures."""
    server: Server = Field(default_factory=Server)
    """Resources shared by all clients: service time and bandwidth of the server."""
    protocol: Annotated[Protocol, AnyPart("protocols")]
    """When the server aggregates, and which client updates it accepts."""
    stop: Stop
    """End of a run: the first condition that is met."""
    record: Literal["everything", "summary"] = "everything"
    """`summary` keeps statistics of the timeline, without the growing tables of rows,
    commits, jobs and incidents."""

    @field_serializer("clients", mode="wrap")
    def _inheriting(
        self, clients: Clients | None, dump: SerializerFunctionWrapHandler
    ) -> object:
        """Leaves out of groups what they take from the clients as a whole."""
        tree = dump(clients)
        for name, group in clients.groups.items() if clients else ():
            own, dumped = group.model_fields_set, tree["groups"][name]
            tree["groups"][name] = {k: v for k, v in dumped.items() if k in own}
        return tree

    @property
    @abstractmethod
    def num_clients(self) -> int:
        """Number of clients or parties."""

    @property
    def num_workers(self) -> int:
        """Number of workers in rows."""
        if isinstance(self.protocol, OwnTimeline):
            return self.protocol.num_workers
        return 1 if self.protocol.traits.pooled else self.num_clients

    def described(self) -> dict[str, object]:
        """Returns the descriptions of its parts, for a run's entry in a manifest.

        As in `Protocol.described`. If a protocol has a `play` of its own but inherits
        its description, closed forms and queues belong to another one, and are left
        out.
        """
        facts = self.protocol.described(self.num_clients)
        for kind in type(self.protocol).__mro__:
            if "described" in vars(kind):
                return facts
            if "play" in vars(kind):
                break
        return facts | {"closed_forms": {}, "queues": [UNDESCRIBED]}

    @property
    def replays(self) -> bool:
        """Whether the timeline is a recorded one."""
        return getattr(self._timeline, "replay", None) is not None

    @property
    def asking(self) -> dict[str, tuple[str, ...]]:
        """Parts that need training for who acts next, and why; none of a recording."""
        return {who: part.asks for who, part in self.listeners.items()}

    @property
    def vary_steps(self) -> bool:
        """Whether jobs may have fewer local steps than the algorithm's."""
        return self.clients is not None and self.clients.local_steps_by is not None

    @property
    def listeners(self) -> dict[str, Asking]:
        """Those parts, by their keys."""
        if self.replays:
            return {}
        protocol, clients = self.protocol, self.clients
        of_clients = clients.listeners.items() if clients else ()
        found: dict[str, object] = {f"the protocol {tag(type(protocol))}": protocol}
        found |= {f"protocol.{key}": part for key, part in protocol}
        found |= {f"clients.{key}": part for key, part in of_clients}
        asking = ((w, part) for w, part in found.items() if isinstance(part, Asking))
        return {who: part for who, part in asking if part.asks}

    @property
    def asks(self) -> tuple[str, ...]:
        """Quantities that its world needs of training, of `world.answers.QUESTIONS`."""
        return tuple(sorted({each for what in self.asking.values() for each in what}))

    @property
    def plays_alone(self) -> bool:
        """Whether each of its runs plays its own world, whatever it has in common."""
        return bool(self.asks) or (self.vary_steps and not self.replays)

    @property
    def player(self) -> Literal["fastest", "simpy"]:
        """The simulator of the timeline, if it is not a recorded one."""
        timeline = self._timeline
        return timeline.player if timeline else "fastest"

    @property
    def _timeline(self) -> Playing | None:
        return getattr(self, "timeline", None)

    def check_world(self) -> None:
        """Refuses clients and protocols that do not fit each other."""
        protocol, n = self.protocol, self.num_clients
        if n > MOST_CLIENTS:
            raise LocatedError(
                f"clients must be at most {MOST_CLIENTS:,} in all, got {n:,}; take "
                f"fewer"
            )
        timed = protocol.traits.pooled or isinstance(self.protocol, OwnSteps)
        if self.clients is None and not timed and not self.replays:
            raise LocatedError(
                "clients is missing; add it, unless the protocol is centralised"
            )
        if self.clients is not None and not protocol.stops_jobs:
            _refuse_restarts(self.clients, protocol)
        if protocol.traits.everyone_works:
            refuse_selection(protocol.kind, self.clients)
        protocol.check_setting(self.clients, self.server, n)
        if self.stop.rounds is not None and not protocol.cadence(n, n).in_rounds:
            raise LocatedError(
                f"stop.rounds must not be set for the protocol {protocol.kind!r}, "
                f"which has no rounds; take commits"
            )
        if self.vary_steps and not protocol.traits.lone_jobs:
            raise LocatedError(
                f"protocol.kind must be one whose clients read, compute and send by "
                f"themselves where local steps change, got {protocol.kind!r}; take "
                f"asynchronous, buffered, synchronous or another"
            )
        check_rates(self.clients, protocol, n)
        if isinstance(self.protocol, OwnSteps):
            check_cycle({"protocol.step": self.protocol.step}, n)
        if self.clients is not None:
            _check_clients(self.clients, n)
        if self.server.service is not None:
            self.server.service.check(n, "server.service")
        if self.server.evaluation is not None:
            if not protocol.traits.has_server:
                raise LocatedError(
                    f"server.evaluation must be left out for the protocol "
                    f"{protocol.kind!r}, in which no server takes in contributions; "
                    f"remove it"
                )
            self.server.evaluation.takes.check(n, "server.evaluation.takes")


class Job(Config):
    """Size of a client's job, where no algorithm defines it."""

    upload_bytes: Annotated[int, Field(ge=0)] = 0
    """Bytes of a client's message to the server."""
    download_bytes: Annotated[int, Field(ge=0)] = 0
    """Bytes of the server's message to a client."""
    steps: Count = 1
    """Number of local steps."""
    samples: Count = 1
    """Samples of all steps together."""


class WorldScenario(BaseScenario):
    """A world without numerics, for `stalesim timeline`: who acts when, how stale."""

    job: Job = Job()
    """The computation and the messages of a job."""
    timeline: Playing | None = None
    """How it is made; by default as fast as can be."""

    @property
    def num_clients(self) -> int:
        return (self.clients.total if self.clients else None) or 1

    @model_validator(mode="after")
    def _fits(self) -> "WorldScenario":
        uncounted = self.clients is None or self.clients.total is None
        if uncounted and (self.clients is not None or not self.protocol.traits.pooled):
            raise LocatedError("clients.number is missing; set it", ("clients",))
        self.check_world()
        if self.asks:
            who = next(iter(self.asking))
            raise LocatedError(
                f"{who} must not need training in a world without a problem, got "
                f"{' and '.join(self.asks)}; add the problem and run it",
                tuple(who.split(".")) if "." in who else ("protocol",),
            )
        for unit in ("epochs", "target"):
            if getattr(self.stop, unit) is not None:
                raise LocatedError(
                    f"stop.{unit} must not be set in a world without a problem, where "
                    f"there are no data; take time, commits or contributions"
                )
        return self


def _refuse_restarts(clients: Clients, protocol: Protocol) -> None:
    for name, part in {"": clients, **clients.groups}.items():
        for entry, default in (("restart", None), ("stopped", "redrawn")):
            if getattr(part, entry) == default:
                continue
            place = f"clients.groups.{name}" if name else "clients"
            raise LocatedError(
                f"{place}.{entry} must be left out where no job is stopped, as with "
                f"this protocol {tag(type(protocol))!r}; remove it, or let jobs be "
                f"stopped (late: stop, beyond: stop)",
                (*place.split("."), entry),
            )


def _check_clients(clients: Clients, num_clients: int) -> None:
    total = clients.total
    if total is not None and total != num_clients:
        raise LocatedError(
            f"clients must be as many as the partition has ({num_clients}), got "
            f"{total}; change one of them"
        )
    for number, slowdown in enumerate(clients.slowdowns):
        slowdown.check(num_clients, f"clients.slowdowns.{number}")
    names = list(clients.groups) or [""]
    for name, (_, size, behaviour) in zip(
        names, clients.behaviours(num_clients), strict=True
    ):
        group = clients.groups.get(name, clients)
        place = f"clients.groups.{name}" if name else "clients"
        _check_behaviour(behaviour, size, place, group.model_fields_set)


def _check_behaviour(
    behaviour: Behaviour, size: int, place: str, own: set[str]
) -> None:
    """Checks how a group behaves, whose own entries stand at a place, or all do."""

    def at(entry: str) -> str:
        return f"{place if entry in own else 'clients'}.{entry}"

    stages = ("idle", "read", "compute", "restart")
    laws = {at(stage): getattr(behaviour, stage) for stage in stages}
    for way in ("upload", "download"):
        link: Link | None = getattr(behaviour, way)
        if link is not None:
            laws[f"{at(way)}.latency"] = link.latency
    if behaviour.compute is None:
        raise LocatedError(
            f"{place}.compute is missing; set the duration of a job",
            (*place.split("."),),
        )
    moving = {name: law for name, law in laws.items() if law is not None}
    compute = {at("compute"): moving.pop(at("compute"))}
    check_cycle(moving | compute, size)
    for way in ("upload", "download"):
        bandwidth = getattr(getattr(behaviour, way), "bandwidth", None)
        if bandwidth is not None:
            check_parameter(bandwidth, size, f"{place}.{way}.bandwidth", above=True)
    check_parameter(behaviour.join, size, f"{place}.join")
    if behaviour.leave is not None:
        check_parameter(behaviour.leave, size, f"{place}.leave")
    if behaviour.crashes is not None:
        behaviour.crashes.down.check(size, f"{at('crashes')}.down")
        check_cycle({f"{at('crashes')}.after": behaviour.crashes.after}, size)
    if behaviour.availability is not None:
        behaviour.availability.check(size, at("availability"))
