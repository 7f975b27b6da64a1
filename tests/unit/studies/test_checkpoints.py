"""A run that was killed goes on from where it was, to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator import simulation, studies
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies import checkpoints
from stalesim.simulator.studies.paths import CHECKPOINTS
from stalesim.simulator.trace import COLUMNS, DISK, checkpoint, load
from tests.support import SGD, VAFL

BASE: dict[str, Any] = {
    "name": "long",
    "clients": {"compute": {"law": "expon"}, "loss": {"chance": 0.1, "timeout": 1}},
    "stop": {"commits": 400},
    "evaluate": {"every": {"commits": 30}},
    "engine": {"chunk": 32},
}
PRIVATE = {**SGD["algorithm"], "mechanism": {"clip_bound": 1, "multiplier": 1}}
STUDIES: dict[str, dict[str, Any]] = {
    "sgd": {**BASE, **SGD, "protocol": {"kind": "asynchronous"}},
    "privacy": {
        **BASE,
        **SGD,
        "algorithm": PRIVATE,
        "protocol": {"kind": "t_synchronous", "t": 2},
        "privacy": {"delta": 1e-5},
        "probe": {"every": 50, "what": ["message"]},
    },
    "shared": {
        **BASE,
        **SGD,
        "protocol": {"kind": "asynchronous"},
        "sweep": {"algorithm.step_size": [0.1, 0.2, 1e30]},
    },
    "batched": {
        **BASE,
        **SGD,
        "protocol": {"kind": "t_synchronous", "t": 2},
        "replicates": 3,
        "stop": {"commits": 400, "target": {"test_accuracy": 0.935}},
        "engine": {"chunk": 32, "mode": "batched"},
    },
    "stepwise": {
        **BASE,
        **SGD,
        "protocol": {"kind": "synchronous"},
        "stop": {"commits": 200},
        "engine": {"chunk": 32, "mode": "stepwise"},
    },
    "windowed": {
        **BASE,
        **SGD,
        "protocol": {"kind": "asynchronous"},
        "stop": {
            "commits": 400,
            "windowed": {"column": "loss", "below": 0.55, "commits": 90},
        },
    },
    "asking": {
        **BASE,
        **SGD,
        "clients": {
            **BASE["clients"],
            "selection": {
                "in_flight": 3,
                "prefer": {"kind": "power_of_choice", "candidates": 4},
            },
        },
        "protocol": {"kind": "buffered", "size": 5},
        "stop": {"commits": 100},
    },
    "local steps": {
        **BASE,
        **SGD,
        "algorithm": {**SGD["algorithm"], "step_size": 0.05, "local_steps": 6},
        "clients": {
            **BASE["clients"],
            "compute_per": "step",
            "local_steps_by": {"kind": "adacomm", "interval": 12},
        },
        "protocol": {
            "kind": "buffered",
            "size": 5,
            "size_by": {"kind": "staleness", "target": 0.5, "most": 9},
        },
        "stop": {"commits": 100},
        "evaluate": {"every": {"time": 12}, "metrics": ["objective"]},
    },
    "norms": {
        **BASE,
        **SGD,
        "clients": {**BASE["clients"], "selection": {"in_flight": 4, "refill": 2}},
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
    "vafl": {
        **VAFL,
        "stop": {"time": 90},
        "evaluate": {"every": {"time": 4}},
        "algorithm": {
            **VAFL["algorithm"],
            "perturbation": {"std": 0.1, "input_diameter": 1.0},
        },
        "engine": {"chunk": 32},
    },
    "gossip": {
        **BASE,
        **SGD,
        "clients": {"compute": {"law": "expon"}},
        "protocol": {"kind": "gossip"},
        "algorithm": {"kind": "psgd", "step_size": 0.1, "batch": 11},
        "evaluate": {
            "every": {"commits": 30},
            "metrics": ["test_accuracy", "consensus_distance", "worker_accuracy"],
        },
    },
}


class KilledError(BaseException):
    """Stands for a kill."""


def killed_after(saves: int, patch: pytest.MonkeyPatch) -> None:
    """Lets a study be killed some rows after it was kept for the n-th time."""
    save, due, counts = (
        checkpoints.TaskCheckpoint.save,
        checkpoints.TaskCheckpoint.due,
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

    patch.setattr(checkpoints.TaskCheckpoint, "save", counting)
    patch.setattr(checkpoints.TaskCheckpoint, "due", dying)


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


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize(
    "saves", [pytest.param(1, marks=pytest.mark.slow), pytest.param(3)]
)
def test_a_killed_run_goes_on_to_the_bit(
    name: str, saves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = validated(STUDIES[name])
    whole = studies.simulate(scenario, tmp_path / "whole", checkpoint_s=None)
    assert not (tmp_path / "whole" / CHECKPOINTS).exists()
    with monkeypatch.context() as context:
        killed_after(saves, context)
        with pytest.raises(KilledError):
            studies.simulate(scenario, tmp_path / "s", checkpoint_s=0)
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


def test_keeping_often_changes_nothing(tmp_path: Path) -> None:
    scenario = validated(STUDIES["privacy"])
    one = studies.simulate(scenario, tmp_path / "one", checkpoint_s=0)
    other = studies.simulate(scenario, tmp_path / "other", checkpoint_s=None)
    assert_same(one, other)


@pytest.mark.parametrize("damage", ["checkpoint", "part", "lost part"])
def test_a_damaged_state_is_not_gone_on_from(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, folder = validated(STUDIES["sgd"]), tmp_path / "s"
    with monkeypatch.context() as context:
        killed_after(2, context)
        with pytest.raises(KilledError):
            studies.simulate(scenario, folder, checkpoint_s=0)
    (state,) = (folder / CHECKPOINTS).iterdir()
    part = next((folder / "commits").iterdir())
    path = state if damage == "checkpoint" else part
    if damage == "lost part":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(bytes(data))
    whole = studies.simulate(scenario, tmp_path / "whole")
    assert_same(studies.resume(folder), whole)


def test_a_state_of_another_run_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s"
    with monkeypatch.context() as context:
        killed_after(2, context)
        with pytest.raises(KilledError):
            studies.simulate(validated(STUDIES["sgd"]), folder, checkpoint_s=0)
    kept = (folder / CHECKPOINTS / "00000").read_bytes()
    other = validated(STUDIES["sgd"] | {"seed": 5})
    whole = studies.simulate(other, tmp_path / "whole")
    with monkeypatch.context() as context:
        killed_after(2, context)
        with pytest.raises(KilledError):
            studies.simulate(other, tmp_path / "t", checkpoint_s=0)
    (tmp_path / "t" / CHECKPOINTS / "00000").write_bytes(kept)
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
    folder = tmp_path / "s"
    with pytest.MonkeyPatch.context() as context:
        killed_after(1, context)
        with pytest.raises(KilledError):
            studies.simulate(validated(STUDIES["sgd"]), folder, checkpoint_s=0)
    assert load(folder).table("commits").empty
