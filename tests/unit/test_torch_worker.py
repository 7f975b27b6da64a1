"""PyTorch's worker, where PyTorch is installed: starts, optimisers, mistakes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim import simulator
from stalesim.simulator.parts.errors import UserError
from tests.support import SGD, scenario

torch: Any = pytest.importorskip("torch", reason="PyTorch is an optional package")
SHORT: dict[str, Any] = {
    "problem": {"l2": 0.0},
    "stop": {"commits": 40},
    "evaluate": {"every": {"commits": 20}},
}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(64, 16), torch.nn.Linear(16, 10)
        self.dropout = torch.nn.Dropout(0.2)

    def forward(self, x: Any) -> Any:
        return self.last(self.dropout(torch.relu(self.first(x))))


def normalised() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(64, 10), torch.nn.BatchNorm1d(10))


def adam(parameters: Any) -> Any:
    return torch.optim.Adam(parameters, lr=0.02)


def study(module: Any, *changes: dict[str, Any], **given: Any) -> Any:
    from stalesim.torch import worker

    optimizer = given.pop("optimizer", None)
    work = worker(module, torch.nn.functional.cross_entropy, optimizer)
    tree = scenario(SGD, SHORT, *changes).model_dump(mode="json", exclude_unset=True)
    return simulator.simulate(tree, work=work, **given)


def test_a_module_is_trained_from_the_start_of_each_seed(tmp_path: Path) -> None:
    found = study(Net, {"replicates": 2}, folder=tmp_path / "one")
    again = study(Net, {"replicates": 2})
    tested = found.table("evaluations")
    assert again.table("evaluations").equals(tested)
    first = tested[tested["commits"] == 0]["test_loss"]
    assert first.nunique() == 2
    last = tested[tested["commits"] == 40]
    assert (last["test_loss"].to_numpy() < first.to_numpy()).all()
    assert {run["mode"] for run in found.manifest["runs"]} == {"host"}
    more = study(Net, {"replicates": 3}, folder=tmp_path / "one")
    assert more.table("evaluations").iloc[: len(tested)].equals(tested)


def test_an_optimiser_of_clients_moves_the_server_as_far() -> None:
    changes = {"algorithm": {"step_size": 1.0, "local_steps": 3}}
    tested = study(Net, changes, optimizer=adam).table("evaluations")
    assert tested["test_accuracy"].iloc[-1] > 0.6


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (normalised, "its buffers changed in training, as those of BatchNorm do"),
        (Net(), "takes the module's class or a function that makes it"),
        (lambda: torch.nn.Linear(3, 10), "shapes cannot be multiplied"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused(module: Any, text: str) -> None:
    with pytest.raises(UserError, match=text):
        study(module)


def test_other_processes_know_the_worker_again(tmp_path: Path) -> None:
    """Its digest is of the module's code, not of drawn weights or addresses."""
    module = tmp_path / "of_mine.py"
    module.write_text(
        "import torch\n"
        "from stalesim.torch import worker\n"
        "class Net(torch.nn.Linear):\n"
        "    def __init__(self):\n"
        "        super().__init__(64, 10)\n"
        "work = worker(Net, torch.nn.functional.cross_entropy)\n"
    )
    code = (
        "from of_mine import work\n"
        "from stalesim.simulator.parts.functions import hand_over\n"
        "print(hand_over('work', work), hand_over('weights', work.weights))\n"
    )
    run = [sys.executable, "-c", code]
    told = [
        subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert told[0].stdout == told[1].stdout
    assert np.size(told[0].stdout.split()) == 2
