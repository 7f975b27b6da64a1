"""The command of testbeds: `stalesim testbed`."""

from typing import Annotated

import typer

from ...cli import console, folders, printing
from ...cli.console import err, out
from ...cli.runs import Folder, Formats, Overrides, Plots, ScenarioFile, formats
from ...parts.errors import UserError

app = typer.Typer()

Faults = Annotated[
    list[str] | None,
    typer.Option(metavar="FAULT", help="CLIENT@SECONDS, such as 2@3.5 (repeatable)"),
]


@app.command("testbed", rich_help_panel="Run")
def act_out(
    scenario: ScenarioFile,
    set_: Overrides = None,
    folder: Folder = None,
    compute: Annotated[
        str, typer.Option(metavar="WHAT", help="sleep, or also train: gradients")
    ] = "sleep",
    time_scale: Annotated[
        float, typer.Option(metavar="X", help="Real seconds per virtual second")
    ] = 1.0,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="And port; 0: a free one")
    ] = "127.0.0.1:0",
    broker: Annotated[
        str | None,
        typer.Option(metavar="BROKER", help="MQTT, not TCP: start, or host:port"),
    ] = None,
    kill: Faults = None,
    pause: Faults = None,
    slow: Faults = None,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Emulate a scenario with real processes in real time.

    The folder gets the log of their jobs, the timeline, and a study that
    replays it.

    A fault such as 2@3+1 ends after 1 second. --slow 2@3x4 makes client 2 four
    times as slow.
    """
    from ...scenario.reading import read_any
    from . import running
    from .timeline import Bench

    forms = formats(form, plots=plots)
    config = read_any(scenario, set_ or ())
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"--listen must be address:port, got {listen}; correct it")
    with (
        folders.chosen_or_new(folder, f"{config.name}-testbed") as folder,
        console.interruptible(folder),
    ):
        bench = Bench(
            config,
            folder,
            lambda line: err.say(line),
            compute=compute,
            time_scale=time_scale,
            listen=(host, int(port)),
            broker=broker,
            kill=kill or (),
            pause=pause or (),
            slow=slow or (),
        )
        found = running.act_out(bench)
    printing.close_world(found.timeline, None, forms)
    if found.study is not None:
        printing.close(found.study, forms)
    out.say(f"Log: {folder}")
    if found.interrupted:
        raise KeyboardInterrupt
