"""Words by which people search: every one leads to a part or key that there is."""

import copy
from typing import Any

import pytest
import scipy.stats

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import BASES, parts
from stalesim.simulator.parts.errors import (
    COMPLETED,
    OTHERS,
    SEARCHED,
    ScenarioError,
    nearest,
    plain,
    suggestion,
)
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.schema import schema

TREE: dict[str, Any] = {
    "name": "words",
    "problem": {"data": {"kind": "digits"}, "partition": {"kind": "iid", "clients": 4}},
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
    "stop": {"time": 5},
    "evaluate": {"every": {"time": 5}},
}


def test_our_words_are_names_of_parts_keys_or_laws_and_none_is_anothers() -> None:
    names = {tag(part) for kind in BASES for part in parts(kind)}
    defined = schema()["$defs"].values()
    entries = {key for part in defined for key in part.get("properties", ())}
    known = names | entries | {*dir(scipy.stats)}
    assert {ours.rpartition(".")[2] for ours in OTHERS} <= known
    assert {ours.partition(".")[0] for ours in OTHERS if "." in ours} <= known
    others = {word for words in OTHERS.values() for word in words}
    assert {*COMPLETED} <= others
    assert {*SEARCHED} == {*map(plain, others)}
    for ours, words in OTHERS.items():
        assert len({*map(plain, words)}) == len(words), ours


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("CIFAR10", ["cifar10", "mnist"], "cifar10"),
        ("FedAsync", ["fed_async", "fed_buff"], "fed_async"),
        ("FedAsync", ["asynchronous", "buffered"], "asynchronous"),
        ("lr", ["batch", "learning_rate"], "learning_rate"),
        ("Learning-Rate", ["batch", "learning_rate"], "learning_rate"),
        ("fedavg", ["sgd", "fed_sgd", "fed_avg"], "fed_avg"),
        ("FedProx", ["sgd", "fed_sgd", "fed_avg"], "fed_avg"),
        ("lr", ["batch"], None),
        ("imagenet", ["mnist", "modelnet40"], None),
        ("bacth", ["batch", "step_size"], "batch"),
    ],
)
def test_a_word_leads_to_ours(word: str, known: list[str], found: str | None) -> None:
    assert nearest(word, known) == found
    if found is not None:
        with_setting = ", with mu" if word == "FedProx" else ""
        assert suggestion(word, known) == f"did you mean {found!r}{with_setting}?"


@pytest.mark.parametrize(
    ("place", "word", "said"),
    [
        ("", "lr", "write algorithm.learning_rate"),
        ("clients", "eta", "write algorithm.learning_rate"),
        ("algorithm", "lr", "did you mean 'learning_rate'?"),
        ("algorithm", "local_lr", "did you mean 'local_learning_rate'?"),
        ("algorithm", "momentum", "did you mean 'optimizer', with kind: sgd and momen"),
        ("protocol", "tau_max", "did you mean 'max_staleness'?"),
        ("", "tau_max", "write protocol.max_staleness"),
        ("protocol", "K", "write protocol.buffer_size"),
        ("clients", "concurrency", "write clients.selection.concurrency"),
        ("clients", "count", "write problem.partition.clients"),
        ("clients", "dropout", "did you mean 'crashes'?"),
        ("clients", "delay", "did you mean 'compute'?"),
        ("", "rounds", "write stop.rounds"),
        ("clients", "rounds", "write stop.rounds"),
        ("algorithm", "epochs", "did you mean 'local_epochs'?"),
        ("", "epochs", "write stop.epochs"),
        ("clients", "num_clients", "write problem.partition.clients"),
        ("algorithm", "buffer_size", "write protocol.buffer_size"),
        ("problem", "clients", "write problem.partition.clients"),
        ("stop", "steps", "did you mean 'commits'?"),
        ("algorithm", "steps", "did you mean 'local_steps'?"),
        ("", "num_clients", "write problem.partition.clients"),
        ("problem.partition", "num_clients", "did you mean 'clients'?"),
        ("evaluate", "interval", "did you mean 'every'?"),
        ("", "interval", "write evaluate.every"),
        ("", "duration", "write stop.time"),
    ],
)
def test_a_key_of_the_field_leads_to_ours(place: str, word: str, said: str) -> None:
    tree: dict[str, Any] = copy.deepcopy(TREE)
    inner = tree
    for key in place.split(".") if place else ():
        inner = inner[key]
    inner[word] = 3
    with pytest.raises(ScenarioError) as caught:
        validated(tree)
    key = f"{place}.{word}" if place else word
    assert f"{key} is not a known key; {said}" in str(caught.value)
