"""The field's words for keys and values: read everywhere, stored as ours."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from stalesim import load, resume, simulate
from stalesim.simulator.parts.errors import KEYS, ScenarioError
from stalesim.simulator.scenario.reading import (
    loads,
    loads_any,
    placing,
    to_yaml,
    validated,
)
from stalesim.simulator.scenario.schema import schema
from stalesim.simulator.scenario.synonyms import VALUES

# ruff: noqa: E501
OURS = """
name: words
problem:
  data: {kind: digits, limit: 60, scale: unit}
  partition: {kind: iid, clients: 4}
clients:
  groups:
    speed: {number: 2, compute: {law: expon}}
    law: {number: 2, compute: {law: mixture, weights: [1, 1], of: [{law: expon}, {law: gamma, a: 2}]}}
  selection: {in_flight: 2}
  loss: {chance: 0.1, timeout: 5}
  power: {times: [0, 5], values: [1, 2]}
protocol: {kind: synchronous, wait_for: 1, late: reject}
algorithm: {kind: fed_avg, step_size: 0.1, batch: 4, local_steps: 1, proximal: 0.1, server_step_size: 1, weighting: equal, sampling: distinct}
stop: {commits: 2}
evaluate: {every: {commits: 2}, metrics: [test_loss]}
record: everything
variants:
  waiting: {protocol: {late: stop}}
  buffered: {protocol: {kind: buffered, size: 2}, algorithm: {kind: fed_buff, local_steps: 1, step_size: 0.1, batch: 4, weight: {kind: polynomial}}}
  bounded: {protocol: {kind: asynchronous, staleness_bound: 2, beyond: stop}, algorithm: {kind: sgd, step_size: 0.1, batch: 4, local_step_size: 0.1, local_steps: 2}, sweep: {protocol.staleness_bound: [1, 2], protocol.beyond: {speed: reject, gone: stop}}}
  robust: {algorithm: {kind: chained, step_size: 0.1, batch: 4, chain: [{kind: local_work}, {kind: weigh}, {kind: trimmed_mean, tolerated: 0}, {kind: step, step_size: 1}]}}
sweep: {zipped: {clients.selection.in_flight: [2, 3], problem.data.scale: [unit, raw]}, random: {num: 2, problem.l2: {law: uniform}}, clients.loss.timeout: {low: 5, speed: 6}}
claims:
- {close: waiting, than: robust, metric: test_loss, within: 9, at: {clients.selection.in_flight: 2}, says: alike}
"""
WORDS = (
    ("law: expon", "distribution: expon"),
    ("law: mixture", "distribution: mixture"),
    ("law: gamma", "distribution: gamma"),
    ("law: uniform", "distribution: uniform"),
    ("in_flight", "concurrency"),
    ("loss: {chance:", "message_loss: {probability:"),
    ("power:", "speed:"),
    ("scale: unit", "scale: minmax"),
    ("scale: [unit", "scale: [minmax"),
    ("late: reject", "late: discard"),
    ("late: stop", "late: cancel"),
    ("beyond: stop", "beyond: cancel"),
    ("{speed: reject, gone: stop}", "{speed: discard, gone: cancel}"),
    (" server_step_size", " server_learning_rate"),
    (" local_step_size", " local_learning_rate"),
    (" step_size", " learning_rate"),
    (" batch:", " batch_size:"),
    ("proximal", "mu"),
    ("weighting", "client_weighting"),
    ("distinct", "without_replacement"),
    (" size:", " buffer_size:"),
    (" weight:", " staleness_weight:"),
    ("staleness_bound", "max_staleness"),
    ("tolerated", "num_byzantine"),
    ("within", "margin"),
    ("record: everything", "record: full"),
)
THEIRS = OURS
for _ours, _theirs in WORDS:
    assert _ours in THEIRS
    THEIRS = THEIRS.replace(_ours, _theirs)


def test_every_word_is_read_and_stored_as_ours() -> None:
    values = {word for words in VALUES.values() for word in words}
    for word in (*KEYS, *values):
        assert re.search(rf"\b{word}\b", THEIRS), word
    ours = loads(OURS, "ours")
    assert loads(THEIRS, "theirs") == ours
    assert validated(yaml.safe_load(THEIRS)) == ours
    assert to_yaml(loads(THEIRS, "theirs")) == to_yaml(ours)
    assert [*Draft202012Validator(schema()).iter_errors(yaml.safe_load(THEIRS))] == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("clients.selection.concurrency=3", "clients.selection.in_flight=3"),
        ("protocol.late=cancel", "protocol.late=stop"),
        (
            "variants.waiting={protocol: {kind: synchronous, late: cancel}}",
            "variants.waiting={protocol: {kind: synchronous, late: stop}}",
        ),
        (
            "variants.buffered.protocol.buffer_size=3",
            "variants.buffered.protocol.size=3",
        ),
        ("variants.bounded.sweep={protocol.max_staleness: [3, 4]}",) * 2,
        ("clients.groups.speed.compute.distribution=uniform",) * 2,
        ("algorithm.mu=null", "algorithm.proximal=null"),
    ],
)
def test_overrides_have_either_word(theirs: str, ours: str) -> None:
    alone = ["claims=null", "sweep={}"]
    assert loads(OURS, "it", [*alone, theirs]) == loads(THEIRS, "it", [*alone, ours])


def test_a_word_is_read_where_only_a_later_kind_has_it() -> None:
    changes = ["variants={}", "sweep={}", "claims=null", "protocol.late=null"]
    changes += ["protocol.wait_for=null", "protocol.buffer_size=3"]
    changes += ["algorithm={kind: sgd, step_size: 0.1, batch: 4}"]
    scenario = loads(OURS, "it", [*changes, "protocol.kind=buffered"])
    assert scenario.protocol.model_dump()["size"] == 3


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "batch: 4, local",
            "batch: 4, batch_size: 4, local",
            "it:14: algorithm.batch_size",
        ),
        (
            " size: 2",
            " size: 2, buffer_size: 2",
            "it:20: variants.buffered.protocol.buf",
        ),
    ],
)
def test_a_word_and_ours_together_are_refused(
    before: str, after: str, words: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(OURS.replace(before, after), "it")
    assert str(caught.value).startswith(words)
    assert "must be left out where" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ScenarioError, match="which means the same; remove one of them"):
        validated(yaml.safe_load(OURS.replace(before, after)))


def test_a_mapping_within_itself_is_refused() -> None:
    tree: dict[str, Any] = {"name": "it"}
    tree["clients"] = tree
    with pytest.raises(ScenarioError, match="clients must have at most 50 levels"):
        validated(tree)


def test_a_mistake_under_a_word_is_at_its_line() -> None:
    with pytest.raises(
        ScenarioError, match=r"^it:11: clients\.message_loss\.timeout must be >"
    ):
        loads(THEIRS.replace("timeout: 5", "timeout: -5"), "it")


SMALL = """
name: it
problem: {data: {kind: digits}, partition: {kind: iid, clients: 4}}
clients: {compute: {law: expon}}
protocol: {kind: buffered, buffer_size: 2}
algorithm: {kind: fed_buff, learning_rate: 0.1, batch_size: 4, local_steps: 1}
stop: {commits: 4}
evaluate: {every: {commits: 2}}
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("protocol.max_staleness=-5", "protocol.max_staleness must be >= 0, got -5"),
        ("protocol.buffer_size=0", "protocol.buffer_size must be >= 1, got 0"),
        ("algorithm.batch_size=-1", "algorithm.batch_size must be a whole number"),
        ("algorithm.batch=-1", "algorithm.batch must be a whole number"),
        ("algorithm.mu=-1", "algorithm.mu is not a key of kind 'fed_buff'; remove it"),
        ("clients.speed=1", "clients.speed must be a mapping of keys to values, got 1"),
        ("clients.speed=1", "; write speed: {key: value}"),
        ("clients.message_loss.probability=2", "clients.message_loss.probability must"),
        ("algorithm={kind: sgd}", "algorithm.learning_rate is missing; add it"),
        ("sweep.algorithm.batch_size=[0]", "sweep of algorithm.batch_size = 0"),
        ("variants.a.algorithm.batch_size=0", "variants.a: algorithm.batch_size must"),
        ("algorithm.lr=0.1", "did you mean 'learning_rate'?"),
        ("algorithm.learning_rat=0.1", "did you mean 'learning_rate'?"),
        ("algorithm.batchsize=1", "did you mean 'batch_size'?"),
        ("algorithm.batc=1", "did you mean 'batch'?"),
        ("algorithm.local_lr=0.1", "write algorithm.local_learning_rate"),
        ("algorithm.momentun=0.9", "did you mean 'optimizer', with kind: sgd and mom"),
        ("algorithm.foo=1", "known are batch_size, client_weighting, kind, learning_"),
        ("clients.count=3", "write problem.partition.clients"),
        ("clients.selection.concurency=3", "did you mean 'concurrency'?"),
        ("clients.message_los.timeout=1", "did you mean 'message_loss'?"),
        ("clients.packet_loss=0.1", "did you mean 'message_loss'?"),
        ("clients.selection.num_participants=3", "did you mean 'concurrency'?"),
        ("algorithm.weight_decay=0.1", "did you mean 'optimizer'?"),
        ("algorithm.optimizer={kind: momentum, beta: 0.9}", "did you mean 'decay'?"),
        ("algorithm.staleness_weight={kind: polynomial, beta: 1}", "mean 'exponent'?"),
        ("algorithm.staleness_weight={kind: polynomial, alpha: 1}", "mean 'exponent'?"),
        ("algorithm.staleness_weight={kind: hinge, a: 1}", "did you mean 'slope'?"),
    ],
)
def test_a_mistake_names_the_words_that_were_written(change: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(SMALL, "it", [change])
    assert said in str(caught.value)
    assert f"override '{change.partition('=')[0]}" in str(caught.value)


def test_what_planning_finds_names_them_too(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(SMALL)
    found = pytest.raises(ScenarioError, match=r":6: algorithm\.batch_size must be")
    with found, placing(path):
        raise ScenarioError("algorithm.batch must be at most 3")


def test_a_mistake_without_a_file_or_found_later_names_them_too() -> None:
    tree = yaml.safe_load(SMALL)
    wrong = tree | {"protocol": {"kind": "buffered", "buffer_size": 0}}
    with pytest.raises(ScenarioError, match=r"^protocol\.buffer_size must be >= 1"):
        validated(wrong)
    swept = tree | {"sweep": {"algorithm.batch_size": [0]}}
    with pytest.raises(ScenarioError, match=r"^sweep of algorithm\.batch_size = 0"):
        validated(swept)


def test_a_word_that_a_part_has_itself_is_left_alone() -> None:
    text = """
      {name: it, clients: {number: 2, compute: {law: expon}}, stop: {time: 1},
       protocol: {kind: gossip, graph: {kind: erdos_renyi, probability: 1}}}
    """
    scenario = loads_any(text, "it")
    assert scenario.protocol.graph.probability == 1


def test_a_study_is_the_same_in_either_spelling(tmp_path: Path) -> None:
    small: dict[str, Any] = yaml.safe_load(THEIRS)
    for key in ("variants", "sweep", "claims"):
        del small[key]
    study = simulate(copy.deepcopy(small), tmp_path / "study")
    stored = json.dumps(study.manifest["scenario"])
    other = yaml.safe_load(OURS)
    ours = {key: other[key] for key in small}
    again = simulate(ours, tmp_path / "study")
    assert again.manifest["runs"] == study.manifest["runs"]
    assert json.dumps(again.manifest["scenario"]) == stored
    assert resume(tmp_path / "study").manifest["runs"] == study.manifest["runs"]
    assert not any(f'"{word}"' in stored for word in {*KEYS} - {"speed"})
    for key in ("algorithm.batch_size", "algorithm.batch"):
        change = {"sweep": {key: [2, 3]}, "algorithm.learning_rate": 0.2}
        swept = simulate(ours, tmp_path / "swept", replace=change)
        simulate(small, tmp_path / "swept", replace=change)
    assert [run["parameters"] for run in load(tmp_path / "swept").manifest["runs"]] == [
        {"algorithm.batch": 2},
        {"algorithm.batch": 3},
    ]
    assert len(swept.manifest["runs"]) == 2
    assert {*swept.tidy()["algorithm.batch_size"]} == {2, 3}


@pytest.mark.parametrize(
    "of", [list, lambda parts: dict(zip("ab", parts, strict=True))]
)
def test_whole_parts_that_are_swept_have_either_word(of: Any) -> None:
    tree = yaml.safe_load(OURS) | {"variants": {}, "claims": []}
    ours = [tree["algorithm"] | {"step_size": step} for step in (0.1, 0.2)]
    words = [
        {"learning_rate" if k == "step_size" else k: v for k, v in each.items()}
        for each in ours
    ]
    own, other = (
        validated(tree | {"sweep": {"algorithm": of(e)}}) for e in (ours, words)
    )
    assert own.sweep == other.sweep
