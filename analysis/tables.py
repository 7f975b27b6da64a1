"""Tables of a study for print: results with intervals, verdicts; as LaTeX or Markdown.

Every mean has its 95 % t-interval, every time its interval of the median, and every
cell from which replicates are missing says how many there are.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..simulator.parts.errors import printable
from . import claims, instants, statistics, targets
from .escapes import chance
from .figures import style
from .frames import Study, first_metric, groups, runs, titled
from .markup import markdown
from .spending import protected, spending
from .summary import costs, staleness

AT_TARGET = (
    " Runs that reached stop.target ended there: their final values are of then."
)
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "²": r"\textsuperscript{2}",
}
IN_MATHEMATICS = {
    " ± ": r" \pm ",
    " [": r" \;[",
    "at least ": r"\geq ",
    "at most ": r"\leq ",
    "never": r"\mathrm{never}",
    "no bound": r"\mathrm{no\ bound}",
}
"""Words on numbers, and their signs."""
COMMENT = 86
"""Letters of a line of a comment."""
LONG, WIDTH = 30, 14
"""Letters from which a column's words are broken, and of a line of a heading."""


class Cell(NamedTuple):
    """A number with its interval, and of how many replicates it is.

    Attributes:
        estimate: Mean or median; infinite where a median was not reached.
        low: Lower end of its interval, NaN where there is none.
        high: Upper end, infinite where it is open.
        known: Replicates that have a value, or that reached the target.
        replicates: All replicates.
        symmetric: Whether the interval is written as a half-width.
        after: What a median that was not reached is not before.
    """

    estimate: float
    low: float
    high: float
    known: int
    replicates: int
    symmetric: bool
    after: float = math.inf


def results(study: Study, at: Sequence[float] = ()) -> pd.DataFrame:
    """Returns a row per group: how good, how fast, how stale, at which cost.

    Returns:
        Column `group`; `final ...` and `... after ...` (`Cell`, means with intervals);
        `s to ...` (`Cell`, medians); `staleness` and `largest staleness`,
        `commits`, `contributions` where a commit may apply several, `MB`, and what
        clients took where they have rates (numbers, means over replicates); where
        privacy is accounted for, `ε` (the largest of a client, and whether it is
        proved) and what it `protects`.

    Raises:
        StudyError: No run has ended, or a table is damaged.
    """
    metric = first_metric(study.manifest)
    known = groups(study)
    columns: dict[str, list] = {"group": list(known)}
    finals = targets.final_values(study, metric).groupby("group")["value"]
    columns[f"final {style.in_words(metric)}"] = [
        _mean(study, metric, finals.get_group(group)) for group in known
    ]
    for time in dict.fromkeys(at):
        of_group = _by_group(instants.means_at(study, metric, time))
        values = instants.values_at(study, metric, time)
        of_runs = values.groupby("group")["value"]
        columns[f"{style.in_words(metric)} after {instants.in_words(time)}"] = [
            _within(study, metric, _cell(of_group[group]), of_runs.get_group(group))
            for group in known
        ]
    target, reached = targets.time_to_default(study)
    times = _by_group(reached)
    goal = f"{style.in_words(target.metric)} {target.value:.3g}"
    columns[f"s to {goal if target.is_known else 'target'}"] = [
        _cell(times[group]) for group in known
    ]
    stale = staleness(study).reindex(known)
    columns["staleness"] = stale["mean"].tolist()
    columns["largest staleness"] = stale["max"].tolist()
    took = costs(study).loc[known].to_dict("list")
    return pd.DataFrame(columns | took | _privacy(study, known))


def verdicts(study: Study) -> pd.DataFrame:
    """Returns a row per claim: columns claim, verdict, measured, replicates, p."""
    found = claims.evaluate(study)
    p = ["" if np.isnan(p) else f"{p:.2g}" for p in found["corrected"]]
    return found[["claim", "verdict", "measured", "replicates"]].assign(p=p)


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table with its cells in words, for a terminal or a file."""
    return table.map(_in_words)


def to_markdown(table: pd.DataFrame) -> str:
    """Returns a table as Markdown."""
    return markdown(plain(table))


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table with a column per number, so that each can be read by programs.

    Cells become columns such as `final test accuracy: low`.
    """
    found = {}
    for name, column in table.items():
        if column.map(lambda cell: isinstance(cell, Cell)).all():
            for part in ("estimate", "low", "high", "known", "replicates"):
                found[f"{name}: {part}"] = [getattr(cell, part) for cell in column]
        else:
            found[name] = column
    return pd.DataFrame(found)


def to_latex(table: pd.DataFrame, caption: str, label: str, method: str = "") -> str:
    r"""Returns a table for LaTeX, which needs `\usepackage{booktabs}`."""
    cells = table.map(_in_latex).set_axis([_head(str(name)) for name in table], axis=1)
    shape = "".join(_shape(table[name]) for name in table)
    rows = cells.to_latex(index=False, escape=False, column_format=shape)
    about = textwrap.wrap(_escaped(method), COMMENT)
    lines = [
        r"% \usepackage{booktabs}",
        *(f"% {line}" for line in about),
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        f"\\caption{{{_escaped(caption)}}}",
        f"\\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', label)}}}",
        rows.rstrip(),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def caption(study: Study, at: Sequence[float] = ()) -> str:
    """Returns what the columns of `results` are, for a caption."""
    target, reached = targets.time_to_default(study)
    few, known = int(reached["replicates"].min()), ""
    if target.is_known:
        known = targets.resolution(
            targets.times_to_target(study, target.metric, target.value)
        )
    interval = f" [{statistics.interval_name(few)}]" if few > 1 else ""
    metric = first_metric(study.manifest)
    seen = (instants.seen_at(study, metric, time) for time in at)
    earlier = "".join(f" {words}." for words in dict.fromkeys(seen) if words)
    at_target = AT_TARGET if (runs(study)["stop"] == "target").any() else ""
    return (
        f"{titled(study.manifest)}. Final: mean of the last tenth of evaluations, ± "
        f"95 % t-interval, or {targets.RANGES}. "
        f"Times: median{interval}{known and f', {known}'}; {statistics.MIDDLE}. In "
        f"parentheses: replicates that count, where not all do. Staleness in commits; "
        f"MB up and down.{earlier}{_of_privacy(study)}{_unfinished(study)}{at_target}"
    )


def method(study: Study) -> str:
    """Returns how the numbers of `results` were found, and how sure divergence is."""
    return f"Of medians {statistics.MEDIANS}. {chance(study)}."


def _unfinished(study: Study) -> str:
    planned, ended = len(study.manifest["runs"]), len(runs(study))
    if ended == planned:
        return ""
    return (
        f" Incomplete: {ended} of {planned} runs have ended; the others are counted "
        f"nowhere (stalesim resume)."
    )


def _privacy(study: Study, known: list[str]) -> dict[str, list[str]]:
    spent = spending(study)
    epsilons = spent["epsilon"].map(lambda epsilon: f"{epsilon:.{statistics.DIGITS}g}")
    columns = {
        "ε": epsilons + " (" + spent["proof"] + ")",
        "protects": spent["protects"],
    }
    return {
        name: cells.reindex(known, fill_value="").tolist()
        for name, cells in columns.items()
        if cells.any()
    }


def _of_privacy(study: Study) -> str:
    by = spending(study)["basis"].unique()
    if not len(by):
        return ""
    words = "; ".join(filter(None, (" or ".join(by), protected(study))))
    return f" ε is that of the client that spent most, by {words}."


def _by_group(table: pd.DataFrame) -> dict[str, list[float]]:
    rows = table.itertuples(index=False, name=None)
    return {str(group): numbers for group, *numbers in rows}


def _cell(numbers: Sequence[float]) -> Cell:
    estimate, low, high, known, replicates, *after = map(float, numbers)
    symmetric = not after
    return Cell(estimate, low, high, int(known), int(replicates), symmetric, *after)


def _mean(study: Study, metric: str, values: pd.Series) -> Cell:
    there = values.dropna().to_numpy(np.float64)
    found = targets.mean_interval(study, metric, there)
    symmetric = np.isnan(found.low) or found == statistics.t_interval(there)
    return Cell(*found, there.size, len(values), bool(symmetric))


def _within(study: Study, metric: str, cell: Cell, values: pd.Series) -> Cell:
    """Returns a mean whose interval does not leave what its metric can be."""
    return cell if np.isnan(cell.low) else _mean(study, metric, values)


def _shape(column: pd.Series) -> str:
    if not column.map(lambda cell: isinstance(cell, str)).all():
        return "r"
    longest = max(map(len, column), default=0)
    return r"p{0.27\linewidth}" if longest > LONG else "l"


def _head(name: str) -> str:
    lines = r" \\ ".join(map(_escaped, textwrap.wrap(name, WIDTH)))
    return f"\\shortstack{{{lines}}}"


def _in_words(cell: object) -> object:
    if isinstance(cell, Cell):
        return _told(cell) + _counted(cell)
    return statistics.short(cell) if isinstance(cell, float) else cell


def _in_latex(cell: object) -> str:
    if isinstance(cell, Cell):
        told = _told(cell)
        for words, signs in IN_MATHEMATICS.items():
            told = told.replace(words, signs)
        return f"${told}${_counted(cell)}"
    text = _escaped(str(_in_words(cell)))
    is_long = isinstance(cell, str) and len(cell) > LONG
    return rf"\raggedright {text}" if is_long else text


def _told(cell: Cell) -> str:
    mean, low, high = cell.estimate, cell.low, cell.high
    if np.isinf(mean):
        return targets.not_reached(cell.after)
    if np.isnan(mean):
        return "-"
    if cell.symmetric and not np.isnan(low):
        half = (high - low) / 2
        return f"{statistics.rounded(mean, half)} ± {statistics.rounded(half, half)}"
    return str(statistics.Interval(mean, low, high))


def _counted(cell: Cell) -> str:
    if cell.known == cell.replicates:
        return ""
    return f" ({cell.known}/{cell.replicates})"


def _escaped(text: str) -> str:
    shown = (SPECIAL.get(letter, letter) for letter in printable(text))
    return "".join(one if one.isascii() else _escape(one) for one in shown)


def _escape(letter: str) -> str:
    return r"\textbackslash{}" + letter.encode("ascii", "backslashreplace").decode()[1:]
