"""Messages of a testbed: frames of JSON and raw bytes, bounded and authenticated.

Nothing but the standard library is imported, since every client does.

A frame is a fixed head, a JSON object and raw bytes; the head has the version, both
lengths and an HMAC-SHA256 of all of it and of the frame's number. A client draws a
token, of which, with the run's secret, follows the key of its conversation (`key_of`).
Over TCP its first frame says its number and the token, without an HMAC. All others have
one, so that the first of each side proves that it has the secret.
"""

import hmac
import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

Header = dict[str, Any]
"""JSON: the content of a message; `type` is always there."""
VERSION = 1
"""Of the messages; a client of another one is refused."""
MAGIC = b"ssim"
HEAD = struct.Struct(">4sHIQ32s")
SIZES = struct.Struct(">QHIQ")
MOST_HEADER = 2**20
MOST_GREETING = 512
"""Most bytes of a frame's JSON, and of one before the key is known."""
NO_MAC = bytes(32)


class WireError(ValueError):
    """What arrived is no message of this testbed."""


class Envelope(NamedTuple):
    """A message."""

    header: Header
    body: bytes

    def numbers(self, name: str, size: int) -> list[float]:
        """Returns an entry that must be a list of finite numbers.

        Raises:
            WireError: It is something else.
        """
        found = self.header.get(name)
        if isinstance(found, list) and len(found) == size:
            kinds = {type(value) for value in found}
            if kinds <= {int, float} and all(abs(value) < 1e300 for value in found):
                return [float(value) for value in found]
        raise WireError(f"{name} must be {size} numbers")


class Session:
    """One side of a conversation: seals outgoing messages, and opens incoming ones.

    Before a key is agreed upon, frames have no HMAC and only a short one is read.

    Attributes:
        most: Most bytes of an incoming message's body.
    """

    def __init__(self, most: int) -> None:
        self.most, self._buffer = most, bytearray()
        self._keys: tuple[bytes, bytes] | None = None
        self._sent = self._opened = 0

    def agree(self, key: bytes, *, is_server: bool) -> None:
        """Authenticates all frames from now on by keys that follow from one."""
        up, down = (hmac.digest(key, way, "sha256") for way in (b"up", b"down"))
        self._keys = (down, up) if is_server else (up, down)

    def seal(
        self, header: Header, body: bytes = b"", number: int | None = None
    ) -> bytes:
        """Returns a message as a frame; with a chosen number, or the next one."""
        text = json.dumps(header).encode()
        mac = NO_MAC
        if self._keys is not None:
            which = self._sent if number is None else number
            mac = _mac(self._keys[0], which, VERSION, text, body)
            self._sent += 1
        return HEAD.pack(MAGIC, VERSION, len(text), len(body), mac) + text + body

    def open(self, data: bytes) -> Iterator[Envelope]:
        """Takes up bytes; yields the messages that they complete.

        Raises:
            WireError: They are no frames of this conversation.
        """
        self._buffer += data
        while (message := self._next()) is not None:
            yield message

    def open_alone(self, data: bytes, number: int) -> Envelope:
        """Returns the message of a frame that came by itself, with its number.

        Raises:
            WireError: It is no whole frame of this conversation.
        """
        self._buffer[:] = data
        try:
            message = self._next(number)
        finally:
            self._buffer.clear()
        if message is None:
            raise WireError("it is no whole message of a testbed")
        return message

    def _next(self, number: int | None = None) -> Envelope | None:
        if len(self._buffer) < HEAD.size:
            if not MAGIC.startswith(bytes(self._buffer[: len(MAGIC)])):
                raise WireError("it is no message of a testbed")
            return None
        magic, version, num_text, num_body, mac = HEAD.unpack_from(self._buffer)
        if magic != MAGIC:
            raise WireError("it is no message of a testbed")
        if version != VERSION:
            raise WireError(f"it speaks version {version}, and we {VERSION}")
        most = (MOST_HEADER, self.most) if self._keys else (MOST_GREETING, 0)
        if num_text > most[0] or num_body > most[1]:
            raise WireError(f"a message of {num_text + num_body} bytes is too long")
        end = HEAD.size + num_text + num_body
        if len(self._buffer) < end:
            return None
        text = bytes(self._buffer[HEAD.size : HEAD.size + num_text])
        body = bytes(self._buffer[HEAD.size + num_text : end])
        del self._buffer[:end]
        if self._keys is not None:
            which = self._opened if number is None else number
            true = _mac(self._keys[1], which, version, text, body)
            self._opened += 1
            if not hmac.compare_digest(true, mac):
                raise WireError("it does not know the secret")
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            raise WireError("its header is no JSON") from None
        if not isinstance(header, dict) or not isinstance(header.get("type"), str):
            raise WireError("its header has no type")
        return Envelope(header, body)


def _mac(key: bytes, number: int, version: int, text: bytes, body: bytes) -> bytes:
    sealed = hmac.new(key, digestmod="sha256")
    sealed.update(SIZES.pack(number, version, len(text), len(body)))
    sealed.update(text)
    sealed.update(body)
    return sealed.digest()


def key_of(secret: bytes, client: int, token: str) -> bytes:
    """Returns the key of a client's conversation."""
    # JSON can say half a character.
    said = f"{client} {token}".encode(errors="surrogatepass")
    return hmac.digest(secret, said, "sha256")
