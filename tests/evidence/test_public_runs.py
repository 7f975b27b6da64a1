"""Public logs of FedAsync and FedBuff: jobs from an order and evaluations."""

from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evidence.studies import public_runs as study


def played(folder: Path, seed: int, num_updates: int = 90) -> pd.DataFrame:
    """Plays clients of which five have a place, and writes the two files of a run.

    Returns:
        The true read_time and arrived_time of each update that has arrived.
    """
    rng = np.random.default_rng(seed)
    asking, busy, rows, now = deque(range(study.CLIENTS)), {}, [], 0.0
    while len(rows) < num_updates:
        while asking and len(busy) < study.PLACES:
            busy[asking.popleft()] = (now, now + rng.uniform(30, 60))
        client = min(busy, key=lambda each: busy[each][1])
        read, now = busy.pop(client)
        rows.append((client, read, now))
        asking.append(client)
    truth = pd.DataFrame(rows, columns=["client", "read_time", "arrived_time"])
    order = truth[["client"]].rename(columns={"client": "client_id"})
    order = order.assign(total_agg=np.arange(num_updates), local_test_acc=0.1)
    order.to_csv(folder / "FedAsyncClientParticipation.csv", index=False)
    times = truth["arrived_time"]  # an evaluation after each update, and one before
    seen = {"total_agg": np.arange(num_updates + 1), "time": [0.0, *times]}
    pd.DataFrame(seen).to_csv(folder / "FedAsync.csv", index=False)
    return truth


@pytest.mark.parametrize("seed", range(3))
def test_reads_follow_from_the_order(tmp_path: Path, seed: int) -> None:
    truth = played(tmp_path, seed)
    log = study.with_reads(study.updates(tmp_path, "FedAsync"))
    pd.testing.assert_frame_equal(log[truth.columns], truth, check_dtype=False)


def test_updates_are_spread_between_evaluations(tmp_path: Path) -> None:
    played(tmp_path, 0, 10)
    seen = pd.DataFrame({"total_agg": [0, 4, 4, 6], "time": [10.0, 18, 20, 26]})
    seen.to_csv(tmp_path / "FedAsync.csv", index=False)
    found = study.updates(tmp_path, "FedAsync")
    assert [*found["arrived_time"]] == [12, 14, 16, 18, 23, 26]  # the rest is not known


def test_what_was_foretold_was_judged() -> None:
    told, judged = (
        pd.read_csv(study.RESULTS / f"{name}.csv") for name in ("foretold", "judged")
    )
    pd.testing.assert_frame_equal(judged[told.columns], told)
    error = 100 * (judged["foretold"] / judged["happened"] - 1)
    np.testing.assert_allclose(judged["error_percent"], error, atol=0.051)
