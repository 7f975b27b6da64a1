"""A run that was killed goes on from where it was, to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator import studies
from stalesim.simulator.engine import simulation
from stalesim.simulator.files.study import COLUMNS, DISK, checkpoint, load
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.studies import executors
from stalesim.simulator.studies.planning import CHECKPOINTS
from tests.support import SGD, VAFL

BASE: dict[str, Any] = {
    "name": "long",
    "clients": {"compute": {"law": "expon"}, "loss": {"chance": 0.1, "timeout": 1}},
    "stop": {"commits": 400},
    "evaluate": {"every": {"commits": 30}},
    "engine": {"chunk": 32},
    "protocol": {"kind": "asynchronous"},
    **SGD,
}
SELECTED = {"in_flight": 3, "prefer": {"kind": "power_of_choice", "candidates": 4}}
BUFFERED = {"protocol": {"kind": "buffered", "size": 5}, "stop": {"commits": 100}}
METRICS = ["test_accuracy", "consensus_distance", "worker_accuracy"]
CHANGES: dict[str, dict[str, Any]] = {
    "sgd": {},
    "privacy": {
        "algorithm": {"mechanism": {"clip_bound": 1, "multiplier": 1}},
        "protocol": {"kind": "t_synchronous", "t": 2},
        "privacy": {"delta": 1e-5},
        "probe": {"every": 50, "what": ["message"]},
    },
    "shared": {"sweep": {"algorithm.step_size": [0.1, 0.2, 1e30]}},
    "batched": {
        "protocol": {"kind": "t_synchronous", "t": 2},
        "replicates": 3,
        "stop": {"target": {"test_accuracy": 0.935}},
        "engine": {"mode": "batched"},
    },
    "stepwise": {
        "protocol": {"kind": "synchronous"},
        "stop": {"commits": 200},
        "engine": {"mode": "stepwise"},
    },
    "windowed": {
        "stop": {"windowed": {"column": "loss", "below": 0.55, "commits": 90}},
    },
    "asking": BUFFERED | {"clients": {"selection": SELECTED}},
    "local steps": {
        "algorithm": {"step_size": 0.05, "local_steps": 6},
        "clients": {
            "compute_per": "step",
            "local_steps_by": {"kind": "adacomm", "interval": 12},
        },
        "protocol": {
            "kind": "buffered",
            "size": 5,
            "size_by": {"kind": "staleness", "target": 0.5, "most": 9},
        },
        "stop": {"commits": 100},
        "evaluate": {"every": {"time": 12, "commits": None}, "metrics": ["objective"]},
    },
    "norms": {
        "clients": {"selection": {"in_flight": 4, "refill": 2}},
        "protocol": {
            "kind": "buffered",
            "size": 5,
            "size_by": {"kind": "norm_test", "most": 9},
        },
        "stop": {"commits": 100},
        "evaluate": {
            "every": {"commits": 10},
            "metrics": ["test_accuracy", "gradient_norm_squared"],
        },
    },
    "gossip": {
        "clients": {"loss": None},
        "protocol": {"kind": "gossip"},
        "algorithm": {"kind": "psgd", "step_size": 0.1, "batch": 11},
        "evaluate": {"metrics": METRICS},
    },
}
STUDIES = {name: merge(BASE, changes) for name, changes in CHANGES.items()}
STUDIES["vafl"] = merge(
    VAFL,
    {
        "stop": {"time": 90, "commits": None},
        "evaluate": {"every": {"time": 4, "commits": None}},
        "algorithm": {"perturbation": {"std": 0.1, "input_diameter": 1.0}},
        "engine": {"chunk": 32},
    },
)


class KilledError(BaseException):
    """Stands for a kill."""


def killed_after(saves: int, patch: pytest.MonkeyPatch) -> None:
    """Lets a study be killed some rows after it was kept for the n-th time."""
    save, due, counts = (
        executors.TaskCheckpoint.save,
        executors.TaskCheckpoint.due,
        [0, 0],
    )

    def counting(self: Any, state: Any) -> None:
        save(self, state)
        counts[0] += 1

    def dying(self: Any) -> bool:
        if counts[0] >= saves:
            counts[1] += 1
            if counts[1] == 2:
                raise KilledError
            return False
        return due(self)

    patch.setattr(executors.TaskCheckpoint, "save", counting)
    patch.setattr(executors.TaskCheckpoint, "due", dying)


def kill(name: str, folder: Path, saves: int = 2, **changes: Any) -> None:
    """Starts a study, and kills it."""
    scenario = validated(STUDIES[name] | changes)
    with pytest.MonkeyPatch.context() as patch:
        killed_after(saves, patch)
        with pytest.raises(KilledError):
            studies.simulate(scenario, folder, checkpoint_s=0)


def assert_same(one: Any, other: Any) -> None:
    for name in COLUMNS:
        pd.testing.assert_frame_equal(
            one.table(name), other.table(name), check_exact=True
        )
    skipped = ("elapsed_s",)
    for a, b in zip(one.manifest["runs"], other.manifest["runs"], strict=True):
        assert {k: v for k, v in a.items() if k not in skipped} == {
            k: v for k, v in b.items() if k not in skipped
        }


@pytest.mark.parametrize(
    ("name", "saves"),
    [*((name, 3) for name in STUDIES), pytest.param("sgd", 1, marks=pytest.mark.slow)],
)
def test_a_killed_run_goes_on_to_the_bit(
    name: str, saves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = validated(STUDIES[name])
    whole = studies.simulate(scenario, tmp_path / "whole", checkpoint_s=None)
    assert not (tmp_path / "whole" / CHECKPOINTS).exists()
    kill(name, tmp_path / "s", saves)
    assert list((tmp_path / "s" / CHECKPOINTS).iterdir())
    rows: list[int] = []
    execute = simulation.execute

    def note(*arguments: Any, **options: Any) -> Any:
        rows.append(options["saved"] is not None)
        return execute(*arguments, **options)

    monkeypatch.setattr(simulation, "execute", note)
    again = studies.resume(tmp_path / "s", checkpoint_s=None)
    assert rows[0]
    assert_same(again, whole)
    assert not (tmp_path / "s" / CHECKPOINTS).exists()


@pytest.mark.parametrize("damage", ["checkpoint", "part", "lost part"])
def test_a_damaged_state_is_not_gone_on_from(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    kill("sgd", folder)
    (state,) = (folder / CHECKPOINTS).iterdir()
    part = next((folder / "commits").iterdir())
    path = state if damage == "checkpoint" else part
    if damage == "lost part":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(bytes(data))
    whole = studies.simulate(validated(STUDIES["sgd"]), tmp_path / "whole")
    assert_same(studies.resume(folder), whole)


def test_a_state_of_another_run_is_not_gone_on_from(tmp_path: Path) -> None:
    kill("sgd", tmp_path / "s")
    kill("sgd", tmp_path / "t", seed=5)
    kept = (tmp_path / "s" / CHECKPOINTS / "00000").read_bytes()
    (tmp_path / "t" / CHECKPOINTS / "00000").write_bytes(kept)
    other = validated(STUDIES["sgd"] | {"seed": 5})
    whole = studies.simulate(other, tmp_path / "whole")
    assert_same(studies.resume(tmp_path / "t"), whole)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": [np.array(3, np.int32), 1, 0.1, float("inf"), None, "word"],
        "c": {"d": np.zeros((0, 4), bool), "e": [[1, 2], []]},
    }
    path = tmp_path / "folder" / "state"
    checkpoint.write(DISK, path, state)
    found = checkpoint.read(DISK, path)
    assert found is not None
    np.testing.assert_array_equal(found["a"], state["a"])
    assert found["b"][0].dtype == np.int32
    assert found["b"][1:] == state["b"][1:]
    assert found["c"]["d"].shape == (0, 4)
    assert found["c"]["e"] == [[1, 2], []]
    assert checkpoint.read(DISK, tmp_path / "no") is None
    for cut in (0, 10, 40, 200):
        path.write_bytes(path.read_bytes()[:cut])
        assert checkpoint.read(DISK, path) is None


def test_a_study_that_is_running_can_be_read(tmp_path: Path) -> None:
    kill("sgd", tmp_path / "s", saves=1)
    assert load(tmp_path / "s").table("commits").empty
