"""Nothing of the user's own data or cache, and writers of small files."""

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.parts.errors import DataError


@pytest.fixture(scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    # One for all workers of pytest-xdist: files are renamed into place.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, _cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a test, empty; the cache is the session's."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("STALESIM_DATA", str(folder))
    monkeypatch.setenv("STALESIM_CACHE", str(_cache))
    return folder


def _idx(path: Path, array: np.ndarray) -> Path:
    header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    content = header + array.astype(np.uint8).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    )
    return path


@pytest.fixture
def write_idx() -> Callable[[Path, np.ndarray], Path]:
    return _idx


@pytest.fixture
def write_set() -> Callable[..., dict[str, np.ndarray]]:
    """Writes the four files of a small MNIST-like set; returns their arrays."""

    def write(
        folder: Path, *, suffix: str = "", offset: int = 0
    ) -> dict[str, np.ndarray]:
        arrays = {
            "train-images-idx3-ubyte": (np.arange(30 * 12) + offset).reshape(30, 4, 3),
            "train-labels-idx1-ubyte": np.arange(30) % 10,
            "t10k-images-idx3-ubyte": (np.arange(10 * 12) * 7).reshape(10, 4, 3),
            "t10k-labels-idx1-ubyte": np.arange(10) % 10,
        }
        for name, array in arrays.items():
            _idx(folder / (name + suffix), array)
        return {name: array.astype(np.uint8) for name, array in arrays.items()}

    return write


def _outcome(config: Any) -> Any:
    """Returns all that a data set makes, or its mistake without the names of files."""
    try:
        data = config.make()
    except DataError as error:
        return type(error)
    plain = data._replace(groupings=())
    return [part.tobytes() if hasattr(part, "tobytes") else part for part in plain]


@pytest.fixture
def check_files(root: Path) -> Callable[[Any], None]:
    """Checks that a data set says exactly which files of the data folder it reads.

    A file is read if what is loaded is something else without it.
    """

    def check(config: Any) -> None:
        (root / "notes.csv").write_text("nothing,of,ours\n")
        whole = _outcome(config)
        said = [str(path) for path in config.located_files()]
        read = []
        for path in [path for path in root.rglob("*") if path.is_file()]:
            content = path.read_bytes()
            path.unlink()
            if _outcome(config) != whole:
                read.append(str(path))
            path.write_bytes(content)
        assert sorted(said) == sorted(read) != []

    return check
