"""The log of a testbed: a row per job that has ended, written as it ends."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...config.errors import UserError
from ...timeline import NO_COMMIT, Outcome

COLUMNS = (
    *("client", "read_time", "begun_time", "computed_time", "sent_time"),
    *("arrived_time", "applied_time", "outcome", "read_version", "commit"),
)
"""Those of the log of any real system."""


class Log:
    """The log of one run, a CSV file; each row is with the system when it is written.

    Args:
        path: File to write.

    Raises:
        UserError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"{path}: cannot be written: {error.strerror}; choose a folder by --out"
            ) from None
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(COLUMNS)
        self._file.flush()

    def add(self, entry: Sequence[int], times: Sequence[Any], now: float) -> None:
        """Writes a job that has ended.

        Args:
            entry: Client, job, whether it is a refresh, read version, commit, outcome
                and uploads, as a recorder has them.
            times: When it was read, started, computed, sent, arrived and applied,
                below 0 for never.
            now: Present, virtual seconds.
        """
        client, _, is_refresh, read_version, commit, outcome, _ = entry
        if is_refresh:
            return
        read, began, computed, sent, arrived, applied = times
        word = "lost"
        if outcome == Outcome.REJECTED or commit != NO_COMMIT:
            word = "rejected" if commit == NO_COMMIT else "applied"
        arrived = now if arrived < 0 else arrived  # of a lost one: when it was given up
        stages = (arrived if t < 0 else t for t in (began, computed, sent))
        is_applied = word == "applied"
        row = [client + 1, read, *stages, arrived]
        row += [applied if is_applied else "", word, read_version]
        self._rows.writerow([*row, commit if is_applied else ""])
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
