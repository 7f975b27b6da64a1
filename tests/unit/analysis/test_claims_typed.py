"""Claims on ratios, on values, and along a sweep that goes down."""

from typing import Any

import pandas as pd
import pytest

from stalesim.analysis import claims
from stalesim.analysis.frames import Study
from tests.unit.analysis.studies import (
    Curves,
    arrives,
    evaluations_of,
    manifest_of,
    run_of,
    usual,
)


def _judge(study: Study, **claim: Any) -> pd.Series:
    study.manifest["scenario"]["claims"] = [
        usual(claim, metric="test_accuracy", says="x")
    ]
    (row,) = [row for _, row in claims.evaluate(study).iterrows()]
    return row


def _commits(first: list[int], second: list[int]) -> Curves:
    study = Curves({"a": [arrives(1)] * len(first), "b": [arrives(1)] * len(first)})
    for run in study.manifest["runs"]:
        counts = first if run["variant"] == "a" else second
        run["commits"] = counts[run["replicate"]]
    return study


def _ratio(study: Study, is_: float, within: float, **more: Any) -> pd.Series:
    more = {"of": "commits", "is": is_, "within": within} | more
    return _judge(study, ratio="a", than="b", **more)


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [
        (2, 0.5, "holds"),
        (2, 0.05, "undecided"),
        (3, 0.5, "does not hold"),
        (1, 0.5, "does not hold"),
    ],
)
def test_ratio_of_commits(is_: float, within: float, verdict: str) -> None:
    # Ratios 1.9, 2 and 2.1, whatever the size of the run.
    found = _ratio(_commits([190, 2000, 42] * 2, [100, 1000, 20] * 2), is_, within)
    assert found["estimate"] == pytest.approx(2)
    assert (found["low"], found["high"]) == pytest.approx((1.9, 2.1))  # the range
    assert found["verdict"] == verdict
    assert found["claim"] == f"a against b: ratio of commits is {is_} to {within}"
    assert found["measured"].startswith("ratio of commits: 2.00 [1.90, 2.10]")
    assert found["replicates"] == 6


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [(3, 0, "holds"), (2.5, 0.5, "holds"), (2, 0.9, "does not hold")],
)
def test_ratio_of_deterministic_runs(is_: float, within: float, verdict: str) -> None:
    found = _ratio(_commits([300] * 6, [100] * 6), is_, within)
    assert found["high"] - found["low"] < 1e-12
    assert found["verdict"] == verdict


def test_ratio_of_what_the_last_evaluation_counts() -> None:
    # 10 commits a second: evaluated to 10 s and to 5 s.
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1, 6)] * 6})
    for of in ("bytes", "messages", "rounds", "epochs"):
        found = _ratio(study, 2, 0.01, of=of)
        assert found["estimate"] == pytest.approx(2)
        assert found["verdict"] == "holds"


def test_ratio_where_there_is_none() -> None:
    found = _ratio(_commits([1, 2, 3] * 2, [0, 1, 1] * 2), 2, 1)
    assert found["verdict"] == "undecided"
    assert "; 2 pairs without a ratio of numbers above 0; p" in found["why"]
    found = _ratio(_commits([1, 2, 3], [1, 1, 1]), 2, 1, of="objective")
    assert "no column 'objective'" in found["why"]
    found = _ratio(_commits([1, 2, 3], [1, 1, 1]), 2, 1, of="epsilon")
    assert "no run accounts for privacy" in found["why"]


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [(0.8, 0.05, "holds"), (0.8, 0.005, "undecided"), (0.7, 0.05, "does not hold")],
)
def test_value(is_: float, within: float, verdict: str) -> None:
    study = Curves({"a": [[0.79], [0.8], [0.81]] * 2})
    found = _judge(study, value="a", within=within, **{"is": is_})
    assert (found["low"], found["high"]) == pytest.approx((0.79, 0.81))  # the range
    assert found["verdict"] == verdict
    assert found["claim"] == f"a: test_accuracy is {is_} to {within}"
    assert found["measured"] == "test_accuracy: 0.800 [0.790, 0.810]"


def test_value_at_each_point_of_a_sweep_and_of_too_few() -> None:
    study = Curves({"a, q=1": [[0.5]] * 7, "a, q=2": [[0.9]] * 7})
    for run in study.manifest["runs"]:
        run |= {"variant": "a", "parameters": {"q": int(run["label"][-1])}}
    claim = {"value": "a", "is": 0.5, "within": 0.1, "says": "x"}
    study.manifest["scenario"]["claims"] = [claim | {"metric": "test_accuracy"}]
    assert claims.evaluate(study)["verdict"].tolist() == ["holds", "does not hold"]
    found = _judge(Curves({"a": [[0.5]]}), value="a", within=1, **{"is": 0.5})
    assert found["verdict"] == "not decidable"


class Swept:
    """A study of final values at every value of `x`, of a variant `a`."""

    def __init__(self, values: dict[Any, list[float]], key: str = "x") -> None:
        self.manifest = manifest_of(replicates=9)
        frames = []
        for x, finals in values.items():
            for replicate, final in enumerate(finals):
                number = len(self.manifest["runs"])
                run = run_of(number, f"a, x={x}", replicate, variant="a")
                run["parameters"] = {key: {"law": x} if isinstance(x, str) else x}
                self.manifest["runs"].append(run)
                frames.append(evaluations_of(number, [0.0], test_accuracy=[final]))
        self._table = pd.concat(frames)

    def table(self, name: str) -> pd.DataFrame:
        assert name == "evaluations"
        return self._table


UP = {1: [0.5, 0.6, 0.55] * 3, 2: [0.7, 0.8, 0.76] * 3, 3: [0.9, 0.95, 0.9] * 3}
DOWN = {4 - x: finals for x, finals in UP.items()}


@pytest.mark.parametrize(
    ("values", "direction", "verdict"),
    [
        (UP, "rising", "holds"),
        (UP, "falling", "does not hold"),
        (DOWN, "rising", "does not hold"),
        (DOWN, "falling", "holds"),
    ],
)
def test_monotone_either_way(
    values: dict[Any, list[float]], direction: str, verdict: str
) -> None:
    found = _judge(Swept(values), monotone="a", over="x", direction=direction)
    rises = (values is UP) == (direction == "rising")
    # Of the smallest rise, or the steepest fall: median of 0.2, 0.15 and 0.14; 0.2.
    assert found["estimate"] == pytest.approx(0.15 if rises else -0.2)
    assert found["verdict"] == verdict
    words = {"rising": "rises", "falling": "falls"}[direction]
    assert found["claim"] == f"a: test_accuracy {words} with x"


def test_falling_but_for_a_step_up() -> None:
    values = {
        1: [0.9, 0.92, 0.9] * 3, 2: [0.4, 0.42, 0.41] * 3, 3: [0.5, 0.52, 0.51] * 3
    }  # fmt: skip
    found = _judge(Swept(values), monotone="a", over="x", direction="falling")
    assert found["verdict"] == "does not hold"
    assert found["measured"].startswith("smallest fall, 2 to 3: -0.1 [")


def test_monotone_over_words_is_in_the_order_of_the_sweep() -> None:
    # In the order of the alphabet the step to `b` would go down.
    values = {"b": UP[1], "c": UP[2], "a": UP[3]}
    for key in ("x", "protocol"):  # what a run says of itself is a column, too
        found = _judge(Swept(values, key), monotone="a", over=key)
        assert found["verdict"] == "holds"
