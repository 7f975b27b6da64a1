"""The commands that simulate: `run`, `resume` and `timeline`."""

import contextlib
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..parts.errors import UserError, counted, said, shown, users_line
from . import console, folders, printing
from .console import err, out

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..files.study import Study
    from ..scenario.scenario import Scenario
    from ..scenario.setting import BaseScenario, Varied

app = typer.Typer()

FAILED = 1
"""Exit status of a study of which some runs failed."""

ScenarioFile = Annotated[Path, typer.Argument(help="File, or name of a shipped one")]
Folder = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="New folder (default: in runs)"),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", metavar="", help="Replace the study that is there"),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="Override a value (repeatable)"
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=0,
        metavar="N",
        help="Processes (default: one per core)",
        show_default=False,
        rich_help_panel="Execution",
    ),
]
Checkpoint = Annotated[
    float,
    typer.Option(
        "--checkpoint",
        min=0,
        metavar="S",
        help="Between checkpoints (default: 300; 0: none)",
        show_default=False,
        rich_help_panel="Execution",
    ),
]
EVERY_S = 300.0
Plots = Annotated[
    bool,
    typer.Option(
        metavar="",
        help="Draw figures at the end (default)",
        show_default=False,
        rich_help_panel="Figures",
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="png (default), pdf or svg (repeatable)",
        rich_help_panel="Figures",
    ),
]
Gantt = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Gantt picture (default: about 60 jobs)",
        rich_help_panel="Figures",
    ),
]


def formats(chosen: list[str] | None, *, plots: bool) -> tuple[str, ...]:
    """Returns the formats of the figures that a command draws; none without figures.

    Raises:
        UserError: there is no such format.
    """
    from ...analysis.figures.venues import chosen_formats

    forms = chosen_formats(chosen or "png")
    return forms if plots else ()


@app.command(rich_help_panel="Run")
def run(
    scenario: ScenarioFile,
    set_: Overrides = None,
    folder: Folder = None,
    jobs: Jobs = 0,
    checkpoint: Checkpoint = EVERY_S,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show the plan, run nothing")
    ] = False,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            metavar="",
            help="Add replicates until every claim is decided",
            rich_help_panel="Statistics",
        ),
    ] = False,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-replicates",
            metavar="N",
            help="With --until-decided (default: 20)",
            rich_help_panel="Statistics",
        ),
    ] = None,
    overwrite: Overwrite = False,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Run a scenario: train all variants and show the results.

    Runs that are complete are skipped. So an interrupted study continues,
    and you can add replicates, variants or points to a study.

    Override values by -s algorithm.learning_rate=0.1. A mapping is merged,
    {} empties it, and null removes an entry.

    --until-decided judges the claims after 10, 14 and 20 replicates.
    """
    from ..scenario.reading import placing, read
    from ..studies import comparing, staged

    forms = formats(form, plots=plots)
    until_decided |= most is not None
    if jobs != 1 and not dry_run:
        _begin_processes(scenario)
    config = read(scenario, set_ or ())
    comparison = config.compare is not None and config.compare.found is None
    if comparison and until_decided:
        raise UserError(
            "--until-decided must be left out with compare, whose variants are tuned "
            "first; set the number of replicates by --set replicates=NUMBER"
        )
    warn(config, most, until_decided=until_decided)
    with placing(scenario):
        # What is planned of a comparison are the grids: all else follows from results.
        first = comparing.first_trials(config) if comparison else config
        if dry_run:
            if until_decided:
                *_, first = staged.stages(config, folder, most)
            _show_plan(first, jobs)
            printing.show_inherited(config)
            if comparison:
                out.say(
                    "these are the grids of the comparison; trials on both sides of "
                    "each best follow, and then the runs that judge"
                )
            return
        if overwrite:
            folder = folder or next(folders.named(config.name))
            replace(first, folder)
        if folder is None:
            folder, is_there = folders.of_study(config, looked=until_decided)
            if is_there:
                out.say(
                    f"The study is in {folder}; completed runs there are skipped "
                    f"(--out FOLDER runs it again)"
                )
        decided = _all_decided if until_decided else None
        _simulate(config, folder, jobs, checkpoint, forms, decided, most)


def _show_plan(config: "Scenario", jobs: int) -> None:
    from ..studies import planned, sizes

    runs, tasks = planned(config)
    printing.show_plan(runs, tasks, sizes.memory(tasks, jobs))
    printing.show_sizes(sizes.sizes(tasks))


def replace(config: "Scenario", folder: Path) -> None:
    """Removes the study in a folder; what cannot be run replaces nothing.

    Args:
        config: Scenario that will run there.
        folder: Folder.

    Raises:
        UserError: the scenario cannot be run, or the folder holds other things.
    """
    from ..studies import existing, planned

    planned(config)
    existing.clear(folder)


def warn(
    config: "Scenario", most: int | None = None, *, until_decided: bool = False
) -> None:
    """Says the remarks on a scenario, and warns of claims that cannot be decided.

    Args:
        config: Scenario to run.
        most: Replicates at the last interim analysis, if there is one.
        until_decided: Whether they are.

    Raises:
        UserError: No analysis can decide the claims.
    """
    say_remarks(config)
    if not config.claims:
        return
    from ...analysis import claims

    if until_decided:
        from ..studies import staged

        plan = {"looks": staged.planned(config, most)}
        for why in claims.undecidable(config.model_copy(update=plan)):
            raise UserError(
                f"--max-replicates must be enough to decide claims: {why}; raise it"
            )
        return
    for why in claims.undecidable(config):
        err.say(f"stalesim: warning: {why}; -s replicates=NUMBER", style="yellow")


def say_remarks(config: "BaseScenario") -> None:
    """Warns of entries that are hardly meant, and of a world without an end."""
    from ...analysis import doubts
    from ..scenario.remarks import remarks
    from ..scenario.study import expand

    for remark in (*remarks(config), *doubts.endless(expand(config))):
        err.say(f"stalesim: warning: {remark}", style="yellow")


SEVERAL = re.compile(rb"^(replicates|variants|sweep)\b", re.MULTILINE)
"""An entry of a scenario of several runs."""


def _begin_processes(scenario: Path) -> None:
    """Lets the processes of a study start while its scenario is still read.

    They are of no use for a single run, so the file is looked at for what makes several
    of one. Where that is wrong, it only costs time.
    """
    from ..engine import processes
    from ..scenario.shipped import file_of

    with contextlib.suppress(OSError):
        if SEVERAL.search(file_of(scenario).read_bytes()):
            processes.begin()


@app.command(rich_help_panel="Run")
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a study")],
    jobs: Jobs = 0,
    checkpoint: Checkpoint = EVERY_S,
    *,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Continue a study: run what was interrupted or failed.

    A study that was started by --until-decided continues its plan.
    """
    from ..files.study import load
    from ..studies import staged
    from ..studies.running import scenario_of, where_started

    forms = formats(form, plots=plots)
    with where_started(folder):
        scenario = scenario_of(folder)
        if scenario.tune is not None:
            from ..studies.tuning import planned

            search(planned(scenario), folder, jobs, checkpoint, forms)
            return
        if scenario.compare is None or scenario.compare.found is not None:
            out.say(_left(load(folder)))
        decided = _all_decided if staged.is_looked_at(scenario) else None
        _simulate(scenario, folder, jobs, checkpoint, forms, decided)


def _left(study: "Study") -> str:
    """Returns the line that says what is kept of a study, and what is left to run."""
    from ..studies.planning import OPEN

    runs = study.manifest["runs"]
    left = sum(run["stop"] in OPEN for run in runs)
    return f"{len(runs) - left} of {counted(len(runs), 'run')} complete, {left} to run"


def _all_decided(study: "Study") -> bool:
    from ...analysis import claims

    return claims.all_decided(study)


def _simulate(
    config: "Scenario",
    folder: Path,
    jobs: int,
    checkpoint: float,
    forms: tuple[str, ...],
    until_decided: "Callable[[Study], bool] | None" = None,
    most: int | None = None,
) -> None:
    from .. import studies
    from ..parts import plugins

    remedy = f"; continue with {plugins.command('resume', folder)}"
    simulate = partial(studies.simulate, until_decided=until_decided, most=most)
    if config.compare is not None and config.compare.found is None:
        simulate = studies.compare
    with (
        console.interruptible(folder, remedy),
        console.progress(config.name) as hear,
    ):
        study = simulate(
            config,
            folder,
            jobs=jobs,
            progress=hear,
            checkpoint_s=checkpoint or None,
            meanwhile=partial(printing.prepare, forms),
        )
    printing.close(study, forms)
    if printing.show_failures(study):
        raise SystemExit(FAILED)


def search(
    config: "Scenario",
    folder: Path,
    jobs: int,
    checkpoint: float,
    forms: tuple[str, ...],
) -> None:
    """Starts or continues a search; shows its table and its best point."""
    from ...analysis import racing
    from ..parts import plugins
    from ..studies import tuning

    remedy = f"; continue with {plugins.command('resume', folder)}"
    with console.interruptible(folder, remedy), console.progress(config.name) as hear:
        found = tuning.tune(
            config,
            folder=folder,
            jobs=jobs,
            progress=hear,
            checkpoint_s=checkpoint or None,
        )
    printing.close(found.study, forms)
    best = racing.best(found.study)
    out.say(_told(found, best, racing.in_words(found.study)))
    if borders := racing.borders(found.study, best.parameters):
        out.say(f"The best is at a border of the search: {borders}; search beyond it")


def _told(found: Any, best: Any, sought: str) -> str:
    chosen = best.parameters.items()
    values = ", ".join(f"{key}={shown(value)}" for key, value in chosen)
    low, high = best.value.low, best.value.high
    if best.diverged:
        sure = f"; {best.diverged} of its {best.fresh} new replicates missed"
    elif low == low:
        even = math.isclose(best.value.mean - low, high - best.value.mean, rel_tol=1e-6)
        what = "95 %" if even else "range"  # of what cannot be so low or high
        sure = f" ({what} from {low:.4g} to {high:.4g}, {best.fresh} new replicates)"
    else:
        sure = " (one new replicate: nothing can be said of chance)"
    return (
        f"Best of {found.tried}: {values}: {sought}: {best.value.mean:.4g}{sure}; "
        f"{found.runs} runs"
    )


@app.command(rich_help_panel="Run")
def timeline(
    scenario: Annotated[Path, typer.Argument(help="File, with or without a problem")],
    set_: Overrides = None,
    folder: Folder = None,
    gantt: Gantt = None,
    *,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            metavar="",
            help="Keep statistics only, not every job",
        ),
    ] = False,
    plots: Plots = True,
    form: Formats = None,
) -> None:
    """Simulate timing and staleness only, without training.

    A scenario can replay the folder: timeline: {replay: FOLDER}.
    """
    check_seconds(gantt)
    forms = formats(form, plots=plots)
    from ..scenario.reading import read_any
    from ..scenario.setting import BaseScenario

    asked = [*(set_ or ()), *(["record=summary"] if summary else [])]
    config = read_any(scenario, asked)
    if not isinstance(config, BaseScenario) and gantt:
        raise UserError("--gantt shows clients, but this world has none; leave it out")
    if config.record == "summary" and gantt:
        raise UserError(
            "--gantt needs every job, but the scenario has record: summary; leave it "
            "out, or record everything"
        )
    if isinstance(config, BaseScenario):
        say_remarks(config)
    with playing(folder, config.name) as (folder, hear):
        study = recorder_of(config)(config, folder, hear)
    printing.close_world(study, gantt, forms)


def check_seconds(gantt: float | None) -> None:
    """Refuses a Gantt picture of no length.

    Raises:
        UserError: It was requested.
    """
    if gantt is not None and not gantt > 0:
        raise UserError(f"--gantt must be > 0 seconds, got {gantt:g}; give some")


def recorder_of(world: "Varied") -> "Callable[..., Study]":
    """Returns the simulator of a world alone, which writes into a folder."""
    from ..parts.attached import worlds
    from ..studies.saved import record

    for kind in worlds():
        if isinstance(world, kind.scenario()):
            return kind.record()
    return record


@contextlib.contextmanager
def playing(
    folder: Path | None, name: str
) -> Iterator[tuple[Path, "Callable[[float], None]"]]:
    """Yields the folder of the simulation, and the callback of its progress.

    A mistake in a user's own part is a line and ends the program as a failed run does.
    """
    try:
        with (
            folders.chosen_or_new(folder, f"{name}-timeline") as folder,
            console.interruptible(folder),
            console.progress(name) as hear,
        ):
            yield folder, hear
    except UserError:
        raise
    except Exception as error:
        if not users_line(error):  # a defect of this program
            raise
        err.say(f"stalesim: {name} failed: {said(error)}", style="red")
        raise SystemExit(FAILED) from None
