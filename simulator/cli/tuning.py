"""The command `tune`: a search of the best values of some entries."""

import json
from typing import Annotated, Any

import typer

from ..parts.errors import UserError, shown
from . import folders
from .console import out
from .runs import (
    EVERY_S,
    Checkpoint,
    Folder,
    Formats,
    Jobs,
    Overrides,
    Plots,
    ScenarioFile,
    formats,
    search,
)

app = typer.Typer()


@app.command(rich_help_panel="Run")
def tune(
    scenario: ScenarioFile,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="Range FROM:TO, log:FROM:TO, or a list",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="What to optimise (default: first metric)",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Points to try (default: 30)"),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Variant to tune, of several")
    ] = None,
    set_: Overrides = None,
    folder: Folder = None,
    jobs: Jobs = 0,
    checkpoint: Checkpoint = EVERY_S,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Search for the best values, such as the step size.

    The objective is test_loss (at the end), test_loss@200s, @500commits or
    @20rounds, or test_accuracy=0.9 (the time until then).

    Trials share their seeds. The best is run again with new seeds, for an
    unbiased interval. The same command continues an interrupted search.
    """
    from ..scenario.reading import read
    from ..studies import tuning

    tuning.library()  # its absence is reported before what else a search needs
    forms = formats(form, plots=plots)
    given = dict(map(searched, over or ()))
    entries = list(set_ or ())
    if given and any(entry.startswith("tune.") for entry in entries):
        # With them the scenario must have what is searched.
        entries.insert(0, f"tune={json.dumps({'over': given})}")
    read_in = read(scenario, entries)
    config = tuning.planned(read_in, given, objective, trials, variant)
    if folder is None:
        folder, is_there = folders.of_study(config, f"{config.name}-tuned")
        if is_there:
            out.say(f"The search in {folder} continues")
    search(config, folder, jobs, checkpoint, forms)


def searched(text: str) -> tuple[str, Any]:
    """Returns an entry and where it is searched, of `KEY=log:FROM:TO` or a list.

    Raises:
        UserError: It is of no such form.
    """
    from ..scenario import dialect

    key, equals, entry = text.partition("=")
    parts = entry.split(":")
    log = parts[0].strip() == "log"
    ends = [_number(part) for part in parts[log:]]
    if equals and len(ends) == 2 and None not in ends:
        scale = {"scale": "log"} if log else {}
        return key.strip(), {"from": ends[0], "to": ends[1], **scale}
    where = f"--over {shown(text)}"
    value = dialect.compose(entry, lambda line: where)[0] if entry.strip() else None
    if not key.strip() or not isinstance(value, list | dict):
        raise UserError(
            f"{where} must be KEY=FROM:TO, KEY=log:FROM:TO or KEY=[VALUE, VALUE]; "
            f"write for example algorithm.learning_rate=log:0.001:1"
        )
    return key.strip(), value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
