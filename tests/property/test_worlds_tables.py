"""Tables of random worlds obey the laws of conservation, with numerics and without.

A landing takes a twelfth of the seeds, `--slow` all of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator import simulate
from stalesim.simulator.timelines.saved import record
from stalesim.simulator.trace import Study
from tests.drawn_worlds import engine_scenario, timeline_scenario
from tests.laws import contradictions

WORLDS, PAIRS = 565, 104
HOW = [
    {"engine": {"mode": mode, "chunk": chunk}, "timeline": {"player": player}}
    for mode in ("auto", "stepwise")
    for player in ("fastest", "simpy")
    for chunk in (4096, 16, 50)
]
"""Ways to execute the same run: they change no table but the last digits of losses."""
SAME = {
    "jobs": [],
    "incidents": [],
    "clients": [],
    "commits": ["loss", "gradient_norm", "step_size"],
}
"""Tables that are equal however a run is executed, and columns that may differ."""
SUMMED = ["num_jobs", "num_applied", "staleness_mean", "staleness_max"]


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_timeline_obeys_the_laws(seed: int, tmp_path: Path) -> None:
    whole = record(timeline_scenario(seed), tmp_path / "whole")
    assert contradictions(whole) == []
    summed = record(timeline_scenario(seed, record="summary"), tmp_path / "summary")
    assert_summary(summed, whole)


def assert_summary(summed: Study, whole: Study) -> None:
    """Statistics alone are those of the whole record."""
    told, clients = summed.table("clients"), whole.table("clients")
    pd.testing.assert_frame_equal(told[SUMMED], clients[SUMMED], check_dtype=False)
    by = clients["client"]
    for column, table, amount in (
        ("incidents", "incidents", None),
        ("uploads", "jobs", "upload_messages"),
    ):
        groups = whole.table(table).groupby("client")
        counts = groups.size() if amount is None else groups[amount].sum()
        mine = counts.reindex(by, fill_value=0).to_numpy()
        assert told[column].tolist() == mine.tolist(), column


@pytest.mark.parametrize("seed", range(PAIRS))
def test_a_run_obeys_the_laws_however_it_is_executed(seed: int, tmp_path: Path) -> None:
    plain = simulate(engine_scenario(seed), tmp_path / "plain")
    other = simulate(engine_scenario(seed, **HOW[seed % len(HOW)]), tmp_path / "other")
    assert contradictions(plain) == []
    assert contradictions(other) == []
    assert_same(plain, other)


def assert_same(one: Study, other: Study) -> None:
    """Two studies have the same tables, but for last digits."""
    assert {*one.files} == {*other.files}
    for name, rough in SAME.items():
        if name not in one.files:
            continue
        tables: list[Any] = [study.table(name) for study in (one, other)]
        exact = [t.drop(columns=[c for c in rough if c in t]) for t in tables]
        pd.testing.assert_frame_equal(*exact, check_exact=True)
        for column in rough:
            if column in tables[0]:
                np.testing.assert_allclose(*(t[column] for t in tables), rtol=1e-3)
