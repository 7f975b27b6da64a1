"""A chain with noise of the server for the tables of the core's tests."""

from tests.golden.cases import HORIZONTAL, case

SECURE = {
    "form": "pairwise",
    "group": 9,
    "least": 2,
    "dropouts": 1,
    "value_bits": 16,
    "agree_s": 1,
    "mask_s": 1,
    "round_trip_s": 1,
}
METHOD = {
    "kind": "chained",
    "step_size": 0.1,
    "batch": 8,
    "chain": [
        {"kind": "local_work"},
        {"kind": "clip", "clip_bound": 1},
        {"kind": "weigh"},
        {"kind": "noisy_mean", "multiplier": 1, "secure": SECURE},
        {"kind": "step"},
    ],
}
FTRL = {"kind": "tree_mean", "multiplier": 1, "commits": 5}
TREES = {
    "secure": case("synchronous", HORIZONTAL, METHOD),
    "tree": case(
        *("asynchronous", HORIZONTAL),
        {**METHOD, "chain": [*METHOD["chain"][:3], FTRL, METHOD["chain"][4]]},
    ),
}
