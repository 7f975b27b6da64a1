"""The model of a study as text: stages, components, and assumptions."""

from collections.abc import Callable, Iterator, Sequence

from .. import facts
from ..facts import Entry
from .words import Rows, entries, listed, shown

PRESENCE = ("join", "leave", "availability", "crashes", "loss", "selection")
"""Entries of clients on their presence and their losses."""
LINKS = ("upload", "download")
BLIND = (
    "Times come from the stated laws alone: what is learned changes no time, it can "
    "only end a run."
)
UNKNOWN = "not recorded: an earlier version of stalesim has made the study"
LOGGED = "those of the system that was logged, of which the log says no more"
COMMIT = "commit"
SERVICE = "server.service"
"""The uses of a resource that is the scenario's server."""


def imported(scenario: Entry) -> bool:
    """Whether there is no scenario but the log of a real system."""
    return "stop" not in scenario


def stages(runs: Sequence[Entry]) -> Rows:
    """Returns the stages that a job goes through and the time that each takes."""
    rows = _of_variants(runs, _stages)
    last = [row for row in rows if row[0] == COMMIT]
    return [*(row for row in rows if row[0] != COMMIT), *last]


def components(runs: Sequence[Entry]) -> Rows:
    """Returns entities, activities, resources, queues, and how clients come and go."""
    return _of_variants(runs, _components)


def _of_variants(runs: Sequence[Entry], of: Callable[[Entry], Rows]) -> Rows:
    """Returns the rows of each variant's first run; where they differ, says whose."""
    firsts: dict[str, Entry] = {}
    for run in runs:
        firsts.setdefault(run["variant"], run)
    each = {variant: dict(of(run)) for variant, run in firsts.items()}
    found: Rows = []
    for name in dict.fromkeys(name for rows in each.values() for name in rows):
        texts: dict[str, list[str]] = {}
        for variant, rows in each.items():
            if name in rows:
                texts.setdefault(rows[name], []).append(variant)
        (first, whose), *others = texts.items()
        alone = not others and len(whose) == len(each)
        told = [f"{listed(names)}: {text}" for text, names in texts.items()]
        found.append((name, first if alone else "; ".join(told)))
    return found


def _stages(run: Entry) -> Rows:
    scenario, commit = run["scenario"], (COMMIT, f"by the protocol {run['protocol']}")
    if imported(scenario):
        return [("recorded log", "the times of a real system's jobs"), commit]
    recording = (scenario.get("timeline") or {}).get("replay")
    if recording:
        return [("recording", f"read from {recording}"), commit]
    named = facts.of(run).get("stages") or {}
    found = [(name, _taken(scenario, place)) for name, place in named.items()]
    return [*((name, text) for name, text in found if text), commit]


def _components(run: Entry) -> Rows:
    scenario = run["scenario"]
    clients, server = (scenario.get(key) or {} for key in ("clients", "server"))
    entities = facts.of(run).get("entities") or f"{run['num_clients']} clients"
    if clients.get("groups"):
        sizes = (f"{name} {g['number']}" for name, g in clients["groups"].items())
        entities += f"; groups of clients: {', '.join(sizes)}"
    slow = [shown(one) for one in clients.get("slowdowns") or ()]
    activities = ["the stages of 2.1"]
    activities += [f"slowdowns: {listed(slow)}"] if slow else []
    presence = [f"{k}: {v}" for k, v in _presence(clients)]
    return [
        ("entities", entities),
        ("activities", "; ".join(activities)),
        ("resources", "; ".join(_resources(run, server))),
        ("queues", "; ".join(_queues(run, server))),
        (
            "entry and exit",
            "; ".join(presence) or "all are there from time 0 to the end of a run",
        ),
    ]


STOPPED = {
    "redrawn": "a new draw of its computing time",
    "kept": "the computing time of the stopped one",
    "resumed": "the computing time that was left",
}
"""What the job after a stopped one has, by `clients.stopped`."""


def assumptions(manifest: Entry) -> list[str]:
    """Returns the assumptions, sentence by sentence."""
    scenario: Entry = manifest["scenario"]
    if imported(scenario):
        return ["The log is complete, and its times are those of one clock."]
    found = [BLIND, "Stages that are not named in 2.1 take no virtual time."]
    clients, server = (scenario.get(key) or {} for key in ("clients", "server"))
    parts = [clients, *(clients.get("groups") or {}).values()]
    links = [part[way] for part in parts for way in LINKS if part.get(way)]
    shared = [server.get(f"{way}_bandwidth") for way in LINKS]
    if not any(link.get("bandwidth") for link in links) and not any(shared):
        found.append("The size of a message plays no part in how long it takes.")
    if clients and not _presence(clients):
        found.append("Clients are always there, and nothing is lost.")
    stopping = (run for run in manifest["runs"] if facts.of(run).get("stops_jobs"))
    fates = dict.fromkeys(fate for run in stopping for fate in _fates(run))
    if fates:
        found.append(f"The job after a stopped one has {' or '.join(fates)}.")
    return found


def _fates(run: Entry) -> Iterator[str]:
    """Yields what the jobs of each group have after a stopped one."""
    clients = run["scenario"].get("clients") or {}
    for part in (clients.get("groups") or {"": {}}).values():
        own = {**clients, **part}
        free = "" if own.get("restart") else " at no cost"
        yield f"{STOPPED[own.get('stopped') or 'redrawn']}{free}"


def _taken(scenario: Entry, place: str) -> str:
    part, _, entry = place.partition(".")
    if part == "clients":
        return _of_groups(scenario.get(part) or {}, entry)
    value: Entry | None = scenario
    for key in place.split("."):
        value = (value or {}).get(key)
    return "" if value is None else shown(value)


def _of_groups(clients: Entry, stage: str) -> str:
    groups = clients.get("groups") or {}
    common = _taking(clients.get(stage), stage)
    if not any(stage in group for group in groups.values()):
        return common
    laws = {
        name: _taking(group.get(stage, clients.get(stage)), stage)
        for name, group in groups.items()
    }
    return "; ".join(f"{name}: {law or 'no time'}" for name, law in laws.items())


def _taking(value: Entry | None, stage: str) -> str:
    if value is None or stage not in LINKS:
        return "" if value is None else shown(value)
    latency, bandwidth = value.get("latency"), value.get("bandwidth")
    taken = [] if latency is None else [f"latency {shown(latency)}"]
    if bandwidth is not None:
        taken.append(f"{shown(bandwidth)} bytes per virtual s")
    return ", ".join(taken)


def _presence(clients: Entry) -> Rows:
    return [
        (key, value)
        for key, value in entries(clients, "clients")
        if set(key.split(".")) & set(PRESENCE)
        and not (key.endswith(".join") and value == "0")
    ]


def _resources(run: Entry, server: Entry) -> Iterator[str]:
    named = facts.of(run).get("resources")
    if named is None or imported(run["scenario"]):
        yield UNKNOWN if named is None else LOGGED
        return
    for name, place in named.items():
        takes = _taken(run["scenario"], place) if place else ""
        if takes:
            yield f"{name}, whose work takes {takes} per arrival"
        else:
            yield f"{name}, whose work takes no virtual time" if place else name
    for way in LINKS:
        width = server.get(f"{way}_bandwidth")
        if width is not None and SERVICE in named.values():
            yield f"{width:g} bytes per virtual s, which all {way}s share"
    if not named:
        yield "none; there is no server"


def _queues(run: Entry, server: Entry) -> Iterator[str]:
    waiting = facts.of(run).get("queues")
    if waiting is None or imported(run["scenario"]):
        yield UNKNOWN if waiting is None else LOGGED
        return
    yield from waiting
    served = SERVICE in (facts.of(run).get("resources") or {}).values()
    served = served and server.get("service") is not None
    if served:
        yield "one at the server, first in, first out"
    if not (waiting or served):
        yield "none"
    yield "events at one time have a fixed order"
