"""What clients take by the second and by the byte: power, money, and carbon."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ..parts.base import Config, LocatedError, Quantity
from .laws.base import Population
from .laws.parameters import ClientValues, check_parameter

if TYPE_CHECKING:
    from ..parts.stop import Stop
    from .clients import Clients
    from .workload import Workload


class Rates(Config):
    """What a client takes while it does something, and for a message.

    All that it takes then, not in addition to idling. Radio is from the start of a
    message until it has arrived, repeats and the wait for them included.
    """

    idle: Quantity = 0
    """A second in which it does nothing of what has a rate of its own: from its joining
    until it leaves or the run ends, also while it is away."""
    compute: Quantity | None = None
    """A second of computing, encryption included; by default as idling."""
    upload: Quantity | None = None
    """A second in which its message is under way; by default as idling."""
    download: Quantity | None = None
    """A second in which a message to it is under way; by default as idling."""
    upload_byte: Quantity | None = None
    """A byte that it sends; a message, its repeats included, counts when it is sent."""
    download_byte: Quantity | None = None
    """A byte that it gets; a message counts when it has arrived."""

    @property
    def given(self) -> dict[str, Any]:
        """The rates that are stated."""
        return {name: rate for name, rate in self if rate is not None}


class Carbon(Config):
    """Carbon of electricity, hour by hour."""

    grams: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)]
    """Grams of CO2 equivalents a kilowatt-hour in each successive hour; after the last,
    the first comes again: 24 values are a day."""
    shift: Annotated[float, Field(ge=0)] = 0.0
    """Hours by which the table begins before the run."""


def tariffs(
    clients: "Clients", num_clients: int, everyone: Population, job: "Workload"
) -> list[dict[str, Any]]:
    """Returns the tariffs of groups of clients, as `simulator.expenses` has them.

    Args:
        clients: Clients of the scenario.
        num_clients: Number of clients.
        everyone: All clients, and the run's random numbers.
        job: Size of a job's messages.

    Returns:
        A tariff for each group.
    """
    found = []
    for first, size, part in clients.behaviours(num_clients):
        own = everyone._replace(size=size, first=first)

        def each(value: Any, name: str, scale: float = 1.0, own: Any = own) -> Any:
            values = (ClientValues.given(value, own, name).values * scale).tolist()
            return values[0] if len({*values}) == 1 else values

        tariff: dict[str, Any] = {"clients": size, "join": each(part.join, "join")}
        if part.leave is not None:
            tariff["leave"] = each(part.leave, "leave")
        for spent, rates in (("joules", part.watts), ("price", part.prices)):
            if rates is None:
                continue
            of = tariff[spent] = {}
            for name, rate in rates.given.items():
                way, is_message, _ = name.partition("_byte")
                scale = getattr(job, f"{way}_bytes") if is_message else 1.0
                of[f"{way}_message" if is_message else name] = each(rate, name, scale)
        if part.carbon is not None:
            tariff["carbon"] = part.carbon.model_dump(mode="json")
        found.append(tariff)
    return found


def check_rates(
    clients: "Clients | None", protocol: Any, stop: "Stop", num_clients: int
) -> None:
    """Refuses rates that no record tells how to count, and limits without any.

    Args:
        clients: Clients of the scenario.
        protocol: Its protocol.
        stop: Ends of its runs.
        num_clients: Number of clients.

    Raises:
        LocatedError: Something does not fit; the message says where and what to do.
    """
    traits = protocol.traits
    parts = clients.behaviours(num_clients) if clients and not traits.pooled else ()
    by_job = traits.has_server and not traits.batch_per_round
    for _, size, part in parts:
        for place, rates in (("watts", part.watts), ("prices", part.prices)):
            for name, rate in rates.given.items() if rates else ():
                check_parameter(rate, size, f"clients.{place}.{name}")
                waits = by_job and protocol.described(num_clients)["queues_jobs"]
                if (by_job or name in ("idle", "compute")) and not (
                    waits and name == "download"
                ):
                    continue
                raise LocatedError(
                    f"clients.{place}.{name} must be left out for the protocol "
                    f"{protocol.kind!r}, whose jobs do not say how long messages take "
                    f"(or not of all messages); remove it",
                    ("clients", place, name),
                )
        if part.carbon is not None and part.watts is None:
            raise LocatedError(
                "clients.carbon must stand with clients.watts, whose energy it is of; "
                "add watts: {compute: 5}, or remove it",
            )
    for limit, name in {"joules": "watts", "price": "prices"}.items():
        if getattr(stop, limit) is None:
            continue
        if all(getattr(part, name) is None for _, _, part in parts):
            raise LocatedError(
                f"stop.{limit} must stand with clients.{name}, by which it is counted; "
                f"add {name}: {{compute: 5}}, or another end",
                ("stop", limit),
            )
