"""Tables of a study for print: results with intervals, verdicts; as LaTeX or Markdown.

Every mean has its 95 % t-interval, every time its interval of the median, and every
cell with missing replicates their count.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError, metric_of_study
from ..simulator.files.study.measured import metrics_of_manifest
from ..simulator.parts.errors import printable
from ..simulator.scenario.study import short_names
from . import claims, facts, frames, instants, statistics, targets
from .claims.findings import in_words
from .claims.measured import as_written
from .claims.verdict import PRINTED
from .expenses import joules_by_end
from .frames import Study, first_metric
from .markup import HEADINGS
from .spending import spending
from .staleness import exact, measured

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
    "unbounded": r"\mathrm{unbounded}",
}
"""Words on numbers, and their signs."""
COMMENT = 86
"""Letters of a line of a comment."""
LONG, WIDTH = 30, 10
"""Letters from which a column's words are broken, and of a line of a heading."""
COUNTS = HEADINGS | {"bytes": "MB", "epsilon": "ε"}
"""Names of counts in headings."""
AGES = {"staleness": "contribution", "embedding age": "embedding"}
"""Quantities of the table `staleness`, by columns."""
BROKEN = 0.6
"""Part of a line that columns with broken words share."""


class Cell(NamedTuple):
    """A number with its interval, and of how many replicates it is.

    Attributes:
        estimate: Mean or median; infinite where a median was not reached.
        low: Lower end of its interval, NaN where there is none.
        high: Upper end, infinite where it is open.
        known: Replicates that have a value, or that reached the target.
        replicates: All replicates.
        symmetric: Whether the interval is written as a half-width.
        after: Lower bound of a median that was not reached.
    """

    estimate: float
    low: float
    high: float
    known: int
    replicates: int
    symmetric: bool
    after: float = math.inf


def results(study: Study, at: Sequence[float] = ()) -> pd.DataFrame:
    """Returns a row per group: how fast, how good, how stale, at which cost.

    `legend` explains the columns.

    Returns:
        Column `group`; `time to ... (s)` (`Cell`, medians); `final ...` and
        `... after ...` (`Cell`, means with intervals); what claims count up to a
        target besides time (`Cell`, medians); where privacy is accounted for,
        `ε` (the largest of a client, and whether it is proved); `staleness` of
        contributions, where others use stored embeddings their `embedding age`, `MB`,
        `contributions` where a commit may apply several, `commits`, and the clients'
        energy where they have powers (numbers, means over replicates);
        `largest staleness` and `largest embedding age`, and what ε `protects`.

    Raises:
        StudyError: No run has ended, or a table is damaged.
    """
    metric = first_metric(study.manifest)
    known = frames.groups(study)
    columns: dict[str, list] = {"group": list(known)}
    target, reached = targets.time_to_default(study)
    goal = "target"
    if target.is_known:
        goal = _goal(metric, target.metric, target.value)
    columns[f"time to {goal} (s)"] = _cells(reached)
    finals = targets.final_values(study, metric).groupby("group")["value"]
    columns[f"final {_called(metric)}"] = [
        _mean(study, metric, finals.get_group(group)) for group in known
    ]
    for counted, of, value in _counted_in(study):
        name = COUNTS.get(counted, counted.replace("_s", " (s)"))
        with suppress(StudyError):  # the claim's verdict says why there is no count
            from .figures import style  # imports Matplotlib

            found = targets.time_to_target(study, of, value, counted)
            found[["median", "low", "high", "after"]] *= style.axis(counted)[1]
            columns[f"{name} to {_goal(metric, of, value)}"] = _cells(found)
    for time in dict.fromkeys(at):
        means = _cells(instants.means_at(study, metric, time))
        values = instants.values_at(study, metric, time)
        of_runs = values.groupby("group")["value"]
        columns[f"{_called(metric)} after {instants.in_words(time)}"] = [
            _within(study, metric, mean, of_runs.get_group(group))
            for group, mean in zip(known, means, strict=True)
        ]
    private = _privacy(study, known)
    columns |= {name: private.pop(name) for name in ("ε",) if name in private}
    stale = {
        name: staleness(study, quantity).reindex(known)
        for name, quantity in AGES.items()
    }
    if stale["embedding age"].isna().all(axis=None):
        del stale["embedding age"]
    columns |= {name: each["mean"].tolist() for name, each in stale.items()}
    took = costs(study).loc[known]
    columns |= {str(name): took[name].tolist() for name in took}
    columns |= {f"largest {name}": each["max"].tolist() for name, each in stale.items()}
    return pd.DataFrame(columns | private).rename(columns={"commits": updates(study)})


def _goal(metric: str, of: str, value: float) -> str:
    return ("" if of == metric else f"{_called(of)} ") + f"{value:.3g}"


def _counted_in(study: Study) -> dict[tuple[str, str, float], None]:
    """Returns counts that claims compare at a target, with its metric and value."""
    told, metrics = study.manifest["scenario"], metrics_of_manifest(study.manifest)
    return {
        (claim.counted, metric, value): None
        for claim in as_written(told.get("claims", []), metrics)
        for _, metric, value in claim.targets()
        if claim.counted and claim.counted != "time"
    }


def updates(study: Study) -> str:
    """Returns the column of versions: without a server, they are the workers'."""
    words = facts.worded(study.manifest, "server updates")
    return "commits" if words == HEADINGS["commits"] else words


def brief(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `results` that answer a study's question."""
    details = ["embedding age", *(f"largest {name}" for name in AGES), "protects"]
    details += ["commits", "worker updates"] * ("contributions" in table)
    return table.drop(columns=details, errors="ignore")


def by_point(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Returns `results` with variants and swept values in columns of their own."""
    keys, known = frames.swept_keys(study), frames.configurations(study)
    if not keys:
        return table
    columns, names = frames.swept_columns(study), short_names(tuple(keys))
    names = {columns[key]: names[key].replace("_", " ") for key in keys}
    several = len(known["variant"].unique()) > 1
    cells = known[["variant", *names] if several else [*names]].rename(columns=names)
    cells = cells.astype(object).fillna("")
    return pd.concat([cells, table.drop(columns="group")], axis=1)


def costs(study: Study) -> pd.DataFrame:
    """Returns the costs of runs, means over the replicates of each group, its index.

    Columns MB sent, up and down; contributions, where a commit may apply several;
    commits; and joules that clients drew, where they have rates.
    """
    ended = frames.runs(study)
    last = frames.evaluations(study).groupby("run").last()
    sent = last[["upload_bytes", "download_bytes"]].sum(axis=1) / 1e6
    found = ended[["group"]].assign(MB=ended["run"].map(sent))
    if apply_several(study):
        found["contributions"] = ended["run"].map(last["contributions"])
    found["commits"] = ended["commits"]
    if (drawn := joules_by_end(study)) is not None:
        found["joules"] = ended["run"].map(drawn)
    return found.groupby("group", sort=False).mean()


def apply_several(study: Study) -> bool:
    """Returns whether some run has other contributions per commit than one."""
    made = frames.evaluations(study)
    return bool((made["contributions"] != made["commits"]).any())


def staleness(study: Study, quantity: str = "contribution") -> pd.DataFrame:
    """Returns mean and maximum staleness per group, commits; columns mean, max.

    A mean over all contributions of the runs, those of their starts among them; or, of
    the quantity `embedding`, over uses of stored embeddings.
    NaN where nothing was measured.
    """
    table = measured(study)
    rows = {g: exact(mine, quantity) for g, mine in table.groupby("group", sort=False)}
    columns = pd.Index(["mean", "max"])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def verdicts(study: Study) -> pd.DataFrame:
    """Returns a row per claim: says, claim, verdict, measured, replicates, p.

    Without `says` where no claim has such a sentence.
    """
    found = claims.evaluate(study).replace({"verdict": PRINTED})
    found["measured"] = found["measured"].map(in_words)
    p = ["" if np.isnan(p) else f"{p:.2g}" for p in found["corrected"]]
    names = ["says"] * bool(found["says"].any())
    names += ["claim", "verdict", "measured", "replicates"]
    return found[names].assign(p=p)


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table with text cells, for a terminal or a file."""
    return table.map(_in_words).rename(columns=HEADINGS)


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
    heads = [_head(str(name)) for name in table.rename(columns=HEADINGS)]
    cells = table.map(_in_latex).set_axis(heads, axis=1)
    shapes = [_shape(table[name]) for name in table]
    part = BROKEN / max(1, shapes.count("p"))
    shape = "".join(shapes).replace("p", rf"p{{{part:.2g}\linewidth}}")
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


def _cells(table: pd.DataFrame) -> list[Cell]:
    """Returns a cell for each row of `targets.time_to_target` or `means_at`."""
    if "median" in table:
        names = {"median": "estimate", "reached": "known"}
        table = table.rename(columns=names).assign(symmetric=False)
    else:
        names = {"mean": "estimate"}
        table = table.rename(columns=names).assign(symmetric=True, after=math.inf)
    rows = table[list(Cell._fields)].itertuples(index=False, name=None)
    return [Cell(*row) for row in rows]


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
    return "p" if longest > LONG else "l"


def _head(name: str) -> str:
    lines = r" \\ ".join(map(_escaped, textwrap.wrap(name, WIDTH)))
    return f"\\shortstack{{{lines}}}"


def _called(metric: str) -> str:
    """Returns the name of a metric within a sentence."""
    known = metric_of_study({"runs": []}, metric)
    return facts.within_sentence(known.title if known else metric.replace("_", " "))


def _in_words(cell: object) -> object:
    if isinstance(cell, Cell):
        return _told(cell).replace("at least ", "≥ ") + _counted(cell)
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
    told = str(statistics.Interval(mean, low, high))
    ends = np.array([mean, low, high])
    whole = not (ends[np.isfinite(ends)] % 1).any()
    return re.sub(r"\.0+\b", "", told) if whole else told  # 10 s, known to a second


def _counted(cell: Cell) -> str:
    if cell.known == cell.replicates:
        return ""
    return f" ({cell.known}/{cell.replicates})"


def _escaped(text: str) -> str:
    shown = (SPECIAL.get(letter, letter) for letter in printable(text))
    return "".join(one if one.isascii() else _escape(one) for one in shown)


def _escape(letter: str) -> str:
    return r"\textbackslash{}" + letter.encode("ascii", "backslashreplace").decode()[1:]
