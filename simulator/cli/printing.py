"""Shows results: plans, closing tables, figures and claims."""

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..parts.errors import (
    LONGEST,
    brief,
    counted,
    one_line,
    printable,
    shortened,
)
from . import columns
from .console import drawing, err, out

if TYPE_CHECKING:
    import pandas as pd

    from ...analysis.timelines.view import View
    from ..files.study import Study
    from ..scenario.setting import Varied
    from ..scenario.study import Run
    from ..studies.planning import Task


SHOWN = 40
"""Models whose sizes a plan shows."""
EXPLAINED = "[ ]: 95 % interval; p: exact sign test, corrected (by Holm) for all claims"
"""Words below verdicts."""
COLOURS = {"holds": "green", "does not hold": "red"}
NEXT = {
    "report": "all results on one HTML page",
    "check": "how each claim was judged",
    "tables --legend": "all columns, and what they mean",
}
"""Commands on a finished study, and their purposes."""
MANY = 200_000
"""Contributions that take some seconds to measure, so that a line announces it."""


def show_plan(
    runs: "Sequence[Run]", tasks: "Sequence[Task]", memory: tuple[int, int, int]
) -> None:
    """Shows the tasks of a study before it is run, and the memory that it needs.

    Args:
        runs: All runs.
        tasks: Tasks by which they would be executed.
        memory: Processes, and bytes in each for data and batches (`sizes.memory`).
    """
    from ..studies.sizes import PROGRAM

    table = Table("variant", "points", "replicates", "runs", "mode", box=None)
    by_variant: dict[str, list[tuple[Run, str]]] = {}
    for task in tasks:
        for run in task.runs:
            by_variant.setdefault(run.variant, []).append((run, task.mode))
    for variant, mine in by_variant.items():
        points = {run.label for run, _ in mine}
        replicates = {run.replicate for run, _ in mine}
        numbers = len(points), len(replicates), len(mine)
        modes = dict.fromkeys(mode for _, mode in mine)
        table.add_row(_named(variant), *map(str, numbers), ", ".join(modes))
    out.print(table)
    batches = counted(len(tasks), "batch", "batches")
    out.say(f"{counted(len(runs), 'run')} in {batches}; nothing was run")
    processes, *parts = memory
    program, data, batch = (size / 2**20 for size in (PROGRAM, *parts))
    out.say(
        f"memory: about {processes * (program + data + batch):.0f} MiB in "
        f"{counted(processes, 'process', 'processes')}; in each: "
        f"program {program:.0f}, data {data:.0f}, batch {batch:.0f}"
    )


def show_sizes(sizes: "Mapping[tuple[str, str, str], Sequence[str]]") -> None:
    """Shows the sizes of models and jobs, and any data in place of real ones."""
    from ...analysis.facts import words_on_data

    for line in words_on_data((name, scaling) for name, scaling, _ in sizes):
        out.say(line)
    for (_, _, words), variants in itertools.islice(sizes.items(), SHOWN):
        whose = f" of {', '.join(variants)}" if len(sizes) > 1 else ""
        out.say(words.format(whose))


def show_inherited(scenario: "Varied") -> None:
    """Shows the settings that variants of another kind inherit, if any."""
    from ..scenario.study import inherited

    for variant, told in inherited(scenario).items():
        for each in told:
            out.say(f"variants.{variant}.{each}")


def close(study: "Study", forms: Sequence[str]) -> None:
    """Shows the results of a study in short, draws its figures, and names next steps.

    Args:
        study: Study with at least one run that has ended.
        forms: Formats of its figures; none are drawn in none.
    """
    from ..parts import plugins

    show_results(study, brief=True)
    drawn = len(list(draw(study, forms, few=True))) if forms else 0
    figures = f" ({counted(drawn, 'figure')} in figures/)" if drawn else ""
    out.print()
    out.say(f"Study: {study.folder}{figures}")
    out.print("Next:")
    judged = study.manifest["scenario"].get("claims")
    commands = {
        plugins.command(name, study.folder): what
        for name, what in NEXT.items()
        if judged or name != "check"
    }
    width = max(map(len, commands))
    for command, what in commands.items():
        out.say(f"  {command:<{width}}  {what}")


def show_results(study: "Study", at: Sequence[float] = (), *, brief: bool) -> None:
    """Shows the results of a study, remarks for its reader, and the verdicts.

    Args:
        study: Study with at least one run that has ended.
        at: Virtual seconds at which the first metric is shown as well.
        brief: Whether columns without room, and client groups, are left out.
    """
    from ...analysis import claims, escapes, legend, staleness, tables
    from ...analysis.facts import worded
    from ...analysis.frames import titled

    name, results = titled(study.manifest), tables.results(study, at)
    if brief:
        results = tables.brief(results)
    show_table(name, tables.plain(results), whole=not brief)
    for remark in legend.remarks(study):
        out.print(remark)
    for warning in escapes.warnings(study):
        err.say(f"stalesim: warning: {warning}", style="yellow")
    idle = [run for run in study.manifest["runs"] if run.get("commits") == 0]
    if idle:
        update = worded(study.manifest, "server update")
        err.say(
            f"stalesim: warning: {counted(len(idle), 'run')} without a {update}, "
            f"so nothing was learned ({_named(idle[0]['label'])}: "
            f"{idle[0]['stop_reason']}); commit sooner, or stop later",
            style="yellow",
        )
    show_choices(study)
    if not brief and len(divided := staleness.divided(study)):
        title = worded(study.manifest, "staleness (server updates)")
        show_table(f"{name}: {title}", divided)
    show_verdicts(claims.evaluate(study))


def show_legend(study: "Study", at: Sequence[float]) -> None:
    """Shows the meaning of the columns of `show_results`."""
    from ...analysis import legend

    table = Table.grid(padding=(0, 2))
    for name, meaning in legend.legend(study, at).items():
        table.add_row(name, meaning)
    out.print("", table, *legend.details(study), sep="\n", style="dim")


def show_choices(study: "Study") -> None:
    """Shows the tuned values of the variants of a comparison, if it is one."""
    from ...analysis import choices

    if notes := choices.notes(study):
        show_table(f"{study.manifest['name']}: {choices.TITLE}", choices.table(study))
    for note in notes:
        out.print(note, style="dim")


def prepare(forms: Sequence[str]) -> None:
    """Imports what closing a study needs, which takes a second.

    Args:
        forms: Formats of its figures, as in `close`.
    """
    from ...analysis import claims, legend  # noqa: F401

    if forms:
        from ...analysis.figures import report  # noqa: F401


def show_failures(study: "Study") -> bool:
    """Shows the runs that failed, and why; returns whether any did."""
    from ..parts import plugins

    runs = study.manifest["runs"]
    failed = [run for run in runs if run["stop"] == "failed"]
    if not failed:
        return False
    reasons: dict[str, list[str]] = {}
    for run in failed:
        name = f"{_named(run['label'])} (replicate {run['replicate']})"
        reasons.setdefault(run["stop_reason"], []).append(name)
    for reason, names in reasons.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        err.say(f"stalesim: {names[0]}{others} failed: {reason}", style="red")
    err.say(
        f"stalesim: {len(failed)} of {len(runs)} runs failed; the others are in "
        f"{study.folder}; {plugins.command('resume', study.folder)} tries these again",
        style="red",
    )
    return True


def draw(
    study: "Study",
    forms: Sequence[str],
    styles: Sequence[str] = (),
    at: Sequence[float] = (),
    maps: Sequence[str] = (),
    metric: str | None = None,
    against: str | None = None,
    target: float | None = None,
    *,
    few: bool = False,
) -> Iterator[Path]:
    """Draws the standard figures of a study into its folder; yields their files.

    Args:
        study: Study with numerics.
        forms: Formats of its figures.
        styles: Venues, or styles of Matplotlib.
        at: Virtual seconds at which the first metric is drawn as well.
        maps: Variants, with slashes between them, of further maps of winners.
        metric: Metric of further figures; by default the study's first one.
        against: Count of a further figure, or swept key, in full or its end.
        target: Value of the metric to which times are drawn: bars, and a heat map
            where two keys are swept.
        few: Whether the first figures are enough.
    """
    from ...analysis import figures, frames
    from ...analysis.figures import files, heat_maps, lines, report, winner_maps

    drawn = [winner_maps.of_target(study, names.split("/")) for names in maps]
    of, key = metric or frames.first_metric(study.manifest), against or "time"
    if key not in frames.COUNTED and lines.key_named(study, key):
        figure = figures.final_over(study, key, of)
        drawn.append((files.plain(f"{of}-over-{key}"), figure))
    elif metric or against:
        figure = figures.convergence(study, of, key)
        drawn.append((files.plain(f"{of}-against-{key}"), figure))
    if target is not None:
        figure = figures.speed_up_bars(study, of, target)
        drawn.append((name := f"time-to-target-{target:g}", figure))
        if (keys := heat_maps.grid_keys(study)) is not None:
            name += f"-over-{'-and-'.join(map(files.plain, keys))}"
            drawn.append((name, figures.heat_map(study, of, keys, target)))
    yield from files.save_all(study, drawn, report.caption, study.folder, forms, styles)
    with drawing() as count:
        folder = study.folder
        yield from report.saved(study, folder, forms, styles, at, count, few=few)


def close_world(study: "Study", seconds: float | None, forms: Sequence[str]) -> None:
    """Shows the tables of a world, and draws its figures.

    Args:
        study: a world without numerics.
        seconds: Virtual seconds of the Gantt picture; by default about 60 jobs.
        forms: Formats of its figures; none are drawn in none.
    """
    from ...analysis import doubts, worlds
    from ...analysis.facts import worded

    report = worlds.report_of(study.manifest)
    seen = report.view(study)
    contributions = sum(run.get("contributions", 0) for run in study.manifest["runs"])
    if contributions > MANY:
        err.print(f"Measuring {contributions:,} client updates ...", highlight=False)
    for title, frame in report.tables(seen):
        show_table(title, frame)
    runs = study.manifest["runs"]
    which = " (replicate 0)" if any(run["replicate"] for run in runs) else ""
    for run in runs:
        if run["replicate"] == 0:
            out.say(
                f"{_named(run['label'])}{which}: "
                f"{counted(run['commits'], worded(study.manifest, 'server update'))}, "
                f"{counted(run['contributions'], 'client update')} in "
                f"{run['virtual_s']:.4g} virtual s; {run['stop_reason']}"
            )
    for note in doubts.notes(study):
        out.print(note, style="dim")
    if forms:
        if contributions > MANY:
            err.print("Drawing ...")
        draw_world(study, seconds, forms, seen=seen)
    out.say(f"Timeline: {study.folder}")


def draw_world(
    study: "Study",
    seconds: float | None,
    forms: Sequence[str],
    styles: Sequence[str] = (),
    seen: "View | None" = None,
) -> None:
    """Draws the figures of a world into its folder, the Gantt picture so long."""
    from ...analysis import worlds
    from ...analysis.figures.files import save_all

    report = worlds.report_of(study.manifest)
    drawn = report.standard(seen or study, seconds)
    for path in save_all(study, drawn, report.caption, study.folder, forms, styles):
        out.say(f"Figure: {path}")


NAMES = ("variant", "client group", "measure")
"""Columns that identify a row of a table."""


def show_table(title: str, frame: "pd.DataFrame", *, whole: bool = True) -> None:
    """Shows a table under its title, as several if the terminal is too narrow.

    Args:
        title: Title.
        frame: Rows.
        whole: Whether columns that have no room make a further table.
    """
    from ...analysis.markup import HEADINGS

    frame = frame.rename(columns=HEADINGS)
    every = [
        columns.TableColumn(
            printable(str(name)), [printable(_text(value)) for value in cells]
        )
        for name, cells in frame.items()
    ]
    names = sum(1 for _ in itertools.takewhile(NAMES.__contains__, frame))
    out.print(_named(title))
    for number, part in enumerate(columns.parts(every, out.width, max(names, 1))):
        if number:
            out.print("(continued)")
        table = Table(
            box=box.SIMPLE_HEAD,
            padding=(0, columns.GAP - 1, 0, 0),
            pad_edge=False,
        )
        for column, width in zip(part, columns.widths(part, out.width), strict=True):
            table.add_column(column.title, overflow="fold", width=width)
        for row in zip(*(column.cells for column in part), strict=True):
            table.add_row(*row)
        out.print(table)
        if not whole:
            return


def show_verdicts(found: "pd.DataFrame") -> None:
    """Shows the verdicts on claims, a line each; `show_claims` shows the reasons."""
    from ...analysis.claims.findings import number, sentences
    from ...analysis.claims.verdict import PRINTED

    table = Table.grid(padding=(0, 2))
    for narrow in (True, False, False, True):
        table.add_column(no_wrap=narrow, overflow="fold")
    rows: Any = zip(found.itertuples(), sentences(found), strict=True)
    for claim, said in rows:
        style = COLOURS.get(str(claim.verdict), "yellow")
        verdict = Text(PRINTED.get(str(claim.verdict), str(claim.verdict)), style)
        measured = number(claim.measured)
        p = f"p = {claim.corrected:.2g}" if claim.corrected >= 0 else ""
        says = one_line(brief(said))
        table.add_row(verdict, says, measured.replace("at least ", "≥ "), p)
    if len(found):
        out.print("", table, sep="\n")
        out.print(EXPLAINED, style="dim")


def show_claims(found: "pd.DataFrame") -> None:
    """Shows the verdicts on claims, with their origins where these differ."""
    from ...analysis.claims.findings import in_words, sentences
    from ...analysis.claims.verdict import PRINTED

    rows: Any = zip(found.itertuples(), sentences(found), strict=True)
    for claim, said in rows:
        style = COLOURS.get(str(claim.verdict), "yellow")
        says = f": {one_line(brief(said))}"
        verdict = PRINTED.get(str(claim.verdict), str(claim.verdict))
        out.print(Text.assemble((verdict, style), says))
        parts = claim.claim, in_words(claim.measured), f"{claim.replicates} replicates"
        reason = one_line("; ".join(map(brief, (*parts, claim.why))))
        lines = textwrap.wrap(reason, out.width - 4, break_on_hyphens=False)
        out.print(textwrap.indent("\n".join(lines), "    "))
    if len(found):
        out.print(EXPLAINED, style="dim")


def _named(label: str) -> str:
    return one_line(shortened(label, LONGEST))


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return shortened(str(value), LONGEST)
