"""Which closed forms hold for a scenario's world, and their values.

Scenarios come as the plain dictionaries of a manifest. A form is given only where its
assumptions hold for every client; for all else there is none, and nothing is guessed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from analysis import theory, theory_queues
from analysis.theory import Lattice
from simulator.scenario.expressions import per_client

LOSING = ("availability", "leave", "crashes", "loss", "join")
"""Entries by which a client is away, or its jobs are lost."""
STAGES = ("idle", "read", "compute")
BEYOND = 1e-6
"""Probability beyond the last staleness at which a law is given."""


class ClosedForms(NamedTuple):
    """Values that a simulation of a world must match, as far as they are known.

    Attributes:
        of_run: by column of `timelines.by_run`.
        of_clients: by column of `timelines.by_client`, one value per client; and
            `available`, the share of its time that a client is there.
        law: staleness in commits and its probabilities, over all contributions.
    """

    of_run: dict[str, float]
    of_clients: dict[str, Float[np.ndarray, " K"]]
    law: tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None


class _World(NamedTuple):
    """A scenario's world, client by client."""

    clients: list[dict[str, Any]]
    places: list[tuple[int, int]]
    protocol: dict[str, Any]
    server: dict[str, Any]
    selection: dict[str, Any]
    slowdowns: Any
    messages: dict[str, float]

    @property
    def keeps_all(self) -> bool:
        """Says whether everybody is there and everything arrives."""
        return not any(client.get(key) for client in self.clients for key in LOSING)

    @property
    def is_private(self) -> bool:
        """Says whether no client's cycle depends on what the others do."""
        return not (any(self.server.values()) or self.selection or self.slowdowns)

    def laws(self, stage: str) -> list[Any]:
        """Returns each client's law of a stage: None where it takes no time."""
        found = []
        for client, (m, count) in zip(self.clients, self.places, strict=True):
            config = client.get(stage)
            found.append(law(config, m, count) if config else None)
        return found

    def compute(self) -> list[Any]:
        """Returns each client's law of a whole cycle, where it only computes.

        Raises:
            ValueError: there is none in closed form.
        """
        others = ("idle", "read", "upload", "download")
        plain = self.keeps_all and self.is_private
        if not plain or any(
            client.get(key) for client in self.clients for key in others
        ):
            raise ValueError("clients do more than compute")
        if any(client.get("compute_per", "job") != "job" for client in self.clients):
            raise ValueError("a job's computing time is a sum of draws")
        return self.laws("compute")


def law(config: dict[str, Any], m: int = 1, count: int = 1) -> Any:
    """Returns a client's law of durations as `analysis.theory` takes them.

    Args:
        config: of a law in a scenario.
        m: number of the client, from 1.
        count: of clients of its group.

    Raises:
        ValueError: it is neither constant nor one of SciPy's, or a parameter of it is a
            law itself.
    """

    def of_client(quantity: Any, name: str) -> float:
        if isinstance(quantity, dict):
            raise ValueError(f"{name} is drawn for every client")
        return float(per_client(quantity, count, name)[m - 1])

    rest = {k: v for k, v in config.items() if k != "law"}
    name = config["law"]
    if name == "constant":
        value = of_client(rest["value"], "value")
        return Lattice(stats.rv_discrete(values=([0], [1.0]))(), 1.0, value)
    family = getattr(stats, name, None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        raise ValueError(f"no closed form is known for the law {name!r}")
    values = {key: of_client(value, key) for key, value in rest.items()}
    loc, scale, shift = (
        values.pop(key, at) for key, at in (("loc", 0), ("scale", 1), ("shift", 0))
    )
    if isinstance(family, stats.rv_discrete):
        return Lattice(family(**values, loc=loc), scale, shift)
    return family(**values, loc=loc + shift, scale=scale)


def closed_forms(
    scenario: dict[str, Any],
    num_clients: int,
    upload_bytes: float = 0,
    download_bytes: float = 0,
) -> ClosedForms:
    """Returns the closed forms that hold for a scenario.

    Args:
        scenario: of one run, as its manifest has it.
        num_clients: K.
        upload_bytes: of a contribution.
        download_bytes: of a contribution.
    """
    size = {"upload": upload_bytes, "download": download_bytes}
    world = _world(scenario, num_clients, size)
    of_run: dict[str, float] = {}
    of_clients: dict[str, Float[np.ndarray, " K"]] = {}
    if not all(client.get("compute") for client in world.clients):
        return ClosedForms({}, {}, None)  # imported: nobody knows the laws
    kind = world.protocol.get("kind", "")
    rules: tuple[Callable[..., None], ...] = (_available, *RULES.get(kind, ()))
    for rule in rules:
        try:
            rule(world, of_run, of_clients)
        except ValueError:
            continue  # one of its assumptions does not hold
    return ClosedForms(of_run, of_clients, _staleness_law(world, of_clients))


def constant_downloads(
    scenario: dict[str, Any], num_clients: int, download_bytes: float
) -> Float[np.ndarray, " K"] | None:
    """Returns how long each client's download takes, if it always takes that long.

    The record does not say when a download ends; this does, for links that nobody
    shares and whose latency is constant.

    Args:
        scenario: of one run, as its manifest has it.
        num_clients: K.
        download_bytes: of a contribution.
    """
    world = _world(scenario, num_clients, {"download": download_bytes})
    latencies = [(c.get("download") or {}).get("latency") for c in world.clients]
    constant = all(one is None or one.get("law") == "constant" for one in latencies)
    if not constant or world.server.get("download_bandwidth"):
        return None
    try:
        return _transit(world, "download") if world.clients else np.zeros(num_clients)
    except ValueError:
        return None


def mean_staleness_t_synchronous(num_clients: int, t: int) -> float:
    """Computes the mean staleness where every t arrivals are a commit.

    (K - t) / t commits, for any laws of clients that restart at once: K jobs are in the
    system, each commit ends t of them, so that one stays for K / t commits on average,
    its own among them.

    Args:
        num_clients: K.
        t: contributions per commit.

    Source: Little's law over commits.
    """
    return (num_clients - t) / t


def _available(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_run
    chances = []
    for client, (m, count) in zip(world.clients, world.places, strict=True):
        presence = client.get("availability") or {}
        if presence.get("kind") != "on_off":
            return
        on, off = (float(law(presence[way], m, count).mean()) for way in ("on", "off"))
        chances.append(theory.availability(on, off))
    if chances:
        of_clients["available"] = np.array(chances)


def _in_flight(world: _World, of_run: dict, of_clients: dict) -> None:
    """Every job is replaced at once, so that C - 1 others are always under way."""
    del of_clients
    bound = world.protocol.get("staleness_bound")
    rests = any(client.get(key) for client in world.clients for key in ("idle", "read"))
    if bound is not None or rests or not world.keeps_all:
        return
    jobs = min(world.selection.get("in_flight", np.inf), len(world.clients))
    of_run["staleness_mean"] = theory.mean_staleness_in_flight(int(jobs))


def _cycles(world: _World, of_run: dict, of_clients: dict) -> None:
    """Clients that wait for nobody commit at the sum of their own rates."""
    if world.protocol.get("staleness_bound") is not None:
        return
    if not (world.keeps_all and world.is_private):
        return
    compute = _means(world, "compute")
    if any(client.get("compute_per", "job") != "job" for client in world.clients):
        return
    cycle = compute + _means(world, "idle") + _means(world, "read")
    down = _transit(world, "download")
    cycle = cycle + _transit(world, "upload") + down
    of_run["updates_per_s"] = theory.asynchronous_throughput(cycle)
    of_run["queue_length"] = of_run["waiting_mean"] = 0.0
    pairs = zip(compute + down, cycle, strict=True)
    busy = [theory.compute_utilisation(*pair) for pair in pairs]
    of_clients["utilisation"] = np.array(busy)


def _memoryless(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_run
    if world.protocol.get("staleness_bound") is not None:
        return
    rates = np.array([_rate(one) for one in world.compute()])
    of_clients["staleness_mean"] = theory.mean_staleness_exponential(rates)


def _repairman(world: _World, of_run: dict, of_clients: dict) -> None:
    """Clients compute for exponential times and share one exponential server."""
    service = world.server.get("service")
    others = {k: v for k, v in world.server.items() if k != "service"}
    bound = world.protocol.get("staleness_bound")
    if not service or any(others.values()) or bound is not None:
        return
    rates = {_rate(one) for one in world._replace(server={}).compute()}
    if len(rates) != 1:
        return
    found = theory_queues.repairman(
        len(world.clients), rates.pop(), _rate(law(service))
    )
    of_run["updates_per_s"] = found.throughput
    of_run["waiting_mean"] = found.mean_sojourn_s
    of_run["queue_length"] = found.mean_num_present
    share = found.throughput / len(world.clients) * _means(world, "compute")
    of_clients["utilisation"] = share


def _rounds(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_clients
    options = ("deadline", "wait_for")
    if any(world.protocol.get(option) for option in options):
        return
    of_run["staleness_mean"] = of_run["staleness_max"] = 0.0
    of_run["updates_per_s"] = 1 / theory.expected_maximum(world.compute())


def _t_synchronous(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_clients
    t, laws = world.protocol["t"], world.compute()
    of_run["staleness_mean"] = mean_staleness_t_synchronous(len(laws), t)
    of_run["updates_per_s"] = 1 / theory.t_synchronous_period(laws, t)


def _buffered(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_clients
    size = world.protocol.get("size")
    if not size or world.protocol.get("window") or world.selection:
        return
    laws = world.compute()
    of_run["staleness_mean"] = theory.mean_staleness_buffered(len(laws), size)
    means = [float(one.mean()) for one in laws]
    of_run["updates_per_s"] = theory.asynchronous_throughput(means) / size


def _centralised(world: _World, of_run: dict, of_clients: dict) -> None:
    del of_clients
    of_run["staleness_mean"] = of_run["staleness_max"] = 0.0
    of_run["updates_per_s"] = 1 / float(law(world.protocol["step"]).mean())


RULES: dict[str, tuple[Callable[..., None], ...]] = {
    "asynchronous": (_in_flight, _cycles, _memoryless, _repairman),
    "synchronous": (_rounds,),
    "t_synchronous": (_t_synchronous,),
    "buffered": (_buffered,),
    "centralised": (_centralised,),
}
"""By protocol; each adds what it knows, or nothing."""


def _world(
    scenario: dict[str, Any], num_clients: int, messages: dict[str, float]
) -> _World:
    common = dict(scenario.get("clients") or {})
    groups = common.pop("groups", None) or {}
    members: list[dict[str, Any]] = []
    places: list[tuple[int, int]] = []
    for group in groups.values() or [{"number": num_clients}]:
        members += [common | group] * group["number"]
        places += [(m, group["number"]) for m in range(1, group["number"] + 1)]
    central = (scenario.get("protocol") or {}).get("kind") == "centralised"
    return _World(
        clients=[] if central else members,
        places=[] if central else places,
        protocol=scenario.get("protocol") or {},
        server=scenario.get("server") or {},
        selection=common.get("selection") or {},
        slowdowns=common.get("slowdowns"),
        messages=messages,
    )


def _means(world: _World, stage: str) -> Float[np.ndarray, " K"]:
    """Returns the mean time of a stage of each client, seconds."""
    laws = world.laws(stage)
    return np.array([0.0 if one is None else float(one.mean()) for one in laws])


def _transit(world: _World, way: str) -> Float[np.ndarray, " K"]:
    """Returns the mean time of a message on each client's own link, seconds."""
    found = []
    for client, (m, count) in zip(world.clients, world.places, strict=True):
        link = client.get(way) or {}
        latency, bandwidth = link.get("latency"), link.get("bandwidth")
        seconds = float(law(latency, m, count).mean()) if latency else 0.0
        if bandwidth is not None:
            if isinstance(bandwidth, dict):
                raise ValueError("bandwidth is drawn for every client")
            rate = float(per_client(bandwidth, count, "bandwidth")[m - 1])
            seconds += world.messages[way] / rate
        found.append(seconds)
    return np.array(found)


def _rate(one: Any) -> float:
    """Returns the rate of an exponential law from zero, per second.

    Raises:
        ValueError: it is another law.
    """
    name = getattr(getattr(one, "dist", None), "name", "")
    if name != "expon" or float(one.support()[0]) != 0:
        raise ValueError("the law is not exponential")
    return 1 / float(one.mean())


def _staleness_law(
    world: _World, of_clients: dict
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None:
    """Returns the law of staleness over all contributions, of memoryless clients."""
    if "staleness_mean" not in of_clients:
        return None
    rates = np.array([_rate(one) for one in world.laws("compute")])
    laws = [theory.exponential_staleness_law(rates, k) for k in range(rates.size)]
    shares = theory.activation_from_rates(rates)
    last = max(float(one.ppf(1 - BEYOND)) for one in laws)
    ages = np.arange(0.0, last + 1)
    chances = sum(p * one.pmf(ages) for p, one in zip(shares, laws, strict=True))
    return ages, np.asarray(chances)
