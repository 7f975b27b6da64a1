"""The closing table of a study."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..simulator.parts.errors import ranges
from . import doubts, frames, racing, targets
from .escapes import chance, escapes
from .expenses import joules_by_end
from .frames import Study
from .spending import protected, spending, swept
from .staleness import exact, measured
from .statistics import MIDDLE, t_interval
from .targets import MetricTarget

WIDTH = 7
"""Characters of a number, so that names of 16 and all columns fit into 80."""
IN_BRACKETS = WIDTH - 2

UNLIKE = 10
"""Times as many bytes, from which on a line says of how many messages they are."""

BUNDLED = "mnist5k"
"""Beginning of the name of data that are a part of MNIST."""

STOP = "stop: what ended the runs"
"""Words on the column of that name."""


def summary(study: Study) -> pd.DataFrame:
    """Returns a row per group: how fast, how good, how stale, at what cost.

    Columns: group; virtual seconds to the target (median, k of n that reached it; if
    the scenario states no target, 95 % of the best group's final value); final value;
    mean and largest staleness (commits); commits, and MB sent by and to all clients;
    contributions, where a commit may apply several;
    where privacy is accounted for, `epsilon`; what clients took, where they have rates;
    commits per second of real time; why the
    runs ended, and how many times its beginning a loss was that had left its scale.
    Means over replicates. Names and cells have line breaks, so that a terminal of 80
    columns is wide enough; `notes` says what the columns are.

    Staleness is that of stored embeddings in vertical studies, of contributions else.
    The final value of a metric is the mean of the last tenth of a run's evaluations;
    its interval is a 95 % t-interval over the replicates that did not diverge, which
    are counted where some did, or their range where that leaves what the metric can be.
    """
    metric = frames.first_metric(study.manifest)
    target, times = targets.time_to_default(study)
    share = targets.share_of_best(study, target.metric)
    times = times.set_index("group").to_dict("index")
    finals = targets.final_values(study, metric)
    stale = staleness(study).reindex(frames.groups(study)).to_dict("index")
    ended, escaped = frames.runs(study), escapes(study)
    spent = spending(study).to_dict("index")
    rows, of_groups = [], costs(study).to_dict("index")
    for group in frames.groups(study):
        mine = ended[ended["group"] == group]
        time, ages = times[group], stale[group]
        final = finals.loc[finals["group"] == group, "value"].to_numpy(np.float64)
        took = of_groups[group]
        made = _two(took.pop("commits"), took.pop("MB"))
        median = _number(time["median"])
        if np.isinf(time["median"]):
            median = targets.not_reached(time["after"])
        reached = f"({int(time['reached'])}/{int(time['replicates'])})"
        row: dict[str, object] = {"group": group}
        row[_heading(target, share)] = f"{median}\n{reached}"
        row["final"] = _plus_minus(study, metric, final)
        is_stale = np.isfinite(ages["mean"])
        row["stale\n(max)"] = _two(ages["mean"], ages["max"]) if is_stale else ""
        row["commits\n(MB)"] = made
        if "contributions" in took:
            row["contributions"] = _number(took.pop("contributions"))
        if spent:
            own = spent.get(group)
            row["epsilon"] = f"{_number(own['epsilon'])}\n{own['proof']}" if own else ""
        row |= {str(name): _number(amount) for name, amount in took.items()}
        row["commits/real s"] = float((mine["commits"] / mine["elapsed_s"]).mean())
        row["stop"] = _stop(mine, escaped)
        rows.append(row)
    return pd.DataFrame(rows)


def costs(study: Study) -> pd.DataFrame:
    """Returns what runs came to, means over the replicates of each group, its index.

    Columns commits; contributions, where a commit may apply several; MB sent, up and
    down; and joules that clients drew, where they have rates.
    """
    ended, last = frames.runs(study), frames.evaluations(study).groupby("run").last()
    found = ended[["group", "commits"]]
    if apply_several(study):
        found = found.assign(contributions=ended["run"].map(last["contributions"]))
    sent = last[["upload_bytes", "download_bytes"]].sum(axis=1) / 1e6
    found = found.assign(MB=ended["run"].map(sent))
    if (drawn := joules_by_end(study)) is not None:
        found["joules"] = ended["run"].map(drawn)
    return found.groupby("group", sort=False).mean()


def notes(study: Study) -> list[str]:
    """Returns what the columns of `summary` are, a sentence each."""
    target = targets.default_target(study)
    goal = f"{target.metric} {target.value:.3g}"
    if not target.stated:
        share = targets.share_of_best(study, target.metric)
        goal += f", {share} the best group's final value"
    named = f"{target.value:.3g}"
    if not target.is_known:
        goal, named = "a target, of which there is none: all runs diverged", "target"
    to_target = (
        f"virtual seconds to {goal}, seen at evaluations {_period(study)}; median "
        f"({MIDDLE}; >: half or more had not reached it by then), how many replicates "
        f"reached it"
    )
    final = "mean of the last tenth of a run's evaluations, ± 95 % t-interval over"
    final += f" replicates, or {targets.RANGES}"
    megabytes = "megabytes sent by then, up and down"
    metric = frames.first_metric(study.manifest)
    known = frames.described(study, metric)
    unit = f"{known.unit}, " if known.unit else ""
    found = [
        f"s to {named}: {to_target}",
        f"final: {metric} ({unit}{known.direction}); {final}",
        "stale: staleness in commits of what was used; mean and, in brackets, largest",
        f"commits (MB): new versions by the end and, in brackets, {megabytes}",
    ]
    if apply_several(study):
        found.append(
            "contributions: updates of clients that the server took; a buffer that is "
            "not full at the end is counted, too"
        )
    found += _words_on_megabytes(study)
    found += _words_on_privacy(study)
    if joules_by_end(study) is not None:
        found.append("joules: drawn by all clients by the end")
    found += [
        "commits/real s: of the machine that ran this, not of the method",
        STOP,
        chance(study),
    ]
    found += doubts.notes(study)
    named = ((run.get("dataset"), run.get("scaling")) for run in study.manifest["runs"])
    found += words_on_data(named)
    if len(escapes(study)):
        found.append(
            "loss ×: the loss left its scale and ended at this multiple of what it "
            "began; a smaller step size may keep it"
        )
    searched = study.manifest["scenario"].get("tune")  # its trials are added by design
    if searched:
        found.append(f"tuned by {racing.in_words(study)}")
    if (regrouped := study.manifest.get("regrouped")) and not searched:
        found.append(
            f"runs {ranges(regrouped)} of the manifest were not executed together with "
            f"those that share their timeline, because the study was extended: they "
            f"may differ from a study run at once in the last digits of float32"
        )
    return found


def _period(study: Study) -> str:
    periods = study.manifest["scenario"]["evaluate"].get("every") or {}
    given = {key: value for key, value in periods.items() if value is not None}
    if not given:
        return "alone"
    unit, period = next(iter(given.items()))
    return f"every {period:g} {frames.unit_of(unit)}"


def apply_several(study: Study) -> bool:
    """Says whether commits of some run apply another number of contributions."""
    made = frames.evaluations(study)
    return bool((made["contributions"] != made["commits"]).any())


def _words_on_megabytes(study: Study) -> list[str]:
    last = frames.evaluations(study).groupby("run").last()
    last["sent"] = last["upload_bytes"] + last["download_bytes"]
    table = last.groupby("group")[["sent", "messages"]].mean()
    sent = table["sent"].loc[table["sent"] > 0]
    if len(sent) < 2 or sent.max() < UNLIKE * sent.min():
        return []
    messages = table["messages"]
    words = (
        f"{group} {messages[group]:.0f} messages of "
        f"{sent[group] / max(1, messages[group]) / 1e3:.3g} kB"
        for group in (str(sent.idxmax()), str(sent.idxmin()))
    )
    return [f"MB differ {sent.max() / sent.min():.0f}-fold: {', '.join(words)}"]


def _words_on_privacy(study: Study) -> list[str]:
    spent = spending(study)
    if spent.empty:
        return []
    by = " or ".join(spent["basis"].unique())
    parts = [f"epsilon: of the client that spent most, by {by}", protected(study)]
    if len(spent) > 1 and (why := swept(study)[-1]):
        parts.append(f"no figure goes over ε, as {why}")
    return ["; ".join(filter(None, parts))]


def words_on_data(named: Iterable[tuple[str | None, str | None]]) -> list[str]:
    """Returns a line on each data set: its scale, and whether it is a part of MNIST."""
    lines = []
    for name, scaling in dict.fromkeys(named):
        facts = [f"scale {scaling}"] if scaling else []
        if name and name.startswith(BUNDLED):
            facts.append("5,000 of MNIST's images (all: stalesim data get mnist)")
        if name and facts:
            lines.append("; ".join([f"data: {name}", *facts]))
    return lines


def staleness(study: Study) -> pd.DataFrame:
    """Returns mean and maximum staleness per group, commits; columns mean, max.

    A mean over all contributions of the runs, those of their starts among them, or over
    uses of stored embeddings where there are any.
    NaN where nothing was measured.
    """
    table = measured(study)
    rows = {g: exact(mine) for g, mine in table.groupby("group", sort=False)}
    columns = pd.Index(["mean", "max"])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _stop(runs_of_group: pd.DataFrame, escaped: pd.Series) -> str:
    mine = runs_of_group.loc[runs_of_group["stop"] != "diverged", "run"]
    words = ",\n".join(dict.fromkeys(runs_of_group["stop"]))
    factors = escaped.reindex(mine).dropna()
    return f"{words},\nloss\n× {factors.max():.1e}" if len(factors) else words


def _heading(target: MetricTarget, share: str) -> str:
    value = f"{target.value:.3g}"
    if not target.is_known:
        return "s to\ntarget"
    if target.stated:
        return f"s to\n{value}"
    return f"s to\n{share}\nbest,\n{value}"


def _plus_minus(study: Study, metric: str, values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    interval = targets.mean_interval(study, metric, known)
    lines = [_number(interval.mean) if known.size else "none"]
    if interval != t_interval(known) and np.isfinite(interval.low):
        low, high = (_number(end, WIDTH - 2) for end in interval[1:])
        lines += [f"[{low},", f" {high}]"]
    elif np.isfinite(interval.low):
        lines.append(f"±{_number((interval.high - interval.low) / 2, WIDTH - 1, 2)}")
    if known.size < values.size:
        lines.append(f"({known.size}/{values.size})")
    return "\n".join(lines)


def _two(first: float, second: float) -> str:
    return f"{_number(first)}\n({_number(second, IN_BRACKETS)})"


def _number(value: float, width: int = WIDTH, digits: int = 4) -> str:
    """Returns a number >= 0 to some digits, or to as many fewer as its width allows.

    From 1000 on it is without decimals if there is room; one digit is wider than
    `width` where it must be.
    """
    if value >= 1000 and len(text := f"{value:.0f}") <= width:
        return text
    texts = [f"{value:.{number}g}" for number in range(digits, 0, -1)]
    return next((text for text in texts if len(text) <= width), texts[-1])
