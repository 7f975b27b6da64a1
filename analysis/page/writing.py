"""A study as one page that needs nothing else: results, method, how to repeat it."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import jinja2
import pandas as pd

from ...simulator.files.study import Study, StudyError, is_world
from ...simulator.files.study.study import look_until_complete
from ...simulator.parts.errors import counted, printable
from .. import choices, claims, legend, speeds, staleness, tables, worlds
from ..claims.findings import in_words, number, sentences
from ..claims.verdict import PRINTED
from ..facts import worded
from ..figures import report as study_report
from ..files import write_text
from ..frames import first_metric, titled
from ..markup import HEADINGS, yaml_of
from . import method, pictures, repeating, runs
from .words import Marked
from .world import imported

NAME = "report.html"
"""Name of the page in a study's folder."""
ENDINGS = (".html", ".htm")
EVERY_S = 5.0
"""Real seconds between reads of the study, and between reloads."""
RELOAD = f'<meta http-equiv="refresh" content="{EVERY_S:g}">\n'
NUMBERS = re.compile(r"(?:[-+±≥\d.,e%/>()\[\]\s]|never|none|nan|inf)*")
"""A cell with a number, also with its interval and count."""


def write(study: Study, file: str | Path | None = None) -> Path:
    """Writes a study's page, as `html` returns it.

    Returns:
        Path of the page.

    Raises:
        StudyError: The study is damaged or empty, or the page cannot be written.
    """
    return write_html(study, html(study), file)


def write_html(study: Study, text: str, file: str | Path | None = None) -> Path:
    """Writes the text of a study's page, as `write` does."""
    path = study.folder / NAME if file is None else Path(file)
    if path.suffix.lower() not in ENDINGS:
        raise StudyError(
            f"--out must be a file that ends in .html, got {path}; rename it"
        )
    elsewhere = "choose another file by --out, in a folder that exists"
    write_text(path, text, "the page", elsewhere)
    return path


def watch(study: Study, file: str | Path | None = None) -> None:
    """Writes a study's page again and again, until the study is complete.

    The page reloads itself for as long.

    Raises:
        StudyError: As in `write`.
    """
    text, before = "", None

    def look(study: Study) -> None:
        nonlocal text, before
        now = study.manifest, study.files, len(study.so_far())
        if now != before:
            text = html(study, so_far=True)
            reloading = text.replace("<head>\n", f"<head>\n{RELOAD}", 1)
            write_html(study, reloading, file)
        before = now

    try:
        look_until_complete(study, look, EVERY_S)
    finally:
        if text:
            write_html(study, text, file)


def html(study: Study, *, so_far: bool = False) -> str:
    """Returns a study as one HTML page without references to anything outside.

    The same study gives the same page.

    Raises:
        StudyError: The study is damaged, or no run has ended.
    """
    manifest = study.manifest
    nothing = so_far and not runs.ended(manifest)
    runs.check(manifest, str(study.folder / "manifest.json"))
    is_alone = is_world(manifest)
    drawn = worlds.report_of(study.manifest) if is_alone else study_report
    tables = [] if nothing else list(_tables(study))
    found = pd.DataFrame() if is_alone or nothing else claims.evaluate(study)
    if len(found):
        found = found.replace({"verdict": PRINTED})
        found["number"] = found["measured"].map(number)
        found["measured"] = found["measured"].map(in_words)
        found["says"] = sentences(found)
    sentence, complete = runs.status(manifest)
    troubled, under_way = runs.troubled(manifest), runs.under_way(study)
    scenario = yaml_of(manifest["scenario"])
    name = f"{manifest['name']}.yaml"
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            manifest=manifest,
            title=titled(manifest),
            status=sentence,
            complete=complete,
            tables=tables,
            claims=found.to_dict("records"),
            verdicts=_verdicts(found) if len(found) else "",
            meanings={} if is_alone or nothing else legend.legend(study),
            details=[] if is_alone or nothing else legend.details(study),
            figures=[
                pictures.picture(name, figure, drawn.caption(name))
                for name, figure in (() if nothing else drawn.standard(study))
            ],
            reasons=_table("", runs.reasons(manifest)),
            troubled=_table("", troubled) if len(troubled) else None,
            under_way=_table("", under_way) if len(under_way) else None,
            sections={} if nothing else method.checklist(manifest),
            scenario=scenario,
            scenario_name=name,
            scenario_uri=pictures.data_uri("application/yaml", scenario.encode()),
            started="\n".join(repeating.started(manifest)),
            commands=list(repeating.commands(manifest, name)),
            cautions=list(repeating.cautions(manifest)),
            needed=repeating.needed(manifest),
            quoted=repeating.QUOTED,
            imported=imported(manifest["scenario"]),
        )
    )


def _tables(study: Study) -> Iterator[dict[str, object]]:
    if is_world(study.manifest):
        for title, frame in worlds.report_of(study.manifest).tables(study):
            yield _table(title, frame)
        return
    metric = first_metric(study.manifest)
    title = f"Final values are of {metric}."
    yield _table(title, tables.plain(tables.results(study)), legend.remarks(study))
    if notes := choices.notes(study):
        yield _table(choices.TITLE.capitalize(), choices.table(study), notes)
    if (fast := speeds.table(speeds.by_run(study))) is not None:
        own = partial(worded, study.manifest)
        title, fast = own(speeds.TITLE.capitalize()), fast.rename(columns=own)
        yield _table(title, fast, [f"{speeds.WHOLE}; {speeds.NOTE}"])
    if len(divided := staleness.divided(study)):
        title = worded(study.manifest, "Staleness (server updates) by client group")
        yield _table(title, divided)


def _table(
    title: str, frame: pd.DataFrame, notes: Sequence[str] = ()
) -> dict[str, object]:
    rows = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in frame.itertuples(index=False)
    ]
    columns = zip(*rows, strict=True)
    numeric = [all(map(NUMBERS.fullmatch, cells)) for cells in columns]
    return {
        "title": title,
        "columns": list(map(str, frame.rename(columns=HEADINGS).columns)),
        "rows": rows,
        "numeric": numeric,
        "notes": notes,
    }


def _verdicts(found: pd.DataFrame) -> str:
    counts = found["verdict"].value_counts()
    if counts.index.tolist() == [claims.HOLDS]:
        few = {1: "The claim holds.", 2: "Both claims hold."}
        return few.get(len(found), f"All {len(found)} claims hold.")
    words = (f"{word} ({number})" for word, number in counts.items())
    return f"{counted(len(found), 'claim')}: {', '.join(words)}."


def environment() -> jinja2.Environment:
    """Returns the environment of the pages' templates."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("stalesim.analysis.page"),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.tests["marked"] = lambda text: isinstance(text, Marked)
    return found
