"""USPS: libsvm files packed by bzip2."""

import bz2
import hashlib
from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.extras.papers.data import usps as module
from stalesim.simulator.extras.papers.data.usps import TEST, TRAIN, Usps
from stalesim.simulator.files.reading import files
from stalesim.simulator.files.reading.published import SOURCE
from stalesim.simulator.parts.errors import DataError

RAW = Usps(scale="raw")


def images(num_rows: int) -> np.ndarray:
    """Returns values in [-1, 1]: the row's number in the first pixel, some zeros."""
    values = np.linspace(-1, 1, 256 * num_rows).reshape(num_rows, 256).round(3)
    values[:, 0] = np.arange(num_rows) / 100
    values[:, 5] = 0
    return values


def text(num_rows: int) -> bytes:
    rows = [
        f"{row % 10 + 1} "
        + " ".join(f"{i + 1}:{value:g}" for i, value in enumerate(x) if value)
        for row, x in enumerate(images(num_rows))
    ]
    return ("\n".join(rows) + "\n").encode()


def write(folder: Path, *, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, num_rows in ((TRAIN, 30), (TEST, 10)):
        content = bz2.compress(text(num_rows)) if packed else text(num_rows)
        (folder / (name if packed else name.removesuffix(".bz2"))).write_bytes(content)
    return folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("place", [".", "usps", "sets/USPS/libsvm", "others"])
def test_reads(root: Path, place: str, packed: bool) -> None:
    write(root / place, packed=packed)
    data = RAW.make()
    assert (data.name, data.num_classes) == ("usps (other copy)", 10)
    assert (data.x_train.shape, data.x_test.shape) == ((30, 256), (10, 256))
    assert data.columns[17] == "pixel_1_1"
    row = np.rint(100 * data.x_train[:, 0]).astype(int)
    assert sorted(row) == list(range(30))
    np.testing.assert_allclose(data.x_train, images(30)[row], atol=1e-7)
    np.testing.assert_array_equal(data.y_train, row % 10)
    np.testing.assert_allclose(data.x_test, images(10), atol=1e-7)
    np.testing.assert_array_equal(data.y_test, np.arange(10))


def test_unit_scale(root: Path) -> None:
    write(root)
    data = Usps().make()
    np.testing.assert_allclose(data.x_test, (images(10) + 1) / 2, atol=1e-7)


def test_official_files_are_told_by_md5_whatever_their_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "downloads")
    official = {}
    for name in (TRAIN, TEST):
        path = root / "downloads" / name
        official[hashlib.md5(path.read_bytes()).hexdigest()] = name
        path.rename(root / f"{name[:6]}-of-2020")
    assert Usps.files.found() == {}
    monkeypatch.setattr(module, "OFFICIAL", official)
    assert RAW.make().name == "usps (other copy)"


def test_official_table_is_complete() -> None:
    assert sorted(module.OFFICIAL.values()) == [TRAIN, TEST]


def test_bzip2_is_limited_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "usps"
    path.write_bytes(bz2.compress(bytes(10**6)))
    monkeypatch.setattr(files, "ALWAYS", 10**5)
    with pytest.raises(DataError, match="content that are allowed in"):
        module.parse(path)
    path.write_bytes(path.read_bytes()[:-9])
    monkeypatch.undo()
    with pytest.raises(DataError, match="got: Compressed file ended before"):
        module.parse(path)


def test_the_source_of_a_name_is_an_input(root: Path) -> None:
    folder = root / "usps"
    folder.mkdir()
    for name, num_rows in ((TRAIN, 20), (TEST, 10)):
        rows = [f"{row % 10 + 1} 1:0.5\n" for row in range(num_rows)]
        (folder / name.removesuffix(".bz2")).write_text("".join(rows))
    (folder / SOURCE).write_text("usps (drawn)\n")
    assert Usps().make().name == "usps (drawn)"
    assert folder / SOURCE in Usps().located_files()
    data = Usps(classes=(0, 1)).make()
    assert data.name == "usps (drawn) (0, 1)"
    assert np.isfinite(data.x_train).all()
