"""Seconds a commit and contributions a second, against closed forms and by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stalesim.analysis import speeds
from stalesim.analysis.statistics import Interval
from stalesim.analysis.timelines import report
from stalesim.simulator.cli.runs import recorder_of
from stalesim.simulator.scenario.reading import loads_any

N, K, MEAN, REPLICATES = 8, 4, 2.0, 12
WORLD = f"""
name: speeds
clients: {{number: {N}, compute: {{law: expon, scale: {MEAN}}}}}
protocol: {{kind: asynchronous}}
stop: {{time: 500}}
replicates: {REPLICATES}
variants:
  async: {{}}
  K-batch-async: {{protocol: {{kind: buffered, size: {K}}}}}
"""


def test_exponential_workers_have_their_closed_forms(tmp_path: Path) -> None:
    scenario = loads_any(WORLD, "speeds.yaml")
    study = recorder_of(scenario)(scenario, tmp_path / "study", lambda _: None)
    measured = report.measured(study)
    found = speeds.by_group(measured).set_index("group")
    # Contributions are a Poisson process of rate N / MEAN.
    for name, each in (("async", 1), ("K-batch-async", K)):
        assert found.loc[name, "replicates"] == REPLICATES
        rate = found.loc[name, "contributions_per_s"]
        seconds = found.loc[name, "commit_s"]
        assert isinstance(rate, Interval)
        assert isinstance(seconds, Interval)
        assert rate.low < N / MEAN < rate.high
        assert seconds.low < each * MEAN / N < seconds.high
        # Standard deviation of a count in 500 s; its estimate within a factor of two.
        half = stats.t.ppf(0.975, REPLICATES - 1) * np.sqrt(N / MEAN / 500 / REPLICATES)
        assert 0.5 < (rate.high - rate.low) / 2 / half < 2
    titles = [title for title, _ in report.tables(study)]
    assert sum(speeds.TITLE in title for title in titles) == 1


def test_intervals_by_hand() -> None:
    frame = pd.DataFrame(
        {
            "group": ["a", "b", "a"],
            "commits_per_s": [0.5, 0.0, 0.25],
            "contributions_per_s": [3.0, 0.0, 5.0],
        }
    )
    found = speeds.by_group(frame)
    assert found["group"].tolist() == ["a", "b"]
    a, b = found["commit_s"]
    np.testing.assert_allclose(a, [3, 2, 4])  # the t-interval falls below 0
    assert np.isnan(b).all()  # no commit: no seconds, and not none
    shown = speeds.table(frame)
    assert shown is not None
    assert shown["s a commit"].tolist() == ["3.0 [2.0, 4.0]", speeds.UNKNOWN]
    assert shown["contributions/s"].tolist() == ["4.0 [3.0, 5.0]", "0"]
    assert speeds.table(frame.iloc[:2]) is None  # single runs have no interval


@pytest.mark.slow
def test_runs_with_numerics_are_measured_over_the_whole(tmp_path: Path) -> None:
    from stalesim import simulate

    learning = """
problem:
  data: {kind: digits, limit: 100}
  partition: {kind: iid, clients: 4}
clients: {compute: {law: constant, value: 3}}
protocol: {kind: buffered, size: 2}
algorithm: {kind: sgd, step_size: 0.1, batch: 4}
stop: {commits: 20}
evaluate: {every: {commits: 10}}
"""
    study = simulate(loads_any("name: few\n" + learning, "few.yaml"), tmp_path / "s")
    (run,) = speeds.by_run(study).to_dict("records")
    assert run["commit_s"] == pytest.approx(1.5)  # 4 workers, 2 a commit, 3 s each
    assert run["contributions_per_s"] == pytest.approx(4 / 3)
