"""The command line: `stalesim run|timeline|plot|check|attack|list|calibrate`, ..."""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from simulator.scenario.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from simulator.trace import Study

app = typer.Typer(
    help="Simulates asynchronous learning: what staleness does to accuracy, "
    "communication and privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)

USER_ERROR = 2
INTERRUPTED = 130


def main() -> None:
    """Runs the command line; a user's mistake is one line and exit status 2."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        app()
    except UserError as error:
        err.print(f"stalesim: {error}", style="red", markup=False, soft_wrap=True)
        raise SystemExit(USER_ERROR) from None
    except KeyboardInterrupt:
        err.print("stalesim: interrupted", style="red")
        raise SystemExit(INTERRUPTED) from None


_interrupted = threading.Event()
"""Where Python raises an interruption in a callback, it is printed and forgotten; this
remembers it."""


def _interrupt(signum: int, frame: object) -> None:
    _interrupted.set()
    raise KeyboardInterrupt


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
        _show_plan(*sweep.planned(config))
        return
    folder = _new_folder(folder, config.name)
    jobs = jobs or len(os.sched_getaffinity(0))
    sweep.planned(config)  # what is wrong is said before a progress bar is drawn
    with _interruptible(folder), _progress(config.name) as hear:
        study = sweep.simulate(config, folder, jobs=jobs, progress=hear)
    _close(study, plots=plots)


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
        _close_timeline(import_log(log, folder), gantt, chrome, plots=plots)
    elif scenario is not None:
        from simulator.recording import record
        from simulator.scenario.reading import read_any

        config = read_any(scenario, set_ or ())
        folder = _new_folder(folder, f"{config.name}-timeline")
        with _interruptible(folder), _progress(config.name) as hear:
            study = record(config, folder, hear)
        _close_timeline(study, gantt, chrome, plots=plots)


@app.command()
def plot(folder: Annotated[Path, typer.Argument(help="folder of a study")]) -> None:
    """Draws the standard figures of a study into its folder."""
    from simulator import trace

    study = trace.load(folder)
    if study.manifest.get("kind") == "timeline":
        _draw_timeline(study, None)
    else:
        _draw(study)


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
        _show_claims(claims.evaluate(study))


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


@contextlib.contextmanager
def _interruptible(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        err.print(
            f"stalesim: interrupted; {folder} holds what was written, "
            f"marked incomplete",
            style="red",
        )
        raise SystemExit(INTERRUPTED) from None


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Any]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(name, total=1.0)

        def hear(fraction: float) -> None:
            bar.update(task, completed=fraction)
            main = threading.current_thread() is threading.main_thread()
            if main and _interrupted.is_set():
                raise KeyboardInterrupt

        yield hear


def _show_plan(runs: list[Any], tasks: list[Any]) -> None:
    table = Table("batch", "mode", "runs", "which", box=None)
    for number, task in enumerate(tasks):
        labels = dict.fromkeys(run.label for run in task.runs)
        table.add_row(str(number), task.mode, str(len(task.runs)), "; ".join(labels))
    out.print(table)
    out.print(f"{len(runs)} runs in {len(tasks)} batches; nothing was run")


def _close(study: "Study", *, plots: bool) -> None:
    from analysis import claims, summary

    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    _show(f"{study.manifest['name']}: {metric}", summary.summary(study))
    found = claims.evaluate(study)
    _show_claims(found)
    if plots:
        _draw(study)
    out.print(f"Study: {study.folder}", soft_wrap=True)


def _draw(study: "Study") -> None:
    from analysis import report

    for path in report.save(study, study.folder):
        out.print(f"Figure: {path}", soft_wrap=True)


def _close_timeline(
    study: "Study", seconds: float | None, chrome: Path | None, *, plots: bool
) -> None:
    from analysis import timeline_report

    for title, frame in timeline_report.tables(study):
        _show(title, frame)
    for run in study.manifest["runs"]:
        if run["replicate"] == 0:
            out.print(
                f"{run['label']}: {run['commits']} updates in {run['virtual_s']:.4g} "
                f"virtual s; {run['stop_reason']}",
                soft_wrap=True,
                markup=False,
                highlight=False,
            )
    if plots:
        _draw_timeline(study, seconds)
    if chrome is not None:
        timeline_report.export(study, chrome)
        out.print(f"Trace events: {chrome}", soft_wrap=True)
    out.print(f"Timeline: {study.folder}", soft_wrap=True)


def _draw_timeline(study: "Study", seconds: float | None) -> None:
    from analysis import timeline_report

    for path in timeline_report.save(study, study.folder, seconds):
        out.print(f"Figure: {path}", soft_wrap=True)


def _show(title: str, frame: "pd.DataFrame") -> None:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in frame.columns:
        table.add_column(str(column), overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(value) for value in row))
    out.print(table)


def _show_claims(found: "pd.DataFrame") -> None:
    colours = {"holds": "green", "does not hold": "red"}
    rows: Any = found.itertuples()
    for claim in rows:
        style = colours.get(str(claim.verdict), "yellow")
        out.print(f"[{style}]{claim.verdict}[/]: {claim.says}", soft_wrap=True)
        out.print(
            f"    {claim.claim}; {claim.measured}; {claim.replicates} replicates; "
            f"{claim.why}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
