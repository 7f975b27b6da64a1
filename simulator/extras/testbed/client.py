"""A client's process: `python -m stalesim.simulator.extras.testbed.client`.

It gets its identity from its standard input, and ends at the end of that. Nothing large
is imported where it only sleeps.
"""

import contextlib
import ctypes
import json
import os
import secrets
import select
import signal
import socket
import sys
import threading
import time
from typing import Protocol

from .wire import Envelope, Header, Session, WireError, key_of

CONNECT_S = 30.0
"""Real seconds in which a server must answer."""
AGAIN_S = 0.2
"""Real seconds until a client whose connection was closed tries again."""
PIECE = 2**18
DIE_WITH_PARENT = 1
"""Linux's `PR_SET_PDEATHSIG`."""


class GoneError(WireError):
    """The other side has closed a connection."""


class Channel(Protocol):
    """A conversation with the server."""

    def wait(self, seconds: float | None) -> Envelope | None:
        """Returns the next message; None if none has come in some real seconds.

        Raises:
            WireError: Something else has come, or the server has gone.
        """
        ...

    def send(self, header: Header, body: bytes = b"") -> None:
        """Sends a message."""
        ...


class Worker(Protocol):
    """The computation of a client's messages."""

    def compute(self, job: Envelope) -> bytes:
        """Returns the body of an update."""
        ...


class Sleeper(Worker):
    """Computes nothing."""

    def __init__(self, upload_bytes: int) -> None:
        self._body = bytes(upload_bytes)

    def compute(self, job: Envelope) -> bytes:
        return self._body


class TcpChannel(Channel):
    """A conversation over TCP."""

    def __init__(self, address: tuple[str, int], most: int) -> None:
        self._socket = socket.create_connection(address, CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(None)
        self.session = Session(most)
        self._arrived: list[Envelope] = []

    def wait(self, seconds: float | None) -> Envelope | None:
        end = None if seconds is None else time.monotonic() + seconds
        while not self._arrived:
            left = None if end is None else max(end - time.monotonic(), 0)
            if not select.select([self._socket], [], [], left)[0]:
                return None
            data = self._socket.recv(PIECE)
            if not data:
                raise GoneError("the server has gone")
            self._arrived += self.session.open(data)
        return self._arrived.pop(0)

    def send(self, header: Header, body: bytes = b"") -> None:
        self._socket.sendall(self.session.seal(header, body))

    def close(self) -> None:
        """Ends the conversation."""
        self._socket.close()


def greet(line: TcpChannel, secret: bytes, client: int) -> Envelope:
    """Joins a run; returns the server's first message.

    Raises:
        WireError: The server does not answer, or does not have the secret.
    """
    token = secrets.token_hex(16)
    line.send({"type": "join", "client": client, "token": token})
    line.session.agree(key_of(secret, client, token), is_server=False)
    line.send({"type": "here"})
    return _answer(line)  # by which the server proves that it knows the secret


def joined(
    address: tuple[str, int], most: int, secret: bytes, client: int
) -> tuple[TcpChannel, Envelope]:
    """Joins a run over TCP; returns the conversation, and the server's first message.

    A server closes a connection for another one where too many have not joined, so that
    a client tries again.

    Raises:
        OSError, WireError: There is no server, or it does not take the client in.
    """
    end = time.monotonic() + CONNECT_S
    while True:
        try:
            with contextlib.ExitStack() as failed:
                line = TcpChannel(address, most)
                failed.callback(line.close)
                welcome = greet(line, secret, client)
                failed.pop_all()
            return line, welcome
        except (OSError, GoneError):
            if time.monotonic() > end:
                raise
            time.sleep(AGAIN_S)


def _joined(joining: Header) -> tuple[Channel, Envelope]:
    secret, client = bytes.fromhex(joining["secret"]), joining["client"]
    if "broker" not in joining:
        return joined(tuple(joining["address"]), joining["most"], secret, client)
    from .mqtt import MqttChannel

    broker, run, most = joining["broker"], joining["run"], joining["most"]
    channel = MqttChannel(broker, run, secret, client, most)
    return channel, _answer(channel)


def _answer(line: Channel) -> Envelope:
    message = line.wait(CONNECT_S)
    if message is None:
        raise WireError("the server does not answer")
    return message


def work(line: Channel, worker: Worker) -> None:
    """Executes the server's jobs, until its message that the run has ended."""
    message = line.wait(None)
    while message is None or message.header["type"] != "end":
        match message and message.header["type"]:
            case "go":
                message = _ask(line, message.header)  # pyright: ignore
            case "model":
                assert message is not None
                message = _job(line, worker, message)
            case _:
                message = line.wait(None)


def _ask(line: Channel, header: Header) -> Envelope | None:
    found = line.wait(header["read"]) if header["read"] else None
    if found is None:
        line.send({"type": "read", "number": header["number"]})
    return found


def _job(line: Channel, worker: Worker, job: Envelope) -> Envelope | None:
    """Computes and sends an update; returns what has come in between, which ends it.

    What is left of the law's time is slept. A message's own link is slept for, since
    this machine's takes no time.
    """
    header, download, upload = job.header, job.header["download"], job.header["upload"]
    if download and (found := line.wait(download)):
        return found
    started = time.monotonic()
    body = worker.compute(job)
    took = time.monotonic() - started
    rest = max(header["compute"], header["slow"] * took) - took
    if rest > 0 and (found := line.wait(rest)):
        return found
    computed = time.monotonic()
    if upload and (found := line.wait(upload)):
        return found
    times = [started, computed]
    line.send({"type": "update", "serial": header["serial"], "times": times}, body)
    return None


def _worker(welcome: Header, client: int) -> Worker:
    """Returns what computes; gradients on one thread of this machine's processor."""
    if "scenario" not in welcome:
        return Sleeper(welcome["upload_bytes"])
    from ...engine import device
    from ...engine.processes import THREADS
    from ...parts.errors import UserError

    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ |= dict.fromkeys(THREADS, "1")
    device.before_import()
    from .gradients import Computing

    device.use_cache()
    try:
        return Computing(welcome["scenario"], welcome["run"], client)
    except UserError as error:
        raise WireError(str(error)) from None


def _outlive_nobody() -> None:
    """Ends this process with the one that started it, also where it is paused."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Joins a run, and works until its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server is interrupted
    joining = json.loads(sys.stdin.buffer.readline())
    _outlive_nobody()
    client = joining["client"]
    try:
        line, welcome = _joined(joining)
        worker = _worker(welcome.header, client)
        line.send({"type": "ready"})
        work(line, worker)
    except (OSError, WireError) as error:
        sys.stderr.write(f"stalesim: client {client + 1} has stopped: {error}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # nothing is left to be done


if __name__ == "__main__":
    main()
