"""VAFL on parties with networks: it learns, and claims no privacy for them."""

import pytest
from pydantic import ValidationError

from tests.runs import execute, prepared
from tests.support import scenario

MLP = {"problem": {"model": {"kind": "mlp", "hidden": 4}}}


@pytest.mark.parametrize("upload", ["batch", "all"])
def test_it_learns(upload: str) -> None:
    memory, _ = execute([prepared(MLP, {"algorithm": {"upload": upload}})])
    loss = memory.column("evaluations", "test_loss")
    assert loss[-1] < loss[0] / 2


def test_the_sensitivity_of_a_network_is_not_known() -> None:
    noise = {"mu": 1.0, "releases": 10, "input_diameter": 1.0}
    with pytest.raises(ValidationError, match="whose sensitivity is not known"):
        scenario(MLP, {"algorithm": {"perturbation": noise}})
