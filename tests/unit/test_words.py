"""Words by which people search: every one leads to a part or key that there is."""

import pytest

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import BASES, parts
from stalesim.simulator.parts.errors import (
    COMPLETED,
    OTHERS,
    SEARCHED,
    nearest,
    suggestion,
)
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.scenario import Scenario


def test_our_words_are_names_of_parts_keys_or_laws_and_none_is_anothers() -> None:
    names = {tag(part) for kind in BASES for part in parts(kind)}
    options = [
        key
        for kind in ("protocols", "algorithms", "partitions")
        for part in parts(kind)
        for key in part.model_fields
    ]
    known = names | {*options, *Scenario.model_fields, *Stop.model_fields}
    known |= {"expon", "lognorm", "norm"}
    assert {*OTHERS} <= known
    others = {word for words in OTHERS.values() for word in words}
    assert {*COMPLETED} <= others
    assert sum(map(len, OTHERS.values())) == len(SEARCHED), "each word once"


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("CIFAR10", ["cifar10", "mnist"], "cifar10"),
        ("FedAsync", ["fed_async", "fed_buff"], "fed_async"),
        ("FedAsync", ["asynchronous", "buffered"], "asynchronous"),
        ("lr", ["batch", "step_size"], "step_size"),
        ("Learning-Rate", ["batch", "step_size"], "step_size"),
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
        with_setting = ", with proximal" if word == "FedProx" else ""
        assert suggestion(word, known) == f"did you mean {found!r}{with_setting}?"
