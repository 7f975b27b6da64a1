"""Doubts about a world before it is simulated: laws without a mean, empty rounds.

Worlds come as the plain dictionaries of a manifest.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ..simulator.files.study import Study, is_world
from ..simulator.files.timeline import COMMITS, IN_COMMITS, SINCE
from ..simulator.parts.errors import counted, ranges
from ..simulator.scenario.study import Run
from . import facts
from .facts import Entry
from .laws import InfiniteMeanError, column, means

NO_TIMES = (
    "the log has an order and no times, so a virtual second is one commit: speeds, "
    "waiting and times to a target say nothing of the real system"
)
UNSETTLED = (
    "has no finite mean, so averages over time and their intervals do not converge; "
    "bound it by law: truncated, or take a shorter tail"
)
EQUAL = 1e-9
"""Part of a round's length that rounding may add."""
MANY_JOBS = 1e9
"""Jobs that take longer than an hour."""
MOST = 6
"""Most lines of a closing table."""
ALIKE = 0.01
"""Part by which means may differ that are called equal."""


def notes(study: Study) -> list[str]:
    """Returns lines on no times, no means, overdue rounds, and standstills."""
    runs = study.manifest["runs"]
    groups = {run["label"]: run for run in runs}.values()  # replicates have one world
    found: dict[str, None] = {}
    for run in groups:
        if run.get("player") == IN_COMMITS:
            found[f"{run['label']}: {NO_TIMES}"] = None
        number = run.get("num_clients", 1)
        for key, line in without_mean(run.get("scenario") or {}, number):
            found[f"{key}: {line}"] = None
    for run in runs:
        if run.get("stop_reason", "").startswith(SINCE):
            found[f"{run['label']} stood still: {run['stop_reason']}"] = None
    lines = [f"sweep.{key}: {line}" for key, line in unequal_means(groups)]
    lines += [*found, *overdue(study), *shut_out(study)]
    more = [f"... and {len(lines) - MOST} more such lines"] if lines[MOST:] else []
    return lines[:MOST] + more


def overdue(study: Study) -> Iterator[str]:
    """Yields a line on each group of which rounds were longer than their deadline."""
    limits: dict[int, tuple[str, float]] = {}
    for run in study.manifest["runs"]:
        scenario = run.get("scenario") or {}
        protocol = scenario.get("protocol") or {}
        limit = protocol.get("deadline") or protocol.get("seconds")
        if limit is not None and scenario.get("record") != "summary":
            limits[run["run"]] = run["label"], limit
    if not limits:
        return
    rows = study.table("rows" if is_world(study.manifest) else "commits")
    made = rows["kind"].isin(COMMITS) & rows["run"].isin(limits)
    if "place" in rows:  # a row of the timeline for each of its workers
        made &= rows["place"] == 0
    late: dict[tuple[str, float], list[int]] = {}
    for number, times in rows.loc[made].groupby("run")["time"]:
        group, limit = limits[int(str(number))]
        counts = late.setdefault((group, limit), [0, 0])
        counts[0] += int((np.diff(times, prepend=0.0) > limit * (1 + EQUAL)).sum())
        counts[1] += times.size
    for (group, limit), (longer, number) in late.items():
        if longer:
            yield (
                f"{group}: {longer} of {number} rounds were longer than their "
                f"{limit:g} s, as nothing had arrived by then"
            )


def shut_out(study: Study) -> Iterator[str]:
    """Yields a line on each group whose staleness bound rejects all of some clients."""
    bounds = {}
    for run in study.manifest["runs"]:
        bound = facts.at_key(run, "protocol.staleness_bound")
        beyond = facts.at_key(run, "protocol.beyond") or "reject"
        if bound is not None and beyond == "reject":
            bounds[run["run"]] = f"{run['label']}: max_staleness {bound} rejected every"
    if not bounds:
        return
    table = study.table("clients")
    of_client = table.groupby([table["run"].map(bounds), "client"], sort=False)
    counts = of_client.agg({"num_jobs": "min", "num_applied": "sum"})
    never = counts.index[(counts["num_jobs"] > 1) & (counts["num_applied"] == 0)]
    for words, out in never.to_frame(index=False).groupby("run", sort=False)["client"]:
        who = f"{counted(len(out), 'client')} ({ranges(out)})"
        yield f"{words} update of {who}: raise it, or learn without them"


def without_mean(scenario: Entry, num_clients: int) -> Iterator[tuple[str, str]]:
    """Yields the entries of laws of durations that have no finite mean, and a line."""
    clients = scenario.get("clients") or {}
    groups = clients.get("groups") or {}
    parts = [("clients", {**clients, "groups": {}}, num_clients)]
    parts += [(f"clients.groups.{n}", g, g["number"]) for n, g in groups.items()]
    parts += [(key, scenario.get(key), num_clients) for key in ("server", "protocol")]
    for place, part, number in parts:
        for key, law in _laws(place, part):
            if mean(law, number) == math.inf:
                yield key, f"the law {law['law']!r} {UNSETTLED}"


def _laws(key: str, part: object) -> Iterator[tuple[str, Entry]]:
    if not isinstance(part, Mapping):
        return
    if isinstance(part.get("law"), str):
        yield key, part
        return
    for name, inner in part.items():
        yield from _laws(f"{key}.{name}", inner)


def mean(law: Entry, number: int) -> float:
    """Returns the mean of a law over some clients, seconds.

    Returns:
        Infinite where a client's law has no finite mean; NaN where it is not known.
    """
    try:
        return float(means(dict(law), number).mean())
    except InfiniteMeanError:
        return math.inf
    except ValueError:  # it is not known
        return math.nan


def unequal_means(runs: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Yields the swept entries whose laws differ in their means as well, and a line."""
    swept: dict[str, dict[str, float]] = {}
    for run in runs:
        for key, name in run.get("parameters", {}).items():
            law = facts.at_key(run, key)
            if not (isinstance(law, Mapping) and "law" in law):
                continue
            if not math.isnan(found := mean(law, run["num_clients"])):
                swept.setdefault(key, {})[facts.short(name)] = found
    for key, compared in swept.items():
        known = [each for each in compared.values() if each < math.inf]
        if known and max(known) > (1 + ALIKE) * min(known):
            told = ", ".join(f"{law} {each:.4g} s" for law, each in compared.items())
            line = f"laws of unequal means are compared ({told}): take laws of equal "
            yield key, line + "mean, or else you compare means"


def endless(runs: Iterable[Run]) -> Iterator[str]:
    """Yields a line where all runs together have more jobs than can be played."""
    jobs = 0.0
    for run in runs:
        scenario = run.scenario
        counts = scenario.stop.model_dump(exclude={"time"}, exclude_none=True)
        if scenario.clients is None or scenario.stop.time is None or counts:
            continue
        most = scenario.clients.selection and scenario.clients.selection.in_flight
        for _, size, part in scenario.clients.behaviours(scenario.num_clients):
            stages = [each for each in (part.compute, part.idle) if each]
            took = sum(mean(each.model_dump(mode="json"), size) for each in stages)
            if took > 0:  # which NaN is not
                jobs += min(size, most or size) * scenario.stop.time / took
    if jobs > MANY_JOBS:
        yield (
            f"about {jobs:.2g} jobs come until stop.time, which takes an hour or more: "
            f"take a shorter time, or end by contributions"
        )


def unreachable(run: Run) -> Iterator[str]:
    """Yields a line where leaving clients leave fewer than rounds wait for."""
    scenario = run.scenario
    clients, number = scenario.clients, scenario.num_clients
    if clients is None:
        return
    selected = clients.selection is not None
    least = scenario.protocol.least_clients(number, selected=selected)
    until = scenario.stop.time or math.inf
    leave = np.full(number, math.inf)
    for first, size, part in clients.behaviours(number):
        if part.leave is None:
            continue
        try:
            leave[first : first + size] = column(part.leave, size, "leave")
        except ValueError:  # each client draws it
            return
    here = int((leave >= until).sum())
    if here >= least:
        return
    since = np.sort(leave)[number - least]
    yield (
        f"{scenario.protocol.kind} waits for {least} of {number} clients, but fewer "
        f"are left from {since:g} s on, and no commit comes: ask for fewer, or let "
        f"the server give clients up"
    )
