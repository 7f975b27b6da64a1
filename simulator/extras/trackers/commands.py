"""Commands that hand a study to other programs: `export` and `track`."""

from pathlib import Path
from typing import Annotated

import typer

from ...cli import console
from ...cli.console import err, out
from ...parts.errors import counted

app = typer.Typer()


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    target: Annotated[str, typer.Option("--to", help="csv or tensorboard")],
    into: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="new folder; by default export-TARGET in the study's"
        ),
    ] = None,
) -> None:
    """Writes a study for other programs, into a folder; uploads nothing."""
    from ...files import study as trace
    from . import exporter

    study = trace.load(folder)
    into = into or folder / f"export-{target}"
    left_out = exporter.export(study, target, into)
    for how, number in left_out.items():
        which = counted(number, "run that is", "runs that are")
        err.say(f"Left out: {which} {how}", style="yellow")
    written = len(study.manifest["runs"]) - left_out.total()
    out.say(f"Exported: {into} ({counted(written, 'run')})")


@app.command()
def track(folder: Annotated[Path, typer.Argument(help="folder of a study")]) -> None:
    """Logs a running study's evaluations for TensorBoard; uploads nothing.

    They are in FOLDER/track-tensorboard, which is replaced. The command ends when the
    study is complete.
    """
    from . import following

    with console.follow("Tracking", folder, folder / following.FOLDER):
        following.follow(folder)
