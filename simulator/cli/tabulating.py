"""Results of a study as tables: in the terminal, or as LaTeX, Markdown or csv."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..parts.errors import UserError
from . import printing
from .console import out

if TYPE_CHECKING:
    from ...analysis.frames import Study

ENDINGS = (".tex", ".md", ".csv")


def write(
    study: "Study", at: Sequence[float], file: Path | None, *, latex: bool
) -> None:
    """Shows the tables of a study, or writes them into a file.

    Args:
        study: Study with numerics.
        at: Virtual seconds at which the first metric is shown as well.
        file: File, whose ending determines the format; none for the terminal.
        latex: Whether LaTeX is shown.

    Raises:
        UserError: The file has another ending, or cannot be written.
    """
    from ...analysis import choices, legend, tables
    from ...analysis.frames import configurations, data_sets, titled
    from ...analysis.markup import markdown

    _check(file, ENDINGS)
    if file is None and not latex:
        printing.show_results(study, at, brief=False)
        return
    results, verdicts = tables.results(study, at), tables.verdicts(study)
    name, label = titled(study.manifest), study.manifest["name"]
    form, shown = file.suffix if file else ".tex", tables.by_point(study, results)
    others = []
    if notes := choices.notes(study):
        said = f"{name}: {choices.TITLE}. {'; '.join(notes)}."
        others.append((choices.table(study), said, f"{label}-choices"))
    if len(verdicts):
        said = f"{name}. Verdicts on claims, p corrected by Holm."
        others.append((verdicts, said, f"{label}-claims"))
    if form == ".csv":
        found = configurations(study).merge(tables.numbers(results), on="group")
        found["data"] = ", ".join(data_sets(study.manifest))
        text = found.to_csv(index=False)
    elif form == ".md":
        text = f"{legend.caption(study, at)}\n\n{markdown(tables.plain(shown))}"
        text += f"\n{legend.method(study)}\n"
        text += "".join(f"\n{markdown(tables.plain(table))}" for table, *_ in others)
    else:
        caption, method = legend.caption(study, at), legend.method(study)
        text = tables.to_latex(tables.brief(shown), caption, label, method)
        for table, said, of_table in others:
            text += f"\n{tables.to_latex(table, said, of_table)}"
    if file is None:
        sys.stdout.write(text)
    else:
        _save(file, text)


def write_clients(study: "Study", file: Path | None) -> None:
    """Shows how each client spent its time, or writes it into a .csv file."""
    from ...analysis import by_client

    _check(file, (".csv",))
    found = by_client(study)
    if file is not None:
        _save(file, found.to_csv(index=False))
        return
    shown = found.loc[:, "group":"idle"]  # before what is measured after the start
    title = f"{study.manifest['name']}: virtual seconds of clients, and their shares"
    printing.show_table(title, shown.rename(columns=lambda x: x.replace("_s", " (s)")))


def _check(file: Path | None, endings: Sequence[str]) -> None:
    if file is not None and file.suffix not in endings:
        raise UserError(
            f"--out must be a file that ends in {', '.join(endings)}, got {file}; "
            f"rename it"
        )


def _save(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{file} must be a file that can be written, got: {error.strerror}; choose "
            f"another one by --out"
        ) from error
    out.say(f"Written: {file}")
