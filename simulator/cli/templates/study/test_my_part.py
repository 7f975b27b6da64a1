"""The study runs, and says of its claim what it says."""

from pathlib import Path

import stalesim

SCENARIO = Path(__file__).with_name("my_part.yaml")


def test_my_part(tmp_path):
    study = stalesim.simulate(SCENARIO, tmp_path / "study")
    assert study.complete
    table = stalesim.time_to_target(study, "test_accuracy", 0.85)
    assert {"async", "sync"} <= set(table["group"])
    assert len(stalesim.claims.evaluate(study)) == 1
