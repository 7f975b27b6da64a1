"""The command that hands a study to other programs: `export`."""

from pathlib import Path
from typing import Annotated

import typer

from ...cli.console import err, out
from ...parts.errors import counted

app = typer.Typer()


@app.command(rich_help_panel="Share")
def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a study")],
    target: Annotated[str, typer.Option("--to", help="csv or tensorboard")],
    into: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Default: FOLDER/export-TARGET"
        ),
    ] = None,
) -> None:
    """Export a study as CSV or for TensorBoard; uploads nothing."""
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
