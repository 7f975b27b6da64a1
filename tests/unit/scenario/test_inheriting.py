"""Variants of another kind that take over what the base has written."""

from typing import Any

import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import expand, inherited

TEXT = """\
name: study
problem:
  data: {kind: digits}
  partition: {kind: iid, clients: 4}
clients:
  compute: {law: gamma, a: 2, scale: 3}
protocol: {kind: synchronous}
algorithm:
  {kind: fed_avg, step_size: 0.3, batch: 9, local_epochs: 2, weighting: equal,
   proximal: 0.5}
stop: {commits: 20}
evaluate: {every: {commits: 5}}
variants:
  base: {}
"""


def variant(text: str) -> Any:
    """Returns the scenario of a variant, and what it has inherited, in words."""
    scenario = loads(f"{TEXT}  other: {text}\n", "x.yaml")
    (run,) = [run for run in expand(scenario) if run.variant == "other"]
    told = inherited(scenario).get("other", [])
    return run.scenario, [str(each) for each in told]


def test_what_the_new_kind_knows_is_taken_over_and_the_rest_is_told() -> None:
    found, told = variant(
        "{protocol: {kind: buffered, size: 2}, "
        "algorithm: {kind: fed_buff, inherit: true, batch: 5, weighting: samples}}"
    )
    algorithm = found.algorithm
    assert (algorithm.step_size, algorithm.local_epochs) == (0.3, 2)
    assert (algorithm.batch, algorithm.weighting) == (5, "samples")
    (line,) = told
    inherited = "inherits learning_rate, local_epochs, but not mu"
    assert line == f"algorithm (fed_buff) {inherited}"


def test_usual_values_of_the_old_kind_are_not_taken_over() -> None:
    found, _ = variant(
        "{protocol: {kind: asynchronous}, algorithm: {kind: fed_async, inherit: true}}"
    )
    assert found.algorithm.weight.kind == "polynomial", "fed_async's own"
    assert found.algorithm.proximal == 0.5, "which both know, and the base has written"


def test_laws_start_from_nothing() -> None:
    with pytest.raises(ScenarioError, match="inherit must not be set in a law"):
        variant("{clients: {compute: {law: lognorm, s: 1, inherit: true}}}")


def test_parts_inside_are_taken_over_as_a_whole_or_merged() -> None:
    optimiser = "optimizer: {kind: adam, learning_rate: 0.1, b1: 0.8}"
    text = TEXT.replace("proximal: 0.5", optimiser)
    change = (
        "{protocol: {kind: buffered, size: 2}, "
        "algorithm: {kind: fed_buff, inherit: true, optimizer: {b1: 0.5}}}"
    )
    scenario = loads(f"{text}  other: {change}\n", "x.yaml")
    found = expand(scenario)[-1].scenario.algorithm.model_dump(mode="json")
    assert found["optimizer"]["kind"] == "adam"
    assert (found["optimizer"]["b1"], found["optimizer"]["learning_rate"]) == (0.5, 0.1)


def test_without_the_word_a_variant_starts_from_nothing() -> None:
    change = "{protocol: {kind: asynchronous}, algorithm: {kind: fed_async}}"
    with pytest.raises(ScenarioError, match="unless it has inherit: true"):
        variant(change)
    same, told = variant("{algorithm: {kind: fed_avg, inherit: true, batch: 3}}")
    assert (same.algorithm.step_size, same.algorithm.batch) == (0.3, 3)
    assert told == [], "of one kind everything is merged as ever"


def test_other_words_are_refused() -> None:
    with pytest.raises(ScenarioError, match="must be true or false"):
        variant("{algorithm: {kind: sgd, inherit: all}}")


def test_what_is_taken_over_must_fit() -> None:
    with pytest.raises(ScenarioError, match="local_epochs must not"):
        variant("{algorithm: {kind: sgd, inherit: true, local_steps: 4}}")


def test_a_scenario_that_is_written_out_means_the_same() -> None:
    """Usual values of the base are written out, but they are not inherited."""
    text = TEXT.replace("\n   proximal: 0.5", "").replace("equal,}", "equal}")
    other = (
        "{protocol: {kind: asynchronous}, algorithm: {kind: fed_async, inherit: true}}"
    )
    scenario = loads(f"{text}  other: {other}\n", "x.yaml")
    again = type(scenario).model_validate(scenario.model_dump(mode="json"))
    assert [run.scenario for run in expand(again)] == [
        run.scenario for run in expand(scenario)
    ]
    assert expand(again)[1].scenario.algorithm.proximal == 0.005
    assert "inherit" in str(scenario.model_dump(mode="json", exclude_unset=True))
