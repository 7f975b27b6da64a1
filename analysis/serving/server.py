"""Answers a browser on this machine; serves one study, and no other file."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from ...simulator.config.errors import StudyError, UserError
from ...simulator.config.text import one_line
from .pieces import PIECES, Pieces, script, style_sheet, tag

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8520
MOST_CONNECTIONS, WAITING = 32, 128
"""Connections that are answered at once, a thread each; and that wait for being so."""
PATIENCE_S = 2.0
"""Real seconds that a connection waits for a thread."""
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
POLICY = (
    "default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

Answer = tuple[str, str]
"""Media type and content."""


class PageServer:
    """A study's page on the loopback address, as long as it is served.

    Nothing but the page and its pieces can be asked for: addresses are names in a
    table, never paths of files. Other machines cannot reach it, and pages of other
    sites cannot read it under a name of theirs.

    Args:
        folder: Folder of a study, finished or under way; it is only read.
        port: Port; 0 for one that is free.

    Raises:
        StudyError: There is no study in the folder.
        UserError: The port is taken, or none.
    """

    def __init__(self, folder: str | Path, port: int = DEFAULT_PORT) -> None:
        self._pieces = Pieces(Path(folder))
        self._pieces.page()
        try:
            self._server = _Listener((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise UserError(
                f"--port must be a free port, got {port} ({why}); give another one, or "
                f"0 for any"
            ) from None
        self._server.answers = self._answers

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Answers until it is stopped, or interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self._server.server_close()
            self._pieces.close()

    def stop(self) -> None:
        """Ends `serve`, which another thread is in."""
        self._server.ended = True
        self._server.shutdown()

    @cached_property
    def _answers(self) -> dict[str, Callable[[], Answer]]:
        """What each address is answered by."""
        found: dict[str, Callable[[], Answer]] = {
            "/": lambda: (HTML, self._pieces.page()),
            "/style.css": lambda: ("text/css; charset=utf-8", style_sheet()),
            "/script.js": lambda: ("text/javascript; charset=utf-8", script()),
            "/timeline.json": self._trace_events,
        }
        for name in ("progress", *(piece.name for piece in PIECES)):
            found[f"/pieces/{name}"] = lambda name=name: (
                HTML,
                self._pieces.piece(name),
            )
        return found

    def _trace_events(self) -> Answer:
        events = self._pieces.trace_events()
        if events is None:
            raise StudyError("the timeline must be of a run that has ended; wait")
        return "application/json", json.dumps(events)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = WAITING
    answers: dict[str, Callable[[], Answer]]
    ended = False
    """Whether connections that a browser keeps are answered no longer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Gives a connection a thread; without a free one it is sent away."""
        patience = PATIENCE_S
        while not self._free.acquire(timeout=0.2):
            patience -= 0.2
            if self.ended or patience <= 0:
                with suppress(OSError):
                    request.sendall(BUSY)
                self.shutdown_request(request)
                return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Passes over a browser that has gone in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = 10
    """Real seconds after which a connection that asks for nothing is closed."""

    def do_GET(self) -> None:
        """Answers one request."""
        if self.server.ended:
            self.close_connection = True
            return
        if not self._is_from_here():
            self._send(HTTPStatus.FORBIDDEN, TEXT, f"ask for {LOOPBACK} itself\n")
            return
        answer = self.server.answers.get(self.path.split("?")[0])
        if answer is None:
            self._send(HTTPStatus.NOT_FOUND, TEXT, "there is no such page\n")
            return
        try:
            kind, content = answer()
        except Exception as error:  # one answer less, and the server continues
            said = f"{one_line(str(error))}\n"
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, said)
            return
        self._send(HTTPStatus.OK, kind, content)

    do_HEAD = do_GET  # noqa: N815

    def version_string(self) -> str:
        """Returns the name of the program without its version."""
        return "stalesim"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing: a page that follows a study asks every second."""

    def _is_from_here(self) -> bool:
        """Says whether a request names this machine, not a name that leads to it.

        Source: OWASP, DNS rebinding.
        """
        port = self.server.server_address[1]
        hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        return self.headers.get("Host", "") in hosts

    def _send(self, status: HTTPStatus, kind: str, content: str) -> None:
        data = content.encode()
        mark = tag(data)
        if status is HTTPStatus.OK and self.headers.get("If-None-Match") == mark:
            status, data = HTTPStatus.NOT_MODIFIED, b""
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("ETag", mark)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
