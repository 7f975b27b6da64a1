"""The living review: its files, its table, its verdicts, and some of its numbers."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evidence.generators import external, sheets
from evidence.studies.external import measured, of_runs
from stalesim.analysis.statistics import Interval
from stalesim.simulator.scenario.reading import read_any

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios" / "external"
LISTED = sheets.numbers(ROOT)
OWN = """name: external-own
source: "Somebody, A Paper (2026)"
replicates: 3
clients: {number: 2, compute: {law: expon}}
protocol: {kind: asynchronous}
stop: {commits: 100}
#| claim: "A commit takes half a second"
#| setting: "as stated: exponential times"
#| numbers:
#| - {quantity: commit_s, equals: 0.5, within: 0.01, source: "E[X] / P"}
"""


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.yaml")), ids=lambda f: f.stem)
def test_each_scenario_is_read_and_says_what_was_published(file: Path) -> None:
    scenario = read_any(file)
    assert scenario.name.startswith("external-")
    assert scenario.source
    assert sheets.read(file).numbers


def test_each_number_was_measured() -> None:
    found = external.compared(ROOT)
    assert len(found) == len(LISTED)
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
        ("at least", 4, 0, (4, 4.5), "met"),
        ("at least", 4, 0, (3.5, 4.5), "undecided"),
        ("at least", 4, 0, (3.1, 3.5), "not met"),
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


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"agrees", "met", "not comparable"}, "holds"),
        ({"agrees", "within the interval"}, "not contradicted"),
        ({"met", "undecided"}, "not contradicted"),
        ({"agrees", "differs"}, "does not hold here"),
        ({"undecided", "not met"}, "does not hold here"),
        ({"not comparable"}, "not comparable"),
    ],
)
def test_a_claim_is_judged_by_its_numbers(verdicts: set[str], expected: str) -> None:
    assert external.of_claim(verdicts) == expected


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A repository with one scenario, a file that has just been put there."""
    own = tmp_path / sheets.FOLDER / "own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(OWN)
    measured = tmp_path / external.MEASURED
    measured.parent.mkdir(parents=True)
    shutil.copy(ROOT / external.MEASURED, measured)
    page = tmp_path / "evidence/pages/external.md"
    page.parent.mkdir()
    shutil.copy(ROOT / "evidence/pages/external.md", page)
    return tmp_path


def test_a_new_file_is_in_the_table_without_other_changes(elsewhere: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"own\.yaml: .*evidence\.studies\.external own"
    ):
        external.document(elsewhere)
    runs = of_runs(elsewhere / sheets.FOLDER / "own.yaml")
    row = ["own", "base", "commit_s", "", *measured(runs, "base", "commit_s", "")]
    with (elsewhere / external.MEASURED).open("a") as file:
        file.write(",".join(map(str, row)) + "\n")
    lines = external.document(elsewhere).splitlines()
    (claim,) = [line for line in lines if "A commit takes half a second" in line]
    assert "| 2026 |" in claim
    assert "(../../scenarios/external/own.yaml)" in claim


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("equals: 0.5", "about: 0.5", r"own\.yaml:10: numbers\.0\.about"),
        ("equals: 0.5", "at_most: 1, equals: 0.5", "exactly one of equals, at_most"),
        ("as stated", "nearly", r"own\.yaml:8: setting"),
        ("#| ", "# ", r"own\.yaml: must say what was published"),
    ],
)
def test_a_mistake_in_a_file_is_one_clear_line(
    old: str, new: str, says: str, elsewhere: Path
) -> None:
    file = elsewhere / sheets.FOLDER / "own.yaml"
    file.write_text(OWN.replace(old, new))
    with pytest.raises(SystemExit, match=says) as caught:
        sheets.numbers(elsewhere)
    assert "\n" not in str(caught.value)


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
    forms += [
        ("lee_codes", f"{k} of 10", order(stats.expon(1), k, 10) / k) for k in (10, 7)
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
