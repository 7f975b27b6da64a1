"""The model of a study in words: stages, components, and what is taken for granted."""

from collections.abc import Mapping
from typing import Any

from analysis.page.item import Rows
from analysis.page.words import entries, listed, shown
from analysis.summary import WORTH

PRESENCE = ("join", "leave", "availability", "crashes", "loss", "selection")
"""Entries of clients that say when they are there and what they lose."""
LINKS = ("upload", "download")
BLIND = (
    "Times come from the stated laws alone: what is learned changes no time, it can "
    "only end a run."
)
_CYCLE = ("idle", "read", "download", "compute", "upload")
_NAMES = {"gossip": {"upload": "average"}, "rounds": {"compute": "local steps"}}
_SERVERLESS = ("centralised", "gossip", "pipeline", "spanning_tree")
_CLIENTLESS = ("centralised", "cyclic", "pipeline")
ROLLOUTS = "rollouts"
_POOLED = ("centralised", "pipeline")


def imported(scenario: Mapping[str, Any]) -> bool:
    """Whether there is no scenario but the log of a real system."""
    return "stop" not in scenario


def stages(scenario: Mapping[str, Any]) -> Rows:
    """Returns the stages that a job goes through and the time that each takes.

    Args:
        scenario: Scenario of a manifest; its variants are left out.
    """
    kind = scenario["protocol"]["kind"]
    if imported(scenario):
        return [("recorded log", "the times of a real system's jobs"), _commit(kind)]
    recording = (scenario.get("timeline") or {}).get("replay")
    if recording:
        return [("recording", f"read from {recording}"), _commit(kind)]
    if kind == ROLLOUTS:
        made, trainer = (scenario["protocol"][key] for key in ("generation", "trainer"))
        tokens = f"tokens {shown(made['tokens'])}, each in virtual s "
        tokens += shown(made["seconds_per_token"])
        return [
            ("generation", tokens),
            ("training", shown(trainer["step"])),
            _commit(kind),
        ]
    if kind in _CLIENTLESS:
        return [("step", shown(scenario["protocol"].get("step"))), _commit(kind)]
    clients, found = scenario.get("clients") or {}, []
    for stage in _CYCLE:
        text = _of_groups(clients, stage)
        if text:
            found.append((_NAMES.get(kind, {}).get(stage, stage), text))
    service = (scenario.get("server") or {}).get("service")
    if service is not None:
        found.append(("service", shown(service)))
    return [*found, _commit(kind)]


def components(scenario: Mapping[str, Any], num_clients: list[int]) -> Rows:
    """Returns entities, activities, resources, queues, and how clients come and go.

    Args:
        scenario: Scenario of a manifest; its variants are left out.
        num_clients: Numbers of clients of the runs, each once.
    """
    clients, server = (scenario.get(key) or {} for key in ("clients", "server"))
    kind = scenario["protocol"]["kind"]
    numbers = " or ".join(map(str, num_clients))
    entities = f"{numbers} clients (parties, workers)"
    if clients.get("groups"):
        sizes = (f"{name} {g['number']}" for name, g in clients["groups"].items())
        entities += f": {', '.join(sizes)}"
    if kind in _POOLED:
        entities = "steps on pooled data, without clients"
    if kind == ROLLOUTS:
        entities = f"{numbers} slots that generate samples, and a trainer of batches"
    slow = [shown(one) for one in clients.get("slowdowns") or ()]
    activities = "the stages of 2.1"
    activities += f"; slowdowns: {listed(slow)}" if slow else ""
    if (scenario.get("algorithm") or {}).get("encryption"):
        activities += "; encryption adds its own time to computing"
    presence = [f"{k}: {v}" for k, v in _presence(clients)]
    return [
        ("entities", f"{entities}; jobs, one after the other for each of them"),
        ("activities", activities),
        ("resources", _resources(kind, server)),
        ("queues", _queues(kind, server)),
        (
            "entry and exit",
            "; ".join(presence) or "all are there from time 0 to the end of a run",
        ),
    ]


def assumptions(scenario: Mapping[str, Any], data_sets: list[str]) -> list[str]:
    """Returns what is taken for granted, sentence by sentence.

    Args:
        scenario: Scenario of a manifest; its variants are left out.
        data_sets: Data sets by the names that the runs noted.
    """
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
    if any("standin" in name for name in data_sets):
        found.append(f"Data called NAME-standin are not the published set: {WORTH}.")
    return found


def _commit(kind: str) -> tuple[str, str]:
    return "commit", f"by the protocol {kind}"


def _of_groups(clients: Mapping[str, Any], stage: str) -> str:
    """Returns the law of a stage, or of each group; empty if it takes no time."""
    groups = clients.get("groups") or {}
    common = _taking(clients.get(stage), stage)
    if not any(stage in group for group in groups.values()):
        return common
    laws = {
        name: _taking(group.get(stage, clients.get(stage)), stage)
        for name, group in groups.items()
    }
    return "; ".join(f"{name}: {law or 'no time'}" for name, law in laws.items())


def _taking(value: Mapping[str, Any] | None, stage: str) -> str:
    """Returns what a stage takes: a law, or a link's latency and bandwidth."""
    if value is None or stage not in LINKS:
        return "" if value is None else shown(value)
    latency, bandwidth = value.get("latency"), value.get("bandwidth")
    taken = [] if latency is None else [f"latency {shown(latency)}"]
    if bandwidth is not None:
        taken.append(f"{shown(bandwidth)} bytes per virtual s")
    return ", ".join(taken)


def _presence(clients: Mapping[str, Any]) -> Rows:
    """Returns what clients say of coming and going, beyond being there from 0 on."""
    return [
        (key, value)
        for key, value in entries(clients, "clients")
        if set(key.split(".")) & set(PRESENCE)
        and not (key.endswith(".join") and value == "0")
    ]


def _resources(kind: str, server: Mapping[str, Any]) -> str:
    if kind == ROLLOUTS:
        return "the trainer, which makes one step after the other"
    if kind in _SERVERLESS:
        return "none; there is no server"
    found = [
        f"one server, whose work takes {shown(server['service'])} per arrival"
        if server.get("service") is not None
        else "one server, whose work takes no virtual time"
    ]
    for way in LINKS:
        width = server.get(f"{way}_bandwidth")
        if width is not None:
            found.append(f"{width:g} bytes per virtual s, which all {way}s share")
    return "; ".join(found)


def _queues(kind: str, server: Mapping[str, Any]) -> str:
    ties = "events at one time have a fixed order"
    if kind == ROLLOUTS:
        return f"finished samples, as the protocol's entry queue has it; {ties}"
    if kind in _SERVERLESS or server.get("service") is None:
        return f"none; {ties}"
    return f"one at the server, first in, first out; {ties}"
