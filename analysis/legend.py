"""The meaning of the columns of a study's tables, and remarks on its runs."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..simulator.parts.errors import counted, ranges
from . import (
    doubts,
    escapes,
    facts,
    frames,
    instants,
    racing,
    statistics,
    tables,
    targets,
)
from .expenses import joules_by_end
from .frames import Study
from .markup import HEADINGS
from .spending import conditional, protected, spending, swept

UNLIKE = 10
"""Ratio of bytes from which on a line gives the number of messages."""
EARLY = {
    "privacy": "the privacy budget was spent",
    "recording": "the recording had ended",
}
"""Ends of runs that may come before the one that a reader expects."""
AT_TARGET = "Runs that reached stop.target ended there: their final values are of then."
MOST_NAMED = 3
"""Most variants whose runs without the target are counted one by one."""


def legend(study: Study, at: Sequence[float] = ()) -> dict[str, str]:
    """Returns the meaning of each column of `tables.results`, in a few words.

    Args:
        study: Study with at least one run that has ended.
        at: Virtual seconds at which the first metric is shown as well.
    """
    metric = frames.first_metric(study.manifest)
    facts = frames.described(study, metric)
    about = ", ".join(filter(None, (facts.unit, facts.direction)))
    versions = HEADINGS.get(name := tables.updates(study), name)
    found = {
        "Time": "; ".join(filter(None, _of_time(study))),
        "Final": (
            f"mean of the last tenth of evaluations ({about}), ± 95 % t-interval, or "
            f"{targets.RANGES}"
        ),
        "(k/n)": "replicates that count, where not all do",
        "Staleness": (
            f"{versions} between a client's read and the use of its work; mean and "
            f"largest of all client updates that were used"
        ),
        versions.capitalize(): "new versions of the model",
        "MB": "megabytes of accepted updates, up and down; table jobs has all",
    }
    if tables.staleness(study, "embedding")["mean"].notna().any():
        found["Embedding age"] = (
            "server updates from its upload to its use by others; mean and largest of "
            "all uses"
        )
    if tables.apply_several(study):
        found["Client updates"] = "taken by the server, also those left in a buffer"
    if joules_by_end(study) is not None:
        found["Joules"] = "drawn by all clients"
    if len(by := spending(study)["basis"].unique()):
        words = "; ".join(filter(None, (" or ".join(by), protected(study))))
        found["ε"] = f"of the client that spent most, in any replicate, by {words}"
    seen = (instants.seen_at(study, metric, each) for each in at)
    for words in dict.fromkeys(filter(None, seen)):
        name, _, meaning = words.partition(": ")
        found[name] = meaning
    return found


def _of_time(study: Study) -> Iterator[str]:
    target, table = targets.time_to_default(study)
    few = int(table["replicates"].min())
    if not target.is_known:
        yield "virtual seconds to a target, of which there is none: all runs diverged"
    else:
        origin = "" if target.stated else f", {targets.origin(study, target.metric)}"
        yield f"virtual seconds to {target.metric} {target.value:.3g}{origin}"
    yield f"median [{statistics.interval_name(few)}]" if few > 1 else "median"
    if target.is_known:
        times = targets.times_to_target(study, target.metric, target.value)
        yield targets.resolution(times)
    yield statistics.MIDDLE
    if np.isinf(table["median"]).any():
        yield "after >: half or more did not reach it; more than half had not by then"


def caption(study: Study, at: Sequence[float] = ()) -> str:
    """Returns the legend of `tables.results` in sentences, for a caption."""
    every = legend(study, at).items()
    words = [f"{name}: {what}." for name, what in every if "updates" not in name]
    return " ".join([f"{frames.titled(study.manifest)}.", *words, *_ends(study)])


def method(study: Study) -> str:
    """Returns how `results` computes its numbers, and how certain divergence is."""
    return f"Medians: {statistics.MEDIANS}. {escapes.chance(study)}."


def remarks(study: Study) -> list[str]:
    """Returns a line on everything that a reader of the results needs."""
    found = [_intervals(study), *_ends(study), *_missed(study), *doubts.notes(study)]
    found += conditional(study)
    if study.manifest["scenario"].get("tune"):
        found.append(f"Tuned by {racing.in_words(study)}")
    return found + [line for line in _data(study) if facts.BUNDLED in line]


def details(study: Study) -> list[str]:
    """Returns further lines on the numbers of a study, on request."""
    found = [*_megabytes(study), *_data(study), method(study)]
    spent = spending(study)
    if len(spent) > 1 and (why := swept(study)[-1]):
        found.append(f"no figure goes over ε, as {why}")
    tuned = study.manifest["scenario"].get("tune")  # its trials are added by design
    if (regrouped := study.manifest.get("regrouped")) and not tuned:
        found.append(
            f"runs {ranges(regrouped)} of the manifest were not executed together with "
            f"those that share their timeline, because the study was extended: they "
            f"may differ from a study run at once in the last digits of float32"
        )
    return found


def _intervals(study: Study) -> str:
    few = int(frames.runs(study).groupby("group").size().min())
    if few == 1:
        return "One replicate: nothing is known of chance."
    name = statistics.interval_name(few)
    return f"Over {few} replicates: median [{name}], mean ± 95 % interval."


def _ends(study: Study) -> Iterator[str]:
    ended, planned = frames.runs(study), len(study.manifest["runs"])
    if len(ended) < planned:
        yield (
            f"Incomplete: {len(ended)} of {planned} runs have ended; the others are "
            f"counted nowhere (stalesim resume)."
        )
    counts = ended["stop"].value_counts()
    if len(counts) > 1:
        words = (f"{stop} ({number})" for stop, number in counts.items())
        yield f"What ended the runs: {', '.join(words)}."
    for stop in counts.index.intersection([*EARLY]):
        mine = ended.loc[ended["stop"] == stop, "group"]
        names = mine.unique()
        whose = names[0] if len(names) == 1 else f"{len(names)} variants"
        yield f"{counted(len(mine), 'run')} of {whose} ended when {EARLY[stop]}."
    if "target" in counts:
        yield AT_TARGET


def _missed(study: Study) -> Iterator[str]:
    target, table = targets.time_to_default(study)
    if target.is_known and not target.stated:
        yield f"Target: {targets.origin(study, target.metric)}, as none is stated."
    late = table[table["reached"] < table["replicates"]]
    if target.is_known and len(late):
        counts = zip(late["group"], late["reached"], late["replicates"], strict=True)
        words = [f"{n - k} of {n} runs of {group}" for group, k, n in counts]
        if words[MOST_NAMED:]:
            more = counted(len(words) - MOST_NAMED, "more variant")
            words[MOST_NAMED:] = [f"and runs of {more}"]
        yield (f"{', '.join(words)} did not reach {target.metric} {target.value:.3g}.")


def _megabytes(study: Study) -> Iterator[str]:
    last = frames.evaluations(study).groupby("run").last()
    last["sent"] = last["upload_bytes"] + last["download_bytes"]
    table = last.groupby("group")[["sent", "messages"]].mean()
    sent = table["sent"].loc[table["sent"] > 0]
    if len(sent) < 2 or sent.max() < UNLIKE * sent.min():
        return
    messages = table["messages"]
    words = (
        f"{group} {messages[group]:.0f} messages of "
        f"{sent[group] / max(1, messages[group]) / 1e3:.3g} kB"
        for group in (str(sent.idxmax()), str(sent.idxmin()))
    )
    yield f"MB differ {sent.max() / sent.min():.0f}-fold: {', '.join(words)}"


def _data(study: Study) -> list[str]:
    runs = study.manifest["runs"]
    return facts.words_on_data((run.get("dataset"), run.get("scaling")) for run in runs)
