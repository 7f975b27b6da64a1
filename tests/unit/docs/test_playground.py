"""The playground's world in a browser against the program's: draws, versions, laws."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stalesim.analysis import theory
from stalesim.analysis.timelines.theory import closed_forms
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import replicate_seed
from stalesim.simulator.studies.saved import record
from stalesim.simulator.world.streams import Streams
from tests.browser import chromium

pytestmark = pytest.mark.slow

WORLD = Path(__file__).parents[3] / "docs" / "assets" / "world.js"
USUAL: dict[str, Any] = {
    "clients": 5,
    "slowest": 1,
    "law": "expon",
    "shape": 1.5,
    "protocol": "asynchronous",
    "size": 3,
    "seed": 1,
    "commits": 300,
}


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with chromium() as browser:
        found = browser.new_page()
        found.add_script_tag(path=str(WORLD))
        yield found


def in_browser(page: Any, options: dict[str, Any]) -> dict[str, Any]:
    return page.evaluate(
        """options => {
            const { rows, underWay } = World.play(options);
            return {
                scenario: World.scenario(options),
                checksum: World.checksum(rows),
                client: rows.map(row => row.client + 1),
                read_version: rows.map(row => row.read),
                read_time: rows.map(row => row.begin),
                arrived_time: rows.map(row => row.end),
                staleness: rows.map(World.staleness),
                under_way: underWay.map(job => [job.client + 1, job.read]),
            };
        }""",
        options,
    )


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**40 + 5])
def test_seeds_make_the_same_keys(page: Any, seed: int) -> None:
    found = page.evaluate(f"World.key({seed}n).map(String)")
    expected = Streams(replicate_seed(seed, 0))._key
    assert found == [str(word) for word in expected]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": 7, "slowest": 8, "clients": 12},
        {"clients": 1},
        {"law": "weibull_min", "shape": 2.5, "slowest": 3},
        {"law": "pareto", "shape": 1.1, "clients": 9, "seed": 3},
        {"law": "uniform", "clients": 30, "commits": 1000},
        {"protocol": "buffered", "clients": 8, "slowest": 4},
        {"protocol": "buffered", "size": 20, "clients": 4, "commits": 50},
        {"protocol": "synchronous", "slowest": 2, "commits": 60},
        {"protocol": "synchronous", "law": "pareto", "shape": 1.5, "commits": 60},
    ],
)
def test_the_same_seed_gives_the_same_versions(
    page: Any, tmp_path: Path, changes: dict[str, Any]
) -> None:
    found = in_browser(page, USUAL | changes)
    file = tmp_path / "playground.yaml"
    file.write_text(found["scenario"], encoding="utf-8")
    study = record(read_any(file), tmp_path / "timeline")
    jobs = study.table("jobs")
    open_ = jobs[jobs["outcome"] == "IN_FLIGHT"][["client", "read_version"]]
    # The last read of all is at the end: the program counts its job, or ends before.
    assert {*map(tuple, open_.to_numpy().tolist())} <= {
        *map(tuple, found["under_way"])
    } or changes.get("protocol") == "synchronous"
    jobs = jobs[jobs["outcome"] == "APPLIED"].sort_values("arrived_time")
    for column in ("client", "read_version"):
        np.testing.assert_array_equal(found[column], jobs[column], err_msg=column)
    for column in ("read_time", "arrived_time"):
        np.testing.assert_allclose(found[column], jobs[column], rtol=1e-12, atol=0)
    read = jobs[["client", "read_version"]].to_numpy("int32")
    assert found["checksum"] == f"{zlib.crc32(read.tobytes()):08x}"
    staleness = jobs["commit"].to_numpy() - 1 - jobs["read_version"].to_numpy()
    np.testing.assert_array_equal(found["staleness"], staleness)


@pytest.mark.parametrize(
    "changes",
    [{}, {"slowest": 10, "clients": 7}, {"clients": 30, "slowest": 2.5}],
)
def test_the_law_of_staleness_is_that_of_the_theory(
    page: Any, changes: dict[str, Any]
) -> None:
    options = USUAL | changes
    tree = yaml.safe_load(page.evaluate("options => World.scenario(options)", options))
    world = WorldScenario.model_validate(tree)
    entry = {"scenario": tree, "facts": world.described()}
    law = closed_forms(entry | {"num_clients": options["clients"]}).law
    assert law is not None
    ages, chances = law
    most = min(int(ages[-1]), 60)
    found = page.evaluate(f"options => World.closedForm(options, {most})", options)
    known = ages <= most
    np.testing.assert_allclose(
        np.array(found)[ages[known].astype(int)], chances[known], rtol=1e-10
    )


def test_means_are_those_of_the_theory(page: Any) -> None:
    def mean(**changes: Any) -> float:
        return page.evaluate("options => World.meanStaleness(options)", USUAL | changes)

    assert mean() == theory.mean_staleness_in_flight(5)
    assert mean(protocol="buffered") == theory.mean_staleness_buffered(5, 3)
    assert mean(protocol="synchronous") == 0


def test_what_has_no_closed_form_shows_none(page: Any) -> None:
    for changes in ({"law": "pareto"}, {"protocol": "buffered"}):
        found = page.evaluate("o => World.closedForm(o, 5)", USUAL | changes)
        assert found is None


@pytest.mark.parametrize("law", ["expon", "weibull_min", "pareto", "uniform"])
def test_durations_have_the_mean_that_is_said(page: Any, law: str) -> None:
    options = USUAL | {"law": law, "shape": 4.0, "clients": 1, "commits": 3000}
    found = in_browser(page, options)
    # The mean of 3000 durations of at most unit spread: three standard errors.
    assert found["arrived_time"][-1] / 3000 == pytest.approx(1, abs=3 / 3000**0.5)
