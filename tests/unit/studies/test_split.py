"""A division of the data that follows the replicate."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator import studies
from stalesim.simulator.problem.learning import dataset
from stalesim.simulator.scenario.reading import to_yaml
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, expand
from stalesim.simulator.studies.planning import content, plan
from tests.unit.studies.small import SMALL

TREE: dict[str, Any] = SMALL | {
    "replicates": 2,
    "problem": {
        "data": {"kind": "digits", "split_seed": "replicate"},
        "partition": {"kind": "iid", "clients": 5},
    },
    "engine": {},
    "sweep": {"algorithm.step_size": [0.1, 0.2]},
    "variants": {"one": {}, "two": {"problem": {"l2": 0.1}}},
}


def _runs(**data: Any) -> list[Run]:
    problem = TREE["problem"] | {"data": TREE["problem"]["data"] | data}
    return expand(Scenario.model_validate(TREE | {"problem": problem}))


def test_the_division_is_the_replicates_own() -> None:
    runs = _runs()
    assert len(runs) == 8
    for run in runs:  # the same for a replicate in all variants and points
        assert run.scenario.problem.data.split_seed == run.seed
    assert len({run.seed for run in runs}) == 2
    # What a run depends on names the number, not the word.
    assert len({content(run) for run in runs}) == 8
    first = dataset(runs[0].scenario.problem.data)
    again = dataset(runs[4].scenario.problem.data)
    other = dataset(runs[1].scenario.problem.data)
    np.testing.assert_array_equal(first.x_test, again.x_test)
    assert first.x_test.shape == other.x_test.shape
    assert not np.array_equal(first.x_test, other.x_test)


def test_a_number_is_the_same_division_for_all() -> None:
    seeds = {run.scenario.problem.data.split_seed for run in _runs(split_seed=4)}
    assert seeds == {4}


def test_the_word_stays_in_the_scenario() -> None:
    scenario = Scenario.model_validate(TREE)
    assert "split_seed: replicate" in to_yaml(scenario)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_runs_on_other_data_are_never_batched_together(backend: str) -> None:
    tasks = plan(_runs(), backend=backend)
    for task in tasks:
        assert len({run.seed for run in task.runs}) == 1
    # Points of a sweep that share a timeline and the data are one batch, as before.
    assert {task.mode for task in tasks} == {"shared"}
    assert len(tasks) == 4
    together = plan(_runs(split_seed=0), backend=backend)
    assert {len(task.runs) for task in together} == {2}


def test_a_study_is_extended_by_replicates_with_divisions_of_their_own(
    tmp_path: Path,
) -> None:
    small = studies.simulate(TREE, tmp_path / "s")
    larger = studies.simulate(TREE | {"replicates": 3}, tmp_path / "s")
    kept = {run["content"] for run in small.manifest["runs"]}
    assert kept < {run["content"] for run in larger.manifest["runs"]}
    assert larger.complete
