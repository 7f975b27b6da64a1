"""Downloads of data sets: the only part of the program that reaches a network."""

import errno
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..files.reading import files
from ..files.reading.published import PublishedFile, checksums
from ..parts.errors import DataError

RETRIES = 2
"""Times that a download is repeated from a server before the next one is tried."""
TIMEOUT_S = 30.0
"""Real seconds without an answer after which a server is given up."""
PIECE = 1024
"""Bytes that are written at once."""
MOST_BYTES = files.LARGEST
"""Bytes of a file whose size is not known."""
EXTRA = "pip install 'stalesim[data]'"


class TooLargeError(Exception):
    """A server sends more than the file has."""


class Arrival:
    """Counts what arrives; it stands where pooch would draw a progress bar.

    Args:
        size: Bytes that are expected, None if not known.
        report: Called with the fraction that has arrived.
    """

    def __init__(self, size: int | None, report: Callable[[float], None]) -> None:
        self.most = size or MOST_BYTES
        self.total: int = size or 0
        """Bytes in all; pooch sets it to what the server says."""
        self.arrived = 0
        self.ended = False
        self.report = report

    def begin(self) -> None:
        """Counts from nothing, for a new attempt."""
        self.arrived, self.ended = 0, False

    def update(self, size: int) -> None:
        """Counts some more bytes.

        Raises:
            TooLargeError: There are more than the file has.
        """
        if self.ended:
            return
        self.arrived += size
        # The last piece is counted as a whole one.
        if self.arrived > self.most + PIECE:
            raise TooLargeError
        self.report(min(self.arrived / self.total, 1.0) if self.total else 0.0)

    def reset(self) -> None:
        """Is called after the last byte; pooch then counts all of them once more."""
        self.ended = True

    def close(self) -> None:
        """Is called at the end."""


def fetch(file: PublishedFile, folder: Path, report: Callable[[float], None]) -> bool:
    """Downloads a file into a folder, unless it is there; verifies its checksum.

    It is downloaded under another name and renamed when it is whole and right, so that
    an interruption leaves nothing that could be mistaken for it. A download that fails
    is repeated, then tried from the next of the file's servers.

    Args:
        file: A file with at least one URL.
        folder: Folder of its set.
        report: Called with the fraction that has arrived.

    Returns:
        Whether anything was downloaded.

    Raises:
        DataError: pooch is not installed, another file is there, the disk is full, or
            no server has the file as it should be.
    """
    path = folder / file.name
    if path.exists():
        if file.checksum in checksums(path, [file.checksum]):
            return False
        raise DataError(
            f"{path} must have the checksum {file.checksum} or not exist, got "
            f"{_size(path)} of something else; move it away and get the set again"
        )
    _prepare(folder, file)
    said: list[str] = []
    for url in file.urls:
        arrival = Arrival(file.size, report)
        problem = _attempt(url, path, file, arrival)
        if not problem:
            return True
        said.append(f"{urlsplit(url).netloc}: {problem}")
    raise DataError(
        f"{file.name} must be downloaded whole, got {'; '.join(said)}; try again "
        f"later, or put the file into {folder} yourself"
    )


def _prepare(folder: Path, file: PublishedFile) -> None:
    """Makes the folder; refuses a disk that the file does not fit on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise _unwritable(folder, error) from error
    if free < (file.size or 0):
        raise DataError(
            f"{folder} must have {files.shown(file.size or 0)} free for {file.name}, "
            f"got {files.shown(free)}; free some, or set {files.FOLDER} to a folder "
            "on another disk"
        )


def _attempt(url: str, path: Path, file: PublishedFile, arrival: Arrival) -> str:
    """Downloads a file from a server, and says why it failed, "" if it did not."""
    try:
        # They are an extra, because only this command needs them.
        import pooch
        import requests
    except ImportError:
        raise DataError(
            f"stalesim data get must have pooch, got an environment without it; "
            f"install it by {EXTRA}"
        ) from None
    pooch.get_logger().setLevel(logging.ERROR)
    progress: Any = arrival
    downloader = pooch.HTTPDownloader(
        progressbar=progress, chunk_size=PIECE, timeout=TIMEOUT_S
    )

    def begin(url: str, to: str, caller: object) -> None:
        arrival.begin()
        try:
            downloader(url, to, caller)
        finally:
            # pooch counts whole pieces, of which the last one is smaller.
            arrival.arrived = Path(to).stat().st_size

    counted: Any = begin
    try:
        pooch.create(
            path.parent,
            "",
            registry={file.name: file.checksum},
            urls={file.name: url},
            retry_if_failed=RETRIES,
        ).fetch(file.name, downloader=counted)
    # It is a kind of OSError as well, and comes from the network.
    except requests.RequestException as error:
        return _why(error, arrival, file)
    except TooLargeError:
        return f"more than the {arrival.most:,} bytes of the file"
    except ValueError:
        return _wrong(arrival, file)
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    return ""


def _why(error: object, arrival: Arrival, file: PublishedFile) -> str:
    import requests

    answer = getattr(error, "response", None)
    if isinstance(error, requests.HTTPError) and answer is not None:
        return f"the server answers {answer.status_code} {answer.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer in {TIMEOUT_S:g} s"
    if arrival.arrived or isinstance(error, requests.exceptions.ChunkedEncodingError):
        return f"the connection ended after {_of(arrival, file)}"
    if isinstance(error, requests.ConnectionError):
        return "no connection; is there a network?"
    return " ".join(str(error).split())


def _wrong(arrival: Arrival, file: PublishedFile) -> str:
    if file.size is not None and arrival.arrived < file.size:
        return f"truncated, {_of(arrival, file)}"
    return f"{_of(arrival, file)} with another checksum than {file.checksum}"


def _of(arrival: Arrival, file: PublishedFile) -> str:
    whole = f" of {file.size:,}" if file.size is not None else ""
    return f"{arrival.arrived:,}{whole} bytes"


def _size(path: Path) -> str:
    return f"{path.stat().st_size:,} bytes"


def _unwritable(folder: Path, error: OSError) -> DataError:
    says = error.strerror or " ".join(str(error).split())
    remedy = "free some space" if error.errno == errno.ENOSPC else "check it"
    return DataError(
        f"{folder} must be a folder that can be written, got: {says}; {remedy}, or set "
        f"{files.FOLDER} to another one"
    )
