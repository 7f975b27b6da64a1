"""What a user can ask for, command by command."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from simulator.cli import console, printing
from simulator.cli.console import err, out
from simulator.scenario.errors import UserError

app = typer.Typer(
    help="Simulates asynchronous learning: what staleness does to accuracy, "
    "communication and privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

USER_ERROR = 2
"""Exit status."""


def main() -> None:
    """Runs the command line; a user's mistake is one line and exit status 2."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, console.interrupt)
    try:
        app()
    except UserError as error:
        err.print(f"stalesim: {error}", style="red", markup=False, soft_wrap=True)
        raise SystemExit(USER_ERROR) from None
    except KeyboardInterrupt:
        err.print("stalesim: interrupted", style="red")
        raise SystemExit(console.INTERRUPTED) from None


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="dotted.key=value, replaces an entry"),
]


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="a scenario file")],
    set_: Overrides = None,
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="new folder for the study")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="processes; 0: one a core")
    ] = 0,
    *,
    dry_run: Annotated[bool, typer.Option(help="only say what would be run")] = False,
    plots: Annotated[bool, typer.Option(help="draw the figures at the end")] = True,
) -> None:
    """Runs a scenario; writes a study, its figures and a closing table."""
    from simulator import sweep
    from simulator.scenario.reading import read

    config = read(scenario, set_ or ())
    if dry_run:
        printing.show_plan(*sweep.planned(config))
        return
    folder = _new_folder(folder, config.name)
    jobs = jobs or len(os.sched_getaffinity(0))
    sweep.planned(config)  # what is wrong is said before a progress bar is drawn
    with console.interruptible(folder), console.progress(config.name) as hear:
        study = sweep.simulate(config, folder, jobs=jobs, progress=hear)
    printing.close(study, plots=plots)


@app.command()
def timeline(
    scenario: Annotated[
        Path | None, typer.Argument(help="a scenario file, with or without a problem")
    ] = None,
    set_: Overrides = None,
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="new folder for the timeline")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--import",
            help="an event log in place of a scenario: .csv or .parquet, a row per job "
            "of an asynchronous system, columns client (a number from 1 or a label), "
            "read_time, arrived_time (seconds) and perhaps computed_time, sent_time, "
            "outcome (applied, lost or rejected)",
        ),
    ] = None,
    gantt: Annotated[
        float | None,
        typer.Option(
            help="virtual seconds of the Gantt picture; by default about 60 jobs"
        ),
    ] = None,
    chrome: Annotated[
        Path | None,
        typer.Option(help="also write trace events, for Perfetto, into this file"),
    ] = None,
    *,
    plots: Annotated[bool, typer.Option(help="draw the figures at the end")] = True,
) -> None:
    """Plays the world alone: who acts when, how stale, how busy. No numerics.

    The folder can be replayed by a scenario: `timeline: {replay: FOLDER}`.
    """
    if (scenario is None) == (log is None):
        raise UserError(
            "timeline must have either a scenario or --import LOG; give one of them"
        )
    if gantt is not None and not gantt > 0:
        raise UserError(f"--gantt must be > 0 seconds, got {gantt:g}; give some")
    if chrome is not None and not chrome.parent.is_dir():
        raise UserError(
            f"--chrome must be a file in a folder that exists, got {chrome}; make it"
        )
    if log is not None:
        from simulator.importing import import_log

        folder = _new_folder(folder, f"{log.stem}-timeline")
        printing.close_timeline(import_log(log, folder), gantt, chrome, plots=plots)
    elif scenario is not None:
        from simulator.recording import record
        from simulator.scenario.reading import read_any

        config = read_any(scenario, set_ or ())
        folder = _new_folder(folder, f"{config.name}-timeline")
        with console.interruptible(folder), console.progress(config.name) as hear:
            study = record(config, folder, hear)
        printing.close_timeline(study, gantt, chrome, plots=plots)


@app.command()
def plot(folder: Annotated[Path, typer.Argument(help="folder of a study")]) -> None:
    """Draws the standard figures of a study into its folder."""
    from simulator import trace

    study = trace.load(folder)
    if study.manifest.get("kind") == "timeline":
        printing.draw_timeline(study, None)
    else:
        printing.draw(study)


@app.command()
def check(
    folders: Annotated[list[Path], typer.Argument(help="folders of studies")],
) -> None:
    """Says which claims of the studies' sources hold."""
    from analysis import claims
    from simulator import trace

    for folder in folders:
        study = trace.load(folder)
        if study.manifest.get("kind") == "timeline":
            raise UserError(
                f"{folder}: must be a study with numerics to have claims, but is a "
                f"timeline; run its scenario by `stalesim run`"
            )
        out.print(study.manifest["name"], style="bold")
        printing.show_claims(claims.evaluate(study))


@app.command()
def attack(
    folder: Annotated[Path, typer.Argument(help="folder of a study with probes")],
    what: Annotated[
        str, typer.Option(help="message, or gradient for what no noise would give")
    ] = "message",
    most: Annotated[
        int, typer.Option(min=1, help="probes of each group and commit to look at")
    ] = 20,
) -> None:
    """Recovers images from the messages that a study has probed, and measures them."""
    from analysis.attacks import report
    from analysis.attacks import study as attacks
    from simulator import trace

    study = trace.load(folder)
    recovered = attacks.attack(study, what, most)
    shown = report.summary(recovered, by=("group",))
    table = Table("group", *shown["metric"].unique(), "runs", "no image", box=None)
    for group, rows in shown.groupby("group", sort=False):
        means = (f"{mean:.3g}" for mean in rows["mean"])
        first = rows.iloc[0]
        counts = str(first["replicates"]), str(first["blank"])
        table.add_row(str(group), *means, *counts)
    out.print(table)
    for path in attacks.save(study, recovered, folder):
        out.print(f"Written: {path}", soft_wrap=True)


@app.command("list")
def list_() -> None:
    """Lists the laws, protocols, algorithms, models and data sets that exist."""
    from simulator.scenario.catalogue import KINDS, entries, tag

    table = Table("kind", "name", "what it is", box=None)
    for kind in KINDS:
        for entry in entries(kind):
            about = (entry.config.__doc__ or "").strip().splitlines()[0]
            name = tag(entry)
            is_scipy = kind == "laws" and name == "PydanticUndefined"
            table.add_row(kind, "(any of scipy.stats)" if is_scipy else name, about)
    out.print(table)


@app.command()
def calibrate(
    *,
    epsilon: Annotated[float, typer.Option(help="target of a client, > 0")],
    releases: Annotated[int, typer.Option(help="messages that a client will send")],
    delta: Annotated[float, typer.Option(help="that epsilon holds with")] = 1e-5,
    mechanism: Annotated[
        str, typer.Option(help="gaussian, laplace or spherical_laplace")
    ] = "gaussian",
    sampling_ratio: Annotated[
        float,
        typer.Option(help="of a client's own samples in a batch of distinct ones"),
    ] = 1.0,
    accountant: Annotated[
        str, typer.Option(help="basic, advanced, optimal, rdp, pld or gdp")
    ] = "rdp",
) -> None:
    """Finds the noise with which a client stays within a privacy budget."""
    from simulator.privacy import calibration

    found = calibration.calibration(
        epsilon, delta, releases, mechanism, sampling_ratio, accountant
    )
    out.print(
        f"noise multiplier {found.multiplier:.6g}: scale of the {mechanism} noise over "
        f"the sensitivity, by {accountant}",
        soft_wrap=True,
        highlight=False,
    )
    if found.per_release is not None:
        out.print(f"epsilon of a message: {found.per_release:.6g}", highlight=False)
    table = Table(
        "accountant", f"epsilon at delta {delta:g}", "proved", "within", box=None
    )
    for row in found.accountants:
        words = ("yes" if yes else "no" for yes in (row.formal, row.within))
        table.add_row(row.name, f"{row.epsilon:.4g}", *words)
    out.print(table)


@app.command()
def doctor(
    *,
    encryption: Annotated[
        bool,
        typer.Option(
            "--encryption", help="measure what CKKS costs here, for a scenario"
        ),
    ] = False,
) -> None:
    """Shows versions, devices, processors, memory and the cache folder."""
    from simulator.cli import diagnosis

    if encryption:
        diagnosis.show_encryption()
    else:
        diagnosis.show_machine()


@app.command()
def schema() -> None:
    """Prints the JSON schema of a scenario, for editors."""
    from simulator.scenario.study import schema as schema_of

    sys.stdout.write(json.dumps(schema_of(), indent=1) + "\n")


def _new_folder(chosen: Path | None, name: str) -> Path:
    """Returns the folder for a study: the chosen one if empty, else a fresh one."""
    if chosen is not None:
        if chosen.exists() and (not chosen.is_dir() or any(chosen.iterdir())):
            raise UserError(
                f"--out must be a new or empty folder, got {chosen}; choose another"
            )
        return chosen
    number, folder = 1, Path("runs") / name
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder
