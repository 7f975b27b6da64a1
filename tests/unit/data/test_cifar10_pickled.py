"""CIFAR-10's Python batches, and pickles that would do something else."""

import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.data.cifar10.part import PYTHON, TEST, TRAIN, Cifar10
from stalesim.simulator.data.cifar10.pickled import ALLOWED, parse

PIXELS = 3072


class OfPython2(pickle._Pickler):  # pyright: ignore[reportAttributeAccessIssue]
    """Writes byte strings as Python 2 did, whose str they were."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)  # pyright: ignore

    def save_string(self, value: bytes | str) -> None:
        text = value if isinstance(value, bytes) else value.encode("latin1")
        short = len(text) < 256
        head = (
            b"U" + bytes([len(text)]) if short else b"T" + struct.pack("<i", len(text))
        )
        self.write(head + text)
        self.memoize(value)

    dispatch[bytes] = dispatch[str] = save_string


def of_python_2(batch: Any) -> bytes:
    file = io.BytesIO()
    OfPython2(file, 2).dump(batch)
    # As numpy called it then, and calls it up to version 1.
    return file.getvalue().replace(b"numpy._core.", b"numpy.core.")


def of_python_3(batch: Any) -> bytes:
    return pickle.dumps(batch, 2)


def batch(number: int, num: int = 4) -> dict[bytes, Any]:
    x = np.full((num, PIXELS), number, np.uint8)
    x[:, 1024] = 200
    return {
        b"batch_label": b"some batch",
        b"labels": [(row + number) % 10 for row in range(num)],
        b"data": x,
        b"filenames": [f"{row}.png".encode() for row in range(num)],
    }


@pytest.fixture
def folder(root: Path) -> Path:
    folder = root / "cifar-10-batches-py"
    folder.mkdir()
    for number, name in enumerate(PYTHON):
        (folder / name).write_bytes(of_python_2(batch(number)))
    return folder


@pytest.mark.parametrize("source", ["python", "auto"])
def test_reads(folder: Path, source: str) -> None:
    data = Cifar10(source=source, scale="raw").make()  # pyright: ignore
    assert (data.name, data.num_classes) == ("cifar10 (other copy)", 10)
    assert (data.x_train.shape, data.x_test.shape) == ((20, PIXELS), (4, PIXELS))
    np.testing.assert_array_equal(data.x_train[:, 1024], 200)
    np.testing.assert_array_equal(data.x_test[:, 0], 5)
    np.testing.assert_array_equal(data.y_test, [5, 6, 7, 8])
    first = data.x_train[:, 0].astype(int)
    assert set(data.y_train[first == 2]) == {2, 3, 4, 5}


def test_the_binary_version_is_preferred(folder: Path, root: Path) -> None:
    for name in (*TRAIN, TEST):
        (root / name).write_bytes(bytes([7]) * 3073)
    assert Cifar10().make().x_train.shape == (5, PIXELS)
    (root / TEST).unlink()
    assert Cifar10().make().x_train.shape == (20, PIXELS)
    (folder / PYTHON[0]).unlink()
    assert Cifar10().make().name == "cifar10-standin"
    with pytest.raises(
        DataError, match=r"^data_batch_1 of cifar10 is missing; .*-pyth"
    ):
        Cifar10(source="python").make()


@pytest.mark.parametrize("write", [of_python_2, of_python_3])
@pytest.mark.parametrize("key", [bytes, str])
@pytest.mark.parametrize("order", ["C", "F"])
def test_whoever_wrote_it(
    tmp_path: Path, write: Callable[[Any], bytes], key: type, order: Any
) -> None:
    x = np.random.default_rng(0).integers(0, 256, (3, PIXELS)).astype(np.uint8)
    one = batch(1, 3) | {b"data": np.asarray(x, order=order)}
    named = {name if key is bytes else name.decode(): one[name] for name in one}
    path = tmp_path / "test_batch"
    path.write_bytes(write(named))
    images, labels = parse(path)
    np.testing.assert_array_equal(images, x)
    assert labels.tolist() == [1, 2, 3]


class Calls:
    """A value whose pickle calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.called = function, arguments

    def __reduce__(self) -> Any:
        return self.called


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "pickle.loads"])
def test_executes_nothing(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    module, function = name.split(".")
    argument = f"open({str(mark)!r}, 'w')" if function == "eval" else f"touch {mark}"
    call = b"(U" + bytes([len(argument)]) + argument.encode() + b"tR"
    path = tmp_path / "test_batch"
    for head in (f"c{module}\n{function}\n".encode(), pickle.PROTO + b"\x04"):
        ask = head
        if head.startswith(pickle.PROTO):
            ask += b"".join(
                pickle.SHORT_BINUNICODE + bytes([len(part)]) + part.encode()
                for part in (module, function)
            )
            ask += pickle.STACK_GLOBAL
        path.write_bytes(ask + call + b".")
        with pytest.raises(DataError, match=f"got: it asks for {name};") as error:
            parse(path)
        assert "\n" not in str(error.value)
        assert str(path) in str(error.value)
    assert not mark.exists()


HIDDEN: dict[str, Any] = {
    "an entry": {b"more": Calls(os.getcwd)},
    "a label": {b"labels": [0, 1, 2, Calls(os.getcwd)]},
    "the images": {b"data": Calls(os.getcwd)},
    "a class": {b"more": Path("x")},
    "objects": {b"data": np.full((4, PIXELS), None)},
    "numbers": {b"data": np.zeros((4, PIXELS))},
    "another shape": {b"data": np.zeros((4, 784), np.uint8)},
    "no array": {b"data": [1, 2, 3]},
    "one label too few": {b"labels": [0, 1, 2]},
    "a label too high": {b"labels": [0, 1, 2, 10]},
    "a label that is none": {b"labels": [0, 1, 2, True]},
    "labels in an array": {b"labels": np.arange(4)},
}


@pytest.mark.parametrize("name", HIDDEN)
def test_refuses_what_is_no_batch(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(of_python_3(batch(0) | HIDDEN[name]))
    with pytest.raises(DataError) as error:
        parse(path)
    message = str(error.value)
    assert message.startswith(f"{path} must ")
    assert "\n" not in message


def test_refuses_a_pickle_that_changes_what_it_calls(tmp_path: Path) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(b"c_codecs\nencode\n}U\x01xK\x01sb.")
    with pytest.raises(DataError, match="sets the state"):
        parse(path)
    assert ALLOWED["_codecs", "encode"]("ab", "latin1") == b"ab"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "exhausted"),
        (b"no pickle", "unpack"),
        (of_python_3(batch(0))[:-1000], "unpack"),
        (of_python_3([1, 2]), "got: a list"),
        (of_python_3({b"data": 1}), "got: no labels"),
        (b"Nr\xff\xff\xff\x7f.", "more objects than bytes"),
    ],
)
def test_damaged(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as error:
        parse(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("source", ["python", "auto"])
def test_says_which_files_it_reads(folder: Path, check_files: Any, source: str) -> None:
    check_files(Cifar10(source=source))  # pyright: ignore
