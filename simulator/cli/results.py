"""Commands on studies: `plot`, `tables`, `report`, `check`, `lint`."""

from pathlib import Path
from typing import Annotated

import typer

from ..parts.errors import UserError
from . import console, printing
from .console import out
from .runs import Formats, formats

app = typer.Typer()

FOUND = 1
"""Exit status where `lint` has found something."""


def _venues(incomplete: str) -> list[str]:
    from ...analysis.figures.venues import VENUES

    return [name for name in VENUES if name.startswith(incomplete)]


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    form: Formats = None,
    styles: Annotated[
        list[str] | None,
        typer.Option(
            "--style",
            help="a venue (neurips, icml, ieee, ...; docs/how-to/figures.md), or "
            "a style of Matplotlib, its name or a file; may be repeated",
            autocompletion=_venues,
        ),
    ] = None,
    at: Annotated[
        list[float] | None,
        typer.Option(
            "--at",
            metavar="SECONDS",
            help="also draw the first metric at this virtual time (s); may be repeated",
        ),
    ] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="A/B",
            help="also draw which of these variants wins where, over the two swept "
            "keys: by the time to the target of the figure time-to-target; "
            "two variants or more, may be repeated",
        ),
    ] = None,
) -> None:
    """Draws the standard figures of a study into its folder."""
    from ..files import study as trace

    forms = formats(form, plots=True)
    study = trace.load(folder)
    if trace.is_world(study.manifest):
        printing.draw_world(study, None, forms, styles or ())
    else:
        printing.draw(study, forms, styles or (), at or (), maps or ())


@app.command()
def tables(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    at: Annotated[
        list[float] | None,
        typer.Option(
            "--at",
            metavar="SECONDS",
            help="also show the first metric at this virtual time (s); may be repeated",
        ),
    ] = None,
    *,
    explained: Annotated[
        bool, typer.Option("--legend", help="also explain the columns")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="as LaTeX (booktabs), for a paper")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="file to be written: .tex or .md for a paper, .csv with a column per "
            "number",
        ),
    ] = None,
) -> None:
    """Shows results with their intervals, and the verdicts on claims."""
    from ..files import study as trace
    from . import tabulating

    study = trace.load(folder)
    if trace.is_world(study.manifest):
        raise UserError(
            f"{folder}: must be a study with numerics to have results, but is a "
            f"timeline; write its tables by stalesim report"
        )
    tabulating.write(study, at or (), file, latex=latex, explained=explained)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="folder of a study or timeline")],
    file: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="page to be written; else FOLDER/report.html"),
    ] = None,
    *,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="write the page of a running study again and again, until the study "
            "is complete; Ctrl-C ends it",
        ),
    ] = False,
) -> None:
    """Writes a study as one HTML page: results, method, scenario, how to repeat it."""
    from ...analysis import page
    from ..files import study as trace

    study = trace.load(folder)
    if not watch:
        out.say(f"Report: {page.write(study, file)}")
        return
    with console.follow("Watching", folder, file or folder / page.NAME):
        page.watch(study, file)


@app.command()
def check(
    folders: Annotated[list[Path], typer.Argument(help="folders of studies")],
) -> None:
    """Tests the claims of studies and shows the verdicts."""
    from ...analysis import claims, escapes
    from ...analysis.frames import titled
    from ..files import study as trace

    for folder in folders:
        study = trace.load(folder)
        if trace.is_world(study.manifest):
            raise UserError(
                f"{folder}: must be a study with numerics to have claims, but is a "
                f"timeline; run its scenario by `stalesim run`"
            )
        found = claims.evaluate(study)  # damage is reported before anything is judged
        out.say(titled(study.manifest), style="bold")
        printing.show_claims(found)
        if not found.empty:
            out.print(escapes.chance(study), style="dim")
        if found.empty:
            out.say("no claims to be judged; a scenario states its own as claims")


@app.command()
def lint(
    scenarios: Annotated[
        list[Path],
        typer.Argument(help="scenario files, or names of shipped ones"),
    ],
) -> None:
    """Warns of unfair comparisons and doubtful worlds: a line each, with the remedy.

    Variants, or both sides of a claim, that differ in more than their names say: in
    batches, samples a commit, evaluations, tuning. Of every world: laws without a mean,
    sweeps over laws of unequal means, and rounds that wait for clients that have left.
    Exits with 1 if anything was found.
    """
    from ...analysis import linting
    from ..scenario.reading import place, read_any
    from ..scenario.setting import BaseScenario

    found = 0
    for path in scenarios:
        scenario = read_any(path)
        if not isinstance(scenario, BaseScenario):
            continue
        for keys, text in linting.findings(scenario):
            out.say(f"{place(path, keys)}: {'.'.join(map(str, keys))}: {text}")
            found += 1
    if found:
        raise SystemExit(FOUND)
    out.say("No findings")
