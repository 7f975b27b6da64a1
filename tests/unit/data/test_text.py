"""Text in blocks: numbers of characters, borders, the user's own files, and parts."""

import bz2
import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.data import text as module
from stalesim.simulator.catalogue.data.text import Text
from stalesim.simulator.catalogue.partitions.shares import Contiguous
from stalesim.simulator.files import inputs
from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.problem.data.base import Dataset

FABLE = "the crow and the fox, the fox and the crow; "


def written(folder: Path, text: str, name: str = "fable.txt") -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


def decoded(rows: np.ndarray, text: str) -> list[str]:
    """Returns rows of numbers as text, by the sorted characters of a text."""
    known = sorted(set(text))
    return ["".join(known[int(number)] for number in row) for row in rows]


@pytest.mark.parametrize(("length", "block"), [(101, 4), (100, 9), (60, 5), (40, 3)])
def test_blocks_are_the_text_and_labels_the_next_characters(
    tmp_path: Path, length: int, block: int
) -> None:
    text = (FABLE * 3)[:length]
    data = Text(path=written(tmp_path, text), block=block, test_fraction=0.25).make()
    num_test = -(-length // 4)
    for part, x, y in (
        (text[: length - num_test], data.x_train, data.y_train),
        (text[length - num_test :], data.x_test, data.y_test),
    ):
        starts = range(0, len(part) - block, block)
        assert decoded(x, text) == [part[at : at + block] for at in starts]
        assert decoded(y, text) == [part[at + 1 : at + 1 + block] for at in starts]
        assert len(starts) == (len(part) - 1) // block > 0
    assert (data.name, data.num_classes) == ("fable", len(set(text)))
    assert (data.num_frames, data.has_tokens) == (block, True)
    assert data.columns[:2] == ("token_0", "token_1")
    assert len(data.columns) == block


def test_any_characters_gzipped_or_with_a_mark(tmp_path: Path) -> None:
    text = "Müßig: 𝄞 你好\r\n" * 8
    plain = Text(path=written(tmp_path, text), block=3).make()
    marked = tmp_path / "marked.txt"
    marked.write_bytes(b"\xef\xbb\xbf" + text.encode())
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (marked, packed):
        other = Text(path=str(path), block=3).make()
        np.testing.assert_array_equal(other.x_train, plain.x_train)
    assert plain.num_classes == len(set(text)) == 12
    assert "".join(decoded(plain.x_train, text)) == text[: plain.x_train.size]


def test_limit_takes_the_first_rows_and_nothing_is_random(tmp_path: Path) -> None:
    path = written(tmp_path, FABLE * 4)
    whole = Text(path=path, block=5).make()
    some = Text(path=path, block=5, limit=7, split_seed=3).make()
    np.testing.assert_array_equal(some.x_train, whole.x_train[:7])
    np.testing.assert_array_equal(some.y_train, whole.y_train[:7])
    np.testing.assert_array_equal(some.x_test, whole.x_test)


def test_the_text_that_ships() -> None:
    text = module.shipped()
    assert hashlib.sha256(text.encode()).hexdigest() == module.SHA256
    assert (len(text), len(set(text))) == (1_115_394, 65)
    assert text.startswith("First Citizen:\nBefore we proceed any further")
    data = Text().make()
    assert data.name == "tinyshakespeare"
    # 1,003,854 characters for training, 111,540 for testing.
    assert (data.x_train.shape, data.x_test.shape) == ((15685, 64), (1742, 64))
    # Entropy of single characters, in nats: what a model learns first.
    share = np.bincount(data.y_train.ravel()) / data.y_train.size
    kept = share[share > 0]
    assert 3.3 < -np.sum(kept * np.log(kept)) < 3.35


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "got: "), (b"no bz2", "got: "), ("other", "must hold the text with the")],
)
def test_a_damaged_installation(
    content: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.bz2"
    if content is not None:
        path.write_bytes(bz2.compress(b"x") if content == "other" else content)
    monkeypatch.setattr(module, "FILE", path)
    with pytest.raises(DataError, match=says) as error:
        Text().make()
    assert "install stalesim again" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"caf\xe9 " * 100, r"must be a text in UTF-8, got: .* at byte 3; save it so"),
        (b"", r"must hold two different characters or more, got 0; check problem"),
        (b"aaaaaa" * 50, r"must hold two different characters or more, got 1; check"),
    ],
)
def test_files_that_are_no_texts(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as error:
        Text(path=str(path), block=4).make()
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DataError, match=r"problem\.data\.path must be a file, got 'n"):
        Text(path="nowhere.txt").make()


@pytest.mark.parametrize("change", [{"block": 10}, {"test_fraction": 0.02}])
def test_blocks_that_no_part_has(change: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, FABLE[:40])
    with pytest.raises(ScenarioError, match=r"problem\.data\.block must be less than"):
        Text(**{"path": path, "block": 3, "test_fraction": 0.25, **change}).make()


def test_a_run_is_what_its_text_holds(tmp_path: Path) -> None:
    def identity() -> Any:
        config = Text(path=str(tmp_path / "fable.txt"), block=4)
        with inputs.held(inputs.collect([config])):
            return inputs.identified(config)

    written(tmp_path, FABLE * 2)
    first = identity()
    written(tmp_path, FABLE * 2)
    assert identity() == first
    written(tmp_path, FABLE * 2 + "!")
    assert identity() != first


@pytest.mark.parametrize("clients", [1, 4, 15685])
def test_contiguous_clients_hold_successive_parts(clients: int) -> None:
    data = Text().make()
    shares = Contiguous(clients=clients).make(data, 1)
    np.testing.assert_array_equal(np.concatenate(shares), np.arange(15685))
    sizes = [share.size for share in shares]
    assert len(sizes) == clients
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_contiguous_needs_a_row_for_each() -> None:
    few = np.zeros((3, 2), np.float32), np.zeros(3, np.int32)
    data = Dataset("few", *few, *few, num_classes=2, columns=("a", "b"))
    with pytest.raises(ScenarioError, match="clients must be at most the 3 training"):
        Contiguous(clients=4).make(data, 1)
