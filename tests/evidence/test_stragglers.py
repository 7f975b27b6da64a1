"""What-if answers of a replay of operations, against a pipeline done by hand."""

from pathlib import Path

import numpy as np
import pandas as pd

from evidence.studies import stragglers

MESSAGE, EXCHANGE, CLIP, OPTIMIZER = 0.1, 0.5, 0.2, 0.3
AFTER = EXCHANGE + CLIP + OPTIMIZER
SLOW, USUAL, BACK = 3.0, 1.0, 2.0
"""Seconds of a forward computation of one worker, of the three others, and back."""


def _step(step: int) -> list[tuple[int, int, int, str, float, float]]:
    """Two replicas of two stages, one micro-batch; one worker is slow."""
    rows = []
    first = {0: USUAL, 1: SLOW}
    ended = SLOW + USUAL + 2 * BACK + 2 * MESSAGE
    for replica, forward in first.items():
        there = forward + MESSAGE
        turned = there + USUAL + BACK
        back = turned + MESSAGE
        clip = ended + EXCHANGE
        for stage, kind, start, end in (
            (0, "forward-compute", 0, forward),
            (0, "forward-send", forward, there),
            (1, "forward-recv", 0, there),
            (1, "forward-compute", there, there + USUAL),
            (1, "backward-compute", there + USUAL, turned),
            (1, "backward-send", turned, back),
            (0, "backward-recv", there, back),
            (0, "backward-compute", back, back + BACK),
            (0, "grads-reduce-scatter", back + BACK, ended + EXCHANGE),
            (1, "grads-reduce-scatter", back, SLOW + USUAL + BACK + 2 * MESSAGE + 0.5),
            (0, "optimizer-clip-main-grad", clip, clip + CLIP),
            (1, "optimizer-clip-main-grad", clip - BACK, clip + CLIP),
            (0, "optimizer", clip + CLIP, ended + AFTER),
            (1, "optimizer", clip + CLIP, ended + AFTER),
        ):
            rows.append((step, replica, stage, kind, start, end))
    return rows


def test_a_slow_worker_is_found_and_its_removal_foretold(tmp_path: Path) -> None:
    columns = ["step", "dp_rank", "stage", "optype", "start_ts", "end"]
    table = pd.DataFrame(_step(1) + _step(2), columns=columns)
    table["duration"] = table["end"] - table["start_ts"]
    table["rank"] = 2 * table["dp_rank"] + table["stage"]
    table["seq_id"] = 0
    table.to_parquet(tmp_path / "trace.parquet")
    found = stragglers.WhatIf(stragglers.read(tmp_path / "trace.parquet"))
    slow = SLOW + USUAL + 2 * BACK + 2 * MESSAGE + AFTER
    mean = (SLOW + 3 * USUAL) / 4
    ideal = 2 * mean + 2 * BACK + 2 * MESSAGE + AFTER
    np.testing.assert_allclose(found.actual_s, slow, rtol=1e-6)
    np.testing.assert_allclose(found.ideal_s, ideal, rtol=1e-6)
    assert found.worst_workers() == {(1, 0)}

    def of_kind(kind: str) -> stragglers.Chosen:
        return lambda name, replica: (replica >= 0) & (name[0] == kind)

    forward, backward = map(of_kind, stragglers.COMPUTING)
    np.testing.assert_allclose(found.slowdown(forward), slow / ideal, rtol=1e-6)
    np.testing.assert_allclose(found.slowdown(backward), 1, rtol=1e-6)
    # With the mean in its place the slow worker's replica is still the last.
    without = slow - SLOW + mean
    share = found.share(lambda name, replica: (replica == 1) & (name[2] == 0))
    np.testing.assert_allclose(share, (slow - without) / (slow - ideal), rtol=1e-6)
