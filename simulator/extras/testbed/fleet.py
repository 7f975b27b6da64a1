"""The server's side: conversations with the clients, and the clients' processes."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Protocol

from typing_extensions import override

from ...parts.errors import UserError
from .wire import Envelope, Header, Session, WireError, key_of

Received = list[tuple[int, Envelope]]
"""Messages, each with its client's number; type `gone` of one that has left."""
GONE = Envelope({"type": "gone"}, b"")
GREETING_S = 10.0
"""Real seconds from a connection in which a client must have joined."""
STRANGERS = 64
"""Most connections that have not joined."""
PIECE = 2**18
END_S = 2.0
"""Real seconds in which clients end at the end of a run."""
LINES = 10
"""Most lines on connections that were refused."""


class Reception:
    """The server's side of one conversation, from its beginning on.

    Attributes:
        socket: Its connection.
        since: Real moment of its beginning.
        unsent: Bytes for which there was no room so far.
        client: Number of the client; None before its first frame.
        token: Its token.
        joined: Whether it has proved that it has the secret.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.since = connection, time.monotonic()
        self.unsent = bytearray()
        self.session = Session(0)  # nothing large is stored of who has not joined
        self.client: int | None = None
        self.token, self.joined = "", False

    def begin(self, message: Envelope, secret: bytes, num_clients: int) -> None:
        """Takes the first frame, after which all are authenticated.

        Raises:
            WireError: It is another one, or of no client of this run.
        """
        client, token = message.header.get("client"), message.header.get("token")
        if message.header["type"] != "join" or type(client) is not int:
            raise WireError("it must join first")
        if not isinstance(token, str):
            raise WireError("it must join by a token")
        if not 0 <= client < num_clients:
            raise WireError(f"there is no client {client + 1}")
        self.client, self.token = client, token
        self.session.agree(key_of(secret, client, token), is_server=True)


class Channels(Protocol):
    """Conversations with all clients, by some transport."""

    def poll(self, seconds: float) -> Received:
        """Waits for messages, at most for some real seconds, and returns them."""
        ...

    def send(self, client: int, header: Header, body: bytes = b"") -> None:
        """Sends a message to a client; one that is not there gets none."""
        ...

    def drop(self, client: int, why: str) -> None:
        """Ends the conversation with a client, which is `gone` then."""
        ...

    def close(self) -> None:
        """Ends all conversations."""
        ...

    @property
    def joining(self) -> Header:
        """The data that a client needs to join."""
        ...


class TcpChannels(Channels):
    """Conversations over TCP, all in one thread.

    Raises:
        UserError: The address cannot be listened at.
    """

    def __init__(
        self,
        secret: bytes,
        num_clients: int,
        most: int,
        say: Callable[[str], None],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._secret, self._num_clients, self._most = secret, num_clients, most
        self._say, self._lines = say, 0
        try:
            self._listener = socket.create_server((host, port), backlog=STRANGERS)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"--listen must be an address of this machine, got {host}:{port} "
                f"({error}); change it"
            ) from None
        self._listener.setblocking(False)
        self._peers: list[Reception] = []
        self._of_client: dict[int, Reception] = {}
        self._tokens: set[str] = set()

    @property
    @override
    def joining(self) -> Header:
        return {"address": self._listener.getsockname()[:2]}

    @override
    def poll(self, seconds: float) -> Received:
        received: Received = []
        readers = [self._listener, *(peer.socket for peer in self._peers)]
        writers = [peer.socket for peer in self._peers if peer.unsent]
        # `select` counts microseconds, `epoll` milliseconds.
        readable, writable, _ = select.select(readers, writers, [], max(seconds, 0))
        ready, free = set(readable), set(writable)
        for peer in list(self._peers):
            if peer.socket in ready:
                self._read(peer, received)
            elif peer.socket in free:
                self._flush(peer, received)
        if self._listener in ready:
            self._accept()
        now = time.monotonic()
        for peer in list(self._peers):
            if not peer.joined and now - peer.since > GREETING_S:
                self._leave(peer, received, "it has not joined in time")
        return received

    @override
    def send(self, client: int, header: Header, body: bytes = b"") -> None:
        peer = self._of_client.get(client)
        if peer is not None:
            peer.unsent += peer.session.seal(header, body)
            self._flush(peer, None)

    @override
    def drop(self, client: int, why: str) -> None:
        peer = self._of_client.get(client)
        if peer is not None:
            self._leave(peer, [], why)

    @override
    def close(self) -> None:
        for peer in self._peers:
            peer.socket.close()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            found, _ = self._listener.accept()
            strangers = [peer for peer in self._peers if not peer.joined]
            if len(strangers) >= STRANGERS:
                # Clients come at once, and try again: who is silent longest goes.
                silent = [peer for peer in strangers if peer.client is None]
                self._leave((silent or strangers)[0], [], "others want its place")
            found.setblocking(False)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers.append(Reception(found))

    def _read(self, peer: Reception, received: Received) -> None:
        try:
            data = peer.socket.recv(PIECE)
            if not data:
                self._leave(peer, received)
                return
            for message in peer.session.open(data):
                if (client := peer.client) is None:
                    peer.begin(message, self._secret, self._num_clients)
                    continue
                if not peer.joined:
                    self._admit(client, peer)
                received.append((client, message))
            self._flush(peer, received)
        except BlockingIOError:
            return
        except WireError as error:
            self._leave(peer, received, str(error))
        except OSError:
            self._leave(peer, received)

    def _admit(self, client: int, peer: Reception) -> None:
        """Takes in a client whose first authenticated message is there."""
        if peer.token in self._tokens:
            raise WireError("it repeats what a client has said")
        if self._of_client.setdefault(client, peer) is not peer:
            raise WireError(f"client {client + 1} is here already")
        self._tokens.add(peer.token)
        peer.joined, peer.session.most = True, self._most

    def _flush(self, peer: Reception, received: Received | None) -> None:
        """Sends what there is room for; what is broken is found when it is read."""
        try:
            while peer.unsent:
                sent = peer.socket.send(memoryview(peer.unsent)[:PIECE])
                del peer.unsent[:sent]
        except BlockingIOError:
            return
        except OSError:
            peer.unsent.clear()
            if received is not None:
                self._leave(peer, received)

    def _leave(self, peer: Reception, received: Received, why: str = "") -> None:
        if peer not in self._peers:
            return
        self._peers.remove(peer)
        peer.socket.close()
        client = peer.client
        if client is not None and self._of_client.get(client) is peer:
            del self._of_client[client]
            received.append((client, GONE))
        if why and self._lines < LINES:
            self._lines += 1
            self._say(f"a connection was refused: {why}")


class ClientProcesses:
    """The clients' processes, which end with this one."""

    def __init__(self) -> None:
        self._joining: Header = {}
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def begin(self, joining: Header, num_clients: int) -> None:
        """Starts all clients."""
        self._joining = joining
        for client in range(num_clients):
            self.start(client)

    def start(self, client: int) -> None:
        """Starts the process of a client, in place of one that it had."""
        if client in self._running:
            _end(self._running[client])
        found = subprocess.Popen(
            [sys.executable, "-m", "stalesim.simulator.extras.testbed.client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert found.stdin is not None
        joining = json.dumps({**self._joining, "client": client}) + "\n"
        with contextlib.suppress(OSError):  # it has ended, which is seen
            found.stdin.write(joining.encode())
            found.stdin.flush()
        self._running[client] = found

    def ended(self) -> list[int]:
        """Returns the clients whose processes have ended."""
        return [c for c, found in self._running.items() if found.poll() is not None]

    def end_of(self, client: int) -> str:
        """Returns how the process of a client has ended."""
        status = self._running[client].poll()
        if status is not None and status < 0:
            return f"was killed by signal {-status}"
        return f"has ended with status {status}"

    def runs(self, client: int) -> bool:
        """Returns whether the process of a client runs."""
        found = self._running.get(client)
        return found is not None and found.poll() is None

    def signal(self, client: int, what: signal.Signals) -> None:
        """Sends a signal to the process of a client, if it runs."""
        if self.runs(client):
            self._running[client].send_signal(what)

    def close(self, seconds: float = END_S) -> None:
        """Waits until all have ended, and kills those that do not."""
        end = time.monotonic() + seconds
        for found in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                found.wait(max(end - time.monotonic(), 0))
        for found in self._running.values():
            _end(found)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
