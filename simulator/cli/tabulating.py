"""Results of a study as tables: in the terminal, or as LaTeX, Markdown or csv."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ..parts.errors import UserError
from . import printing
from .console import out

if TYPE_CHECKING:
    import pandas as pd

    from ...analysis.frames import Study

ENDINGS = (".tex", ".md", ".csv")


def write(
    study: "Study",
    at: Sequence[float],
    file: Path | None,
    *,
    latex: bool,
    explained: bool = False,
) -> None:
    """Shows the tables of a study, or writes them into a file.

    Args:
        study: Study with numerics.
        at: Virtual seconds at which the first metric is shown as well.
        file: File, whose ending says the form; none for the terminal.
        latex: Whether LaTeX is shown.
        explained: Whether the terminal shows what the columns mean.

    Raises:
        UserError: The file has another ending, or cannot be written.
    """
    from ...analysis import choices, legend, tables
    from ...analysis.frames import data_sets, titled

    if file is not None and file.suffix not in ENDINGS:
        raise UserError(
            f"--out must be a file that ends in {', '.join(ENDINGS)}, got {file}; "
            f"rename it"
        )
    results = tables.results(study, at)
    if file is None and not latex:
        _show(study, tables.plain(results))
        if explained:
            _explain(legend.legend(study, at), legend.details(study))
        return
    verdicts = tables.verdicts(study)
    name, chosen = titled(study.manifest), choices.table(study)
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
        text = f"{legend.caption(study, at)}\n\n{tables.to_markdown(results)}"
        text += f"\n{legend.method(study)}\n"
        text += "".join(f"\n{tables.to_markdown(table)}" for table, *_ in others)
    else:
        caption, method = legend.caption(study, at), legend.method(study)
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


def _show(study: "Study", results: "pd.DataFrame") -> None:
    from ...analysis import claims, legend, staleness
    from ...analysis.frames import titled

    name = titled(study.manifest)
    printing.show_table(name, results)
    for remark in legend.remarks(study):
        out.print(remark)
    printing.show_choices(study)
    divided = staleness.by_client_group(study)
    if len(divided):
        printing.show_table(f"{name}: staleness (server updates)", divided)
    printing.show_verdicts(claims.evaluate(study))


def _explain(meanings: dict[str, str], details: list[str]) -> None:
    table = Table.grid(padding=(0, 2))
    for name, meaning in meanings.items():
        table.add_row(name, meaning)
    out.print("", table, *details, sep="\n", style="dim")
