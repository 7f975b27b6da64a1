"""Worlds of samples for the tables of the core's tests."""

from typing import Any

from tests.golden.cases import HORIZONTAL, SGD, case

EXPON = {"law": "expon"}
POLICY = {"kind": "policy_gradient", "step_size": 0.3, "correction": "truncated"}
ROLLOUTS = {
    "kind": "rollouts",
    "generation": {"slots": 12, "tokens": EXPON, "group": 2},
    "queue": {"capacity": 2},
    "trainer": {"samples": 4, "step": {"law": "expon", "scale": 0.004}},
}
LEARNING = case(*("asynchronous", HORIZONTAL, POLICY), metrics=["expected_reward"]) | {
    "protocol": ROLLOUTS
}
CASES: dict[str, dict[str, Any]] = {"policy_gradient": LEARNING}
SUMS = {
    "data": {"kind": "arithmetic", "scale": "raw"},
    "partition": {"kind": "iid", "clients": 4},
    "model": {"kind": "transformer"},
}
TREES = {
    "policy_gradient": LEARNING,
    "sums": case("asynchronous", SUMS, SGD),
}
BIG_MODELS = {"sums": SUMS}
REFUSED = {"policy_gradient": "of a model of this package"}
PROTOCOLS = {
    "rollouts": {
        "generation": {"slots": 12, "tokens": EXPON, "seconds_per_token": 0.5},
        "trainer": {"samples": 4, "step": EXPON},
    }
}
SAID = {
    "rollouts": (
        *("12 slots", "the trainer", "finished samples"),
        "generation, tokens seconds of a token training",
    )
}
