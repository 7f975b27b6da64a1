"""USPS: libsvm files packed by bzip2."""

import bz2
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.extras.papers.data import usps as module
from stalesim.simulator.extras.papers.data.usps import TEST, TRAIN, Usps
from stalesim.simulator.storage import limits
from stalesim.simulator.storage.published import SOURCE

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
    assert module.FILES.found() == {}
    monkeypatch.setattr(module, "OFFICIAL", official)
    assert RAW.make().name == "usps (other copy)"


def test_official_table_is_complete() -> None:
    assert sorted(module.OFFICIAL.values()) == [TRAIN, TEST]


def test_missing_files_are_named_with_their_place(root: Path) -> None:
    write(root)
    (root / TEST).unlink()
    with pytest.raises(DataError) as error:
        RAW.make()
    assert str(error.value) == (
        f"usps must be in the data folder, {root} (chosen by STALESIM_DATA), got no "
        f"{TEST}; stalesim data get usps"
    )


def cut(content: bytes) -> bytes:
    return bz2.compress(content)[:-9]


def spoil(content: bytes) -> bytes:
    return b"BZh9" + content


def no_numbers(content: bytes) -> bytes:
    return content.replace(b"1:", b"1:x", 1)


def too_wide(content: bytes) -> bytes:
    return content.replace(b"256:", b"257:", 1)


def from_zero(content: bytes) -> bytes:
    return b"1 0:0.5\n" + content


def no_digit(content: bytes) -> bytes:
    return b"11 1:0.5\n" + content


def half_a_digit(content: bytes) -> bytes:
    return b"1.5 1:0.5\n" + content


def too_bright(content: bytes) -> bytes:
    return b"1 1:1.5\n" + content


def no_value(content: bytes) -> bytes:
    return b"1 1:nan\n" + content


def empty(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "libsvm file of 256 columns, .*, got: Compressed file ended before"),
        (spoil, "got: Invalid data stream; download"),
        (no_numbers, "got: could not convert"),
        (too_wide, "got: .*257 features"),
        (from_zero, "got: Invalid index 0"),
        (no_digit, "labels from 1 to 10, got 11"),
        (half_a_digit, r"labels from 1 to 10, got 1\.5"),
        (too_bright, r"values from -1 to 1, got 1\.5"),
        (no_value, "values from -1 to 1, got nan"),
        (empty, "at least one row of 256 numbers, got none"),
    ],
)
def test_damaged(root: Path, damage: Callable[[bytes], bytes], says: str) -> None:
    write(root)
    (root / TRAIN).write_bytes(damage(text(30)))
    with pytest.raises(DataError, match=says) as error:
        Usps().make()
    assert str(root / TRAIN) in str(error.value)
    assert "\n" not in str(error.value)


def test_says_which_files_it_reads(root: Path, check_files: Any) -> None:
    write(root)
    check_files(Usps())


def test_bzip2_is_limited_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "usps"
    path.write_bytes(bz2.compress(bytes(10**6)))
    monkeypatch.setattr(limits, "ALWAYS", 10**5)
    with pytest.raises(DataError, match="content that are allowed in"):
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
