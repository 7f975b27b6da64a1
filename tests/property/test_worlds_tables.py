"""Tables of random worlds obey the laws of conservation, with numerics and without.

A landing takes a twentieth of the seeds, `--slow` all of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis.timelines import measures
from stalesim.analysis.timelines.view import View, view
from stalesim.simulator import simulate
from stalesim.simulator.files.study import Study
from stalesim.simulator.studies.saved import record
from tests.drawn_worlds import engine_scenario, timeline_scenario
from tests.laws import contradictions
from tests.oracles.tallies import counts_of

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
KEYS = ["run", "client"]
SUMMED = ["num_jobs", "num_applied", "staleness_mean", "staleness_max"]
MEASURED = ("by_run", "by_client")
AGES = ("client", "start", "staleness", "client_group")
PATHLESS = ("push_gossip", "hierarchy")
"""Protocols in which what depends on what is not known."""


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_timeline_obeys_the_laws(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = timeline_scenario(seed, replicates=1 + (seed % 5 == 0))
    whole = record(scenario, tmp_path / "whole")
    assert contradictions(whole) == []
    chunk = (7, 64, 65_536)[seed % 3]
    monkeypatch.setattr("stalesim.simulator.studies.saved.PAIRS", chunk)
    summed = record(scenario.replaced(record="summary"), tmp_path / "summary")
    assert_summary(summed, whole)
    assert_measured(view(summed), view(whole))


def assert_measured(summed: View, whole: View) -> None:
    """What is measured while a timeline goes is what its whole record says."""
    assert not summed.is_whole
    both = (summed, whole)
    compared: list[Any] = [[getattr(of, name) for of in both] for name in MEASURED]
    for one, twin in zip(
        whole.counts, counts_of(whole.study, whole.divided), strict=True
    ):
        keys = [name for name in ("run", *AGES) if name in one]
        compared.append([of[[*one]].sort_values(keys) for of in (one, twin)])
    for _, runs in whole.runs.groupby("group"):
        compared.append([of.histogram(runs) for of in both])
    if whole.divided:
        tallies = ((*of.counts[:2], of.divided) for of in both)
        compared.append([measures.by_client_group(*tally) for tally in tallies])
    for one, other in compared:
        assert [*one] == [*other]
        pd.testing.assert_frame_equal(
            one.reset_index(drop=True),
            other.reset_index(drop=True),
            check_dtype=False,
            rtol=1e-9,
            atol=1e-9,
        )
    known = whole.runs["protocol"].isin(PATHLESS) | whole.by_run["waves"].notna()
    assert known.all()


def assert_summary(summed: Study, whole: Study) -> None:
    """Tables of a summary are those of the whole record."""
    told, clients = summed.table("clients"), whole.table("clients")
    assert told[SUMMED].equals(clients[SUMMED])
    by = pd.MultiIndex.from_frame(clients[KEYS])
    for column, table, amount in (
        ("incidents", "incidents", None),
        ("uploads", "jobs", "upload_messages"),
    ):
        groups = whole.table(table).groupby(KEYS)
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
