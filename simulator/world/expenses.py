"""Joules that clients draw over a run, from its record.

Nothing of it is stored: jobs have the times of reading, computing, sending and arrival,
and a *tariff* has the price of each second and message of a client. A run's entry in
the manifest has its tariffs, one for each group of clients in succession:

    {"clients": 30, "join": 0, "leave": None,
     "joules": {"idle": 0.5, "compute": 5, "upload": 2, "upload_message": 0.1}}

Rates are numbers, or lists of one for each client. An activity without a rate counts as
idling. A client idles while it does nothing else, from its joining until it leaves or
the run ends, also while it is away or has crashed: a record does not contain those
times.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NotRequired, TypedDict

import numpy as np
from jaxtyping import Float, Int

from ..files.timeline import Incident, Incidents, Jobs, Outcome

ACTIVITIES = {
    "download": ("read_time", "begun_time"),
    "compute": ("begun_time", "computed_time"),
    "upload": ("sent_time", "arrived_time"),
}
"""Moments of a job between which its client does something."""
ENDS = {
    Outcome.STOPPED: Incident.STOPPED,
    Outcome.CRASHED: Incident.CRASHED,
    Outcome.LOST: Incident.GAVE_UP,
}
"""Incidents that end jobs which never arrive, by outcome."""

Rate = float | list[float]
"""One number for all clients of a group, or one for each."""
Moments = Float[np.ndarray, " n"]


class Tariff(TypedDict):
    """A tariff, as above."""

    clients: int
    join: NotRequired[Rate]
    leave: NotRequired[Rate | None]
    joules: dict[str, Rate]


def ends(jobs: Jobs, incidents: Incidents) -> Float[np.ndarray, " J"]:
    """Returns when each job had arrived, or was lost; NaN for a running one.

    A job that did not arrive ended with the incident of its client that comes in the
    same place. One that was rejected before it was sent ended when it had computed.
    """
    unsent = np.isnan(jobs.arrived_time) & (jobs.outcome == Outcome.REJECTED)
    ended = np.where(unsent, jobs.computed_time, jobs.arrived_time)
    for outcome, incident in ENDS.items():
        mine = np.flatnonzero(jobs.outcome == outcome)
        mine = mine[np.lexsort((jobs.job[mine], jobs.client[mine]))]
        when = np.flatnonzero(incidents.incident == incident)
        when = when[np.lexsort((incidents.time[when], incidents.client[when]))]
        own, other = _placed(jobs.client[mine]), _placed(incidents.client[when])
        _, at, of = np.intersect1d(own, other, assume_unique=True, return_indices=True)
        ended[mine[at]] = incidents.time[when[of]]
    return ended


class Expenses:
    """Energy that the clients of a run have drawn.

    Args:
        tariffs: Tariffs of the groups of clients.
        jobs: All jobs of the run.
        incidents: All incidents of the run.
        until: End of the run, virtual seconds.
    """

    def __init__(
        self,
        tariffs: Sequence[Tariff],
        jobs: Jobs,
        incidents: Incidents,
        until: float,
    ) -> None:
        ended, first = ends(jobs, incidents), 0
        self._groups: list[_Group] = []
        for tariff in tariffs:
            own = (jobs.client >= first) & (jobs.client < first + tariff["clients"])
            mine = Jobs(*(column[own] for column in jobs))
            mine = mine._replace(client=mine.client - first)
            self._groups.append(_Group(tariff, mine, ended[own], until))
            first += tariff["clients"]

    def up_to(self, times: Moments) -> Moments:
        """Returns the joules of all clients together up to some moments, virtual s."""
        changes = [each for group in self._groups for each in group.changes()]
        nothing = (np.zeros(0),) * 3  # where every rate is 0
        columns = zip(nothing, *(change[1:] for change in changes), strict=True)
        at, rates, amounts = (np.concatenate([[0.0], *each]) for each in columns)
        order = np.argsort(at, kind="stable")
        at, rate = at[order], np.cumsum(rates[order])
        grown = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(at))])
        total = grown + np.cumsum(amounts[order])
        place = np.searchsorted(at, times, side="right") - 1
        return total[place] + rate[place] * (times - at[place])

    def by_activity(self) -> list[dict[str, float]]:
        """Returns the joules of each group of clients, by activity."""
        found = []
        for group in self._groups:
            of: dict[str, float] = {}
            for name, times, rates, amounts in group.changes():
                # A rate that begins at one moment and ends at another.
                of[name] = of.get(name, 0.0) + float(amounts.sum() - rates @ times)
            # Rounding may leave an idle client a little less than nothing.
            found.append({name: max(amount, 0.0) for name, amount in of.items()})
        return found


def seconds(
    jobs: Jobs, incidents: Incidents, num_clients: int, until: float
) -> dict[str, Moments]:
    """Returns how each client of a run spent its time, virtual seconds."""
    tariff: Tariff = {"clients": num_clients, "joules": {}}
    group = _Group(tariff, jobs, ends(jobs, incidents), until)
    computing, busy = group.seconds(["compute"]), group.seconds(ACTIVITIES)
    rest = {"messages_s": busy - computing, "idle_s": until - busy}
    # Rounding may leave a little less than nothing.
    return {"compute_s": computing} | {k: v.clip(0) for k, v in rest.items()}


Change = tuple[str, Moments, Moments, Moments]
"""An activity; moments, and its change of rate and amount at each."""


class _Group:
    """What clients with one tariff do; they count from 0."""

    def __init__(
        self, tariff: Tariff, jobs: Jobs, ended: Moments, until: float
    ) -> None:
        self._tariff, self._jobs, self._ended, self._until = tariff, jobs, ended, until

    def changes(self) -> Iterator[Change]:
        """Yields how rate and amount change with each activity."""
        rates = self._tariff["joules"]
        busy = []
        for name in filter(rates.__contains__, ACTIVITIES):
            busy.append(self._times(name))
            client, start, end = busy[-1]
            yield _during(name, self._each(rates[name])[client], start, end)
        idle = self._each(rates.get("idle", 0))
        if idle.any():
            join, leave = self._tariff.get("join", 0), self._tariff.get("leave")
            there = self._each(inf if leave is None else leave)
            there = np.minimum(there, self._until)
            yield _during("idle", idle, np.minimum(self._each(join), there), there)
            client, start, end = _united(busy)
            yield _during("idle", -idle[client], start, end)
        jobs = self._jobs
        messages = {
            "upload_message": (jobs.sent_time, jobs.uploads),
            "download_message": (jobs.begun_time, jobs.refresh == 0),
        }
        for name in filter(rates.__contains__, messages):
            times, counts = messages[name]
            some = times <= self._until  # which NaN is not
            each = self._each(rates[name])[jobs.client] * counts
            yield name, times[some], np.zeros(int(some.sum())), each[some]

    def seconds(self, activities: Iterable[str]) -> Moments:
        """Returns the seconds of each client in some activities, each second once."""
        client, start, end = _united([*map(self._times, activities)])
        return np.bincount(client, end - start, self._tariff["clients"])

    def _each(self, rate: Rate) -> Float[np.ndarray, " K"]:
        return np.broadcast_to(np.asarray(rate, np.float64), self._tariff["clients"])

    def _times(self, activity: str) -> tuple[Int[np.ndarray, " n"], Moments, Moments]:
        first, last = (getattr(self._jobs, name) for name in ACTIVITIES[activity])
        over = np.where(np.isnan(self._ended), self._until, self._ended)
        end = np.minimum(np.where(np.isnan(last), over, last), self._until)
        some = end > first  # which NaN is not
        return self._jobs.client[some], first[some], end[some]


def _during(name: str, rate: Moments, start: Moments, end: Moments) -> Change:
    times, rates = np.concatenate([start, end]), np.concatenate([rate, -rate])
    return name, times, rates, np.zeros(times.size)


def _united(
    busy: Sequence[tuple[Int[np.ndarray, " n"], Moments, Moments]],
) -> tuple[Int[np.ndarray, " m"], Moments, Moments]:
    """Returns the times in which each client is busy, each of them once."""
    if not busy:
        return np.zeros(0, int), np.zeros(0), np.zeros(0)
    client, start, end = map(np.concatenate, zip(*busy, strict=True))
    order = np.lexsort((start, client))
    client, start, end = client[order].astype(np.int64), start[order], end[order]
    # The latest end so far of the same client: ranks, so that clients stay apart.
    by_end, size = np.argsort(end, kind="stable"), end.size
    rank = np.empty(size, np.int64)
    rank[by_end] = np.arange(size)
    latest = np.maximum.accumulate(client * size + rank)[:-1]
    before = np.where(latest // size == client[1:], end[by_end[latest % size]], -inf)
    start = np.maximum(start, np.concatenate([[-inf], before]))
    new = end > start
    return client[new], start[new], end[new]


def _placed(client: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Returns a number for each entry of sorted clients: who, and its place there."""
    first = np.searchsorted(client, client)
    place = np.arange(client.size) - first
    return client.astype(np.int64) * 2**32 + place
