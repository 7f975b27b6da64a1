"""Gossip learning against its blind twin: models are pushed, merged and trained."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.files.timeline import NO_SLOT, Kind
from tests.reference.gossip_support import K, assert_agree, noisy, plan_of, ran, twin_of

TOKENS = {"kind": "randomised", "capacity": 6, "divisor": 3}
PUSHED: dict[str, Any] = {
    "clients": {
        "idle": {"law": "uniform", "loc": 0.8, "scale": 0.4},
        "compute": {"law": "expon", "scale": 0.2},
        "upload": {"latency": {"law": "expon", "scale": 0.9}},
        "loss": {"chance": 0.2, "timeout": 1, "retries": 0},
    },
    "protocol": {"kind": "push_gossip", "graph": {"kind": "ring"}, "tokens": TOKENS},
}
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "mean": (),
    "age": ({"algorithm": {"merge": "age"}},),
    "random walks": ({"algorithm": {"merge": "replace"}},),
    "cached neighbours": ({"algorithm": {"merge": "cached"}},),
    "noise": (noisy(2.0),),
    "proactive": ({"protocol": {"tokens": None}},),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_pushed_models_agree_with_the_twin(variant: str) -> None:
    plan = plan_of(PUSHED, *VARIANTS[variant])
    rows, expected = twin_of(plan)
    commits = np.flatnonzero(rows.kind == Kind.COMMIT)
    sent, merged = (rows.kind == kind for kind in (Kind.SEND, Kind.MERGE))
    # Some are lost, some arrive in a job, and some are older than others sent later.
    assert (rows.read_slot[sent, 1] == NO_SLOT).sum() > 10
    assert (rows.read_slot[merged, 0] == NO_SLOT).sum() > 10
    assert merged.sum() > commits.size == 210
    assert rows.read_slot[rows.read_slot != NO_SLOT].max() > K
    assert not merged[commits[-1] :].any()
    consensus = np.full(rows.time.size, np.nan)
    consensus[commits] = expected.consensus
    (found,) = ran([plan])
    assert_agree(found, expected.models[-1], consensus)
    if isinstance(found.state.memory, jax.Array):
        assert found.state.memory[:K].tolist() == expected.ages[-1].tolist()
