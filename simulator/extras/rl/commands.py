"""The commands of `stalesim rl`: worlds from the log of a real system."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli import printing
from ...cli.console import out
from ...cli.runs import Folder, Formats, Overrides, Plots, formats, playing

if TYPE_CHECKING:
    from ...files.study import Study

app = typer.Typer()
rl = typer.Typer(
    help="Import a log of asynchronous reinforcement learning.",
    no_args_is_help=True,
)
app.add_typer(rl, name="rl", rich_help_panel="Scenarios")


@rl.callback()
def group() -> None:
    """Keeps the name of its only command."""


@rl.command("import")
def import_(
    log: Annotated[
        Path,
        typer.Argument(help="Log (.csv, .jsonl, .parquet), a row per sample"),
    ],
    set_: Overrides = None,
    folder: Folder = None,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Import a log of samples, fit its world, simulate both.

    The log has columns sample, start_time, finish_time (seconds), tokens,
    start_version, step and step_end_time. It may have step_start_time,
    train_version, prompt, machine and outcome.
    """
    from .logs import import_samples

    forms = formats(form, plots=plots)
    with playing(folder, log.stem) as (folder, hear):
        study = import_samples(log, folder, set_ or (), hear)
    _show_fits(study)
    printing.close_world(study, None, forms)


def _show_fits(study: "Study") -> None:
    for fit in study.manifest["fits"]:
        if fit["why"]:
            out.say(
                f"{fit['key']}: {fit['says']} is refused; {fit['why']}; the log's own "
                f"values are taken",
                style="yellow",
            )
    for remark in study.manifest["remarks"]:
        out.say(f"Note: {remark}", style="yellow")
