"""`stalesim data`, with a server on the loopback address; nothing reaches a network."""

import errno
import gzip
import hashlib
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from stalesim.simulator.catalogue.data import idx, mnist
from stalesim.simulator.cli import commands, downloads
from stalesim.simulator.cli.data import published_sets
from stalesim.simulator.files.reading.published import Published, PublishedFile
from stalesim.simulator.parts.base import described
from stalesim.simulator.parts.errors import UserError


def zipped(array: np.ndarray) -> bytes:
    header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes(), mtime=0)


CONTENTS = {
    "train-images-idx3-ubyte.gz": zipped(
        np.random.default_rng(0).integers(0, 256, (300, 28, 28))
    ),
    "train-labels-idx1-ubyte.gz": zipped(np.arange(300) % 10),
    "t10k-images-idx3-ubyte.gz": zipped(np.arange(20 * 784).reshape(20, 28, 28) % 256),
    "t10k-labels-idx1-ubyte.gz": zipped(np.arange(20) % 10),
}
"""A small set of MNIST's format."""
IMAGES = "train-images-idx3-ubyte.gz"
HALF = len(CONTENTS[IMAGES]) // 2


class Server:
    """Serves the files, each attempt as it is told to.

    Attributes:
        ways: What is done with the next requests of the images: `whole`, `dies`,
            `short`, `wrong`, `gone` or `endless`; the last one counts for all later
            ones.
        asked: Names of the files that were asked for.
    """

    def __init__(self) -> None:
        self.ways = ["whole"]
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                outer.asked.append(name)
                way = "whole"
                if name == IMAGES:
                    way = outer.ways[0] if len(outer.ways) == 1 else outer.ways.pop(0)
                outer.answer(self, CONTENTS[name], way)

            def log_request(self, *_: Any, **__: Any) -> None:
                """Prints nothing."""

            log_error = log_request

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/files/"

    @staticmethod
    def answer(to: BaseHTTPRequestHandler, content: bytes, way: str) -> None:
        if way == "gone":
            to.send_error(404)
            return
        sent = {
            "dies": content[:HALF],
            "short": content[:HALF],
            "wrong": bytes(len(content)),
            "endless": bytes(len(content) + 10_000),
        }.get(way, content)
        to.send_response(200)
        # One that dies has promised more than it sends.
        promised = len(content) if way == "dies" else len(sent)
        to.send_header("Content-Length", str(promised))
        to.end_headers()
        to.wfile.write(sent)


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("STALESIM_DATA", str(folder))
    return folder


Offer = Callable[..., Published]


@pytest.fixture
def offer(root: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Makes the files of some servers the published ones of MNIST."""
    pytest.importorskip("pooch", reason="install stalesim[data]")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)

    def publish(*servers: str, algorithm: str = "md5") -> Published:
        record = idx.MNIST._replace(
            files=tuple(
                PublishedFile(
                    name,
                    f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}",
                    len(content),
                    urls=tuple(server + name for server in servers),
                )
                for name, content in CONTENTS.items()
            )
        )
        monkeypatch.setattr(mnist.Mnist, "published", record)
        files = idx.file_set("mnist")._replace(published=record)
        monkeypatch.setattr(mnist.Mnist, "files", files)
        return record

    return publish


def data(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, ["data", *arguments])


def refused(*arguments: str) -> str:
    """Returns the one line that says why a command failed."""
    result = data(*arguments)
    assert isinstance(result.exception, UserError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_get_then_run(server: Server, offer: Offer, root: Path, algorithm: str) -> None:
    offer(server.url, algorithm=algorithm)
    result = data("get", "mnist")
    assert result.exit_code == 0, result.output
    assert result.output.count("downloaded and verified") == 4
    folder = root / "mnist"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == CONTENTS
    made = mnist.Mnist().make()
    assert (made.name, made.x_train.shape) == ("mnist", (300, 784))
    assert f"here: 4 files in {folder}" in data("list").output
    # A second time nothing is asked for.
    server.asked.clear()
    assert data("get", "mnist").output.count("is there") == 4
    assert server.asked == []


def test_a_download_that_dies_is_repeated(
    server: Server, offer: Offer, root: Path
) -> None:
    offer(server.url)
    server.ways = ["dies", "wrong", "whole"]
    assert data("get", "mnist").exit_code == 0
    assert (root / "mnist" / IMAGES).read_bytes() == CONTENTS[IMAGES]
    assert server.asked.count(IMAGES) == 3
    assert {path.name for path in (root / "mnist").iterdir()} == {*CONTENTS}


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("dies", f" of {len(CONTENTS[IMAGES]):,} bytes; try again"),
        ("short", f"truncated, {HALF:,} of {len(CONTENTS[IMAGES]):,} bytes"),
        ("wrong", "bytes with another checksum than md5:"),
        ("gone", "the server answers 404 Not Found"),
        ("endless", f"more than the {len(CONTENTS[IMAGES]):,} bytes of the file"),
    ],
)
def test_what_never_comes_whole_is_one_line_and_leaves_nothing(
    server: Server, offer: Offer, root: Path, way: str, says: str
) -> None:
    offer(server.url)
    server.ways = [way]
    message = refused("get", "mnist")
    assert message.startswith(f"{IMAGES} must be downloaded whole, got 127.0.0.1:")
    assert says in message
    assert ("the connection ended after 1" in message) == (way == "dies")
    assert [*(root / "mnist").iterdir()] == []
    assert mnist.Mnist().make().name == "mnist5k"
    # When the server is well again, the same command succeeds.
    server.ways = ["whole"]
    assert data("get", "mnist").exit_code == 0


def test_an_interruption_leaves_what_was_whole(
    server: Server, offer: Offer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = pytest.importorskip("requests")
    offer(server.url)
    pieces = requests.Response.iter_content

    def interrupted(self: Any, size: int) -> Iterator[bytes]:
        yield from pieces(self, size)
        if len(server.asked) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(requests.Response, "iter_content", interrupted)
    assert data("get", "mnist").exit_code != 0
    assert [path.name for path in (root / "mnist").iterdir()] == [IMAGES]
    assert "incomplete: 1 file there" in data("list").output
    monkeypatch.undo()
    assert (root / "mnist" / IMAGES).read_bytes() == CONTENTS[IMAGES]


def dead_server() -> str:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}/"


def test_the_next_server_is_tried(server: Server, offer: Offer) -> None:
    offer(dead_server(), server.url)
    assert data("get", "mnist").exit_code == 0


def test_no_network(offer: Offer, root: Path) -> None:
    offer(dead_server())
    message = refused("get", "mnist")
    assert "no connection; is there a network?" in message
    assert f"put the file into {root / 'mnist'} yourself" in message


def test_a_users_other_file_is_not_overwritten(
    server: Server, offer: Offer, root: Path
) -> None:
    offer(server.url)
    (root / "mnist").mkdir(parents=True)
    (root / "mnist" / IMAGES).write_bytes(b"mine")
    message = refused("get", "mnist")
    assert "got 4 bytes of something else; move it away" in message
    assert (root / "mnist" / IMAGES).read_bytes() == b"mine"
    assert server.asked == []


def test_disks_that_are_full(
    server: Server, offer: Offer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(server.url)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.move", full)
        message = refused("get", "mnist")
    assert "got: No space left on device; free some space, or set STAL" in message
    assert [*(root / "mnist").iterdir()] == []
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda path: usage)
    assert f"free for {IMAGES}, got 1000 bytes; free some" in refused("get", "mnist")


def test_a_folder_that_is_a_file(server: Server, offer: Offer, root: Path) -> None:
    offer(server.url)
    root.write_text("a file")
    assert "must be a folder that can be written, got: " in refused("get", "mnist")


def test_without_pooch(
    server: Server, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(server.url)
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "install it by pip install 'stalesim[data]'" in refused("get", "mnist")


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("minst", "got 'minst'; did you mean 'mnist'?"),
        ("leaf_femnist", "must be got by hand: run preprocess.sh in data/femnist of"),
    ],
)
def test_what_may_or_can_not_be_downloaded(name: str, says: str) -> None:
    assert says in refused("get", name)


@pytest.mark.usefixtures("root")
def test_a_bundled_set_needs_no_download() -> None:
    result = data("get", "digits")
    assert result.output == "digits comes with scikit-learn: nothing to download\n"


def test_path_is_the_data_folder(root: Path) -> None:
    assert data("path").output == f"{root}\n"


@pytest.mark.usefixtures("root")
def test_list_says_what_is_known_of_each_set() -> None:
    lines = data("list").output.splitlines()
    for name, one in published_sets().items():
        assert one.published is not None
        start = lines.index(f"{name}: {described(one)}")
        ends = (i for i in range(start + 1, len(lines)) if lines[i][:1] != " ")
        block = lines[start : next(ends)]
        assert f"    origin: {one.published.origin}" in block
        assert f"    licence: {one.published.licence}" in block
        for file in one.published.files:
            assert any(f"file: {file.name}," in line for line in block)
