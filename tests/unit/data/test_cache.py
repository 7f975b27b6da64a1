"""The cache: never decides a result, whatever happens to its files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files import cache
from stalesim.simulator.files.cache import cache_folder
from stalesim.simulator.files.reading.archive import cached

X = np.arange(12).reshape(3, 4)
ARRAYS = {"x": X, "y": np.array([0, 1, 2], np.uint8)}


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.calls += 1
        return dict(ARRAYS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path / "own" / "cache"))
    return tmp_path / "own" / "cache"


def same(found: dict[str, np.ndarray]) -> bool:
    return found.keys() == ARRAYS.keys() and all(
        np.array_equal(found[k], ARRAYS[k]) and found[k].dtype == ARRAYS[k].dtype
        for k in ARRAYS
    )


def test_made_once(folder: Path) -> None:
    make = Maker()
    assert same(cached("set-1", make))
    assert same(cached("set-1", make))
    assert make.calls == 1
    assert [path.name for path in folder.iterdir()] == ["set-1.npz"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(X.tobytes(), b"\xff" + X.tobytes()[1:]),
        lambda whole: whole.replace(b"(3, 4)", b"(2, 4)"),
        lambda whole: b"\0" * len(whole),
        lambda _: b"",
    ],
)
def test_damaged_file_is_made_again(folder: Path, damage: Any) -> None:
    make = Maker()
    cached("set-1", make)
    path = folder / "set-1.npz"
    path.write_bytes(damage(path.read_bytes()))
    assert same(cached("set-1", make))
    assert same(cached("set-1", make))
    assert make.calls == 2


def test_other_arrays_under_the_name_are_made_again(folder: Path) -> None:
    make = Maker()
    folder.mkdir(parents=True)
    np.savez(folder / "set-1.npz", x=np.zeros(3), y=np.zeros(3))
    assert same(cached("set-1", make))
    assert make.calls == 1


def test_file_of_another_name_is_made_again(folder: Path) -> None:
    make = Maker()
    cached("set-1", make)
    (folder / "set-1.npz").rename(folder / "set-2.npz")
    cached("set-2", make)
    assert make.calls == 2


@pytest.mark.parametrize("value", ["", "off", " OFF "])
def test_no_cache(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("STALESIM_CACHE", value)
    make = Maker()
    assert cache_folder() is None
    assert same(cached("set-1", make))
    assert same(cached("set-1", make))
    assert make.calls == 2


def test_default_is_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STALESIM_CACHE")
    assert "stalesim" in str(cache_folder())


def test_folder_that_cannot_be_written(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    make = Maker()
    assert same(cached("set-1", make))
    assert make.calls == 1


def test_failed_rename_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert same(cached("set-1", Maker()))
    assert list(folder.iterdir()) == []


def test_oldest_programs_go_and_nothing_else(folder: Path) -> None:
    (folder / "compiled").mkdir(parents=True)
    for age, name in enumerate("abcd"):
        path = folder / "compiled" / name
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    cached("set-1", Maker())
    assert cache.shorten(250) == 200
    assert sorted(path.name for path in cache.programs().iterdir()) == ["a", "b"]
    assert cache.shorten(0) == 200
    assert [path.name for path in folder.glob("*.npz")] == ["set-1.npz"]


def test_no_cache_has_no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALESIM_CACHE", "off")
    assert cache.programs() is None
    assert cache.shorten(0) == 0
