"""Frames and texts as Markdown, as CSV that no spreadsheet computes, and as YAML."""

import math
import re
from collections.abc import Iterable

import pandas as pd

from ..simulator.parts.errors import UserError, printable
from ..simulator.scenario import dialect
from ..simulator.scenario.reading import without_nothing
from .facts import Entry

MARKUP = re.compile(r"[\\`*<&|~$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|\[(?=\^)")
"""Signs of Markdown: code, emphasis, tags, cells, mathematics, links."""

HEADINGS = {
    "group": "variant",
    "clients": "client group",
    "commits": "server updates",
    "contributions": "client updates",
    "staleness": "mean staleness",
    "embedding age": "mean embedding age",
}
"""Headings of columns in shown tables."""


def markdown(frame: pd.DataFrame) -> str:
    """Returns a frame, without its index, as a table in Markdown.

    Numbers are right-aligned, with four digits; missing cells are empty.

    Raises:
        UserError: It is no frame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise UserError(
            f"markdown must get a DataFrame, got {type(frame).__name__}; take a table "
            f"of the study, such as stalesim.tidy(study)"
        )
    names = [_cell(name) for name in frame.columns]
    rules = [
        "---:" if pd.api.types.is_numeric_dtype(frame.iloc[:, number]) else "---"
        for number in range(len(names))
    ]
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [names, rules, *cells])


def literal(text: str) -> str:
    """Returns a text as Markdown that shows it as it is, in a table or elsewhere.

    Signs of markup become references of HTML, which all its dialects know.
    """
    text = " ".join(printable(text).split("\n"))
    return MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", text)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return "" if value is None or value is pd.NA else literal(str(value))


def yaml_of(scenario: Entry) -> str:
    """Returns the scenario of a manifest as YAML that can be run.

    Entries without a value are left out, but in variants, where they remove something.
    """
    plain = {k: v for k, v in scenario.items() if k not in ("variants", "sweep")}
    kept = {k: v for k, v in scenario.items() if k not in plain and v}
    return dialect.dump(without_nothing(plain) | kept)


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a text begins that a spreadsheet computes, full-width signs among them."""


def no_formulas(table: pd.DataFrame, words: Iterable[str]) -> pd.DataFrame:
    """Returns a table whose words are no formulas.

    Spreadsheets compute a text that begins like a formula, whatever its origin. Such a
    text gets a single quote in front, which they do not show.

    Source: OWASP, CSV Injection.
    """
    formulas = {
        column: {word: quoted(word) for word in table[column].unique()}
        for column in words
    }
    return table.assign(
        **{
            column: table[column].map(known)
            for column, known in formulas.items()
            if any(isinstance(word, str) and word != q for word, q in known.items())
        }
    )


def quoted(cell: object) -> object:
    """Returns a cell; a text that begins like a formula, with a single quote."""
    formula = isinstance(cell, str) and cell.startswith(FORMULAS)
    return f"'{cell}" if formula else cell
