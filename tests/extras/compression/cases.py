"""Chains with compressors for the tables of the core's tests."""

from typing import Any

from tests.golden.cases import HORIZONTAL, case
from tests.support import SGD


def compressed(
    up: dict[str, Any], down: dict[str, Any], *more: dict[str, Any], **compress: Any
) -> dict[str, Any]:
    """Returns a chain with compressors of either direction.

    Args:
        up: Compressor of what clients send.
        down: Compressor of the model.
        more: Stages of what is received.
        compress: Other options of the former.
    """
    return {
        "kind": "chained",
        "step_size": 0.1,
        "batch": 11,
        "chain": [
            {"kind": "broadcast", "compressor": down},
            {"kind": "local_work"},
            {"kind": "compress", "compressor": up, **compress},
            *more,
            *({"kind": kind} for kind in ("weigh", "mean", "step")),
        ],
    }


DENSE = compressed(
    {"kind": "low_rank", "rank": 2}, {"kind": "qsgd", "levels": 8, "bucket": 64}
)
SPARSE = compressed(
    {"kind": "top_k", "keep": 0.1},
    {"kind": "random_k", "keep": 65},
    {"kind": "as_moves"},
    feedback="ef21",
)
"""Compressors, each of which has a state or draws."""

CASES = {
    "compressed": case("asynchronous", HORIZONTAL, DENSE),
    "compressed buffered": case("buffered", HORIZONTAL, SPARSE),
}
TREES = CASES
FAMILIES = {
    "compressed": (SGD, {"algorithm": DENSE}),
    "compressed sync": (
        SGD,
        {"algorithm": SPARSE, "protocol": {"kind": "synchronous"}},
    ),
}
WAVES = FAMILIES
