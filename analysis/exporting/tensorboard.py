"""A study as event files of TensorBoard: one folder per run."""

from pathlib import Path
from typing import Any

from analysis.exporting.records import RunRecord, library, records, values
from analysis.frames import Study


def write(study: Study, folder: Path) -> None:
    """Writes a folder of event files per run; `tensorboard --logdir FOLDER` shows them.

    The step of a scalar is the number of commits, its wall time is the virtual time, so
    that TensorBoard's relative axis shows virtual seconds. What is known at the end
    alone is called `final/NAME`. The resolved scenario stands as hyper-parameters, the
    tags as text. Event files hold scalars in 32 bits: large counts are rounded.

    Args:
        study: Study with at least one run that has ended.
        folder: Empty folder.

    Raises:
        UserError: The library tensorboardX is not installed.
    """
    written = library("tensorboardX", "tensorboard")
    summaries = library("tensorboardX.summary", "tensorboard")
    for record in records(study):
        with written.SummaryWriter(logdir=str(folder / record.name)) as writer:
            _write_run(record, writer, summaries)


def _write_run(record: RunRecord, writer: Any, summaries: Any) -> None:
    names = [name for name in record.points if record.points[name].notna().any()]
    # TensorBoard's own form of hyper-parameters; `add_hparams` makes a folder for them.
    about = summaries.hparams(dict(record.config), dict.fromkeys(names, 0))
    for summary in about:
        writer.file_writer.add_summary(summary, global_step=0, walltime=0.0)
    for name, value in record.tags.items():
        # TensorBoard takes text for Markdown, in which an indented line is literal.
        literal = "\n".join(f"    {line}" for line in value.splitlines() or [""])
        writer.add_text(name, literal, global_step=0, walltime=0.0)
    step, time = 0, 0.0
    for row in record.points.to_dict("records"):
        step, time = int(row["commits"]), float(row["time"])
        for name, value in values(row).items():
            writer.add_scalar(name, value, global_step=step, walltime=time)
    step = int(record.final.get("commits", step))
    time = record.final.get("virtual_s", time)
    for name, value in record.final.items():
        writer.add_scalar(f"final/{name}", value, global_step=step, walltime=time)
