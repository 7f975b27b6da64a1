"""Numbers of papers outside our list: the table, its verdicts, and some of its rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.external import of_runs
from generators import external
from stalesim.analysis.statistics import Interval
from stalesim.simulator.scenario.reading import read_any

ROOT = Path(__file__).parents[3]
SCENARIOS = ROOT / "scenarios" / "external"
LISTED = pd.read_csv(ROOT / external.LISTED, keep_default_na=False)


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.yaml")), ids=lambda f: f.stem)
def test_each_scenario_is_read_and_has_published_numbers(file: Path) -> None:
    assert read_any(file).name.startswith("external-")
    mine = LISTED[LISTED["scenario"] == file.stem]
    assert len(mine)
    assert (mine["source"] != "").all()
    assert ((mine["why"] != "") == (mine["rule"] == external.APART)).all()


def test_each_number_has_a_scenario_and_was_measured() -> None:
    found = external.compared(ROOT)
    assert len(found) == len(LISTED)
    assert {*found["scenario"]} == {file.stem for file in SCENARIOS.glob("*.yaml")}
    assert (found["replicates"] >= 3).all()


@pytest.mark.parametrize(
    ("rule", "published", "within", "interval", "expected"),
    [
        ("equals", 100, 0.01, (99.5, 100.5), "agrees"),
        ("equals", 100, 0.01, (98.5, 100.5), "within the interval"),
        ("equals", 100, 0.01, (100.2, 100.8), "agrees"),
        ("equals", 100, 0.01, (100.2, 101.2), "differs"),
        ("equals", 9, 0, (9, 9), "agrees"),
        ("equals", 100, 0.01, (np.nan, np.nan), "differs"),
        ("at most", 4, 0, (4, 4), "met"),
        ("at most", 4, 0, (3.5, 4.5), "undecided"),
        ("at most", 4, 0, (4.1, 4.5), "not met"),
        ("not comparable", 4, 0, (4, 4), "not comparable"),
    ],
)
def test_verdicts(
    rule: str,
    published: float,
    within: float,
    interval: tuple[float, float],
    expected: str,
) -> None:
    found = Interval(sum(interval) / 2, *interval)
    assert external.verdict(rule, published, within, found) == expected


def test_a_number_that_was_not_measured_is_refused(tmp_path: Path) -> None:
    for path in (external.LISTED, external.MEASURED):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text())
    line = "dutta_pareto,sync,waiting_mean,,equals,1,0.01,nothing,\n"
    with (tmp_path / external.LISTED).open("a") as file:
        file.write(line)
    with pytest.raises(SystemExit, match=r"python benchmarks/external\.py dutta_par"):
        external.compared(tmp_path)
    with (tmp_path / external.LISTED).open("a") as file:
        file.write(line.replace("equals", "about"))
    with pytest.raises(SystemExit, match="rule must be equals, at most, not comp"):
        external.compared(tmp_path)


def published(scenario: str, group: str, quantity: str) -> float:
    keys = ["scenario", "group", "quantity"]
    return LISTED.set_index(keys)["published"].loc[(scenario, group, quantity)]


def order(law: Any, k: int, n: int) -> float:
    """Integrates the chance that fewer than k of n draws are below x."""
    ends = np.geomspace(1, law.ppf(1 - 1e-13), 200_001)
    x = np.unique(np.concatenate([np.linspace(0, 200, 200_001), ends]))
    return float(np.trapezoid(stats.binom.cdf(k - 1, n, law.cdf(x)), x))


def test_published_order_statistics_are_those_of_their_laws() -> None:
    laws = {
        "dutta_exponential": stats.expon(),
        "dutta_shifted": stats.expon(0.5, 0.5),
        "dutta_pareto": stats.pareto(2.5),
    }
    forms = [
        (name, group, order(law, k, 8))
        for name, law in laws.items()
        for group, k in (("sync", 8), ("K-sync", 4))
    ]
    forms += [(name, "async", law.mean() / 8) for name, law in laws.items()]
    half = stats.halfnorm()
    forms += [
        ("fedbuff_rates", group, order(half, 1_000, n))
        for group, n in (("SyncFL, 1,000", 1_000), ("SyncFL, 1,000 of 1,300", 1_300))
    ]
    forms += [
        ("adacomm_runtime", f"exponential, tau = {tau}", 1 + order(law, 16, 16))
        for tau, law in ((1, stats.expon()), (10, stats.gamma(10)))
    ]
    for scenario, group, expected in forms:
        found = published(scenario, group, "commit_s")
        assert found == pytest.approx(expected, rel=1e-4), (scenario, group)


@pytest.mark.parametrize(
    ("group", "tasks", "fast"),
    [("20 tasks", 20, 0.1), ("20 tasks, 0.14 and 0.06", 20, 0.14), ("8 tasks", 8, 0.1)],
)
def test_published_queues_are_those_of_mean_value_analysis(
    group: str, tasks: int, fast: float
) -> None:
    p, rates = np.repeat([fast, 0.2 - fast], 5), np.repeat([4.0, 1.0], 5)
    queued = before = np.zeros(10)
    throughput = 0.0
    for number in range(1, tasks + 1):
        before, seconds = queued, (1 + queued) / rates
        throughput = number / (p @ seconds)
        queued = throughput * p * seconds
    delays = before / p
    forms = {
        "contributions_per_s": throughput,
        "staleness_mean of fast": delays[0],
        "staleness_mean of slow": delays[-1],
    }
    for quantity, expected in forms.items():
        found = published("closed_network", group, quantity)
        assert found == pytest.approx(expected, rel=1e-5)


def test_small_runs_meet_what_was_published() -> None:
    exact = of_runs(
        SCENARIOS / "koloskova_delay.yaml", ("replicates=1", "stop.commits=500")
    )
    assert exact["delays_and_ages"].tolist() == [9]
    bounded = of_runs(
        SCENARIOS / "rollout_bounds.yaml", ("replicates=1", "stop.steps=10")
    )
    assert bounded["within_graham"].iloc[0] == 1
    assert bounded.set_index("group")["staleness_max"]["eta = 1"] <= 1
    rounds = of_runs(
        SCENARIOS / "ringmaster_transport.yaml", ("replicates=2", "stop.time=100")
    )
    counts = rounds.groupby("group")["commits"].mean()
    # Rounds last 2.75 s, give or take 0.1, and end at 100 s: one more or less. R = 2
    # makes 0.69 s a commit; its authors' mean over 500 s varies by 0.3 of them.
    assert counts["Rennala 8"] == pytest.approx(181.5 / 5, abs=1)
    assert counts["R = 2"] == pytest.approx(719.5 / 5, abs=3)
