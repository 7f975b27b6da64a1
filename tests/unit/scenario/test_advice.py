"""What a message advises is accepted, for every kind that it can be about."""

import copy
import re
from typing import Any

import pytest
import yaml

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.plugins import IMPORTED
from stalesim.simulator.scenario.reading import validated
from tests.support import table
from tests.unit.scenario.mistakes import TABLES

TREE = yaml.safe_load(TABLES["scenario methods"]["good"])
TREE["clients"]["selection"] = {"in_flight": 2}
PROTOCOLS: list[dict[str, Any]] = [
    {"kind": "asynchronous"},
    {"kind": "synchronous"},
    {"kind": "buffered", "size": 3},
    {"kind": "collect", "count": 4},
    {"kind": "t_synchronous", "t": 2},
    {"kind": "cyclic"},
]
VALUES: dict[str, Any] = {"late": "stop", "beyond": "wait", "grace": 1.0, "window": 1.0}
"""Values of keys of protocols that are no small number."""
ADVICE = re.compile(r"or choose (?:kind|law) ([\w ]+), which has it")


def refusal(tree: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        validated(tree)
    return str(caught.value)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(TREE)
    place: Any = tree
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return tree


@pytest.mark.parametrize("selects", [True, False])
def test_kinds_that_a_refused_key_is_sent_to_have_it(selects: bool) -> None:
    """As the scenario stands: with the other kind alone, nothing else is refused."""
    keys = {
        name: {
            str(tag(part)) for part in parts("protocols") if name in part.model_fields
        }
        for part in parts("protocols")
        for name in part.model_fields
    }
    del keys["kind"]
    advised = 0
    for protocol in PROTOCOLS:
        for key, owners in keys.items():
            if protocol["kind"] in owners:
                continue
            tree = changed(("protocol",), protocol | {key: VALUES.get(key, 3)})
            if not selects:
                del tree["clients"]["selection"]
            said = refusal(tree)
            if not selects and not said.startswith("protocol."):
                continue
            found = ADVICE.search(said)
            for kind in found[1].split(" or ") if found else ():
                tree["protocol"]["kind"] = kind
                validated(tree)
                advised += 1
    assert advised


def test_a_bound_is_not_sent_to_what_refuses_selection() -> None:
    rounds = {"kind": "t_synchronous", "t": 3, "staleness_bound": 10}
    said = refusal(changed(("protocol",), rounds))
    assert said == (
        "protocol.staleness_bound is not a key of kind 't_synchronous'; remove it"
    )


OWN: dict[str, list[Any]] = table(__file__)


@pytest.mark.parametrize("what", OWN)
def test_an_unknown_part_may_be_one_s_own(what: str) -> None:
    place, value = OWN[what]
    said = refusal(changed(tuple(place.split(".")), value))
    assert "xyzzy" in said
    assert IMPORTED in said


@pytest.mark.parametrize("written", [{}, {"proximal": 0.1}])
def test_fed_async_runs_on_one_s_own_work_as_its_message_says(
    written: dict[str, float],
) -> None:
    mine = {"kind": "fed_async", "step_size": 0.1, "local_steps": 5, "batch": 4}
    tree = changed(("algorithm",), mine | written)
    tree["problem"]["work"] = "tests.own_work:linear"
    said = refusal(tree)
    assert said.startswith("algorithm.mu must be 0 with problem.work")
    assert "; write mu: 0 (fed_async has another by default); the function may" in said
    tree["algorithm"].pop("proximal", None)
    validated(tree | {"algorithm": tree["algorithm"] | {"mu": 0}})
