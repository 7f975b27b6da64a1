"""The checklist of a study's page, and its words; `test_shipped` fills every item."""

import json
from typing import Any

import pytest

from stalesim.analysis.page import world
from stalesim.analysis.page.words import duration, entries, listed, shown, span
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.parts.errors import ranges
from stalesim.simulator.scenario.setting import WorldScenario
from tests.support import of_extras

EXPON = {"law": "expon"}
LINK = {"latency": {"law": "constant", "value": 1}}


def run_of(
    protocol: str | dict[str, Any] = "asynchronous",
    variant: str = "base",
    **entries: Any,
) -> dict[str, Any]:
    """Returns a manifest's entry of a run of a world."""
    own = {"kind": protocol} if isinstance(protocol, str) else protocol
    clients = {"compute": EXPON} | entries.pop("clients", {})
    if "groups" not in clients:
        clients = {"number": 4} | clients
    tree = {"name": "x", "stop": {"time": 9}, "protocol": own, "clients": clients}
    scenario = WorldScenario.model_validate(tree | entries)
    return {
        "variant": variant,
        "protocol": scenario.protocol.kind,
        "num_clients": scenario.num_clients,
        "facts": scenario.described(),
        "scenario": scenario.model_dump(mode="json"),
    }


def test_what_a_law_a_link_and_a_server_take_is_told() -> None:
    run = run_of(
        server={"service": {"law": "constant", "value": 2}, "upload_bandwidth": 9.0},
        clients={
            "compute": {"law": "expon", "scale": 3},
            "upload": {"latency": EXPON, "bandwidth": 50},
            "groups": {
                "a": {"number": 1, "idle": {"law": "constant", "value": 1}},
                "b": {"number": 2, "join": 4},
            },
            "slowdowns": [{"kind": "random", "factor": 2}],
        },
    )
    assert world.stages([run]) == [
        ("idle", "a: constant(value=1); b: no time"),
        ("compute", "expon(loc=0 scale=3 shift=0)"),
        ("upload", "latency expon(loc=0 scale=1 shift=0), 50 bytes per virtual s"),
        ("service", "constant(value=2)"),
        ("commit", "by the protocol asynchronous"),
    ]
    told = dict(world.components([run]))
    assert told["entities"].startswith("3 clients (parties, workers); jobs")
    assert told["entities"].endswith("groups of clients: a 1, b 2")
    assert told["activities"].startswith("the stages of 2.1; slowdowns: random(")
    assert "constant(value=2) per arrival; 9 bytes per virtual s" in told["resources"]
    assert told["queues"].startswith("one at the server")
    assert told["entry and exit"] == "clients.groups.b.join: 4"
    sentences = world.assumptions({"scenario": run["scenario"], "runs": [run]})
    assert not [s for s in sentences if "always there" in s or "size" in s]


def test_assumptions_follow_from_what_is_left_out() -> None:
    scenario: dict[str, Any] = {
        "stop": {"time": 1},
        "clients": {"compute": {"law": "expon"}, "join": 0},
    }
    manifest = {"scenario": scenario, "runs": [run_of()]}
    sentences = " ".join(world.assumptions(manifest))
    for words in ("always there", "The size of a message"):
        assert words in sentences
    scenario["clients"]["loss"] = {"chance": 0.1, "timeout": 1}
    assert "always there" not in " ".join(world.assumptions(manifest))


def test_what_becomes_of_a_stopped_job_is_told_where_jobs_are_stopped() -> None:
    groups = {"a": {"number": 1}, "b": {"number": 2, "stopped": "resumed"}}
    clients = {"stopped": "kept", "groups": groups, "restart": EXPON}
    stops = {"kind": "asynchronous", "staleness_bound": 3, "beyond": "stop"}
    kept, free = run_of(stops, clients=clients), run_of(stops)
    of_free, of_kept, none = (
        " ".join(world.assumptions({"scenario": run["scenario"], "runs": [run]}))
        for run in (free, kept, run_of())
    )
    assert "a new draw of its computing time at no cost." in of_free
    assert "of the stopped one or the computing time that was left." in of_kept
    assert "after a stopped one" not in none


PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {},
    "bounded": {"staleness_bound": 3},
    "buffered": {"size": 3},
    "centralised": {"step": {"law": "constant", "value": 2}},
    "collect": {"count": 4},
    "cyclic": {},
    "gossip": {},
    "growing_bound": {},
    "hierarchy": {"edges": 2, "upload": EXPON},
    "phases": {},
    "pipeline": {"stages": 3},
    "prescribed": {"most": 2},
    "push_gossip": {},
    "rounds": {},
    "routed": {"tasks": 7},
    "ssp": {"slack": 1},
    "synchronous": {},
    "t_synchronous": {"t": 2},
    **of_extras("PROTOCOLS"),
}
ONE_SERVER = "one server, whose work takes no virtual time"
SAID = {  # entities; resources; queues; stages, of those below
    "asynchronous": ("4 clients", ONE_SERVER, "none", "download compute upload"),
    "bounded": ("4 clients", ONE_SERVER, "arrivals at", "download compute upload"),
    "buffered": ("4 clients", ONE_SERVER, "contributions", "download compute upload"),
    "centralised": ("steps on pooled data", "none", "none", "step"),
    "collect": ("4 clients", ONE_SERVER, "contributions", "download compute upload"),
    "cyclic": ("4 clients; steps", "the model", "none", "step"),
    "gossip": ("4 clients", "none; there is no server", "none", "compute average"),
    "growing_bound": ("4 clients", ONE_SERVER, "none", "download compute upload"),
    "hierarchy": (
        *("4 clients", "one cloud; 2 edges, each the server of", "edges wait"),
        "download compute upload to the cloud",
    ),
    "phases": ("4 clients", ONE_SERVER, "contributions", "download compute upload"),
    "pipeline": ("minibatches", "3 stages", "minibatches on their way", "step"),
    "prescribed": ("4 clients; commits", "the model", "none", "step"),
    "push_gossip": (
        *("4 clients", "none; there is no server", "none"),
        "idle compute push",
    ),
    "rounds": ("4 clients", ONE_SERVER, "parties", "download local steps upload"),
    "routed": (
        *("4 clients and 7 tasks", ONE_SERVER, "tasks at each client, first in"),
        "download compute upload",
    ),
    "ssp": ("4 clients", ONE_SERVER, "clients that are", "download compute upload"),
    "synchronous": ("4 clients", ONE_SERVER, "clients", "download compute upload"),
    "t_synchronous": ("4 clients", ONE_SERVER, "clients", "download compute upload"),
    **of_extras("SAID"),
}


def test_every_protocol_has_its_row_here() -> None:
    every = {tag(part) for part in parts("protocols")}
    lacking = every - {*PROTOCOLS} | every - {*SAID}
    assert not lacking, f"PROTOCOLS and SAID above need a row each of {lacking}"
    assert {*PROTOCOLS} == {*SAID} == every


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_report_says_what_each_protocol_is(kind: str) -> None:
    clients = {"compute": EXPON, "upload": LINK}
    clients |= {} if "gossip" in kind else {"download": LINK}
    clients |= {"idle": EXPON} if kind == "push_gossip" else {}
    run = run_of({"kind": kind, **PROTOCOLS[kind]}, clients=clients)
    run["facts"] = json.loads(json.dumps(run["facts"]))  # as manifests have them
    told = dict(world.components([run]))
    entities, resources, queues, stages = SAID[kind]
    assert told["entities"].startswith(entities)
    assert told["resources"].startswith(resources)
    assert told["queues"].startswith(queues)
    steps = world.stages([run])
    assert " ".join(name for name, _ in steps) == f"{stages} commit"
    assert all(text for _, text in steps)


def test_a_server_s_work_and_queue_are_said_where_it_has_them() -> None:
    server = {"service": EXPON, "upload_bandwidth": 9.0}
    told = dict(
        world.components([run_of({"kind": "buffered", "size": 3}, server=server)])
    )
    assert "shift=0) per arrival; 9 bytes" in told["resources"]
    assert "one at the server" in told["queues"]
    turns = dict(world.components([run_of("cyclic", server=server)]))
    assert "server" not in turns["resources"] + turns["queues"]


def test_variants_of_several_protocols_are_each_said() -> None:
    runs = [run_of("synchronous", "sync"), run_of("gossip", "pairs")]
    told = dict(world.components(runs))
    assert told["resources"].startswith("sync: one server, whose")
    assert told["resources"].endswith("pairs: none; there is no server")
    assert told["entities"].startswith("4 clients")  # the same of both
    steps = world.stages(runs)
    assert [name for name, _ in steps] == ["compute", "commit"]
    by = "sync: by the protocol synchronous; pairs: by the protocol gossip"
    assert steps[-1] == ("commit", by)


def test_studies_of_an_earlier_version_say_less_and_nothing_false() -> None:
    run = run_of({"kind": "hierarchy", "edges": 2})
    del run["facts"]
    told = dict(world.components([run]))
    assert told["resources"] == told["queues"] == world.UNKNOWN
    assert world.stages([run]) == [("commit", "by the protocol hierarchy")]


class Otherwise(Buffered):
    """Has a `play` of its own, and says nothing of itself."""

    def play(self, world: Any, recorder: Any) -> None:
        """Plays nothing."""


def test_a_protocol_of_one_s_own_is_not_said_to_be_what_it_inherits_from() -> None:
    run = run_of({"kind": "buffered", "size": 2})
    scenario = WorldScenario.model_validate(run["scenario"])
    other = scenario.model_copy(update={"protocol": Otherwise(size=2)})
    assert scenario.described()["closed_forms"] == {"gathered": {"size": 2}}
    run["facts"] = other.described()
    assert run["facts"]["closed_forms"] == {}
    assert dict(world.components([run]))["queues"].startswith("not said by the pro")


def test_a_recording_is_named_in_place_of_stages() -> None:
    run = run_of("rounds")
    run["scenario"]["timeline"] = {"replay": "f"}
    assert world.stages([run])[0] == ("recording", "read from f")


def test_words() -> None:
    assert ranges([3, 0, 1, 2, 5, 8, 9, 9]) == "0 to 3, 5, 8 to 9"
    assert ranges([]) == ""
    assert span([3, 1, 2], "s") == "1 to 3 s"
    assert span([2.0, 2.0], "commits") == "2 commits"
    assert [duration(s) for s in (3.14159, 90, 7200)] == ["3.14 s", "1.5 min", "2 h"]
    assert listed(range(12)) == ", ".join(map(str, range(12)))
    assert listed(range(30)).endswith("10, 11, ... (30 in all)")
    law = {"law": "mixture", "of": [{"law": "expon"}, {"law": "gamma", "a": 2}]}
    assert shown(law) == "mixture(of=[expon, gamma(a=2)])"
    assert shown({"on": True, "off": None}) == "(on=True)"
    assert shown(None) == "nothing"
    tree = {"a": {"b": 1, "c": None, "d": []}, "e": {"law": "expon", "scale": 2}}
    assert list(entries(tree, "x")) == [("x.a.b", "1"), ("x.e", "expon(scale=2)")]
