"""Closed forms that hold for a scenario's world.

Scenarios come as the plain dictionaries of a manifest. A form is given only where its
assumptions hold for every client; for all else there is none, and nothing is guessed.
They hold for the steady state: `measures` takes it after the start of a run.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from analysis import theory
from analysis.theory import queues
from analysis.timelines.laws import ScenarioWorld, distinct, laws

BEYOND = 1e-6
"""Probability beyond the last staleness at which a law is given."""
MOST_AGES = 4096
"""Most ages at which a law is given; of more, some ever further apart."""
MOST_RATES = 10_000
"""Different rates of clients whose laws are mixed."""


class ClosedForms(NamedTuple):
    """Values that a simulation of a world must match, as far as they are known.

    Attributes:
        of_run: Values by column of `measures.by_run`.
        of_clients: Values by column of `measures.by_client`, one per client; and
            `available`, the share of its time in which a client is available.
        law: Staleness in commits and its probabilities (per commit), over all
            contributions; where it is long, at some of its commits alone.
    """

    of_run: dict[str, float]
    of_clients: dict[str, Float[np.ndarray, " K"]]
    law: tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None


def closed_forms(
    scenario: dict[str, Any],
    num_clients: int,
    upload_bytes: float = 0,
    download_bytes: float = 0,
) -> ClosedForms:
    """Returns the closed forms that hold for a scenario.

    Args:
        scenario: Scenario of one run, from its manifest.
        num_clients: K.
        upload_bytes: Bytes of a contribution.
        download_bytes: Bytes of a download.
    """
    size = {"upload": upload_bytes, "download": download_bytes}
    world = ScenarioWorld(scenario, num_clients, size)
    of_run: dict[str, float] = {}
    of_clients: dict[str, Float[np.ndarray, " K"]] = {}
    if not all(group.config.get("compute") for group in world.groups):
        return ClosedForms({}, {}, None)  # imported: the laws are unknown
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
    """Returns the seconds of each client's download, if they are constant.

    Recorded jobs lack it. It is known for links of one client each with constant
    latency.

    Args:
        scenario: Scenario of one run, from its manifest.
        num_clients: K.
        download_bytes: Bytes of a download.
    """
    world = ScenarioWorld(scenario, num_clients, {"download": download_bytes})
    latencies = [(g.config.get("download") or {}).get("latency") for g in world.groups]
    constant = all(one is None or one.get("law") == "constant" for one in latencies)
    if not constant or world.server.get("download_bandwidth"):
        return None
    try:
        return world.transit("download") if world.groups else np.zeros(num_clients)
    except ValueError:
        return None


def mean_staleness_t_synchronous(num_clients: int, t: int) -> float:
    """Computes the mean staleness where every t arrivals are a commit.

    (K - t) / t commits, for any laws of clients that restart at once: K jobs are in the
    system, each commit ends t of them, so that one stays for K / t commits on average,
    its own among them.

    Args:
        num_clients: K.
        t: Contributions per commit.

    Source: Little's law over commits.
    """
    return (num_clients - t) / t


def _available(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_run
    chances = []
    for config, number in world.groups:
        presence = config.get("availability") or {}
        if presence.get("kind") != "on_off":
            return
        on, off = (laws(presence[way], number).mean() for way in ("on", "off"))
        chances.append(theory.availability(on, off))
    if chances:
        of_clients["available"] = np.concatenate(chances)


def _in_flight(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    """Every job is replaced at once, so that C - 1 others are always under way."""
    del of_clients
    if world.has("idle", "read") or not (world.is_unbounded and world.keeps_all):
        return
    jobs = min(world.selection.get("in_flight", np.inf), world.number)
    of_run["staleness_mean"] = theory.mean_staleness_in_flight(int(jobs))


def _cycles(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    """Clients that do not wait commit at the sum of their own rates."""
    free = world.is_unbounded and world.keeps_all and world.is_private
    if not (free and world.draws_per_job):
        return
    busy = world.means("compute") + world.transit("download")
    cycle = busy + world.means("idle") + world.means("read") + world.transit("upload")
    of_run["updates_per_s"] = theory.asynchronous_throughput(cycle)
    of_run["queue_length"] = of_run["waiting_mean"] = 0.0
    of_clients["utilisation"] = theory.compute_utilisation(busy, cycle)


def _memoryless(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_run
    if world.is_unbounded:
        rates = world.rates()
        of_clients["staleness_mean"] = theory.mean_staleness_exponential(rates)


def _repairman(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    """Clients compute for exponential times and share one exponential server."""
    service = world.server.get("service")
    others = {k: v for k, v in world.server.items() if k != "service"}
    if not service or any(others.values()) or not world.is_unbounded:
        return
    alone = copy.copy(world)
    alone.server = {}
    rates = np.unique(alone.rates())
    if rates.size != 1:
        return
    serves = float(laws(service, 1).rates()[0])
    found = queues.repairman(world.number, float(rates[0]), serves)
    of_run["updates_per_s"] = found.throughput
    of_run["waiting_mean"] = found.mean_sojourn_s
    of_run["queue_length"] = found.mean_num_present
    share = found.throughput / world.number * world.means("compute")
    of_clients["utilisation"] = share


def _rounds(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_clients
    options = ("deadline", "wait_for")
    if any(world.protocol.get(option) for option in options):
        return
    of_run["staleness_mean"] = of_run["staleness_max"] = 0.0
    found, counts = distinct(world.compute())
    of_run["updates_per_s"] = 1 / theory.expected_maximum(found, counts)


def _t_synchronous(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_clients
    t, (found, counts) = world.protocol["t"], distinct(world.compute())
    of_run["staleness_mean"] = mean_staleness_t_synchronous(world.number, t)
    of_run["updates_per_s"] = 1 / theory.t_synchronous_period(found, t, counts)


def _buffered(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_clients
    size = world.protocol.get("size")
    if not size or world.protocol.get("window") or world.selection:
        return
    means = np.concatenate([one.mean() for one in world.compute()])
    of_run["staleness_mean"] = theory.mean_staleness_buffered(means.size, size)
    of_run["updates_per_s"] = theory.asynchronous_throughput(means) / size


def _centralised(world: ScenarioWorld, of_run: dict, of_clients: dict) -> None:
    del of_clients
    of_run["staleness_mean"] = of_run["staleness_max"] = 0.0
    of_run["updates_per_s"] = 1 / float(laws(world.protocol["step"], 1).mean()[0])


RULES: dict[str, tuple[Callable[..., None], ...]] = {
    "asynchronous": (_in_flight, _cycles, _memoryless, _repairman),
    "synchronous": (_rounds,),
    "t_synchronous": (_t_synchronous,),
    "buffered": (_buffered,),
    "centralised": (_centralised,),
}
"""Closed forms by protocol; each adds what it knows, or nothing."""


def _staleness_law(
    world: ScenarioWorld, of_clients: dict
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None:
    """Returns the law of staleness over all contributions, of memoryless clients."""
    if "staleness_mean" not in of_clients:
        return None
    rates, number = np.unique(world.rates(), return_counts=True)
    if rates.size > MOST_RATES:
        return None
    chance = rates / (rates * number).sum()
    last = np.log(BEYOND) / np.log1p(-chance.min()) if chance.min() < 1 else 0.0
    if last < MOST_AGES:
        ages = np.arange(0.0, last + 1)
    else:
        ages = np.unique(np.floor(np.geomspace(1, last, MOST_AGES))) - 1
    found = np.zeros(ages.size)
    for p, clients in zip(chance, number, strict=True):
        found += clients * p * stats.geom.pmf(ages, p, loc=-1)
    return ages, found
