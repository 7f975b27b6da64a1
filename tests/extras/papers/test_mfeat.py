"""UCI multiple features: six text files, and their views."""

from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.catalogue.partitions.vertical import Views
from stalesim.simulator.extras.papers.data.mfeat import TEXTS, VIEWS, Mfeat
from stalesim.simulator.parts.errors import DataError

NUM = 40
RAW = Mfeat(scale="raw")


def features() -> np.ndarray:
    """Returns rows whose first column in each view is their number."""
    x = np.zeros((NUM, 649))
    starts = np.cumsum([0, *VIEWS.values()])[:-1]
    x[:, starts] = np.arange(NUM)[:, None]
    x[:, starts + 1] = np.arange(6) + 0.25
    return x


def write(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum([*VIEWS.values()])[:-1]
    for name, view in zip(TEXTS, np.split(features(), ends, axis=1), strict=True):
        lines = ["  ".join(f"{value:8.4f}" for value in row) for row in view]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("place", ["mfeat", ".", "uci/multiple+features"])
def test_reads(root: Path, place: str) -> None:
    write(root / place)
    data = RAW.make()
    # No checksum of the six files is published.
    assert data.name == "mfeat"
    assert (data.x_train.shape, data.x_test.shape) == ((32, 649), (8, 649))
    x = np.concatenate([data.x_train, data.x_test])
    row = x[:, 0].astype(int)
    assert sorted(row) == list(range(NUM))
    np.testing.assert_allclose(x, features()[row])
    np.testing.assert_array_equal(np.concatenate([data.y_train, data.y_test]), row // 4)
    assert data.columns[75:77] == ("fou_75", "fac_0")
    assert data.columns[-1] == "mor_5"
    assert {view: data.views.count(view) for view in data.views} == VIEWS


def test_views_go_to_parties(root: Path) -> None:
    write(root / "mfeat")
    data = RAW.make()
    each = Views(parties=6).make(data)
    assert [part.size for part in each] == [*VIEWS.values()]
    for number, part in enumerate(each):
        np.testing.assert_array_equal(data.x_train[:, part[1]], number + 0.25)
    three = Views(parties=3, groups={"a": ["mor", "fou"], "b": ["pix"], "c": ["zer"]})
    sizes = [part.size for part in three.make(data)]
    assert sizes == [82, 240, 47]


def test_rows_that_are_no_multiple_of_ten(root: Path) -> None:
    folder = write(root / "mfeat")
    for path in folder.iterdir():
        path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(DataError, match=f"each of the 10 digits, got {NUM - 1} in all"):
        Mfeat().make()
