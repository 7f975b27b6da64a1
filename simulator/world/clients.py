"""Entries of clients: cycle, links, presence, faults, power; and of their server."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ..parts.base import Config, FilePath, LocatedError, NumClients, tag
from ..parts.catalogue import AnyPart
from ..parts.expressions import Quantity
from .laws.base import (
    AlternatingLaws,
    AnyLaw,
    AnyQuantity,
    ClientValues,
    Population,
    check_parameter,
)
from .laws.distributions import Parameter
from .named import WorldName, with_named
from .streams import Purpose

if TYPE_CHECKING:
    from .availability import Availability
    from .expenses import Rate, Tariff
    from .local_steps import LocalStepsRule
    from .preferences import Preference
    from .protocol import Protocol
    from .slowdowns import Slowdown
    from .workload import Workload
else:
    Availability = Annotated[Any, AnyPart("availability")]
    LocalStepsRule = Annotated[Any, AnyPart("local_steps")]
    Preference = Annotated[Any, AnyPart("preferences")]
    Slowdown = Annotated[Any, AnyPart("slowdowns")]


Count = Annotated[int, Field(ge=1)]
Chance = Annotated[float, Field(ge=0, lt=1)]
Seconds = Annotated[float, Field(gt=0)]


class Link(Config):
    """One direction between a client and the server.

    A message of `b` bytes takes `latency + b / bandwidth` seconds; without bandwidth
    its size does not matter.
    """

    latency: AnyLaw | None = None
    """Law of virtual seconds before the first byte arrives."""
    bandwidth: Parameter | None = None
    """Bytes per virtual second, > 0."""


class Crashes(Config):
    """Crash and rejoin: the job under way is lost."""

    after: AnyLaw
    """Law of the time from a client's start, or its return, to its next crash."""
    down: AnyLaw
    """Law of the time from a crash to the client's return."""

    @property
    def turns(self) -> AlternatingLaws:
        """Laws of times up and down."""
        return (Purpose.UP, self.after), (Purpose.DOWN, self.down)


class Loss(Config):
    """Uploads that are lost, sent again, or arrive twice.

    A client that has no acknowledgement after `timeout` sends again; after `retries`
    repeats without success its job is lost and it begins a new one. A second copy of a
    message is recognised by its job and not applied.
    """

    chance: Chance
    """Chance that a message is lost."""
    timeout: Seconds
    """Virtual seconds from sending a message to sending it again."""
    retries: Annotated[int, Field(ge=0)] = 3
    """Repeats of a message before its job is abandoned."""
    duplicates: Chance = 0.0
    """Chance that a message that arrives does so twice."""


class Power(Config):
    """How fast a client computes over time, by a table or by one table per client.

    A job is computed when the integral of the power from its start has reached the
    seconds of its law; at a power of 0 nothing is computed. With `compute: {law:
    constant, value: 1}` this is the universal computation model.

    Source: Tyurin, Tight Time Complexities in Parallel Stochastic Optimization with
    Arbitrary Computation Dynamics (2024).
    """

    times: tuple[float, ...] = ()
    """Virtual seconds from which on each power holds; the first is 0."""
    values: tuple[float, ...] = ()
    """Powers, as many: seconds of a law's computing that pass in a second."""
    path: FilePath | None = None
    """CSV or Parquet file in place of `times` and `values`, a table for each client:
    columns `client` (from 1), `time` and `power`."""
    period: Seconds | None = None
    """Virtual seconds after which the table begins again; by default its last power
    holds for ever."""
    phase: Parameter = 0
    """Virtual seconds by which the client's table begins earlier than time 0."""

    @model_validator(mode="after")
    def _is_a_table(self) -> "Power":
        if (self.path is None) == (not self.times and not self.values):
            raise ValueError(
                "must have either times and values or a path; write for example times: "
                "[0, 50], values: [1, 0.1], period: 60"
            )
        if self.path is not None:
            return self
        if len(self.times) != len(self.values):
            raise LocatedError(
                f"values must be as many as times, {len(self.times)}, got "
                f"{len(self.values)}; give each time a power",
            )
        if wrong := table_mistake(self.times, self.values, self.period):
            raise ValueError(f"must have {wrong}; correct the table")
        return self


class OpenArrivals(Config):
    """Starts of jobs independent of their durations: an open system.

    A start that finds `concurrency` running jobs, or no client that is free and
    present, is missed; incidents count them (`MISSED`).

    Source: FLSim's generators of events; the demand of Huba et al., Papaya: Practical,
    Private, and Scalable Federated Learning (2022).
    """

    gap: AnyLaw
    """Law of virtual seconds from one start to the next, > 0: `constant`, or `expon`
    for Poisson arrivals."""
    rate: Power | None = None
    """Factor of the rate of starts over time, such as by the hour of a day; by default
    1."""


class Selection(Config):
    """The choice of the clients that work, where fewer are in flight than there are."""

    in_flight: Count
    """Running jobs at any time: the next starts when one ends; with `arrivals` the most
    that may run at once."""
    by: Literal["uniform", "weighted", "cyclic"] = "uniform"
    """Probabilities of clients: equal, by `weights`, or one after the other."""
    weights: Quantity = 1
    """`weighted`: chances of the clients, up to a common factor."""
    arrivals: OpenArrivals | None = None
    """Starts of an open system; by default a job starts where another has ended."""
    prefer: Preference | None = None
    """Which of those who are drawn so are taken; by default the first."""
    refill: Count = 1
    """Free places, of `concurrency`, with which new jobs start, in all of them at once;
    with `concurrency` of them they are rounds. Source: NVIDIA FLARE 2.7,
    `min_hole_to_fill` of its `BuffDeviceManager`."""

    @model_validator(mode="after")
    def _can_refill(self) -> "Selection":
        if self.refill > self.in_flight:
            raise LocatedError(
                f"refill must be at most in_flight ({self.in_flight}), got "
                f"{self.refill}; lower it",
            )
        if self.refill > 1 and self.arrivals is not None:
            raise LocatedError(
                "refill must be left out with arrivals, which start the jobs; remove "
                "one of them",
            )
        return self


class Rates(Config):
    """Watts of a client while it does something, and joules of a byte.

    All that it draws then, not in addition to idling. Radio is from the start of a
    message until it has arrived, repeats and the wait for them included.
    """

    idle: Quantity = 0
    """A second without any activity that has its own rate: from its joining until it
    leaves or the run ends, also while it is away."""
    compute: Quantity | None = None
    """A second of computing; by default as idling."""
    upload: Quantity | None = None
    """A second in which its message is under way; by default as idling."""
    download: Quantity | None = None
    """A second in which a message to it is under way; by default as idling."""
    upload_byte: Quantity | None = None
    """A byte that it sends; a message, its repeats included, counts when it is sent."""
    download_byte: Quantity | None = None
    """A byte that it gets; a message counts when it has arrived."""

    @property
    def given(self) -> dict[str, Quantity]:
        """The rates that are stated."""
        return {name: rate for name, rate in self if rate is not None}


class Behaviour(Config):
    """The entries that may differ from one group of clients to another.

    The cycle of a client is: idle, read (a request to the server, which ends with a
    snapshot of the learning state), download, compute, upload. Laws are in virtual
    seconds; a stage that is not given takes no time.
    """

    idle: AnyLaw | None = None
    """Distribution of virtual seconds before a client requests its next job."""
    read: AnyLaw | None = None
    """Law of virtual seconds of the request that ends with a snapshot of the model."""
    compute: AnyLaw | None = None
    """Law of virtual seconds of computing, by `compute_per`."""
    compute_per: Literal["job", "step", "sample"] = "job"
    """Unit of a draw of `compute`: a whole job, one of its local steps, or one of its
    samples (`value: 3e6/5e9`: 3 million operations a sample at 5 Gflop/s)."""
    compute_draws: Literal["each", "one"] | None = None
    """Draws of a job of several steps or samples. `each`, the default for steps: each
    has its own independent draw, and they are added. `one`, the default for
    samples: a single draw times their number, as if the job had its own speed."""
    power: Power | None = None
    """Speed of computing over time; by default constant."""
    upload: Link | None = None
    """Upload link (client to server): latency and bandwidth."""
    download: Link | None = None
    """Download link (server to client): latency and bandwidth."""
    restart: AnyLaw | None = None
    """Law of the time from the stop of a job by the server to the next read."""
    stopped: Literal["redrawn", "kept", "resumed"] = "redrawn"
    """Computing time of the job after a stopped one: a new draw, the time that the
    stopped one would have taken (the same batch on the same busy machine), or what was
    left of it."""
    availability: Availability | None = None
    """Presence of a client, needed to start a job. A started job is finished."""
    join: Parameter = 0
    """Virtual second at which the client comes."""
    leave: Parameter | None = None
    """Virtual second at which the client leaves for ever; its job is lost."""
    crashes: Crashes | None = None
    """Times at which a client loses its job and is away."""
    loss: Loss | None = None
    """Uploads that do not arrive, or twice."""
    watts: Rates | None = None
    """Joules that a client draws, by the second and by the byte."""

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out `stopped` where it is not set: digests stay what they were."""
        tree = dump(self)
        if "stopped" not in self.model_fields_set:
            tree.pop("stopped", None)
        return tree

    @property
    def comes_and_goes(self) -> bool:
        """Whether a client is not always there."""
        turns = self.availability is not None or self.crashes is not None
        return turns or self.join != 0 or self.leave is not None

    @property
    def adds_draws(self) -> bool:
        """Whether a job's computing time is a sum of different draws."""
        usual = "each" if self.compute_per == "step" else "one"
        several = self.compute_per in ("step", "sample")
        draws = self.compute_draws or usual
        return (
            several and draws == "each" and bool(self.compute and self.compute.varies)
        )


class Group(Behaviour):
    """Successive clients with the same laws; `m` and `M` count within the group."""

    number: NumClients
    """Number of clients of the group."""


class Clients(Behaviour):
    """All clients; entries of a group replace these."""

    number: NumClients | None = None
    """Number of clients, unless a partition of data defines it."""
    groups: dict[str, Group] = Field(default_factory=dict)
    """Divide the clients in order, such as `phones: {number: 30, compute: ...}`."""
    slowdowns: tuple[Slowdown, ...] = ()
    """Slowdowns of some clients, sometimes or always."""
    selection: Selection | None = None
    """Client selection (default: all clients work)."""
    local_steps_by: LocalStepsRule | None = None
    """Rule by which the local steps of jobs change; at most the algorithm's, or
    `job.steps` in a world without one."""
    world: WorldName | None = None
    """A system of the theory or of a recorded log, by its name. It sets the durations
    of jobs; `stalesim list worlds` shows them."""

    @model_validator(mode="before")
    @classmethod
    def _of_world(cls, data: object) -> object:
        return with_named(data) if isinstance(data, dict) and "world" in data else data

    @model_validator(mode="after")
    def _works(self) -> "Clients":
        parts: tuple[Behaviour, ...] = tuple(self.groups.values()) or (self,)
        if all(part.compute is None for part in (self, *parts)):
            raise ValueError("must set the duration of a job; add compute: {law: ...}")
        for _, _, part in self.behaviours(self.total or 1):
            if part.compute_draws == "each" and part.compute_per == "job":
                raise LocatedError(
                    "compute_draws must be left out with compute_per: job, of which a "
                    "job has one draw, got 'each'; remove it, or take compute_per: "
                    "step or sample",
                )
        self._slows_what_there_is(parts)
        if self.groups and self.number not in (None, self.total):
            raise LocatedError(
                f"number must be the {self.total} clients of all groups, got "
                f"{self.number}; leave it out, or change the numbers of the groups",
            )
        return self

    def _slows_what_there_is(self, parts: tuple[Behaviour, ...]) -> None:
        """Refuses slowdowns of links that no client has."""
        for number, slowdown in enumerate(self.slowdowns):
            for stage in (purpose.name.lower() for purpose in slowdown.slows):
                if all(getattr(part, stage) is None for part in (self, *parts)):
                    raise LocatedError(
                        f"slowdowns.{number}.stages must be stages that clients have, "
                        f"got {stage!r}; add {stage}, or leave it out",
                        ("slowdowns", number, "stages"),
                    )

    @property
    def listeners(self) -> "dict[str, Preference | LocalStepsRule | None]":
        """Parts of their options that may need training, by their keys."""
        prefer = self.selection.prefer if self.selection else None
        return {"selection.prefer": prefer, "local_steps_by": self.local_steps_by}

    @property
    def total(self) -> int | None:
        """Number of clients, if it is set here."""
        in_groups = sum(group.number for group in self.groups.values())
        return in_groups or self.number

    @property
    def rated(self) -> bool:
        """Whether some clients draw energy by stated rates."""
        return any(part.watts for part in (self, *self.groups.values()))

    def behaviours(self, num_clients: int) -> list[tuple[int, int, Behaviour]]:
        """Returns first client, how many, and behaviour of each group."""
        if not self.groups:
            return [(0, num_clients, self)]
        common = {name: getattr(self, name) for name in Behaviour.model_fields}
        parts, first = [], 0
        for group in self.groups.values():
            own = {name: getattr(group, name) for name in group.model_fields_set}
            own.pop("number", None)
            merged = Behaviour.model_construct(**(common | own))
            parts.append((first, group.number, merged))
            first += group.number
        return parts


class ServerEvaluation(Config):
    """Evaluations of the model for which the server leaves arrivals waiting.

    The `evaluate` section takes no virtual time; this is the cost of its evaluations,
    or of others without a record.
    """

    every: Count
    """Contributions that the server has taken in from one to the next."""
    takes: AnyLaw
    """Law of its virtual seconds. Arrivals queue meanwhile; clients read as ever."""


class Server(Config):
    """The resources that all clients share."""

    service: AnyLaw | None = None
    """Law of the time that the server takes for one arrival; others queue (FIFO)."""
    upload_bandwidth: Annotated[float, Field(gt=0)] | None = None
    """Bytes per virtual second of the link that all uploads share in equal parts."""
    download_bandwidth: Annotated[float, Field(gt=0)] | None = None
    """The same for downloads."""
    evaluation: ServerEvaluation | None = None
    """Evaluations that keep the server busy; by default they take no time."""

    @property
    def queues(self) -> bool:
        """Whether arrivals may find it busy."""
        return self.service is not None or self.evaluation is not None


def table_mistake(
    times: Sequence[float], values: Sequence[float], period: float | None
) -> str:
    """Returns the fault of a table of powers; empty if it is right."""
    if not times or times[0] != 0 or any(b <= a for a, b in pairwise(times)):
        found = ", ".join(f"{time:g}" for time in times[:4])
        return f"times that start at 0 and ascend, got {found or 'none'}"
    if min(values) < 0:
        return f"powers >= 0, got {min(values):g}"
    if period is None and not values[-1] > 0:
        return "a last power above 0, which holds for ever, got 0"
    if period is not None and not (times[-1] < period and max(values) > 0):
        return (
            f"times before the period's end and a power above 0, got a last time of "
            f"{times[-1]:g}, a period of {period:g} and a largest power of "
            f"{max(values):g}"
        )
    return ""


def tariffs(
    clients: "Clients", everyone: Population, job: "Workload"
) -> "list[Tariff]":
    """Returns the tariffs of groups of clients."""
    found = []
    for first, size, part in clients.behaviours(everyone.size):
        own = everyone._replace(size=size, first=first)
        joules: dict[str, Rate] = {}
        tariff: Tariff = {
            "clients": size,
            "join": _of_each(part.join, own, "join"),
            "joules": joules,
        }
        if part.leave is not None:
            tariff["leave"] = _of_each(part.leave, own, "leave")
        for name, rate in part.watts.given.items() if part.watts else ():
            way, is_message, _ = name.partition("_byte")
            scale = getattr(job, f"{way}_bytes") if is_message else 1.0
            key = f"{way}_message" if is_message else name
            joules[key] = _of_each(rate, own, name, scale)
        found.append(tariff)
    return found


def _of_each(
    value: AnyQuantity, own: Population, name: str, scale: float = 1.0
) -> "Rate":
    values = (ClientValues.given(value, own, name).values * scale).tolist()
    return values[0] if len({*values}) == 1 else values


def check_rates(
    clients: "Clients | None", protocol: "Protocol", num_clients: int
) -> None:
    """Refuses rates that no record can count.

    Raises:
        LocatedError: Something does not fit; the message has its place and the remedy.
    """
    traits = protocol.traits
    parts = clients.behaviours(num_clients) if clients and not traits.pooled else ()
    by_job = traits.has_server and not traits.batch_per_round
    for _, size, part in parts:
        for name, rate in part.watts.given.items() if part.watts else ():
            check_parameter(rate, size, f"clients.watts.{name}")
            waits = by_job and protocol.described(num_clients)["queues_jobs"]
            if (by_job or name in ("idle", "compute")) and not (
                waits and name == "download"
            ):
                continue
            raise LocatedError(
                f"clients.watts.{name} must be left out for the protocol "
                f"{tag(type(protocol))!r}, whose jobs do not record the times of all "
                "messages; remove it",
                ("clients", "watts", name),
            )
