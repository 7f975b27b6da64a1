"""Who is waited for: the last client of each round, and the seconds that it adds."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...simulator.files.study.jobs import job_pieces
from ...simulator.files.timeline import Jobs
from ...simulator.parts.errors import StudyError
from .. import clients
from ..frames import Study
from .view import View, frame_of, view

MOST = 5
"""Most clients that the table of a timeline lists."""
ENDS_BADLY = ("REJECTED", "STOPPED")
"""Outcomes that rounds do not have in which everyone is waited for."""


def stragglers(study: Study | View) -> pd.DataFrame:
    """Returns how often each client was the last of a round, and what that costs.

    Such rounds wait for everyone: each client reads the newest version, and the last
    arrival makes the next. Without a client that was last, its round would have ended
    as much earlier as the one before it had arrived.

    Returns:
        Row per group of runs and client, means over replicates: group, client, last
        (share of the rounds), adds_s (virtual seconds a round is longer by it), round_s
        (virtual seconds of a round). Groups without such rounds are absent.

    Raises:
        StudyError: No group has such rounds, or statistics alone were kept.
    """
    seen = view(study)
    runs, ages, _ = seen.counts
    if not seen.is_whole:
        raise StudyError(
            "stragglers need jobs, and of these statistics alone were kept"
        )
    stale = set(ages.loc[ages["staleness"] > 0, "run"])
    waits = [
        run["run"] not in stale and _waits_for_all(run)
        for run in runs.to_dict("records")
    ]
    groups = dict(runs.loc[waits, ["run", "group"]].itertuples(index=False))
    pieces: dict[int, list[Jobs]] = {run: [] for run in groups}
    for run, jobs in job_pieces(seen.study) if groups else ():
        if run in pieces:
            pieces[run].append(jobs)
    found = [_of_run(frame_of(pieces[run])).assign(group=groups[run]) for run in groups]
    if not found:
        raise StudyError(
            "stragglers need rounds that wait for everyone, and this study has none; "
            "see utilisation in `stalesim timeline`"
        )
    means = pd.concat(found).groupby(["group", "client"], sort=False).mean()
    return means.reset_index()


def most_waited_for(seen: View) -> Iterator[tuple[str, pd.DataFrame, float]]:
    """Yields group, the clients that its rounds wait for most, and a round's seconds.

    Of clients there are names, and `last` and `adds_s` of `stragglers`.
    """
    if not seen.is_whole:
        return
    try:
        found = stragglers(seen)
    except StudyError:
        return
    for group, mine in found.groupby("group", sort=False):
        top = mine.sort_values(["adds_s", "last"], ascending=False)[:MOST]
        top = top.loc[top["last"] > 0]
        names = clients.names(seen.who(str(group)), top["client"])
        yield str(group), top.assign(client=names), float(mine["round_s"].iloc[0])


def tables(seen: View) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yields the clients that rounds wait for most, with a sentence as the title."""
    for group, top, seconds in most_waited_for(seen):
        first = top.iloc[0]
        rest = seconds - float(first["adds_s"])
        frame = pd.DataFrame({"client": top["client"]})
        frame["last in"] = [f"{share:.1%}" for share in top["last"]]
        frame["adds (s)"] = [f"{each:.3g}" for each in top["adds_s"]]
        without = f"without client {first['client']} {rest:.3g} s"
        yield f"{group}: a round takes {seconds:.3g} s; {without}", frame


def _waits_for_all(run: Mapping[Any, Any]) -> bool:
    badly = any(run[outcome] for outcome in ENDS_BADLY)
    return not badly and run["APPLIED"] > run["commits"] > 0


def _of_run(jobs: pd.DataFrame) -> pd.DataFrame:
    done = jobs[jobs["outcome"] == "APPLIED"].sort_values(["commit", "arrived_time"])
    rounds = done.groupby("commit", sort=False)
    last = done[~done.duplicated("commit", keep="last")].set_index("commit")
    start, end = rounds["read_time"].min(), rounds["applied_time"].max()
    second = rounds["arrived_time"].nth(-2)
    before = pd.Series(second.to_numpy(), done.loc[second.index, "commit"])
    adds = (last["arrived_time"] - before).fillna(0.0)
    everyone = np.unique(jobs["client"])
    sums = adds.groupby(last["client"]).agg(["size", "sum"]).reindex(everyone)
    sums = sums.fillna(0.0)
    return pd.DataFrame(
        {
            "client": everyone,
            "last": sums["size"].to_numpy() / len(last),
            "adds_s": sums["sum"].to_numpy() / len(last),
            "round_s": float((end - start).mean()),
        }
    )
