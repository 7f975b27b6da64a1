"""Commands for a study in several places: `stalesim cluster begin`, `work`, ..."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ...cli import console, printing, runs
from ...cli.console import out
from ...cli.runs import EVERY_S, FAILED, Checkpoint, Overrides, ScenarioFile
from ...parts.errors import UserError, counted

app = typer.Typer()
cluster = typer.Typer(
    help="Share a study among processes of several machines.", no_args_is_help=True
)
app.add_typer(cluster, name="cluster", rich_help_panel="Share")

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds of the units of a wall time."""


def seconds(text: str) -> int:
    """Returns the seconds of a wall time such as 50m, 2h or 1d.

    Raises:
        UserError: it is none.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,6})([smhd])", text.strip())
    if found is None:
        raise UserError(
            f"a wall time must be a number and a unit, as in 90s, 50m, 2h or 1d, got "
            f"{text!r}; write it so"
        )
    return int(found[1]) * UNITS[found[2]]


@cluster.command()
def begin(
    scenario: ScenarioFile,
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="New folder")
    ],
    set_: Overrides = None,
    *,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", metavar="", help="Replace the study that is there"),
    ] = False,
) -> None:
    """Plan a study in a folder; stalesim cluster work runs it."""
    from ...parts import plugins
    from ...scenario.reading import placing, read
    from . import takers

    config = read(scenario, set_ or ())
    runs.warn(config)
    with placing(scenario):
        if overwrite:
            runs.replace(config, folder)
        takers.begin(config, folder)
    work = plugins.command("cluster work", folder)
    out.say(f"The plan is in {folder}; to execute it: {work}")


@cluster.command()
def work(
    folder: Annotated[Path, typer.Argument(help="Folder of a study")],
    for_: Annotated[
        str | None,
        typer.Option("--time-limit", metavar="TIME", help="Such as 50m or 2h"),
    ] = None,
    checkpoint: Checkpoint = EVERY_S,
) -> None:
    """Execute what is left of a study, batch by batch.

    Start any number of these processes, on any machines that see the folder.
    Another one takes over from a killed one after a minute. It ends when nothing
    is left, or when the next batch would exceed --time-limit.
    """
    from ...files.study import load
    from ...parts import plugins
    from ...studies.running import scenario_of, where_started
    from . import takers

    for_s = None if for_ is None else float(seconds(for_))
    with where_started(folder):
        scenario = scenario_of(folder, "cluster work")
        remedy = f"; continue with {plugins.command('cluster work', folder)}"
        with (
            console.interruptible(folder, remedy),
            console.progress(scenario.name) as hear,
        ):
            number, in_time = takers.take(
                scenario,
                folder,
                for_s=for_s,
                checkpoint_s=checkpoint or None,
                progress=hear,
            )
    study = load(folder)
    runs = study.manifest["runs"]
    ended = sum(run["stop"] != "incomplete" for run in runs)
    of_all = f"{ended} of {counted(len(runs), 'run')} of {folder} have ended"
    why = "" if in_time else "; the next would take longer than there is time"
    out.say(f"{counted(number, 'run')} executed here; {of_all}{why}")
    if study.complete and printing.show_failures(study):
        raise SystemExit(FAILED)


@cluster.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def dask(
    address: Annotated[str, typer.Argument(help="Address of a Dask scheduler")],
    command: Annotated[
        list[str], typer.Argument(help="run, resume or tune, with options")
    ],
) -> None:
    """Execute a command's runs on the workers of a Dask cluster."""
    from ...cli import commands
    from .dask import Cluster

    with Cluster(address):
        commands.app(command, standalone_mode=False)


@cluster.command()
def merge(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a study, which is extended")
    ],
    others: Annotated[list[Path], typer.Argument(help="Folders of the same study")],
) -> None:
    """Copy completed runs of the same study into the first folder."""
    from ...parts import plugins
    from ...studies.running import where_started
    from .merging import merge as merged

    with where_started(folder):
        study = merged(folder, *others)
    runs = study.manifest["runs"]
    ended = sum(run["stop"] != "incomplete" for run in runs)
    resume = plugins.command("resume", folder)
    left = "" if study.complete else f"; {resume} runs what is left"
    out.say(f"{ended} of {counted(len(runs), 'run')} of {folder} have ended{left}")
