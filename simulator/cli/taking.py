"""Commands for a study in several places: `work`, `slurm` and `merge`."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..config.errors import UserError
from ..config.text import counted
from . import console, printing
from .console import out
from .runs import EVERY_S, FAILED, Checkpoint

app = typer.Typer()

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds of the units of a wall time."""
SPARE_S = 60
"""Seconds of a job's wall time that are left to start and to end."""


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


@app.command()
def work(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    for_: Annotated[
        str | None,
        typer.Option("--for", help="available wall time, such as 50m or 2h"),
    ] = None,
    checkpoint: Checkpoint = EVERY_S,
) -> None:
    """Executes what is left of a study, one batch of runs after the other.

    Any number of these processes, on any machines that see the folder, may come and go
    at any time; one that is killed is taken over after a minute. It returns when
    nothing is left, or when the next batch would take longer than there is time.
    """
    from ..config import plugins
    from ..studies import takers
    from ..studies.running import scenario_of, where_started
    from ..trace import load

    for_s = None if for_ is None else float(seconds(for_))
    with where_started(folder):
        scenario = scenario_of(folder, "work")
        remedy = f"; continue with {plugins.command('work', folder)}"
        with (
            console.interruptible(folder, remedy),
            console.progress(scenario.name) as hear,
        ):
            taken = takers.take(
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
    why = "" if taken.in_time else "; the next would take longer than there is time"
    out.say(f"{counted(taken.runs, 'run')} executed here; {of_all}{why}")
    if study.complete and printing.show_failures(study):
        raise SystemExit(FAILED)


@app.command()
def slurm(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="jobs of the array")
    ] = 16,
    time: Annotated[str, typer.Option(help="wall time of a job, such as 2h")] = "1h",
) -> None:
    """Prints a script for sbatch: an array of jobs that work on a study.

    For GPUs, memory or an account add lines of #SBATCH, as your cluster asks for them.
    """
    from ..config import plugins
    from ..studies.running import scenario_of, where_started

    all_s = seconds(time)
    if all_s <= 2 * SPARE_S:
        raise UserError(f"--time must be > {2 * SPARE_S}s, got {time}; give more")
    minutes, rest = divmod(all_s, 60)
    with where_started(folder):
        scenario = scenario_of(folder, "slurm")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", scenario.name)
    given, study = plugins.options(), str(folder.resolve())
    command = [sys.executable, "-m", "stalesim", *given, "work", study]
    for line in (
        "#!/bin/sh",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --array=1-{jobs}",
        f"#SBATCH --time={minutes}:{rest:02d}",
        "#SBATCH --ntasks=1",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --requeue",
        f"exec {shlex.join(command)} --for {all_s - SPARE_S}s",
    ):
        typer.echo(line)


@app.command()
def merge(
    folder: Annotated[
        Path, typer.Argument(help="folder of a study, which is extended")
    ],
    others: Annotated[
        list[Path], typer.Argument(help="folders of the same study, which stay")
    ],
) -> None:
    """Takes runs that have ended in other folders of one study into the first."""
    from ..config import plugins
    from ..studies.merging import merge as merged
    from ..studies.running import where_started

    with where_started(folder):
        study = merged(folder, *others)
    runs = study.manifest["runs"]
    ended = sum(run["stop"] != "incomplete" for run in runs)
    resume = plugins.command("resume", folder)
    left = "" if study.complete else f"; {resume} runs what is left"
    out.say(f"{ended} of {counted(len(runs), 'run')} of {folder} have ended{left}")
