"""The server's side of conversations over an MQTT broker, its own or another."""

import base64
import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from typing_extensions import override

from ...parts.errors import UserError, shown
from ...parts.extras import extra
from .fleet import GONE, LINES, Channels, Received
from .mqtt import LOOK_S, MOST, RETRY_S, Conversation, Post
from .wire import Header, WireError

START = "start"
CREDENTIALS = "STALESIM_BROKER"
"""Environment variable: `USER:PASSWORD`, where a broker requires them."""
CONNECT_S = 10.0
AWAY_S = 30.0
"""Real seconds in which a broker must answer at first, and be there again later."""
START_S = 30.0
"""Real seconds in which a broker of our own must have started."""
USER = "stalesim"
SBIN = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")
"""Where mosquitto is installed, which is on no user's path."""
MORTAL = """\
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes a program that ends with the process that has started it."""
CONFIG = """\
listener {port} 127.0.0.1
allow_anonymous false
password_file {users}
set_tcp_nodelay true
max_queued_messages 0
user root
"""
"""As root it would otherwise become a user that may not read the password."""


class BrokerLost(UserError):  # noqa: N818
    """The broker does not come back."""


def address_of(text: str) -> Header:
    """Returns a broker's address, written as `HOST:PORT`, and our credentials for it.

    That is no option, since commands are written down.

    Raises:
        UserError: It was written otherwise.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UserError(
            f"--broker must be start or HOST:PORT, got {shown(text)}; correct it"
        )
    user, colon, password = os.environ.get(CREDENTIALS, "").partition(":")
    login = {"user": user, "password": password} if colon else {}
    return {"host": host, "port": int(port), **login}


class MqttChannels(Channels):
    """Conversations with all clients over a broker, all in one thread.

    Raises:
        UserError: It is not there, or does not let us in.
    """

    def __init__(
        self,
        broker: str,
        secret: bytes,
        num_clients: int,
        most: int,
        say: Callable[[str], None],
        ended: Callable[[], Iterable[int]],
    ) -> None:
        extra("paho.mqtt.client", "testbed", "--broker")
        if most > MOST:
            raise UserError(
                f"a message over a broker must be at most {MOST} bytes, got {most}; "
                f"leave --broker out"
            )
        self._secret, self._num_clients, self._most = secret, num_clients, most
        self._say, self._lines, self._ended = say, 0, ended
        self._looked = time.monotonic()
        self._run = f"stalesim/{secrets.token_hex(8)}"
        self._of_token: dict[str, tuple[int, Conversation]] = {}
        self._tokens: dict[int, str] = {}
        self._over: set[str] = set()
        self._own = Mosquitto() if broker == START else None
        self._address = self._own.address if self._own else address_of(broker)
        self._post = Post(self._address, [f"{self._run}/up/#"], self._returned)
        try:
            self._arrive_at_broker()
        except BaseException:
            self.close()
            raise

    @property
    @override
    def joining(self) -> Header:
        return {"broker": self._address, "run": self._run}

    @override
    def poll(self, seconds: float) -> Received:
        received: Received = []
        self._post.poll(min(max(seconds, 0), LOOK_S))
        while self._post.arrived:
            self._take(*self._post.arrived.popleft(), received)
        for token, (_, talk) in self._of_token.items():
            for kept in talk.kept if talk.due() else ():
                self._post.publish(f"{self._run}/down/{token}", kept)
        now, away = time.monotonic(), self._post.away_since
        if away is not None:
            if self._own is not None:
                self._own.keep()
            if now - away > AWAY_S:
                raise BrokerLost(
                    f"{self._name} must be there, but has been away for {AWAY_S:g} "
                    f"seconds ({self._post.trouble}); start it again, and then this run"
                )
        if now - self._looked > LOOK_S:
            self._looked = now
            for client in self._ended():
                self._leave(client, received)
        return received

    @override
    def send(self, client: int, header: Header, body: bytes = b"") -> None:
        token = self._tokens.get(client)
        if token is not None:
            payload = self._of_token[token][1].seal(header, body)
            self._post.publish(f"{self._run}/down/{token}", payload)

    @override
    def drop(self, client: int, why: str) -> None:
        self.send(client, {"type": "end"})
        self._leave(client, [])
        self._refuse(why)

    @override
    def close(self) -> None:
        self._post.close()
        if self._own is not None:
            self._own.close()

    @property
    def _name(self) -> str:
        return f"the broker at {self._address['host']}:{self._address['port']}"

    def _arrive_at_broker(self) -> None:
        # One of our own has to start first.
        end = time.monotonic() + (CONNECT_S if self._own is None else START_S)
        while self._post.away_since is not None:
            if time.monotonic() > end:
                raise UserError(
                    f"{self._name} must let us in, but does not "
                    f"({self._post.trouble}); start it, or correct --broker or "
                    f"{CREDENTIALS}"
                )
            self._post.poll(RETRY_S)

    def _returned(self) -> None:
        """Lets clients send again what may have been lost meanwhile."""
        self._post.publish(f"{self._run}/down", b"")

    def _take(self, topic: str, payload: bytes, received: Received) -> None:
        client, token = self._sender(topic)
        if token in self._over or client is None:
            return
        owner, talk = self._of_token.get(token, (client, None))
        if client != owner:
            self._refuse("its topic is that of another client")
            return
        is_new = talk is None
        if talk is None:
            how = self._secret, client, token, self._most
            talk = Conversation(*how, is_server=True)
        try:
            message = talk.open(payload)
        except WireError as error:
            self._refuse(str(error))
            return
        if message is None or (is_new and message.header["type"] != "here"):
            return
        if is_new:
            self._leave(client, received)
            self._of_token[token], self._tokens[client] = (client, talk), token
        if message.header["type"] == "again":
            talk.asked = True
        else:
            received.append((client, message))

    def _sender(self, topic: str) -> tuple[int | None, str]:
        token, n = "", self._num_clients
        with contextlib.suppress(ValueError):
            *_, number, token = topic.split("/")
            if str(client := int(number)) == number and client in range(n):
                return client, token
        self._refuse("its topic is none of this run")
        return None, token

    def _leave(self, client: int, received: Received) -> None:
        token = self._tokens.pop(client, None)
        if token is not None:
            del self._of_token[token]
            self._over.add(token)
            received.append((client, GONE))

    def _refuse(self, why: str) -> None:
        if self._lines < LINES:
            self._lines += 1
            self._say(f"a message was refused: {why}")


class Mosquitto:
    """A broker at 127.0.0.1 with one user.

    Raises:
        UserError: It is not installed.
    """

    def __init__(self) -> None:
        path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
        program = shutil.which("mosquitto", path=path)
        if program is None:
            raise UserError(
                "--broker start must find mosquitto, which is not installed; install "
                "it (apt install mosquitto), or name a broker that runs (HOST:PORT)"
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        password = secrets.token_urlsafe(16)
        own = {"user": USER, "password": password}
        self.address: Header = {"host": "127.0.0.1", "port": port, **own}
        self._folder = tempfile.TemporaryDirectory(prefix="stalesim-")
        users = Path(self._folder.name, "users")
        users.write_text(f"{USER}:{_stored(password)}\n")
        config = Path(self._folder.name, "conf")
        config.write_text(CONFIG.format(port=port, users=users))
        self._command = [sys.executable, "-c", MORTAL, program, "-c", str(config)]
        self.process = self._started()

    def keep(self) -> None:
        """Starts it again if it has ended."""
        if self.process.poll() is not None:
            self.process = self._started()

    def close(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def _started(self) -> subprocess.Popen[bytes]:
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            self._command, stdin=nowhere, stdout=nowhere, stderr=nowhere
        )


def _stored(password: str) -> str:
    salt = secrets.token_bytes(12)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    parts = (base64.b64encode(part).decode() for part in (salt, found))
    return "$7$101$" + "$".join(parts)
