"""Seconds a commit and contributions a second, against closed forms and by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import speeds
from stalesim.simulator.scenario.reading import loads_any


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
    assert shown["s per server update"].tolist() == ["3.0 [2.0, 4.0]", speeds.UNKNOWN]
    assert shown["client updates/s"].tolist() == ["4.0 [3.0, 5.0]", "0"]
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
