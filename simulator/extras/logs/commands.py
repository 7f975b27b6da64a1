"""The commands of `stalesim log`: a real system's log, and its simulation."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli import folders, printing
from ...cli.console import out
from ...cli.runs import (
    Folder,
    Formats,
    Gantt,
    Overrides,
    Plots,
    check_seconds,
    formats,
    playing,
)
from ...parts.errors import UserError, counted

if TYPE_CHECKING:
    from ...files.study import Study
    from .worlds import FittedWorld

app = typer.Typer()
log = typer.Typer(
    help="Import a log of a real system, fit delays, ask what if.",
    no_args_is_help=True,
)
app.add_typer(log, name="log", rich_help_panel="Scenarios")

Log = Annotated[
    Path,
    typer.Argument(help="Log (.csv, .jsonl, .parquet), a row per job"),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Such as client=cid,read_time=start; or pai"),
]


@log.command("import")
def import_(
    path: Log,
    folder: Folder = None,
    columns: Columns = None,
    gantt: Gantt = None,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Write the timeline of a log.

    The log has columns client (a number from 1 or a label), read_time and
    arrived_time (seconds). It may have begun_time, computed_time, sent_time,
    outcome, round, read_version, commit and applied_time. Without times it needs
    an order: position or commit and, if known, staleness or read_version.

    A scenario can replay the folder: timeline: {replay: FOLDER}.
    """
    check_seconds(gantt)
    forms = formats(form, plots=plots)
    from .reading import columns_of, read_log, who_leaves
    from .timelines import import_log

    with folders.chosen_or_new(folder, f"{path.stem}-timeline") as folder:
        read = read_log(path, columns_of(columns))
        study = import_log(read, folder)
    _show_server(study)
    if who := who_leaves(read):
        then = "the timeline counts them as idle from then on"
        out.say(f"Note: clients leave the log early: {who}; {then}", style="yellow")
    # Pictures of seconds would show what an order does not know.
    printing.close_world(study, gantt, () if read.in_commits else forms)


@log.command()
def fit(
    path: Log,
    world: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File of the world")
    ] = Path("world.yaml"),
    columns: Columns = None,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Fit the delays of each client to a log, with their correlation.

    Also writes a page of diagnostics, and the values that the world reads.
    """
    forms = formats(form, plots=plots)
    if world.suffix != ".yaml" or not world.parent.is_dir():
        raise UserError(
            f"--out must be a .yaml file in a folder that exists, got {world}; make "
            f"the folder, or rename the file"
        )
    from . import page
    from .reading import columns_of, read_log
    from .worlds import with_leaving, world_of, write_world

    read = read_log(path, columns_of(columns))
    found = with_leaving(world_of(read, world.with_suffix("")), read)
    write_world(found, world)
    _show(found)
    for file in page.save(found, world, forms):
        out.say(f"Written: {file}")
    out.say(f"Written: {world}")
    out.say(f"Next: stalesim timeline {world}")


@log.command()
def play(
    path: Log,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="PROTOCOL", help="Its kind, or '{kind: t_synchronous, t: 4}'"
        ),
    ],
    set_: Overrides = None,
    folder: Folder = None,
    columns: Columns = None,
    gantt: Gantt = None,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Fit a world to a log, and simulate it with another protocol."""
    check_seconds(gantt)
    forms = formats(form, plots=plots)
    from ...scenario import dialect
    from .reading import columns_of
    from .worlds import play_like

    entry, _ = dialect.compose(protocol, lambda line: "--protocol")
    with playing(folder, path.stem) as (folder, hear):
        study, world = play_like(
            path, folder, entry, columns_of(columns), hear, set_ or ()
        )
    _show(world)
    printing.close_world(study, gantt, forms)


def _show_server(study: "Study") -> None:
    (run,) = study.manifest["runs"]
    if run["protocol"] == "synchronous":
        says = "synchronous, by the column round; each round is one commit"
    elif run["protocol"] == "buffered":
        size = run["scenario"]["protocol"]["size"]
        says = f"buffered, by the column commit; a commit is of at most {size} arrivals"
    else:
        says = (
            "taken to be asynchronous, each applied arrival one commit; a log of a "
            "synchronous one needs the column round, of a buffered one commit"
        )
    out.say(f"Server: {says}")


def _show(world: "FittedWorld") -> None:
    for stage, of_clients in world.fits.items():
        mine = of_clients.values()
        counts = Counter(fit.memory for fit in mine).most_common()
        kinds = ", ".join(f"{number} {kind}" for kind, number in counts)
        refused = sum(bool(fit.why) for fit in mine)
        note = f"; of {refused} the measured values are the marginal law"
        clients = counted(len(mine), "client")
        out.say(f"{stage}: {clients}: {kinds}{note if refused else ''}")
    for slowdown in world.tree["clients"].get("slowdowns", ()):
        if "clients" not in slowdown:
            out.say(f"{', '.join(slowdown['stages'])}: a factor that all clients share")
    for room in world.rooms:
        out.say(room)
    for remark in world.remarks:
        out.say(f"Note: {remark}", style="yellow")
