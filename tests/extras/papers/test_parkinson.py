"""Parkinson's speech features: two header rows, and a division by subject."""

from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.extras.papers.data.parkinson import Parkinson

CSV = Parkinson(scale="raw")


def write(path: Path, num_subjects: int = 10) -> Path:
    lines = [",,Baseline,,", "id,gender,PPE,tqwt_1,class"]
    lines += [
        f"{subject},{subject % 2},{subject}.5,{recording}e-3,{int(subject % 4 != 0)}"
        for subject in range(num_subjects)
        for recording in range(3)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "place",
    [
        "pd_speech_features.csv",
        "parkinson/renamed.csv",
        "sets/parkinson+s+disease+classification/pd_speech_features.csv",
    ],
)
def test_reads(root: Path, place: str) -> None:
    write(root / place)
    data = CSV.make()
    assert (data.name, data.num_classes) == ("parkinson", 2)
    assert data.columns == ("gender", "PPE", "tqwt_1")
    assert (data.x_train.shape, data.x_test.shape) == ((24, 3), (6, 3))
    subject = data.x_train[:, 1].astype(int)
    np.testing.assert_array_equal(data.y_train, subject % 4 != 0)
    np.testing.assert_array_equal(data.x_train[:, 0], subject % 2)
    (found,) = data.groupings
    assert found.column == "subject"
    assert [int(found.values[value]) for value in found.of_row] == subject.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_no_subject_in_both_halves(root: Path, seed: int) -> None:
    write(root / "pd_speech_features.csv")
    data = Parkinson(scale="raw", split_seed=seed).make()
    assert not set(data.x_train[:, 1]) & set(data.x_test[:, 1])
