"""Worlds that cannot be are refused, with reason and remedy (`refused.yaml`)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import merge

WORLD: dict[str, Any] = {
    "name": "world",
    "clients": {"number": 4, "compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "stop": {"commits": 5},
}
TABLES: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8")
)
CASES = [(table, case) for table, cases in TABLES.items() for case in cases]


def test_the_world_itself_can_be() -> None:
    assert WorldScenario.model_validate(WORLD).num_clients == 4


@pytest.mark.parametrize(("table", "case"), CASES, ids=str)
def test_a_world_that_cannot_be_is_refused(
    table: str, case: dict[str, Any], tmp_path: Path
) -> None:
    of = {} if table == "clients" else {"protocol": {"kind": table}}
    says, changes = case["says"], {k: v for k, v in case.items() if k != "says"}
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(merge(merge(WORLD, of), changes)), encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        read_any(path)
    lines = str(refused.value).split("\n")
    assert all(line.startswith(f"{path}:") for line in lines)
    assert says in str(refused.value)
