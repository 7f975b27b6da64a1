"""What is published of the text that ships, and where it lies."""

import bz2
import hashlib
from pathlib import Path

from ...config.errors import DataError
from ...storage.published import Published

NAME = "tinyshakespeare"
FILE = Path(__file__).with_name(f"{NAME}.txt.bz2")
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
"""Of the 1,115,394 bytes of text, byte for byte those that are published."""

PUBLISHED = Published(
    origin="github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt, all of it "
    f"(sha256:{SHA256})",
    licence="public domain (William Shakespeare, died 1616)",
    bundled="stalesim",
)


def shipped() -> str:
    """Returns the text that ships.

    Raises:
        DataError: Its file is missing or damaged.
    """
    try:
        content = bz2.decompress(FILE.read_bytes())
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{FILE} must be the text that comes with stalesim, got: {error}; install "
            "stalesim again"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise DataError(
            f"{FILE} must hold the text with the SHA-256 {SHA256}, got {found}; "
            "install stalesim again"
        )
    return content.decode("ascii")
