"""Shows what came out: plans, closing tables, figures and claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from simulator.cli.console import err, out

if TYPE_CHECKING:
    import pandas as pd

    from simulator.studies.memory import Estimate
    from simulator.trace import Study


SHOWN = 40
"""Batches that a plan shows one by one."""


def show_plan(runs: list[Any], tasks: list[Any], memory: "Estimate") -> None:
    """Shows which runs of a study would be executed together, and with what memory."""
    table = Table("batch", "mode", "runs", "which", box=None)
    for number, task in enumerate(tasks[:SHOWN]):
        labels = dict.fromkeys(run.label for run in task.runs)
        table.add_row(str(number), task.mode, str(len(task.runs)), "; ".join(labels))
    out.print(table)
    if len(tasks) > SHOWN:
        out.print(f"... and {len(tasks) - SHOWN} batches more")
    out.print(f"{len(runs)} runs in {len(tasks)} batches; nothing was run")
    out.print(
        f"memory: about {memory.total / 2**20:.0f} MiB: {memory.processes} processes "
        f"with {memory.process / 2**20:.0f} MiB each for the program, "
        f"{memory.data / 2**20:.0f} for data and up to {memory.state / 2**20:.0f} for "
        f"a batch",
        soft_wrap=True,
        highlight=False,
    )


def close(study: "Study", *, plots: bool) -> None:
    """Shows the closing table and the claims of a study, and draws its figures."""
    from analysis import claims, summary

    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    show_table(f"{study.manifest['name']}: {metric}", summary.summary(study))
    found = claims.evaluate(study)
    show_claims(found)
    if plots:
        draw(study)
    out.print(f"Study: {study.folder}", soft_wrap=True)


def show_failures(study: "Study") -> bool:
    """Says which runs failed, and why; returns whether any did."""
    runs = study.manifest["runs"]
    failed = [run for run in runs if run["stop"] == "failed"]
    if not failed:
        return False
    reasons: dict[str, list[str]] = {}
    for run in failed:
        name = f"{run['label']} (replicate {run['replicate']})"
        reasons.setdefault(run["stop_reason"], []).append(name)
    for reason, names in reasons.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        err.print(
            f"stalesim: {names[0]}{others} failed: {reason}",
            style="red",
            markup=False,
            soft_wrap=True,
        )
    err.print(
        f"stalesim: {len(failed)} of {len(runs)} runs failed; the others are in "
        f"{study.folder}; stalesim resume {study.folder} tries these again",
        style="red",
        markup=False,
        soft_wrap=True,
    )
    return True


def draw(study: "Study", form: str = "png", styles: Sequence[str] = ()) -> None:
    """Draws the standard figures of a study into its folder, in Matplotlib's styles."""
    from analysis import report

    for path in report.save(study, study.folder, form, styles):
        out.print(f"Figure: {path}", soft_wrap=True)


def close_timeline(
    study: "Study", seconds: float | None, chrome: Path | None, *, plots: bool
) -> None:
    """Shows the tables of a timeline; draws its figures and writes its trace events.

    Args:
        study: a timeline without numerics.
        seconds: virtual seconds of the Gantt picture; by default about 60 jobs.
        chrome: file for trace events, if any.
        plots: whether figures are drawn.
    """
    from analysis import timeline_report

    for title, frame in timeline_report.tables(study):
        show_table(title, frame)
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
        draw_timeline(study, seconds)
    if chrome is not None:
        timeline_report.export(study, chrome)
        out.print(f"Trace events: {chrome}", soft_wrap=True)
    out.print(f"Timeline: {study.folder}", soft_wrap=True)


def draw_timeline(
    study: "Study",
    seconds: float | None,
    form: str = "png",
    styles: Sequence[str] = (),
) -> None:
    """Draws the figures of a timeline into its folder, the Gantt picture so long."""
    from analysis import timeline_report

    for path in timeline_report.save(study, study.folder, seconds, form, styles):
        out.print(f"Figure: {path}", soft_wrap=True)


def show_table(title: str, frame: "pd.DataFrame") -> None:
    """Shows a table under its title."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in frame.columns:
        table.add_column(str(column), overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(value) for value in row))
    out.print(table)


def show_claims(found: "pd.DataFrame") -> None:
    """Shows which claims hold, and by what; those that are no paper's say whose."""
    from analysis import claims

    colours = {"holds": "green", "does not hold": "red"}
    rows: Any = found.itertuples()
    for claim in rows:
        style = colours.get(str(claim.verdict), "yellow")
        whose = "" if claim.origin == "paper" else f" ({claim.origin})"
        out.print(f"[{style}]{claim.verdict}[/]: {claim.says}{whose}", soft_wrap=True)
        out.print(
            f"    {claim.claim}; {claim.measured}; {claim.replicates} replicates; "
            f"{claim.why}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    if len({*found["origin"]}) > 1:
        out.print(f"claims by origin: {claims.in_words(found)}", highlight=False)


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
