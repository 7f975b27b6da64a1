"""The commands of `stalesim`."""

import contextlib
import json
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from simulator.cli import console, data, folders, printing
from simulator.cli.console import err, out
from simulator.config.errors import UserError
from simulator.config.text import counted, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.scenario.scenario import Scenario
    from simulator.trace import Study

app = typer.Typer(
    help="Simulates asynchronous learning: what staleness does to accuracy, "
    "communication and privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(data.app, name="data")

USER_ERROR, FAILED = 2, 1
"""Exit statuses: a mistake of the user's; a study of which some runs failed."""


def main() -> None:
    """Runs the command line; a user's mistake is one line and exit status 2."""
    console.accept_any_text()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, console.interrupt)
    sys.unraisablehook = console.repeat_interruption
    warnings.showwarning = console.warn
    try:
        _check_arguments(sys.argv[1:])
        app()
    except UserError as error:
        err.say(f"stalesim: {error}", style="red")
        raise SystemExit(USER_ERROR) from None
    except KeyboardInterrupt:
        err.say("stalesim: interrupted", style="red")
        raise SystemExit(console.INTERRUPTED) from None


def _check_arguments(arguments: list[str]) -> None:
    """Refuses names that are no text: tables and pages could not be written with them.

    Raises:
        UserError: an argument is not UTF-8.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"arguments must be UTF-8, got {shown(argument)}; rename the file or "
                f"folder"
            ) from None


@app.callback()
def register(
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="a module, or a .py file, with parts of your own (docs/extending.md); "
            "may be repeated",
        ),
    ] = None,
) -> None:
    """Imports the modules with plug-ins, before anything is read."""
    if modules:
        from simulator.config import catalogue
        from simulator.engine import device

        device.before_import()
        catalogue.register(*modules)


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="dotted.key=value, replaces an entry"),
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=0, help="processes; 0: one a core")
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="address of a Dask scheduler, whose workers execute the runs"),
]
Checkpoint = Annotated[
    float,
    typer.Option(
        "--checkpoint",
        min=0,
        help="seconds after which the state of a long run is kept again, so that a "
        "kill loses no more; 0: never",
    ),
]
EVERY_S = 300.0
Plots = Annotated[bool, typer.Option(help="draw the figures at the end")]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="png, pdf or svg, of the figures; may be repeated; by default png",
    ),
]


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="a scenario file")],
    set_: Overrides = None,
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="new folder for the study")
    ] = None,
    jobs: Jobs = 0,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = EVERY_S,
    *,
    dry_run: Annotated[bool, typer.Option(help="only say what would be run")] = False,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="add replicates, looking at the claims after 5, 8, 12 and 20 of them, "
            "until every claim is decided",
        ),
    ] = False,
    most: Annotated[
        int | None,
        typer.Option(
            help="replicates of the last look of --until-decided; by default 20, or "
            "the scenario's if those are more"
        ),
    ] = None,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Runs a scenario; writes a study, its figures and a closing table.

    Runs that the folder holds already are not repeated: a study that was interrupted is
    continued, one with more replicates, variants or points than before extended.
    """
    from simulator.scenario.reading import read
    from simulator.scenario.remarks import remarks

    forms = _formats(form, plots=plots)
    if jobs != 1 and scheduler is None and not dry_run:
        _begin_processes(scenario)
    config = read(scenario, set_ or ())
    if most is not None and not until_decided:
        raise UserError(
            "--most belongs to --until-decided; add that, or set the number of "
            "replicates by --set replicates=NUMBER"
        )
    for remark in remarks(config):
        err.say(f"stalesim: warning: {remark}", style="yellow")
    if dry_run:
        from simulator.studies import memory, planned, staged

        if until_decided:
            *_, config = staged.stages(config, folder, most)
        runs, tasks = planned(config)
        printing.show_plan(runs, tasks, memory.estimate(tasks, jobs))
        return
    folder = folder or folders.new(config.name)
    decided = _all_decided if until_decided else None
    _simulate(config, folder, jobs, scheduler, checkpoint, forms, decided, most)


SEVERAL = re.compile(rb"^(replicates|variants|sweep)\b", re.MULTILINE)
"""An entry of a scenario of several runs."""


def _begin_processes(scenario: Path) -> None:
    """Lets the processes of a study start while its scenario is still read.

    They are of no use for a single run, so the file is looked at for what makes several
    of one. Where that is wrong, it only costs time.
    """
    from simulator.engine import processes

    with contextlib.suppress(OSError):
        if SEVERAL.search(scenario.read_bytes()):
            processes.begin()


def _formats(chosen: list[str] | None, *, plots: bool) -> tuple[str, ...]:
    """Returns the formats of the figures that a command draws; none without figures.

    Raises:
        UserError: there is no such format.
    """
    from analysis.figures.formats import chosen_formats

    forms = chosen_formats(chosen or "png")
    return forms if plots else ()


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    jobs: Jobs = 0,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = EVERY_S,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Runs what is left of a study: what was interrupted, and what failed."""
    from simulator.studies.running import scenario_of, where_started

    forms = _formats(form, plots=plots)
    with where_started(folder):
        scenario = scenario_of(folder)
        _simulate(scenario, folder, jobs, scheduler, checkpoint, forms)


def _all_decided(study: "Study") -> bool:
    from analysis import claims

    return claims.all_decided(study)


def _simulate(
    config: "Scenario",
    folder: Path,
    jobs: int,
    scheduler: str | None,
    checkpoint: float,
    forms: tuple[str, ...],
    until_decided: "Callable[[Study], bool] | None" = None,
    most: int | None = None,
) -> None:
    from simulator import studies

    with console.interruptible(folder), console.progress(config.name) as hear:
        study = studies.simulate(
            config,
            folder,
            jobs=jobs,
            scheduler=scheduler,
            progress=hear,
            checkpoint_s=checkpoint or None,
            until_decided=until_decided,
            most=most,
            meanwhile=printing.prepare,
        )
    printing.close(study, forms)
    if printing.show_failures(study):
        raise SystemExit(FAILED)


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
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="keep statistics alone (record: summary), for millions of clients "
            "and commits",
        ),
    ] = False,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Plays the world alone: who acts when, how stale, how busy. No numerics.

    The folder can be replayed by a scenario: `timeline: {replay: FOLDER}`.
    """
    if (scenario is None) == (log is None):
        raise UserError(
            "timeline must have either a scenario or --import LOG; give one of them"
        )
    if summary and log is not None:
        raise UserError("--summary must come with a scenario, not with a log; leave it")
    if gantt is not None and not gantt > 0:
        raise UserError(f"--gantt must be > 0 seconds, got {gantt:g}; give some")
    if chrome is not None and not chrome.parent.is_dir():
        raise UserError(
            f"--chrome must be a file in a folder that exists, got {chrome}; make it"
        )
    forms = _formats(form, plots=plots)
    if log is not None:
        from simulator.timelines.imported import import_log

        with folders.chosen_or_new(folder, f"{log.stem}-timeline") as folder:
            study = import_log(log, folder)
        printing.close_timeline(study, gantt, chrome, forms)
    elif scenario is not None:
        from simulator.scenario.reading import read_any
        from simulator.timelines.saved import record

        asked = [*(set_ or ()), *(["record=summary"] if summary else [])]
        config = read_any(scenario, asked)
        if config.record == "summary" and (gantt or chrome):
            raise UserError(
                "--gantt and --chrome need every job, but the scenario says record: "
                "summary; leave them out, or record everything"
            )
        with (
            folders.chosen_or_new(folder, f"{config.name}-timeline") as folder,
            console.interruptible(folder),
            console.progress(config.name) as hear,
        ):
            study = record(config, folder, hear)
        printing.close_timeline(study, gantt, chrome, forms)


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    form: Formats = None,
    styles: Annotated[
        list[str] | None,
        typer.Option(
            "--style",
            help="a style of Matplotlib, its name or a file, that overrides the look; "
            "may be repeated",
        ),
    ] = None,
) -> None:
    """Draws the standard figures of a study into its folder."""
    from simulator import trace

    forms = _formats(form, plots=True)
    study = trace.load(folder)
    if study.manifest.get("kind") == "timeline":
        printing.draw_timeline(study, None, forms, styles or ())
    else:
        printing.draw(study, forms, styles or ())


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="folder of a study or timeline")],
    file: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="page to be written; else FOLDER/report.html"),
    ] = None,
) -> None:
    """Writes a study as one HTML page: results, method, scenario, how to repeat it."""
    from analysis import page
    from simulator import trace

    out.say(f"Report: {page.write(trace.load(folder), file)}")


@app.command()
def check(
    folders: Annotated[list[Path], typer.Argument(help="folders of studies")],
) -> None:
    """Shows the verdicts on the claims of the studies' sources."""
    from analysis import claims
    from simulator import trace

    for folder in folders:
        study = trace.load(folder)
        if study.manifest.get("kind") == "timeline":
            raise UserError(
                f"{folder}: must be a study with numerics to have claims, but is a "
                f"timeline; run its scenario by `stalesim run`"
            )
        out.say(study.manifest["name"], style="bold")
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
        out.say(f"Written: {path}")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="folder of a study")],
    target: Annotated[
        str, typer.Option("--to", help="csv, tensorboard, wandb or mlflow")
    ],
    into: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="new folder; by default export-TARGET in the study's"
        ),
    ] = None,
) -> None:
    """Writes a study for other programs, into a folder; uploads nothing."""
    from analysis import exporting
    from simulator import trace

    study = trace.load(folder)
    done = exporting.export(study, target, into or folder / f"export-{target}")
    for how, number in done.left_out.items():
        which = counted(number, "run that is", "runs that are")
        err.say(f"Left out: {which} {how}", style="yellow")
    out.say(f"Exported: {done.folder} ({counted(done.num_runs, 'run')})")


@app.command("list")
def list_() -> None:
    """Lists the laws, protocols, algorithms, models and data sets that exist."""
    from simulator.config.catalogue import KINDS, parts, registered
    from simulator.config.parts import OPEN, described, tag

    sources = {p.part: p.source for kind in KINDS for p in registered(kind)}
    table = Table("kind", "name", *["from"] * bool(sources), "what it is", box=None)
    for kind in KINDS:
        for part in parts(kind):
            about = described(part)
            name = tag(part)
            name = "(any of scipy.stats)" if name == OPEN else name
            source = [sources.get(part, "stalesim")] * bool(sources)
            table.add_row(kind, name, *source, about)
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
    out.say(
        f"noise multiplier {found.multiplier:.6g}: scale of the {mechanism} noise over "
        f"the sensitivity, by {accountant}"
    )
    if found.per_release is not None:
        out.say(f"epsilon of a message: {found.per_release:.6g}")
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
