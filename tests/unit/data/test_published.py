"""Names of data sets: the bare one is for the published files alone."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.catalogue.data import idx
from stalesim.simulator.catalogue.data.mnist import Mnist
from stalesim.simulator.files.reading.published import (
    SOURCE,
    Published,
    PublishedFile,
    called,
)
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.parts.errors import DataError

SETS = {tag(part): part.published for part in parts("data") if part.published}


def checksum(content: bytes, algorithm: str = "md5") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


OLD = PublishedFile("a", checksum(b"x")), PublishedFile("b.gz", checksum(b"y"))
RECORD = Published(
    "a page",
    "a licence",
    (
        PublishedFile("a", checksum(b"a"), 1),
        PublishedFile("b.gz", checksum(b"?", "sha256"), 9, checksum(b"b")),
        PublishedFile("c", size=3),
    ),
    copies={"set (old)": Published("elsewhere", "a licence", OLD)},
)


def name_of(root: Path, **contents: bytes) -> str:
    for role, content in contents.items():
        (root / role).write_bytes(content)
    return called("set", RECORD, {role: root / role for role in contents})


def test_published_files_have_the_bare_name(root: Path) -> None:
    assert name_of(root, a=b"a", b=b"b", c=b"123") == "set"
    assert name_of(root, b=gzip.compress(b"b", 1)) == "set"
    assert name_of(root, b=b"?") == "set"
    # Whatever its role: the checksum tells what it is.
    assert name_of(root, other=b"a") == "set"


@pytest.mark.parametrize(
    "contents",
    [{"a": b"A"}, {"a": b"a", "c": b"1234"}, {"b": gzip.compress(b"b")[:-3]}],
)
def test_other_files_have_another(root: Path, contents: dict[str, bytes]) -> None:
    assert name_of(root, **contents) == "set (other copy)"


def test_known_copies_have_names(root: Path) -> None:
    assert name_of(root, a=b"x", other=b"y") == "set (old)"
    assert name_of(root, a=b"x", other=b"z") == "set (other copy)"


def test_a_file_says_what_a_copy_is_called(root: Path) -> None:
    (root / SOURCE).write_text("set, my scan\nfrom a drawer\n")
    assert name_of(root, a=b"A") == "set, my scan"
    assert name_of(root, a=b"a") == "set"
    assert name_of(root, a=b"x", other=b"y") == "set (old)"


@pytest.mark.parametrize("text", ["", "set\n", "\n", "x" * 61])
def test_it_must_say_something_else_than_the_name(root: Path, text: str) -> None:
    (root / SOURCE).write_text(text)
    with pytest.raises(DataError, match="SOURCE must give a name of 1 to 60 char") as e:
        name_of(root, a=b"A")
    assert "\n" not in str(e.value)


def test_unpacked_files_of_mnist_are_mnist(
    root: Path, write_set: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(root / "mnist")
    plain = [checksum((root / "mnist" / role).read_bytes()) for role in idx.ROLES]
    files = [
        PublishedFile(role, "md5:0", None, one)
        for role, one in zip(idx.ROLES, plain, strict=True)
    ]
    known = Published("", "", tuple(files[:3]))
    found = Mnist(source="idx")
    monkeypatch.setattr(Mnist, "files", Mnist.files._replace(published=known))
    assert found.make().name == "mnist (other copy)"
    known = known._replace(files=tuple(files))
    monkeypatch.setattr(Mnist, "files", Mnist.files._replace(published=known))
    assert found.make().name == "mnist"


@pytest.mark.parametrize("name", SETS)
def test_records_are_complete(name: str) -> None:
    record: Published = SETS[name]
    assert record.origin
    assert record.licence
    assert record.files or record.bundled
    for file in record.files:
        algorithm, _, digest = file.checksum.partition(":")
        assert (algorithm, len(digest)) in (("md5", 32), ("sha256", 64), ("", 0))
        # Nothing is downloaded that cannot be verified.
        assert file.checksum or not file.urls
        assert all(url.rpartition("/")[2] == file.name for url in file.urls)
    listed = [file.checksum for file in record.files if file.checksum]
    copied = (file for copy in record.copies.values() for file in copy.files)
    listed += [file.checksum for file in copied]
    assert len({*listed}) == len(listed)
    assert record.downloads or record.by_hand or record.bundled
