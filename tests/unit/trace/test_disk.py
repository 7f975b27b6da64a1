"""The disk on which studies lie."""

import os
from pathlib import Path

import pytest

from stalesim.simulator.files.study.disk import DISK


def test_a_file_that_was_made_durable_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study calls this for every checkpoint; files left open have a limit."""
    opened = []
    real = os.open

    def noting(*args, **options) -> int:
        opened.append(real(*args, **options))
        return opened[-1]

    monkeypatch.setattr(os, "open", noting)
    DISK.write(tmp_path / "file", b"data")
    before = len(opened)
    DISK.sync(tmp_path / "file")
    (number,) = opened[before:]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_folder_is_not_made_in_one_that_has_vanished(tmp_path: Path) -> None:
    """Or a study would go on in a folder that somebody else has moved away."""
    with pytest.raises(FileNotFoundError):
        DISK.make(tmp_path / "gone" / "inside")
    DISK.make(tmp_path / "gone" / "inside", parents=True)
    assert (tmp_path / "gone" / "inside").is_dir()
    DISK.make(tmp_path / "gone" / "inside")  # is there already
