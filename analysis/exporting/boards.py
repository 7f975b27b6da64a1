"""What an experiment tracker receives of a run, during it or afterwards."""

from typing import Any, Protocol

from .records import RunRecord, values


class RunBoard(Protocol):
    """One run of a study, as a tracker takes it."""

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        """Takes what was measured at a point of the run.

        Args:
            commits: Step.
            time: Virtual seconds.
            measured: Values by name.
        """
        ...

    def flush(self) -> None:
        """Lets what was taken so far be seen."""
        ...

    def finish(self, record: RunRecord) -> None:
        """Takes what is known at the end of the run alone.

        Args:
            record: The whole run; its points were logged.
        """
        ...

    def abandon(self) -> None:
        """Ends the run without results."""
        ...


class Board(Protocol):
    """A tracker's folder."""

    def start(self, record: RunRecord) -> RunBoard:
        """Starts a run.

        Args:
            record: The run, of which points and end need not be known yet.
        """
        ...

    def close(self) -> None:
        """Ends the use of the folder."""
        ...


def write_whole(board: Board, record: RunRecord) -> None:
    """Writes a run that has ended."""
    run = board.start(record)
    for row in record.points.to_dict("records"):
        log_row(run, row, values(row))
    run.finish(record)


def log_row(run: RunBoard, row: Any, measured: dict[str, float]) -> None:
    """Logs values at the point of a row of `RunRecord.points`."""
    run.log(int(row["commits"]), float(row["time"]), measured)
