"""A study as event files of TensorBoard."""

from pathlib import Path
from types import ModuleType

from ...parts.extras import extra
from .records import Row, RunRecord


class RunFiles:
    """The event files of one run; `tensorboard --logdir FOLDER` shows those of all.

    The step of a scalar is the number of commits, its wall time is the virtual time, so
    that TensorBoard's relative axis shows virtual seconds. Values known only at the end
    are named `final/NAME`. The resolved scenario is in the hyper-parameters, the tags
    are text. Event files hold scalars in 32 bits: large counts are rounded.
    """

    def __init__(self, folder: Path, name: str) -> None:
        writer = _library("tensorboardX").SummaryWriter
        self._writer = writer(logdir=str(folder / name))
        self._last = 0, 0.0

    def log(self, row: Row, measured: dict[str, float]) -> None:
        """Takes the measured values of a row of `RunRecord.points`."""
        commits, time = int(row["commits"]), float(row["time"])
        for name, value in measured.items():
            self._writer.add_scalar(name, value, global_step=commits, walltime=time)
        self._last = commits, time

    def finish(self, record: RunRecord) -> None:
        """Takes the values known only at the end of the run."""
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


def check_library() -> None:
    """Checks that the library tensorboardX is there."""
    _library("tensorboardX")
    _library("tensorboardX.summary")


def _library(module: str) -> ModuleType:
    return extra(module, "tensorboard", "--to tensorboard")
