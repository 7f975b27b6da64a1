"""A study as event files of TensorBoard."""

from pathlib import Path
from typing import Any

from ...parts.extras import extra
from .records import RunRecord


class TensorBoard:
    """A folder of event files per run; `tensorboard --logdir FOLDER` shows them.

    The step of a scalar is the number of commits, its wall time is the virtual time, so
    that TensorBoard's relative axis shows virtual seconds. What is known at the end
    alone is called `final/NAME`. The resolved scenario stands as hyper-parameters, the
    tags as text. Event files hold scalars in 32 bits: large counts are rounded.

    Args:
        folder: Folder, in which one is made for each run.
        study: Name of the study, which no event file has.

    Raises:
        UserError: The library tensorboardX is not installed.
    """

    def __init__(self, folder: Path, study: str = "") -> None:
        _library("tensorboardX")
        _library("tensorboardX.summary")
        self._folder = folder

    def start(self, record: RunRecord) -> "_RunFiles":
        """Starts a run."""
        return _RunFiles(self._folder / record.name)

    def close(self) -> None:
        """Does nothing: each run is closed by itself."""


class _RunFiles:
    def __init__(self, folder: Path) -> None:
        self._writer: Any = _library("tensorboardX").SummaryWriter(logdir=str(folder))
        self._last = 0, 0.0

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        for name, value in measured.items():
            self._writer.add_scalar(name, value, global_step=commits, walltime=time)
        self._last = commits, time

    def flush(self) -> None:
        self._writer.flush()

    def finish(self, record: RunRecord) -> None:
        summaries, points = _library("tensorboardX.summary"), record.points
        names = [name for name in points if points[name].notna().any()]
        # TensorBoard's own form of hyper-parameters; `add_hparams` makes a folder.
        about = summaries.hparams(dict(record.config), dict.fromkeys(names, 0))
        for summary in about:
            self._writer.file_writer.add_summary(summary, global_step=0, walltime=0.0)
        for name, value in record.tags.items():
            # TensorBoard takes text for Markdown, where an indented line is literal.
            literal = "\n".join(f"    {line}" for line in value.splitlines() or [""])
            self._writer.add_text(name, literal, global_step=0, walltime=0.0)
        step, time = self._last
        step = int(record.final.get("commits", step))
        time = record.final.get("virtual_s", time)
        for name, value in record.final.items():
            final = {"global_step": step, "walltime": time}
            self._writer.add_scalar(f"final/{name}", value, **final)
        self._writer.close()

    def abandon(self) -> None:
        self._writer.close()


def _library(module: str) -> Any:
    return extra(module, "tensorboard", "--to tensorboard")
