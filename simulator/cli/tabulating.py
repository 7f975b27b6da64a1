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
        file: File, whose ending says the form; none for the terminal.
        latex: Whether LaTeX is shown.

    Raises:
        UserError: The file has another ending, or cannot be written.
    """
    from ...analysis import choices, tables
    from ...analysis.frames import data_sets, titled

    if file is not None and file.suffix not in ENDINGS:
        raise UserError(
            f"--out must be a file that ends in {', '.join(ENDINGS)}, got {file}; "
            f"rename it"
        )
    results, verdicts = tables.results(study, at), tables.verdicts(study)
    name, chosen = titled(study.manifest), choices.table(study)
    if file is None and not latex:
        printing.show_table(name, tables.plain(results))
        out.say(tables.caption(study, at).removeprefix(f"{name}. "))
        out.say(tables.method(study))
        printing.show_choices(study)
        if len(verdicts):
            printing.show_table(f"{name}: verdicts on claims", tables.plain(verdicts))
        return
    form, label = ".tex" if file is None else file.suffix, study.manifest["name"]
    others = []
    if len(chosen):
        said = f"{name}: {choices.TITLE}. {'; '.join(choices.notes(study))}."
        others.append((chosen, said, f"{label}-choices"))
    if len(verdicts):
        said = f"{name}. Verdicts on claims, p corrected by Holm."
        others.append((verdicts, said, f"{label}-claims"))
    if form == ".csv":
        data = ", ".join(data_sets(study.manifest))
        text = tables.numbers(results).assign(data=data).to_csv(index=False)
    elif form == ".md":
        text = f"{tables.caption(study, at)}\n\n{tables.to_markdown(results)}"
        text += f"\n{tables.method(study)}\n"
        text += "".join(f"\n{tables.to_markdown(table)}" for table, *_ in others)
    else:
        caption, method = tables.caption(study, at), tables.method(study)
        text = tables.to_latex(results, caption, label, method)
        for table, said, of_table in others:
            text += f"\n{tables.to_latex(table, said, of_table)}"
    if file is None:
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{file} must be a file that can be written, got: {error.strerror}; choose "
            f"another one by --out"
        ) from error
    out.say(f"Written: {file}")
