"""A model of a user's own in every algorithm, on every protocol that it runs on.

Our linear model, written again, gives the numbers of ours, also side by side. Pairs of
algorithm and protocol come from the catalogue, what else they need from small runs that
are pinned, so that a new algorithm is here once it is registered.
"""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import pytest
from jax import Array
from pydantic import ValidationError

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import own
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.study import merge
from tests.golden.every import CASES
from tests.reference.test_own_models import assert_same, run
from tests.support import of_extras

OWN = {  # by whether parties hold columns
    False: {"kind": "python", "build": f"{__name__}:linear"},
    True: {"kind": "python", "build": "tests.own_models:party"},
}
EXACT: dict[str, Any] = {
    # The bias stands in the matrix, and would be regularised with it.
    "problem": {"l2": 0.0},
    "evaluate": {"metrics": ["test_accuracy", "test_loss", "objective"]},
    "engine": {"precision": "float64"},
}
REFUSED = {
    "pipelined": "problem.model must be one whose layers have an order",
    **of_extras("REFUSED"),
}
"""Algorithms that refuse models of one's own, and what they say."""
QUICK = ("hierarchical hierarchy", "sgd collect", "vafl bounded")
"""Pairs of every landing; the others take turns."""


def linear(num_outputs: int, num_features: int) -> Any:
    """Ours in one array, so that noise falls on the same numbers."""

    def init(key: Array) -> Array:
        del key
        return jnp.zeros((num_outputs, num_features + 1))

    def apply(weights: Array, x: Array) -> Array:
        return x.reshape(len(x), -1) @ weights[:, :-1].T + weights[:, -1][None]

    return init, apply


PUSHED = {
    "protocol": {"kind": "push_gossip"},
    "clients": {"idle": {"law": "constant", "value": 1}},
}


def pairs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a name and a scenario of every algorithm on every protocol."""
    of_protocol: dict[str, dict[str, Any]] = {}
    of_pair: dict[tuple[str, str], dict[str, Any]] = {}
    for case in CASES.values():
        kinds = case["algorithm"]["kind"], case["protocol"]["kind"]
        of_protocol.setdefault(kinds[1], case)
        of_pair.setdefault(kinds, case)
    for part in own("algorithms"):
        kind = tag(part)
        mine = [protocol for of, protocol in of_pair if of == kind]
        for protocol in dict.fromkeys((*part.protocols, *mine)):
            other = PUSHED
            if protocol != "push_gossip":
                other = {"protocol": of_protocol[protocol]["protocol"]}
            usual = merge(of_pair[kind, mine[0]], other)
            case = of_pair.get((kind, protocol), usual)
            yield f"{kind} {protocol}", merge(case, EXACT)


PAIRS = dict(pairs())


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in PAIRS],
)
@pytest.mark.slow
def test_every_algorithm_on_every_protocol(name: str) -> None:
    case = PAIRS[name]
    kind, divided = case["algorithm"]["kind"], case["problem"]["partition"]["kind"]
    other = {"problem": {"model": OWN[divided == "vertical"]}}
    if kind in REFUSED:
        with pytest.raises((ScenarioError, ValidationError), match=REFUSED[kind]):
            run(case, other)
        return
    found = run(case, other)
    assert_same(run(case), found)
    assert_same(found, run(case, other, mode="batched"))
