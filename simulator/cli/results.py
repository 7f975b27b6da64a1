"""Commands on studies: `plot`, `tables`, `report`, `check`, `lint`."""

from collections.abc import Iterator
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


@app.command(rich_help_panel="Results")
def plot(
    folder: Annotated[Path, typer.Argument(help="Folder of a study")],
    form: Formats = None,
    styles: Annotated[
        list[str] | None,
        typer.Option(
            "--style",
            metavar="STYLE",
            help="Venue (icml, ...) or Matplotlib style",
            autocompletion=_venues,
        ),
    ] = None,
    at: Annotated[
        list[float] | None,
        typer.Option(
            "--at",
            metavar="SECONDS",
            help="Also draw values at this time (repeatable)",
        ),
    ] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--winner-map",
            metavar="A/B",
            help="Also map which variant wins (repeatable)",
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Also draw this metric")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="KEY",
            help="Axis: a count or a swept key (default: time)",
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option("--target", metavar="VALUE", help="Also draw times to this value"),
    ] = None,
) -> None:
    """Draw the standard figures into the study's folder.

    --winner-map shows which variant is first at the target, over two swept keys.
    """
    from ..files import study as trace

    forms = formats(form, plots=True)
    study = trace.load(folder)
    if trace.is_world(study.manifest):
        printing.draw_world(study, None, forms, styles or ())
    else:
        more = maps or (), metric, against, target
        for path in printing.draw(study, forms, styles or (), at or (), *more):
            out.say(f"Figure: {path}")


@app.command(rich_help_panel="Results")
def tables(
    folder: Annotated[Path, typer.Argument(help="Folder of a study")],
    at: Annotated[
        list[float] | None,
        typer.Option(
            "--at",
            metavar="SECONDS",
            help="Also show values at this time (repeatable)",
        ),
    ] = None,
    *,
    explained: Annotated[
        bool, typer.Option("--legend", metavar="", help="Also explain the columns")
    ] = False,
    of_clients: Annotated[
        bool,
        typer.Option("--clients", metavar="", help="Show busy and idle time instead"),
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", metavar="", help="Print LaTeX (booktabs)")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write .tex, .md or .csv (a column per number)",
        ),
    ] = None,
) -> None:
    """Show all results with intervals, and the verdicts on claims."""
    from ..files import study as trace
    from . import tabulating

    study = trace.load(folder)
    if of_clients:
        if at or explained or latex:
            raise UserError(
                "--clients must be without --at, --legend and --latex, which are of "
                "the results; write a file by -o clients.csv"
            )
        tabulating.write_clients(study, file)
        return
    if trace.is_world(study.manifest):
        raise UserError(
            f"{folder}: must be a study with numerics to have results, but is a "
            f"timeline; write its tables by stalesim report, or add --clients"
        )
    tabulating.write(study, at or (), file, latex=latex)
    if explained:
        printing.show_legend(study, at or ())


@app.command(rich_help_panel="Results")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study or timeline")],
    file: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Page (default: FOLDER/report.html)"
        ),
    ] = None,
    *,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            metavar="",
            help="Follow a running study, until Ctrl-C",
        ),
    ] = False,
) -> None:
    """Write one HTML page: results, method, how to repeat it."""
    from ...analysis import page
    from ..files import study as trace

    study = trace.load(folder)
    if not watch:
        out.say(f"Report: {page.write(study, file)}")
        return
    with console.follow("Watching", folder, file or folder / page.NAME):
        page.watch(study, file)


@app.command(rich_help_panel="Results")
def check(
    folders: Annotated[list[Path], typer.Argument(help="Folders of studies")],
) -> None:
    """Test the claims of studies and show how each was judged."""
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


@app.command(rich_help_panel="Results")
def lint(
    scenarios: Annotated[
        list[Path],
        typer.Argument(help="Files, folders, or shipped names"),
    ],
    *,
    strict: Annotated[
        bool,
        typer.Option("--strict", metavar="", help="Exit with status 1 on any remark"),
    ] = False,
) -> None:
    """Warn about unfair comparisons and doubtful delays.

    Compares variants, and both sides of a claim: batches, samples per commit,
    evaluations, tuning. Finds laws without a mean, sweeps over laws of unequal means,
    rounds that wait for clients that have left, and what `run` warns of. Remarks may
    be intended, and exit with 0.
    """
    from ...analysis import linting
    from ..scenario.reading import place, read_any
    from ..scenario.remarks import remarks
    from ..scenario.setting import BaseScenario

    found = 0
    for path in _files(scenarios):
        scenario = read_any(path)
        if not isinstance(scenario, BaseScenario):
            continue
        said = [((), text) for text in remarks(scenario)]
        for keys, text in (*linting.findings(scenario), *said):
            words = place(path, keys), ".".join(map(str, keys)), text
            out.say(": ".join(filter(None, words)))
            found += 1
    if found and strict:
        raise SystemExit(FOUND)
    if not found:
        out.say("No findings")


def _files(paths: list[Path]) -> Iterator[Path]:
    """Yields files, and those in folders.

    Raises:
        UserError: A folder has none.
    """
    for path in paths:
        found = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        if not found:
            raise UserError(
                f"{path}: must have scenarios (.yaml), but has none; name the file "
                f"from which a study was run, or test its claims by stalesim check"
            )
        yield from found
