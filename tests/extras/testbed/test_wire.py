"""Frames of a testbed, and what one hears who does not belong to the run."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stalesim.simulator.extras.testbed import wire
from stalesim.simulator.extras.testbed.client import joined
from stalesim.simulator.extras.testbed.fleet import (
    STRANGERS,
    Received,
    TcpChannels,
)
from stalesim.simulator.extras.testbed.wire import HEAD, MAGIC, Session, WireError

SECRET = b"s" * 32


def agreed(most: int = 1000) -> tuple[Session, Session]:
    client, server = Session(most), Session(most)
    client.agree(b"k", is_server=False)
    server.agree(b"k", is_server=True)
    return client, server


def test_a_message_arrives_however_it_is_cut() -> None:
    client, server = agreed()
    data = client.seal({"type": "a", "n": 1}, b"12345") + client.seal({"type": "b"})
    found = [m for k in range(len(data)) for m in server.open(data[k : k + 1])]
    assert [(m.header["type"], m.body) for m in found] == [("a", b"12345"), ("b", b"")]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_what_was_changed_repeated_or_reordered_on_the_way_is_refused() -> None:
    client, _ = agreed()
    one, two = client.seal({"type": "a"}, b"123"), client.seal({"type": "b"})
    sealed = range(HEAD.size - len(wire.NO_MAC), len(one))  # a length only waits
    for wrong in [two, one + one, *(flipped(one, at) for at in sealed)]:
        _, server = agreed()
        with pytest.raises(WireError):
            list(server.open(wrong + bytes(2000)))


def test_a_server_s_own_message_is_none_of_a_client() -> None:
    _, server = agreed()
    with pytest.raises(WireError, match="secret"):
        list(server.open(server.seal({"type": "a"})))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no message of a testbed"),
        (b"sX", "no message of a testbed"),
        (HEAD.pack(MAGIC, 2, 2, 0, wire.NO_MAC) + b"{}", "speaks version 2, and we 1"),
        (HEAD.pack(MAGIC, 1, 10**9, 0, wire.NO_MAC), "too long"),
        (HEAD.pack(MAGIC, 1, 2, 2**60, wire.NO_MAC), "too long"),
        (HEAD.pack(MAGIC, 1, 2, 0, wire.NO_MAC) + b"[]", "no type"),
        (HEAD.pack(MAGIC, 1, 3, 0, wire.NO_MAC) + b"\xff{}", "no JSON"),
        (HEAD.pack(MAGIC, 1, 400, 0, wire.NO_MAC) + b"[" * 400, "no JSON"),
    ],
)
def test_garbage_is_refused_before_it_is_stored(data: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said):
        list(Session(1000).open(data))


@contextmanager
def server(said: list[str], num_clients: int = 2) -> Iterator[TcpChannels]:
    lines = TcpChannels(SECRET, num_clients, 1000, said.append)
    try:
        yield lines
    finally:
        lines.close()


def joining(client: int, secret: bytes, token: str = "a") -> bytes:
    """Returns the first two frames of a client."""
    session = Session(0)
    first = session.seal({"type": "join", "client": client, "token": token})
    session.agree(wire.key_of(secret, client, token), is_server=False)
    return first + session.seal({"type": "here"})


def conversed(lines: TcpChannels, data: bytes) -> Received:
    """Returns what a server hears of one who sends some bytes, until it is closed."""
    received: Received = []
    with socket.create_connection(tuple(lines.joining["address"])) as guest:
        guest.sendall(data)
        guest.settimeout(0.01)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            received += lines.poll(0.01)
            with contextlib.suppress(TimeoutError):
                if not guest.recv(4096):
                    break
    return received


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x16\x03\x01 hello", "no message of a testbed"),
        (joining(7, SECRET), "no client 8"),
        (Session(0).seal({"type": "join", "client": "1", "token": ""}), "must join"),
        (Session(0).seal({"type": "join", "client": 1}), "join by a token"),
        (Session(0).seal({"type": "here", "client": 1, "token": ""}), "must join"),
        (joining(0, b"other"), "does not know the secret"),
        (joining(0, b"other", "\ud800"), "does not know the secret"),
        (joining(0, SECRET) + b"sX", "no message of a testbed"),
        (HEAD.pack(MAGIC, 9, 2, 0, wire.NO_MAC) + b"{}", "speaks version 9, and we 1"),
    ],
)
def test_a_stranger_is_named_and_the_run_goes_on(data: bytes, said: str) -> None:
    lines_said: list[str] = []
    with server(lines_said) as lines:
        received = conversed(lines, data)
        heard = [message.header["type"] for _, message in received]
        assert heard == (["here", "gone"] if data.endswith(b"sX") else [])
        assert len(lines_said) == 1
        assert said in lines_said[0]


def test_who_repeats_what_a_client_has_said_is_refused() -> None:
    said: list[str] = []
    with server(said) as lines:
        data = joining(0, SECRET)
        with socket.create_connection(tuple(lines.joining["address"])) as client:
            client.sendall(data)
            while not lines.poll(0.1):
                pass
        assert lines.poll(1)[0][1].header["type"] == "gone"
        assert conversed(lines, data) == []
    assert said == ["a connection was refused: it repeats what a client has said"]


@pytest.mark.parametrize("number", [STRANGERS + 6, 200])
def test_silent_strangers_keep_no_client_out(number: int) -> None:
    """They had all places, and clients that came later were closed and gave up."""
    with server([]) as lines, contextlib.ExitStack() as strangers:
        address, here = tuple(lines.joining["address"]), []
        for _ in range(number):
            strangers.enter_context(socket.create_connection(address))
            lines.poll(0)

        def come() -> None:
            line, welcome = joined(address, 1000, SECRET, 0)
            here.append(welcome.header["type"])
            line.close()

        client = threading.Thread(target=come)
        client.start()
        while client.is_alive():
            for who, message in lines.poll(0.01):
                if message.header["type"] == "here":
                    lines.send(who, {"type": "welcome"})
        assert here == ["welcome"]


def test_a_client_that_was_closed_before_it_joined_tries_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tried: list[int] = []

        def close() -> None:
            for number in range(3):
                listener.accept()[0].close()
                tried.append(number)
            guest, _ = listener.accept()
            guest.sendall(b"GET / HTTP/1.1")
            guest.close()

        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises(WireError, match="no message of a testbed"):
            joined(listener.getsockname(), 1000, SECRET, 0)
        thread.join()
    assert tried == [0, 1, 2]
