"""Means by the samples that jobs have processed: token-weighted merging."""

from typing import Any

import numpy as np
import pytest

from tests.reference.methods_support import K, assert_like_twin, tree_of

UNEVEN = {"problem": {"partition": {"kind": "sizes", "clients": K, "weights": "m"}}}
STEPS = {"local_steps": 4, "speeds": "1 / m"}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rounds": ({"kind": "synchronous"}, STEPS),
    "quorums": ({"kind": "buffered", "size": 3}, STEPS),
    "epochs of few samples": ({"kind": "buffered", "grace": 0.5}, {"local_epochs": 2}),
}


def tree(
    weighting: str, protocol: dict[str, Any], work: dict[str, Any]
) -> dict[str, Any]:
    chain = [
        {"kind": "local_work", **work},
        {"kind": "as_moves"},
        {"kind": "weigh", "weighting": weighting, "weight": {"kind": "polynomial"}},
        {"kind": "mean"},
        {"kind": "step", "step_size": 0.7},
    ]
    method = {"kind": "chained", "chain": chain}
    return tree_of(protocol, method, **UNEVEN, stop={"commits": 30})


@pytest.mark.parametrize("name", RUNS)
def test_a_job_counts_by_the_samples_of_all_its_steps(name: str) -> None:
    memory, _ = assert_like_twin(tree("processed", *RUNS[name]))
    equal, _ = assert_like_twin(tree("equal", *RUNS[name]))
    last = [m.column("evaluations", "objective")[-1] for m in (memory, equal)]
    assert abs(last[0] - last[1]) > 1e-4 * last[1]


def test_by_epochs_it_is_the_mean_by_samples() -> None:
    found = [
        assert_like_twin(tree(by, *RUNS["epochs of few samples"]))[0]
        for by in ("processed", "samples")
    ]
    one, other = (memory.column("evaluations", "objective") for memory in found)
    np.testing.assert_allclose(one, other, rtol=1e-9)
