"""What is measured of contributions, against its twin: from messages that were probed.

Diagnostics are stored in single precision, whose numbers have a relative error of 6e-8;
messages are summed in double precision.
"""

from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.timeline import NO_COMMIT, Kind
from tests.reference import measuring_twin as twin
from tests.reference.methods_support import BASE, SEED
from tests.runs import execute, prepared
from tests.support import Memory, everything

EXPONENT = 0.7
BY_AGE = {"kind": "weigh", "weight": {"kind": "polynomial", "exponent": EXPONENT}}
UNEVEN = {"problem": {"partition": {"kind": "sizes", "clients": 5, "weights": "m"}}}
BY_SIZE = {"kind": "weigh", "weighting": "samples"}
PROBED = {"probe": {"every": 1, "what": ["message"]}}
SINGLE = 1e-6


def run(weigh: dict, protocol: dict, *changes: dict, mode: str = "compiled") -> Any:
    """Returns the tables and the plan of a chain that measures both."""
    chain = [
        {"kind": "local_work"},
        {"kind": "effective_size"},
        {"kind": "cosine"},
        weigh,
        {"kind": "mean"},
        {"kind": "step"},
    ]
    own = {"kind": "chained", "chain": chain, "step_size": 0.07, "batch": 2}
    with jax.enable_x64(True):
        tree = BASE | {"algorithm": own, "protocol": protocol}
        plan = prepared(tree, *changes, seed=SEED)
        memory, _ = execute([plan], mode)
    return memory, plan


def messages(memory: Memory) -> list[list[np.ndarray]]:
    """Returns the messages of each commit, in order."""
    commit = memory.column("probes", "commit")
    sent = [
        np.asarray(row, float)
        for part in memory.tables["probes"]
        for row in np.asarray(part["message"].tolist())
    ]
    return [
        [sent[i] for i in np.flatnonzero(commit == number)]
        for number in np.unique(commit)
    ]


def assert_cosines(memory: Memory, sums: list[np.ndarray]) -> None:
    found = memory.column("commits", "contribution_cosine")
    expected = [twin.cosine(a.tolist(), b.tolist()) for a, b in pairwise(sums)]
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], expected, rtol=0, atol=SINGLE)
    assert min(expected) < 0 < max(expected)


@pytest.mark.parametrize("mode", ["compiled", "stepwise", "waves"])
def test_one_by_one(mode: str) -> None:
    memory, _ = run(BY_AGE, {"kind": "asynchronous"}, PROBED, mode=mode)
    sums = [sent[0] for sent in messages(memory)]
    assert_cosines(memory, sums)
    np.testing.assert_allclose(memory.column("commits", "effective_contributions"), 1)


@pytest.mark.parametrize("probed", [True, False])
def test_rounds_by_samples(probed: bool) -> None:
    """With single messages, and as one gradient of a round."""
    tree = UNEVEN | (PROBED if probed else {})
    memory, _ = run(BY_SIZE, {"kind": "synchronous"}, tree)
    sizes = memory.column("clients", "num_samples").astype(float)
    assert len({*sizes.tolist()}) > 2
    found = memory.column("commits", "effective_contributions")
    np.testing.assert_allclose(found, twin.effective(sizes), rtol=SINGLE)
    known, _ = run(BY_SIZE, {"kind": "synchronous"}, UNEVEN | PROBED)
    of_client = known.column("probes", "client").reshape(-1, 5)
    sums = [
        np.sum([sizes[c] * m for c, m in zip(who, sent, strict=True)], axis=0)
        for who, sent in zip(of_client, messages(known), strict=True)
    ]
    assert_cosines(memory, sums)


def test_buffers_by_staleness() -> None:
    memory, plan = run(BY_AGE, {"kind": "buffered", "size": 4})
    with jax.enable_x64(True):
        rows, jobs, _ = everything(plan.timeline)
    applied = jobs.commit != NO_COMMIT
    found = memory.column("commits", "effective_contributions")[
        rows.kind == Kind.COMMIT
    ]
    expected = []
    for commit in range(1, len(found) + 1):
        mine = applied & (jobs.commit == commit)
        staleness = commit - 1 - jobs.read_version[mine]
        expected.append(twin.effective([(1.0 + s) ** -EXPONENT for s in staleness]))
    np.testing.assert_allclose(found, expected, rtol=SINGLE)
    assert min(expected) < 3.9


def test_models_are_those_without() -> None:
    memory, _ = run(BY_AGE, {"kind": "buffered", "size": 4})
    plain = BASE["algorithm"] | {
        "kind": "chained",
        "chain": [{"kind": "local_work"}, BY_AGE, {"kind": "mean"}, {"kind": "step"}],
    }
    with jax.enable_x64(True):
        tree = BASE | {"algorithm": plain, "protocol": {"kind": "buffered", "size": 4}}
        alone, _ = execute([prepared(tree, seed=SEED)])
    for name in BASE["evaluate"]["metrics"]:
        ours, other = (m.column("evaluations", name) for m in (memory, alone))
        np.testing.assert_array_equal(ours, other)
