"""The command `lint`: what makes comparisons unfair, or their results artefacts."""

from pathlib import Path
from typing import Annotated

import typer

from .console import out

app = typer.Typer()

FOUND = 1
"""Exit status where something was found."""


@app.command()
def lint(
    scenarios: Annotated[
        list[Path],
        typer.Argument(
            help="scenario files, names of shipped ones, or folders of studies, whose "
            "results are looked at as well"
        ),
    ],
) -> None:
    """Warns of unfair comparisons and doubtful worlds: a line each, with the remedy.

    Variants, or both sides of a claim, that differ in more than their names say: in
    batches, samples a commit, evaluations, tuning; discarded work that is not counted,
    targets that were never reached, evaluations too rare for the difference. Of every
    world: laws without a mean, sweeps over laws of unequal means, and rounds that wait
    for clients that have left.
    Exits with 1 if anything was found.
    """
    from ...analysis import linting
    from .. import trace
    from ..scenario.reading import place, read_any
    from ..scenario.setting import BaseScenario
    from ..studies.running import scenario_of, where_started

    found = 0
    for path in scenarios:
        study = trace.load(path) if path.is_dir() else None
        if study is None:
            scenario = read_any(path)
        elif trace.is_world(study.manifest):
            continue
        else:
            with where_started(path):
                scenario = scenario_of(path)
        if not isinstance(scenario, BaseScenario):
            continue
        for keys, text in linting.findings(scenario, study):
            where = str(path) if study is not None else place(path, keys)
            out.say(f"{where}: {'.'.join(map(str, keys))}: {text}")
            found += 1
    if found:
        raise SystemExit(FOUND)
    out.say("No findings")
