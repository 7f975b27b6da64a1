"""A broker of a run's own, at 127.0.0.1 with a password drawn for it."""

import base64
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from ..config.errors import UserError

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


class OwnBroker:
    """A broker at 127.0.0.1 that knows one user: mosquitto, or else amqtt.

    Raises:
        UserError: Neither is installed.
    """

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        password = secrets.token_urlsafe(16)
        self.address = {"host": "127.0.0.1", "port": port}
        self.address |= {"user": USER, "password": password}
        path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
        mosquitto = shutil.which("mosquitto", path=path)
        self._folder = tempfile.TemporaryDirectory(prefix="stalesim-")
        users, config = (
            Path(self._folder.name, "users"),
            Path(self._folder.name, "conf"),
        )
        if mosquitto is not None:
            hashed, written = _of_mosquitto(port, password, users)
            command = [mosquitto, "-c", str(config)]
        elif importlib.util.find_spec("amqtt") is not None:
            hashed, written = _of_amqtt(port, password, users)
            module = "amqtt.scripts.broker_script"
            command = [sys.executable, "-m", module, "-c", str(config)]
        else:
            self._folder.cleanup()
            raise UserError(
                "--broker start must find a broker, but neither mosquitto nor amqtt is "
                "installed; install one (apt install mosquitto), or name one that runs"
            )
        users.write_text(f"{USER}:{hashed}\n")
        config.write_text(written)
        self._command = [sys.executable, "-c", MORTAL, *command]
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


def _of_mosquitto(port: int, password: str, users: Path) -> tuple[str, str]:
    """Returns a password as mosquitto stores it, and its configuration.

    As root it would become a user that may not read this.
    """
    salt = secrets.token_bytes(12)
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    parts = (base64.b64encode(part).decode() for part in (salt, found))
    config = f"""\
listener {port} 127.0.0.1
allow_anonymous false
password_file {users}
set_tcp_nodelay true
max_queued_messages 0
user root
"""
    return "$7$101$" + "$".join(parts), config


def _of_amqtt(port: int, password: str, users: Path) -> tuple[str, str]:
    """Returns a password as amqtt stores it, and its configuration."""
    from pwdlib.hashers.argon2 import Argon2Hasher

    cheap = Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1)
    authentication = "amqtt.plugins.authentication.FileAuthPlugin"
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {authentication: {"password_file": str(users)}},
    }
    return cheap.hash(password), json.dumps(config)  # which is YAML as well
