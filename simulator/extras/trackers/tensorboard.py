"""A study as event files of TensorBoard."""

from pathlib import Path
from types import ModuleType
from typing import Any

from ....analysis.frames import Study
from ...parts.extras import extra
from .records import RunRecord, records, values


def write(study: Study, into: Path) -> None:
    """Writes a folder of event files for each run that has ended.

    The step of a scalar is the number of commits, its wall time is the virtual time, so
    that TensorBoard's relative axis shows virtual seconds. Values known only at the end
    are named `final/NAME`. The resolved scenario is in the hyper-parameters, the tags
    are text. Event files hold scalars in 32 bits: large counts are rounded.
    """
    library, summaries = _library("tensorboardX"), _library("tensorboardX.summary")
    for record in records(study):
        writer = library.SummaryWriter(logdir=str(into / record.name))
        names = [name for name, of in record.points.items() if of.notna().any()]
        # TensorBoard's own form of hyper-parameters; `add_hparams` makes a folder.
        about = summaries.hparams(dict(record.config), dict.fromkeys(names, 0))
        for summary in about:
            writer.file_writer.add_summary(summary, global_step=0, walltime=0.0)
        for name, value in record.tags.items():
            # TensorBoard takes text for Markdown, where an indented line is literal.
            literal = "\n".join(f"    {line}" for line in value.splitlines() or [""])
            writer.add_text(name, literal, global_step=0, walltime=0.0)
        _write_scalars(writer, record)
        writer.close()


def _write_scalars(writer: Any, record: RunRecord) -> None:
    step, time = 0, 0.0
    for row in record.points.to_dict("records"):
        step, time = int(row["commits"]), float(row["time"])
        for name, value in values(row).items():
            writer.add_scalar(name, value, global_step=step, walltime=time)
    step = int(record.final.get("commits", step))
    time = record.final.get("virtual_s", time)
    for name, value in record.final.items():
        writer.add_scalar(f"final/{name}", value, global_step=step, walltime=time)


def _library(module: str) -> ModuleType:
    return extra(module, "tensorboard", "--to tensorboard")
