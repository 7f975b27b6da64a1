"""Digests of files: remembered as long as nothing changes, and no longer."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from stalesim.simulator.files.reading import digests
from stalesim.simulator.parts.errors import DataError

BIG = bytes(range(256)) * (digests.LARGE // 256)


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose content was looked at."""
    seen: list[str] = []
    digest = hashlib.file_digest

    def counting(file: object, name: str) -> object:
        seen.append(Path(file.name).name)  # pyright: ignore
        return digest(file, name)  # pyright: ignore

    monkeypatch.setattr(digests.hashlib, "file_digest", counting)
    return seen


def old(path: Path, content: bytes = BIG) -> Path:
    """Writes a file that does not look young: the clock that is asked is ahead."""
    path.write_bytes(content)
    return path


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour after the files were written."""
    now = time.time_ns()
    monkeypatch.setattr(digests.time, "time_ns", lambda: now + 3600 * 10**9)


def test_it_is_the_sha256(tmp_path: Path) -> None:
    found = digests.of_file(old(tmp_path / "a", b"abc"))
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (found.sha256, found.bytes) == (expected, 3)  # FIPS 180-2, appendix B.1


@pytest.mark.usefixtures("later")
def test_a_file_is_hashed_once_as_long_as_it_stays(
    tmp_path: Path, hashed: list[str]
) -> None:
    path = old(tmp_path / "a")
    first = digests.of_file(path)
    assert digests.of_file(path) == first
    assert hashed == ["a"]
    stamp = path.stat()
    time.sleep(0.05)  # the file system's clock ticks in milliseconds
    path.write_bytes(BIG[:-1] + b"x")  # as long as before
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and as old
    changed = digests.of_file(path)
    assert changed.sha256 == hashlib.sha256(BIG[:-1] + b"x").hexdigest()
    other = old(tmp_path / "b", BIG[::-1])
    other.replace(path)
    assert digests.of_file(path).sha256 == hashlib.sha256(BIG[::-1]).hexdigest()


@pytest.mark.usefixtures("later")
def test_another_process_finds_digests_of_large_files(
    tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = old(tmp_path / "large"), old(tmp_path / "small", b"abc")
    first = [digests.of_file(large), digests.of_file(small)]
    monkeypatch.setattr(digests, "_known", {})
    assert [digests.of_file(large), digests.of_file(small)] == first
    assert hashed == ["large", "small", "small"]


def test_a_young_file_is_hashed_again(tmp_path: Path, hashed: list[str]) -> None:
    path = old(tmp_path / "a")
    digests.of_file(path)
    digests.of_file(path)
    assert hashed == ["a", "a"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("later")
def test_a_damaged_cache_accuses_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`test_cache` has other damages."""
    path = old(tmp_path / "a")
    first = digests.of_file(path)
    (record,) = (tmp_path / "cache").rglob("*.npz")
    content = record.read_bytes()
    digests.of_file(old(tmp_path / "b", BIG[::-1]))
    (other,) = {*(tmp_path / "cache").rglob("*.npz")} - {record}
    accusing = content.replace(first.sha256.encode(), b"0" * 64)
    assert accusing != content
    for damaged in (accusing, other.read_bytes()):
        record.write_bytes(damaged)
        monkeypatch.setattr(digests, "_known", {})
        assert digests.of_file(path) == first


@pytest.mark.usefixtures("later")
def test_without_a_cache_it_is_as_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old(tmp_path / "a")
    expected = hashlib.sha256(BIG).hexdigest()
    for cache in ("off", str(path / "no" / "folder")):
        monkeypatch.setenv("STALESIM_CACHE", cache)
        assert digests.of_file(path).sha256 == expected


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be a readable file") as error:
        digests.of_file(tmp_path / "gone")
    assert "\n" not in str(error.value)
