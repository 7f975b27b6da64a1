"""Closed forms that hold for a scenario's world.

Scenarios come as the plain dictionaries of a manifest. A form is returned only where
its assumptions hold for every client; nothing is guessed. They hold for the steady
state: `measures` takes it after the start of a run.
"""

import copy
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .. import facts, theory
from ..facts import Entry
from ..laws import (
    InfiniteMeanError,
    ScenarioWorld,
    check_independent,
    column,
    distinct,
    laws,
    means,
)
from ..laws import rates as rates_of
from ..theory import queues

LINKS = ("upload", "download")
BEYOND = 1e-6
"""Probability beyond the last staleness of a law."""
MOST_AGES = 4096
"""Most ages of a law; of more, some with growing gaps."""
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


def closed_forms(entry: Entry) -> ClosedForms:
    """Returns the closed forms that hold for a run.

    Its protocol defines the candidates (`facts`); without, as in a study of an earlier
    version, there are none.
    """
    size = {way: entry.get(f"{way}_bytes", 0) for way in LINKS}
    known = facts.of(entry)
    world = ScenarioWorld(
        entry["scenario"], entry["num_clients"], size, pooled=known.get("pooled", False)
    )
    forms = ClosedForms({}, {}, None)
    if not all(config.get("compute") for config, _ in world.groups):
        return forms  # imported: the laws are unknown
    rules = {"available": {}} | known.get("closed_forms", {})
    if entry.get("overhead_s"):  # secure sums are in no law
        rules = {name: rules[name] for name in WITHOUT_TIMES if name in rules}
    for name, parameters in rules.items():
        with suppress(ValueError):  # one of its assumptions does not hold
            RULES[name](world, forms, **parameters)
    if "memoryless" in rules:
        return forms._replace(law=_staleness_law(world))
    return forms


def _speed(forms: ClosedForms, commits_per_s: float, contributions: int = 1) -> None:
    forms.of_run["commits_per_s"] = commits_per_s
    forms.of_run["contributions_per_s"] = commits_per_s * contributions


def _available(world: ScenarioWorld, forms: ClosedForms) -> None:
    chances = []
    for config, number in world.groups:
        presence = config.get("availability") or {}
        if not {"on", "off"} <= presence.keys():
            return
        on, off = (means(presence[way], number) for way in ("on", "off"))
        chances.append(theory.availability(on, off))
    if chances:
        forms.of_clients["available"] = np.concatenate(chances)


def _in_flight(world: ScenarioWorld, forms: ClosedForms, size: int = 1) -> None:
    """Places are filled as soon as some are free, so that others are under way.

    Every `size` contributions are a commit.
    """
    if world.has("idle", "read") or not world.keeps_all:
        return
    if world.selection.get("arrivals"):
        return
    transits = (partial(world.transit, way) for way in LINKS)
    for seconds in (partial(world.means, "compute"), *transits):
        try:
            seconds()
        except InfiniteMeanError:
            return
        except ValueError:
            continue  # a mean that is not known is taken to be finite
    jobs = min(world.selection.get("in_flight", np.inf), world.number)
    refill = min(world.selection.get("refill", 1), jobs)
    forms.of_run["staleness_mean"] = theory.mean_staleness_buffered(
        int(jobs), size, int(refill)
    )


def _cycles(world: ScenarioWorld, forms: ClosedForms) -> None:
    free = world.keeps_all and world.is_private
    if not (free and world.draws_per_job):
        return
    busy = world.means("compute")
    cycle = busy + world.means("idle") + world.means("read")
    cycle = cycle + world.transit("download") + world.transit("upload")
    _speed(forms, theory.asynchronous_throughput(cycle))
    forms.of_run["queue_length"] = forms.of_run["waiting_mean"] = 0.0
    forms.of_clients["utilisation"] = theory.compute_utilisation(busy, cycle)


def _memoryless(world: ScenarioWorld, forms: ClosedForms) -> None:
    rates = world.rates()
    forms.of_clients["staleness_mean"] = theory.mean_staleness_exponential(rates)


def _repairman(world: ScenarioWorld, forms: ClosedForms) -> None:
    """Clients compute for exponential times and share one exponential server."""
    service = world.server.get("service")
    others = {k: v for k, v in world.server.items() if k != "service"}
    if not service or any(others.values()):
        return
    alone = copy.copy(world)
    alone.server = {}
    rates = np.unique(alone.rates())
    if rates.size != 1:
        return
    serves = float(rates_of(laws(service, 1))[0])
    found = queues.repairman(world.number, float(rates[0]), serves)
    _speed(forms, found.throughput)
    forms.of_run["waiting_mean"] = found.mean_sojourn_s
    forms.of_run["queue_length"] = found.mean_num_present
    share = found.throughput / world.number * world.means("compute")
    forms.of_clients["utilisation"] = share


def _slowest(world: ScenarioWorld, forms: ClosedForms) -> None:
    forms.of_run["staleness_mean"] = forms.of_run["staleness_max"] = 0.0
    found, counts = distinct(world.compute())
    _speed(forms, 1 / theory.expected_maximum(found, counts), world.number)


def _earliest(world: ScenarioWorld, forms: ClosedForms, t: int) -> None:
    own = world.compute()
    for one in own:
        check_independent(one)
    found, counts = distinct(own)
    # Little's law over commits, for any laws: K jobs are in the system and each commit
    # ends t of them, so that one stays for K / t commits, its own among them.
    forms.of_run["staleness_mean"] = (world.number - t) / t
    _speed(forms, 1 / theory.t_synchronous_period(found, t, counts), t)


def _gathered(world: ScenarioWorld, forms: ClosedForms, size: int) -> None:
    _in_flight(world, forms, size)
    world.compute()  # refuses others
    cycle = world.means("compute")
    _speed(forms, theory.asynchronous_throughput(cycle) / size, size)


def _closed_network(
    world: ScenarioWorld, forms: ClosedForms, *, reads_early: bool
) -> None:
    """Tasks wait in the queues of clients that compute for exponential times."""
    rates, tasks = world.rates(), world.protocol["tasks"]
    weights = column(world.protocol["weights"], rates.size, "weights")
    weights = np.broadcast_to(weights, rates.size)
    shares = weights / weights.sum()
    found = queues.closed_network(tasks, shares, rates)
    _speed(forms, found.throughput)
    forms.of_run["queue_length"] = forms.of_run["waiting_mean"] = 0.0
    forms.of_clients["utilisation"] = found.throughput * shares / rates
    if reads_early:
        forms.of_run["staleness_mean"] = theory.mean_staleness_in_flight(tasks)
        forms.of_clients["staleness_mean"] = found.mean_delay
        stay = found.mean_num_present / (found.throughput * shares)
        forms.of_clients["queued_mean"] = stay - 1 / rates


def _steps(world: ScenarioWorld, forms: ClosedForms) -> None:
    forms.of_run["staleness_mean"] = forms.of_run["staleness_max"] = 0.0
    _speed(forms, 1 / float(means(world.protocol["step"], 1)[0]))


RULES: dict[str, Callable[..., None]] = {
    "available": _available,
    "in_flight": _in_flight,
    "cycles": _cycles,
    "memoryless": _memoryless,
    "repairman": _repairman,
    "slowest": _slowest,
    "earliest": _earliest,
    "gathered": _gathered,
    "closed_network": _closed_network,
    "steps": _steps,
}
"""Closed forms, by the names that protocols give them; each adds its results."""
WITHOUT_TIMES = ("available", "in_flight")
"""Forms that hold for any job durations."""


def _staleness_law(
    world: ScenarioWorld,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]] | None:
    """Returns the law of staleness over all contributions, of memoryless clients."""
    try:
        rates, number = np.unique(world.rates(), return_counts=True)
    except ValueError:
        return None
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
        found += clients * p * (p * (1 - p) ** ages)
    return ages, found
