"""LEAF's JSON files: users, rows, names, mistakes, and a run by users."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import entropy

import stalesim
from stalesim.analysis.frames import evaluations
from stalesim.simulator.catalogue.data.leaf import (
    CHARACTERS,
    LeafFemnist,
    LeafShakespeare,
)
from stalesim.simulator.catalogue.partitions.natural import Natural
from stalesim.simulator.parts.errors import DataError, ScenarioError

SPEECH = {
    "MACBETH_LADY": "Out, damned spot! out, I say!\n",
    "HAMLET": "To be, or not to be:\n",
    "PUCK": "Lord, what fools these mortals be!\n",
}


def leaf(path: Path, rows: dict[str, tuple[list[Any], list[Any]]]) -> None:
    """Writes a file as LEAF's scripts do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "users": [*rows],
        "num_samples": [len(y) for _, y in rows.values()],
        # Users whose rows are all in the other half keep an empty entry.
        "user_data": {
            user: {"x": x, "y": y}
            for user, (x, y) in (rows | {"gone": ([], [])}).items()
        },
    }
    path.write_text(json.dumps(content))


def images(user: int, num: int) -> tuple[list[Any], list[Any]]:
    pixel = [[(user + row / 100) / 10] * 783 + [1.0] for row in range(num)]
    return pixel, [(7 * user + row) % 62 for row in range(num)]


def windows(line: str) -> tuple[list[str], list[str]]:
    """Returns a line's rows as LEAF's `shake_utils` makes them."""
    padded = " " * 80 + line
    return [padded[i : i + 80] for i in range(len(line))], [*line]


@pytest.fixture
def femnist(root: Path) -> Path:
    """Five writers in two files, as LEAF's repository lays them out."""
    data = root / "leaf" / "data" / "femnist" / "data"
    sizes = {"f0001_41": 4, "f0000_14": 3, "f0003_02": 2, "f0009_00": 6, "f0002_10": 5}
    for half, extra in (("train", 0), ("test", 1)):
        users = {
            u: images(n, size + extra) for n, (u, size) in enumerate(sizes.items())
        }
        first = dict([*users.items()][:3])
        last = dict([*users.items()][3:])
        leaf(data / half / f"all_data_0_niid_0_keep_0_{half}_9.json", first)
        leaf(data / half / f"all_data_1_niid_0_keep_0_{half}_9.json", last)
    (data / "all_data").mkdir()
    (data / "all_data" / "all_data_0.json").write_text("not read")
    return data


def test_femnist(femnist: Path) -> None:
    config = LeafFemnist()
    data = config.make()
    assert data.name == "leaf_femnist (folder, 5 users)"
    assert (data.x_train.shape, data.x_test.shape) == ((20, 784), (25, 784))
    assert (data.num_classes, data.columns[29]) == (62, "pixel_1_1")
    (users,) = data.groupings
    assert users.column == "user"
    assert users.values == ("f0000_14", "f0001_41", "f0002_10", "f0003_02", "f0009_00")
    for row, (x, y) in enumerate(zip(data.x_train, data.y_train, strict=True)):
        user = ["f0001_41", "f0000_14", "f0003_02", "f0009_00", "f0002_10"].index(
            users.values[users.of_row[row]]
        )
        place = round(100 * (10 * float(x[0]) - user))
        np.testing.assert_allclose(x, np.float32(images(user, place + 1)[0][-1]))
        assert y == (7 * user + place) % 62
    assert [path.parent.name for path in config.located_files()] == [
        *("train", "train", "test", "test")
    ]


def test_users_are_clients(femnist: Path) -> None:
    """One client a user; the first users of the files, and their test rows."""
    data = LeafFemnist(users=4).make()
    assert data.name == "leaf_femnist (folder, 4 users)"
    assert len(data.y_test) == 4 + 3 + 2 + 6 + 4
    partition = Natural(clients=4)
    assert [rows.size for rows in partition.make(data, 0)] == [3, 4, 2, 6]
    assert partition.labels(data)[0] == "user f0000_14"
    with pytest.raises(ScenarioError, match="at most the 4 values of 'user'"):
        Natural(clients=5).make(data, 0)
    with pytest.raises(
        ScenarioError, match=r"data.users must be at most the 5 of .*got 6"
    ):
        LeafFemnist(users=6).make()


def test_test_rows_of_other_users(femnist: Path) -> None:
    """As `split_data.py --by_user` divides them."""
    for path in (femnist / "test").iterdir():
        path.unlink()
    leaf(femnist / "test" / "all_data.json", {"someone": images(5, 3)})
    assert len(LeafFemnist(users=2).make().y_test) == 3


@pytest.fixture
def shakespeare(root: Path) -> Path:
    data = root / "leaf_shakespeare"
    for half in ("train", "test"):
        leaf(data / half / "a.json", {u: windows(line) for u, line in SPEECH.items()})
    return data


def test_shakespeare(shakespeare: Path) -> None:
    data = LeafShakespeare().make()
    assert data.name == "leaf_shakespeare (folder, 3 users)"
    assert (data.num_classes, data.num_frames, data.has_tokens) == (80, None, True)
    text = np.array([*CHARACTERS])
    (users,) = data.groupings
    for user, line in SPEECH.items():
        rows = users.of_row == users.values.index(user)
        found = {
            "".join(text[x.astype(int)]) + text[y]
            for x, y in zip(data.x_train[rows], data.y_train[rows], strict=True)
        }
        assert found == {x + y for x, y in zip(*windows(line), strict=True)}


def test_transformer_learns_the_next_character(shakespeare: Path) -> None:
    scenario: dict[str, Any] = {
        "name": "roles",
        "problem": {
            "data": {"kind": "leaf_shakespeare"},
            "model": {"kind": "transformer", "layers": 1, "heads": 2, "width": 16},
            "partition": {"kind": "natural", "clients": 3},
            "l2": 0.0,
        },
        "clients": {"compute": {"law": "expon"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {
            "kind": "sgd",
            "batch": 16,
            "optimizer": {"kind": "adamw", "learning_rate": 0.01},
        },
        "stop": {"commits": 200},
        "evaluate": {"every": {"commits": 200}, "metrics": ["test_loss"]},
    }
    losses = evaluations(stalesim.simulate(scenario))["test_loss"].to_numpy()
    assert losses[0] == pytest.approx(np.log(80), rel=0.02)
    # Better than who knows how often each character comes.
    _, counts = np.unique([*"".join(SPEECH.values())], return_counts=True)
    assert losses[-1] < entropy(counts)
    scenario["problem"]["model"] = {"kind": "linear"}
    with pytest.raises(ScenarioError, match="must be for tokens, as leaf_shake"):
        stalesim.simulate(scenario)


@pytest.mark.parametrize(
    ("kind", "rows", "says"),
    [
        (LeafFemnist, ([[0.5] * 783], [1]), "images of 784 numbers"),
        (LeafFemnist, ([[255.0] * 784], [1]), "images of 784 numbers"),
        (LeafFemnist, ([[float("nan")] * 784], [1]), "images of 784 numbers"),
        (LeafFemnist, ([[0.5] * 784], [62]), "images of 784 numbers"),
        (LeafFemnist, ([[0.5] * 784], [1, 2]), "images of 784 numbers"),
        (LeafShakespeare, (["a" * 79], ["b"]), "80 of LEAF's 80 characters"),
        (LeafShakespeare, (["{" * 80], ["b"]), "80 of LEAF's 80 characters"),
        (LeafShakespeare, (["é" * 80], ["b"]), "80 of LEAF's 80 characters"),
        (LeafShakespeare, (["a" * 80], [3]), "80 of LEAF's 80 characters"),
        (LeafFemnist, ([[0.5] * 784] * 2, [[1], [2]]), "images of 784 numbers"),
    ],
)
def test_other_rows_are_refused(root: Path, kind: Any, rows: Any, says: str) -> None:
    for half in ("train", "test"):
        leaf(root / kind.folders[0] / half / "a.json", {"ann": rows})
    with pytest.raises(DataError, match=says) as error:
        kind().make()
    assert "for the user 'ann'" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["{", "[]", '{"users": ["a"], "user_data": {}}'])
def test_damaged_files_are_refused(femnist: Path, content: str) -> None:
    path = femnist / "train" / "b.json"
    path.write_text(content)
    with pytest.raises(DataError, match=f"{path} must be a JSON file with users"):
        LeafFemnist().make()


def test_users_twice_and_files_missing(femnist: Path) -> None:
    leaf(femnist / "train" / "b.json", {"f0001_41": images(1, 2)})
    with pytest.raises(DataError, match=r"each user once.*'f0001_41'"):
        LeafFemnist().make()
    for path in (femnist / "test").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="got 3 and 0 files; see stales"):
        LeafFemnist().make()


def test_tokens_have_no_scale() -> None:
    with pytest.raises(ValidationError, match="scale must be raw"):
        LeafShakespeare(scale="unit")
