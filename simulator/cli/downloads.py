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
"""Longest wait for an answer of a server, real seconds."""
PIECE = 4096
"""Bytes that are written at once."""
EXTRA = "pip install 'stalesim[data]'"


class TooLargeError(Exception):
    """A server sends more than the file has."""


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
            f"{path.stat().st_size:,} bytes of something else; move it away and get "
            f"the set again"
        )
    _prepare(folder, file)
    said: list[str] = []
    for url in file.urls:
        problem = _attempt(url, path, file, report)
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


def _attempt(
    url: str, path: Path, file: PublishedFile, report: Callable[[float], None]
) -> str:
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
    most, arrived = file.size or files.LARGEST, 0

    def download(url: str, to: str, caller: object) -> None:
        nonlocal arrived
        arrived = 0
        with (
            requests.get(url, stream=True, timeout=TIMEOUT_S) as answer,
            Path(to).open("wb") as target,
        ):
            answer.raise_for_status()
            size = file.size or int(answer.headers.get("Content-Length", 0)) or most
            for piece in answer.iter_content(PIECE):
                arrived += target.write(piece)
                if arrived > most:
                    raise TooLargeError
                report(min(arrived / size, 1.0))

    streaming: Any = download  # pooch's stubs ask for other names

    def of_all() -> str:
        whole = f" of {file.size:,}" if file.size is not None else ""
        return f"{arrived:,}{whole} bytes"

    try:
        pooch.create(
            path.parent,
            "",
            registry={file.name: file.checksum},
            urls={file.name: url},
            retry_if_failed=RETRIES,
        ).fetch(file.name, downloader=streaming)
    except requests.HTTPError as error:
        told = error.response
        assert told is not None  # it is what says so
        return f"the server answers {told.status_code} {told.reason}"
    except requests.Timeout:
        return f"no answer in {TIMEOUT_S:g} s"
    # It is a kind of OSError as well, and comes from the network.
    except requests.RequestException as error:
        if arrived or isinstance(error, requests.exceptions.ChunkedEncodingError):
            return f"the connection ended after {of_all()}"
        if isinstance(error, requests.ConnectionError):
            return "no connection; is there a network?"
        return " ".join(str(error).split())
    except TooLargeError:
        return f"more than the {most:,} bytes of the file"
    except ValueError:
        if file.size is not None and arrived < file.size:
            return f"truncated, {of_all()}"
        return f"{of_all()} with another checksum than {file.checksum}"
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    return ""


def _unwritable(folder: Path, error: OSError) -> DataError:
    says = error.strerror or " ".join(str(error).split())
    remedy = "free some space" if error.errno == errno.ENOSPC else "check it"
    return DataError(
        f"{folder} must be a folder that can be written, got: {says}; {remedy}, or set "
        f"{files.FOLDER} to another one"
    )
