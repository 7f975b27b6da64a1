"""Messages and bytes of FedBCD's rounds, as the tables of a run have them."""

from typing import Any

import numpy as np
import pytest

from tests.runs import execute, prepared

BATCH, ROUNDS = 11, 3
SIZE = 4 * BATCH
BASE: dict[str, Any] = {
    "protocol": {"kind": "rounds"},
    "algorithm": {"kind": "fed_sgd", "step_size": 0.1, "batch": BATCH},
    "clients": {"compute": {"law": "constant", "value": 1}},
    "stop": {"commits": None, "rounds": ROUNDS},
    "evaluate": {
        "every": {"commits": None, "rounds": 1},
        "metrics": ["test_accuracy"],
    },
}
OF_JOBS = ("upload_messages", "download_messages", "upload_bytes", "download_bytes")


def tables(parties: int, order: str, exchange: str = "star", **more: Any) -> Any:
    """Returns the tables of a run that is evaluated after every round."""
    changes = {
        "problem": {"partition": {"parties": parties}},
        "protocol": {"order": order, "exchange": exchange},
    }
    memory, (end,) = execute([prepared(BASE, changes, more)], "stepwise")
    return memory, end


def jobs_sent(memory: Any) -> list[int]:
    return [int(memory.column("jobs", name).sum()) for name in OF_JOBS]


@pytest.mark.parametrize("parties", [2, 5, 17])
@pytest.mark.parametrize("order", ["parallel", "sequential"])
@pytest.mark.parametrize("exchange", ["star", "pairwise"])
def test_messages_are_those_of_the_paper(
    parties: int, order: str, exchange: str
) -> None:
    memory, _ = tables(parties, order, exchange)
    # An exchange in a star: K - 1 up, as many down; between all pairs K^2 - K.
    up, down = parties - 1, parties - 1
    if exchange == "pairwise":
        up, down = parties**2 - parties, 0
    # In sequence, a new batch is exchanged first, and then by one party at a time.
    up *= 2 if order == "sequential" else 1
    rounds = memory.column("evaluations", "rounds")
    assert rounds.tolist() == [*range(ROUNDS + 1)]
    for name, expected in (
        ("messages", up + down),
        ("upload_bytes", SIZE * up),
        ("download_bytes", SIZE * down),
    ):
        found = memory.column("evaluations", name)
        np.testing.assert_array_equal(found, expected * rounds, name)
    each = np.multiply(ROUNDS, [up, down, SIZE * up, SIZE * down])
    assert jobs_sent(memory) == each.tolist()


@pytest.mark.parametrize("order", ["parallel", "sequential"])
def test_a_run_that_ends_early_has_sent_no_more(order: str) -> None:
    target = {"target": {"test_accuracy": 0.5}}
    memory, end = tables(5, order, stop={"rounds": 90, **target})
    assert end["stop"] == "target"
    rounds = memory.column("evaluations", "rounds")[-1]
    assert 1 <= rounds < 90
    up, down = (8, 4) if order == "sequential" else (4, 4)
    each = [up, down, SIZE * up, SIZE * down]
    assert jobs_sent(memory) == [rounds * one for one in each]
    for name, expected in (
        ("messages", up + down),
        ("upload_bytes", SIZE * up),
        ("download_bytes", SIZE * down),
    ):
        assert memory.column("evaluations", name)[-1] == rounds * expected


def test_only_the_party_with_labels_sends_nothing_in_a_star() -> None:
    memory, _ = tables(5, "parallel")
    party = memory.column("jobs", "client")
    done = ~np.isnan(memory.column("jobs", "applied_time"))
    for name in OF_JOBS[:2]:
        sent = memory.column("jobs", name)
        assert set(sent[done & (party < 4)].tolist()) == {1}, name
        assert set(sent[party == 4].tolist()) == {0}, name
