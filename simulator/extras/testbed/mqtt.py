"""Messages over an MQTT broker, which may restart at any time.

Topics of a run are `stalesim/RUN/up/CLIENT/TOKEN` and `stalesim/RUN/down/TOKEN`: each
process of a client draws a token, of which, with the run's secret, follows the key of
its conversation. A payload is the number of a frame, and the frame (`wire`).

A broker delivers at least once while it lives (quality of service 1), and forgets when
it ends; nothing is retained. Both sides keep messages until the other confirms them.
When a client is connected again, or `stalesim/RUN/down` announces the server, it sends
its kept messages and requests missing ones, at most once in `RETRY_S`, also where
others publish there or repeat requests. Numbers drop duplicates. Messages of others are
no frames of the conversation and are ignored.
"""

import secrets
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from .wire import Envelope, Header, Session, WireError, key_of

if TYPE_CHECKING:
    from paho.mqtt.client import Client, ConnectFlags, MQTTMessage, SocketLike
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

NUMBER = struct.Struct(">Q")
AGAIN = 2**64 - 1
"""In place of a number: the frame only confirms messages, and requests the rest."""
LOOK_S = 0.05
RETRY_S = 0.1
"""Most real seconds of a wait; least ones from one attempt to connect to the next, and
from sending again to doing so again."""
MOST = 2**28 - 2**21
"""Most bytes of a message's body: MQTT itself ends at 2^28."""


class Conversation:
    """One side of a conversation whose frames may be lost, repeated or forged.

    Args:
        secret: Secret of the run.
        client: Number of the client, from 0.
        token: Drawn by the client's process.
        most: Most bytes of a message's body.
        is_server: Which side it is.

    Attributes:
        kept: Payloads that the other side has not confirmed.
        asked: Whether they must be sent again.
    """

    def __init__(
        self, secret: bytes, client: int, token: str, most: int, *, is_server: bool
    ) -> None:
        self._session = Session(most)
        self._session.agree(key_of(secret, client, token), is_server=is_server)
        self._sent = self._come = 0
        self.kept: deque[bytes] = deque()
        self.asked, self._resent = False, -inf

    def due(self) -> bool:
        """Returns whether to send the kept messages again now, as was `asked`."""
        now = time.monotonic()
        if not self.asked or now - self._resent < RETRY_S:
            return False
        self.asked, self._resent = False, now
        return True

    def seal(self, header: Header, body: bytes = b"") -> bytes:
        """Returns a message as a payload, which is kept until the other side has it."""
        self.kept.append(self._sealed(header, body, self._sent))
        self._sent += 1
        return self.kept[-1]

    def again(self) -> list[bytes]:
        """Returns the kept messages, and a request for the other side's."""
        return [*self.kept, self._sealed({"type": "again"}, b"", AGAIN)]

    def open(self, payload: bytes) -> Envelope | None:
        """Returns a message; None if it has come before, or one before it has not.

        Raises:
            WireError: It is none of the other side.
        """
        if len(payload) < NUMBER.size:
            raise WireError("it is no message of a testbed")
        (number,) = NUMBER.unpack_from(payload)
        if number not in {self._come, AGAIN}:
            return None
        message = self._session.open_alone(payload[NUMBER.size :], number)
        (come,) = Envelope({"come": [message.header.get("come")]}, b"").numbers(
            "come", 1
        )
        while self.kept and self._sent - len(self.kept) < come:
            self.kept.popleft()
        self._come += number != AGAIN
        return message

    def _sealed(self, header: Header, body: bytes, number: int) -> bytes:
        known = header | {"come": self._come}
        return NUMBER.pack(number) + self._session.seal(known, body, number)


class Post:
    """A connection with a broker, which is made again whenever it is lost.

    Args:
        broker: Its `host` and `port`, and our `user` and `password`.
        topics: The subscriptions.
        ready: Called each time it is subscribed to.

    Attributes:
        arrived: Topics and payloads.
        away_since: Real moment from which on it has not been connected; None if it is.
        trouble: Why not, as far as is known.
    """

    def __init__(
        self, broker: Header, topics: list[str], ready: Callable[[], None]
    ) -> None:
        self._broker, self._topics, self._ready = broker, topics, ready
        self._client: Client | None = None
        self.arrived: deque[tuple[str, bytes]] = deque()
        self.away_since: float | None = time.monotonic()
        self.trouble = "no answer"

    def poll(self, seconds: float) -> None:
        """Waits for messages, at most for some real seconds."""
        was_away = self.away_since is not None
        try:
            client = self._client = self._client or self._connect()
            if client.loop(max(seconds, 0)):
                raise ConnectionError(self.trouble)
        except OSError as error:
            self.trouble = str(error)
            self._client = None
            if not was_away:
                self.away_since = time.monotonic()
            time.sleep(min(max(seconds, 0), RETRY_S))
        else:
            if was_away and self.away_since is None:
                self._ready()

    def publish(self, topic: str, payload: bytes) -> None:
        """Publishes, if it is connected."""
        if self.away_since is None and self._client is not None:
            self._client.publish(topic, payload, qos=1)

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.disconnect()

    def _connect(self) -> "Client":
        """Begins a connection, which keeps nothing of the last one, and returns it."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, secrets.token_hex(11))
        if "user" in self._broker:
            client.username_pw_set(self._broker["user"], self._broker["password"])
        client.max_inflight_messages_set(0)  # without bound: they are few
        client.on_socket_open = _send_at_once
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed
        client.on_message = self._arrives
        client.connect(self._broker["host"], self._broker["port"])
        return client

    def _connected(
        self,
        client: "Client",
        user: object,
        flags: "ConnectFlags",
        code: "ReasonCode",
        _: "Properties | None",
    ) -> None:
        self.trouble = str(code) if code.is_failure else "it has gone"
        if not code.is_failure:
            client.subscribe([(topic, 1) for topic in self._topics])

    def _arrives(self, client: "Client", user: object, message: "MQTTMessage") -> None:
        try:
            topic = message.topic
        except UnicodeError:
            topic = ""  # some brokers pass on what is no text
        self.arrived.append((topic, bytes(message.payload)))

    def _subscribed(self, *_: object) -> None:
        self.away_since = None


def _send_at_once(client: "Client", user: object, opened: "SocketLike") -> None:
    assert isinstance(opened, socket.socket)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class MqttChannel:
    """A client's conversation with the server over a broker."""

    def __init__(
        self, broker: Header, run: str, secret: bytes, client: int, most: int
    ) -> None:
        token = secrets.token_hex(16)
        self._up, self._all = f"{run}/up/{client}/{token}", f"{run}/down"
        self._talk = Conversation(secret, client, token, most, is_server=False)
        topics = [f"{run}/down/{token}", self._all]
        self._post = Post(broker, topics, self._ask_again)
        self._talk.seal({"type": "here"})  # is sent as soon as it is connected

    def wait(self, seconds: float | None) -> Envelope | None:
        """Returns the next message; None if none has come in some real seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        while (message := self._next()) is None:
            if self._talk.due():
                for payload in self._talk.again():
                    self._post.publish(self._up, payload)
            left = LOOK_S if end is None else end - time.monotonic()
            if left <= 0:
                return None
            self._post.poll(min(left, LOOK_S) if self._talk.asked else left)
        return message

    def send(self, header: Header, body: bytes = b"") -> None:
        """Sends a message."""
        self._post.publish(self._up, self._talk.seal(header, body))

    def _next(self) -> Envelope | None:
        while self._post.arrived:
            topic, payload = self._post.arrived.popleft()
            if topic == self._all:
                self._ask_again()
                continue
            try:
                message = self._talk.open(payload)
            except WireError:
                continue  # a stranger's; the server says such things
            if message is not None:
                return message
        return None

    def _ask_again(self) -> None:
        self._talk.asked = True
