"""Archives of arrays: whatever is wrong with one is a ValueError in one line."""

import io
import zipfile

import numpy as np
import pytest

from stalesim.simulator.files.reading import archive


def saved(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


GOOD = saved(x=np.arange(12.0).reshape(3, 4), name=np.array(["a", "bc"]))


def with_header(header: str) -> bytes:
    """Returns an undamaged zip file of one array whose header says this."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archived:
        size = len(header).to_bytes(2, "little")
        content = b"\x93NUMPY\x01\x00" + size + header.encode() + bytes(64)
        archived.writestr("x.npy", content)
    return file.getvalue()


def test_arrays_come_back() -> None:
    found = archive.arrays(GOOD)
    assert list(found) == ["x", "name"]
    np.testing.assert_array_equal(found["x"], np.arange(12.0).reshape(3, 4))
    assert found["name"].tolist() == ["a", "bc"]


def test_damaged_bytes() -> None:
    random = np.random.default_rng(1)
    says = []
    for _ in range(300):
        content = bytearray(GOOD)
        for place in random.integers(len(content), size=random.integers(1, 9)):
            content[place] = random.integers(256)
        try:
            archive.arrays(bytes(content[: random.integers(1, len(content) + 200)]))
        except ValueError as error:
            says.append(str(error))
    assert len(says) > 200
    assert all(message.isprintable() for message in says)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,)}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'9' * 30},)}}",
        "{'descr': ('<f8',), 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [[]], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
        "{'descr': 'O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**70},)}}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**40}, {2**40})}}",
        "[" * 200,
        "",
    ],
)
def test_headers_of_other_things(header: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        archive.arrays(with_header(header))
    assert "\n" not in str(caught.value)


def test_a_single_array_is_no_archive() -> None:
    file = io.BytesIO()
    np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="a single array"):
        archive.arrays(file.getvalue())
