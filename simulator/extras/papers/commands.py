"""The command `attack`: images that a server recovers from probed messages."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...cli.console import out

app = typer.Typer()


@app.command(rich_help_panel="Results")
def attack(
    folder: Annotated[Path, typer.Argument(help="Folder of a study with probes")],
    what: Annotated[
        str, typer.Option(metavar="WHAT", help="message, or gradient (without noise)")
    ] = "message",
    most: Annotated[
        int, typer.Option(min=1, metavar="N", help="Probes per variant and commit")
    ] = 20,
) -> None:
    """Reconstruct images from recorded messages."""
    from ...files import study as trace
    from .attacks import report

    victim = trace.load(folder)
    recovered = report.attack(victim, what, most)
    shown = report.summary(recovered, by=("group",))
    table = Table("variant", *shown["metric"].unique(), "runs", "no image", box=None)
    for group, rows in shown.groupby("group", sort=False):
        means = (f"{mean:.3g}" for mean in rows["mean"])
        first = rows.iloc[0]
        counts = str(first["replicates"]), str(first["blank"])
        table.add_row(str(group), *means, *counts)
    out.print(table)
    for path in report.save(victim, recovered, folder):
        out.say(f"Written: {path}")
