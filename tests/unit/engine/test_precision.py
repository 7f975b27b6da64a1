"""Double precision is double from the data on, however a study is run."""

import numpy as np

from stalesim import simulator
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from tests.runs import prepared
from tests.support import SGD, VAFL

DOUBLE = {
    "engine": {"precision": "float64"},
    "stop": {"commits": 5},
    "evaluate": {"every": {"commits": 5}, "metrics": ["objective"]},
    "algorithm": {"step_size": 0.3},
}


def test_metrics_are_not_rounded(tmp_path) -> None:
    tree = merge(merge(VAFL, SGD), DOUBLE)
    study = simulator.simulate(Scenario.model_validate(tree), tmp_path / "study")
    values = study.table("evaluations")["objective"].to_numpy()
    assert (values != values.astype(np.float32)).all()


def test_features_are_not_rounded() -> None:
    data = {"data": {"kind": "digits", "scale": "standard"}}
    problem = prepared(SGD, DOUBLE, {"problem": data}).problem
    for x in (np.asarray(problem.x), np.asarray(problem.x_test)):
        assert (x != x.astype(np.float32)).any()
