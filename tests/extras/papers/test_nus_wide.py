"""NUS-WIDE: features, tags and concepts of made files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.extras.papers.data.nus_wide import FEATURES, NusWide

DAT = NusWide(scale="raw")
NUM = {"Train": 30, "Test": 14}
FOLDERS = {
    "Normalized": "Low_Level_Features",
    "Tags1k": "NUS_WID_Tags",
    "Labels": "Groundtruth/TrainTestLabels",
}
KINDS = ("WT", "CH", "EDH", "CORR", "CM55")
SKIES = {"person": (2, 0), "animal": (3, 0), "sky": (5, 1)}
"""Rows of each concept: those that leave this rest, divided by this number."""


def values(kind: str, half: str) -> np.ndarray:
    """Returns what a file holds: the row's number in the first column."""
    shape = (NUM[half], FEATURES[kind])
    found = np.random.default_rng(len(kind)).random(shape).round(4)
    found[:, 0] = np.arange(NUM[half]) + 0.5 * (kind == "WT")
    return found


def tags(half: str) -> np.ndarray:
    found = np.random.default_rng(7).integers(0, 2, (NUM[half], 1000))
    found[:, 0] = np.arange(NUM[half]) % 2
    return found


def write(root: Path) -> Path:
    """Writes all files, each line with the official files' trailing blanks."""
    for folder in FOLDERS.values():
        (root / folder).mkdir(parents=True)
    for half, num in NUM.items():
        for kind in KINDS:
            lines = [" ".join(f"{v:g}" for v in row) for row in values(kind, half)]
            path = root / "Low_Level_Features" / f"{half}_Normalized_{kind}.dat"
            path.write_text("".join(f"{line} \n" for line in lines))
        lines = ["\t".join(map(str, row)) for row in tags(half)]
        path = root / "NUS_WID_Tags" / f"{half}_Tags1k.dat"
        path.write_text("".join(f"{line}\t\r\n" for line in lines))
        for concept, (number, rest) in SKIES.items():
            path = root / FOLDERS["Labels"] / f"Labels_{concept}_{half}.txt"
            path.write_text("".join(f"{int(i % number == rest)}\n" for i in range(num)))
    return root


@pytest.mark.parametrize("place", [".", "NUS_WIDE", "nus-wide/a", "others"])
def test_reads(root: Path, place: str) -> None:
    write(root / place)
    data = DAT.make()
    assert (data.name, data.num_classes) == ("nus_wide", 2)
    # Of six rows 0 has both, 1 and 5 neither.
    row = np.array([i for i in range(14) if (i % 2 == 0) != (i % 3 == 0)])
    assert (data.x_train.shape, data.x_test.shape) == ((15, 1634), (row.size, 1634))
    np.testing.assert_array_equal(data.y_test, row % 2 == 0)
    assert data.columns[0] == "image_CH_0"
    assert data.columns[64] == "image_CM55_0"
    assert data.columns[634] == "tag_0"
    assert len(set(data.columns)) == 1634
    start = 0
    for kind in sorted(KINDS):
        block = data.x_test[:, start : start + FEATURES[kind]]
        np.testing.assert_allclose(block, values(kind, "Test")[row], rtol=1e-6)
        assert data.columns[start] == f"image_{kind}_0"
        start += FEATURES[kind]
    np.testing.assert_array_equal(data.x_test[:, 634:], tags("Test")[row])
    train = data.x_train[:, 0].astype(int)
    np.testing.assert_array_equal(data.y_train, train % 2 == 0)


def test_gzipped_files(root: Path) -> None:
    write(root)
    plain = DAT.make()
    for path in [*root.glob("*/*.dat"), *root.glob("*/*/*.txt")]:
        (path.parent / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    np.testing.assert_array_equal(DAT.make().x_train, plain.x_train)
