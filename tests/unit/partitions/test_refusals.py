"""Divisions that data do not have, refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.data.groups import grouping
from stalesim.simulator.problem.partition import Horizontal
from tests.unit.partitions.test_natural import HOSPITALS, WRITERS
from tests.unit.partitions.test_partition_rows import dataset, users
from tests.unit.partitions.test_vertical import TAGGED, columned

ROWS = dataset(np.arange(12) % 3, users().x_train, num_classes=3)
WRITTEN = ROWS._replace(groupings=(grouping("writer", WRITERS),))
TREATED = (*WRITTEN.groupings, grouping("hospital", HOSPITALS))
DATA: dict[str, Dataset] = {
    "rows": ROWS,
    "written": WRITTEN,
    "treated": ROWS._replace(groupings=TREATED),
    "letters": columned(),
    "tags": columned(3, TAGGED),
    "squares": columned(3, tuple(f"x{i}" for i in range(36))),
    "seen": columned(3, ("0", "1"))._replace(views=("a", "b")),
}
CASES = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text())


@pytest.mark.parametrize(("options", "data", "says"), CASES)
def test_what_cannot_be_divided(options: dict[str, Any], data: str, says: str) -> None:
    kinds = {tag(part): part for part in parts("partitions")}
    config = kinds[options["kind"]].model_validate(options)
    seed = (0,) if isinstance(config, Horizontal) else ()
    with pytest.raises(ScenarioError, match=f"^problem.partition.{says}") as error:
        config.make(DATA[data], *seed)
    assert "\n" not in str(error.value)


def test_strips_of_what_is_no_image() -> None:
    (strips,) = (part for part in parts("partitions") if tag(part) == "strips")
    with pytest.raises(ScenarioError, match=r"got 30 columns; set problem\.part"):
        strips(parties=2).make(columned(3, tuple(f"x{i}" for i in range(30))))
