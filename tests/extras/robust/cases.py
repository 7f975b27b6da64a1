"""Chains with enemies for the tables of the core's tests."""

from typing import Any

from tests.golden.cases import HORIZONTAL, case
from tests.support import SGD


def chained(*stages: dict[str, Any]) -> dict[str, Any]:
    """Returns a scenario with the stages of a chain, of which the last is added."""
    chain = [*stages, {"kind": "step"}]
    method = {"kind": "chained", "step_size": 0.1, "batch": 8, "chain": chain}
    protocol = {"kind": "buffered", "size": 5}
    return case("buffered", HORIZONTAL, method) | {"protocol": protocol}


def tolerated(aggregate: dict[str, Any], *received: dict[str, Any]) -> dict[str, Any]:
    """Returns a scenario with local steps, and an aggregation of what is received."""
    return chained({"kind": "local_work"}, *received, {"kind": "weigh"}, aggregate)


TREES = {
    "enemies and Krum": tolerated(
        {"kind": "krum", "tolerated": 1, "selected": 2},
        {"kind": "sign_flip", "clients": [2]},
    ),
    "trimmed": tolerated({"kind": "trimmed_mean", "tolerated": 1}),
    "geometric median": tolerated({"kind": "geometric_median", "iterations": 4}),
    "clipped in buckets": tolerated(
        {
            "kind": "centred_clipping",
            "radius": 1.0,
            "iterations": 2,
            "buckets": 3,
        }
    ),
}
ALIE = {"kind": "alie", "clients": [2], "deviations": 1.5}
RUNS = {
    "alie and a median": tolerated({"kind": "coordinate_median"}, ALIE),
    **{name: tree for name, tree in TREES.items() if name != "trimmed"},
}
FAMILIES = {
    name: (SGD, {key: tree[key] for key in ("algorithm", "protocol")})
    for name, tree in RUNS.items()
}
