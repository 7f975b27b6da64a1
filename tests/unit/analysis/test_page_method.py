"""The checklist of a study's page, for every scenario that ships; and its words."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.page import method, runs, world
from analysis.page.words import duration, entries, listed, shown, span
from simulator.config.text import ranges
from simulator.scenario.reading import read_any
from simulator.scenario.study import expand

SCENARIOS = sorted(
    path
    for path in (Path(__file__).parents[3] / "scenarios").rglob("*.yaml")
    if "\ngeneration:" not in path.read_text(encoding="utf-8")
)
"""Rollouts alone make no study, and so no page."""
ITEMS = [
    *("1.1", "1.2", "1.3"),
    *("2.1", "2.2", "2.3", "2.4", "2.5"),
    *("3.1", "3.2", "3.3", "3.4"),
    *("4.1", "4.2", "4.3"),
    *("5.1", "5.2", "5.3", "5.4"),
    "6.1",
]
"""All twenty of STRESS-DES."""


def manifest_of(path: Path) -> dict[str, Any]:
    """Returns the manifest that a study of a scenario would have at its end."""
    scenario = read_any(path)
    tree = scenario.model_dump(mode="json")
    made = [
        {
            "run": run.number,
            "label": run.label,
            "variant": run.variant,
            "parameters": run.parameters,
            "replicate": run.replicate,
            "seed": run.seed,
            "mode": "compiled",
            "num_clients": run.scenario.num_clients,
            "stop": "time",
            "stop_reason": "the stated virtual time was reached",
            "commits": 10 + run.number,
            "virtual_s": 2.5,
            "elapsed_s": 0.5,
            "dataset": "some-standin",
            "scenario": run.scenario.model_dump(mode="json"),
        }
        for run in itertools.islice(expand(scenario), 40)
    ]
    kind = {} if "problem" in tree else {"kind": "timeline"}
    of_study = {key: tree[key] for key in ("name", "source", "question")}
    environment = {"python": "3.11.7", "cores": 2, "simpy": "4.1.2", "stalesim": "9"}
    end = {"status": "complete", "environment": environment, "commit": "c0ffee"}
    return {**kind, **of_study, **end, "scenario": tree, "runs": made}


def words_of(sections: Any) -> Iterator[str]:
    for section in sections:
        for item in section.items:
            yield from item.text
            yield from itertools.chain(*item.rows, *item.steps)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_item_is_filled_for_every_scenario(path: Path) -> None:
    manifest = manifest_of(path)
    runs.check(manifest, "here")
    sections = method.checklist(manifest)
    assert len(sections) == 6
    found = [item for section in sections for item in section.items]
    assert [item.number for item in found] == ITEMS
    for item in found:
        assert item.text or item.rows or item.steps, item.number
    for text in words_of(sections):
        assert isinstance(text, str)
        assert text.strip()
        assert "None" not in text.split()
        assert "{'" not in text
        assert "not here" not in text  # every part describes itself
    steps = found[ITEMS.index("2.1")].steps
    assert steps[-1][0] == "commit"
    assert len(steps) >= 2
    assert len(dict(steps)) == len(steps)


def test_what_a_law_a_link_and_a_server_take_is_told() -> None:
    scenario: dict[str, Any] = {
        "stop": {"time": 1},
        "protocol": {"kind": "asynchronous"},
        "server": {"service": {"law": "constant", "value": 2}, "upload_bandwidth": 9.0},
        "clients": {
            "compute": {"law": "expon", "scale": 3},
            "join": 0,
            "upload": {"latency": {"law": "expon"}, "bandwidth": 50},
            "groups": {
                "a": {"number": 1, "idle": {"law": "constant", "value": 1}},
                "b": {"number": 2, "join": 4},
            },
            "slowdowns": [{"kind": "random", "factor": 2}],
        },
    }
    assert world.stages(scenario) == [
        ("idle", "a: constant(value=1); b: no time"),
        ("compute", "expon(scale=3)"),
        ("upload", "latency expon, 50 bytes per virtual s"),
        ("service", "constant(value=2)"),
        ("commit", "by the protocol asynchronous"),
    ]
    told = dict(world.components(scenario, [3]))
    assert told["entities"].startswith("3 clients (parties, workers): a 1, b 2;")
    assert told["activities"] == "the stages of 2.1; slowdowns: random(factor=2)"
    assert "constant(value=2) per arrival; 9 bytes per virtual s" in told["resources"]
    assert told["queues"].startswith("one at the server")
    assert told["entry and exit"] == "clients.groups.b.join: 4"
    sentences = world.assumptions(scenario, ["mnist5k"])
    assert not [s for s in sentences if "always there" in s or "size" in s]


def test_encryption_is_told_where_it_takes_time() -> None:
    scenario: dict[str, Any] = {
        "stop": {"time": 1},
        "protocol": {"kind": "rounds"},
        "algorithm": {"kind": "fedbcd", "encryption": {"key_bits": 1024}},
    }
    assert "encryption adds" in dict(world.components(scenario, [2]))["activities"]


def test_assumptions_follow_from_what_is_left_out() -> None:
    scenario: dict[str, Any] = {
        "stop": {"time": 1},
        "protocol": {"kind": "synchronous"},
        "clients": {"compute": {"law": "expon"}, "join": 0},
    }
    sentences = " ".join(world.assumptions(scenario, ["x-standin"]))
    for words in ("always there", "The size of a message", "docs/standins.md"):
        assert words in sentences
    scenario["clients"]["loss"] = {"chance": 0.1, "timeout": 1}
    assert "always there" not in " ".join(world.assumptions(scenario, []))


def test_stages_have_the_names_of_their_protocol() -> None:
    clients = {
        "compute": {"law": "expon"},
        "upload": {"latency": {"law": "constant", "value": 1}},
        "download": {"latency": {"law": "constant", "value": 2}},
    }
    told = {
        kind: [
            name
            for name, _ in world.stages(
                {"stop": {}, "protocol": {"kind": kind}, "clients": clients}
            )
        ]
        for kind in ("asynchronous", "rounds", "gossip")
    }
    assert told == {
        "asynchronous": ["download", "compute", "upload", "commit"],
        "rounds": ["download", "local steps", "upload", "commit"],
        "gossip": ["download", "compute", "average", "commit"],
    }
    replayed = {"stop": {}, "protocol": {"kind": "rounds"}, "timeline": {"replay": "f"}}
    assert world.stages(replayed)[0] == ("recording", "read from f")


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
    assert shown({"on": True, "off": None}) == "{on=true}"
    assert shown(None) == "nothing"
    tree = {"a": {"b": 1, "c": None, "d": []}, "e": {"law": "expon", "scale": 2}}
    assert list(entries(tree, "x")) == [("x.a.b", "1"), ("x.e", "expon(scale=2)")]
