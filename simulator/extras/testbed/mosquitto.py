"""An installed mosquitto, started for one run at 127.0.0.1, with its own password."""

import base64
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from ...config.errors import UserError

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


class Mosquitto:
    """A broker at 127.0.0.1 that knows one user.

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
        self.address = {"host": "127.0.0.1", "port": port}
        self.address |= {"user": USER, "password": password}
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
    """Returns a password as mosquitto stores it."""
    salt = secrets.token_bytes(12)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    parts = (base64.b64encode(part).decode() for part in (salt, found))
    return "$7$101$" + "$".join(parts)
