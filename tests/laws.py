"""Conservation laws of a study's tables: what they say of each other must agree.

Everything is computed from the public tables and the manifest, by pandas and NumPy, and
nothing by the package. A law is a generator of contradictions: sentences, none if all
is well. `contradictions` goes through all runs of a study.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from stalesim.analysis import wasted
from stalesim.analysis.expenses import spent_by_activity
from stalesim.simulator.files.study import Study

TICK = 1e-9
"""Seconds by which two moments may differ that are computed in different ways."""
MOMENTS = ["read", "begun", "computed", "sent", "arrived", "applied"]
TIMES = [f"{moment}_time" for moment in MOMENTS]
TAKEN = ("APPLIED", "BUFFERED")
"""Outcomes of jobs that the server took."""
ENDS = {"STOPPED": "STOPPED", "CRASHED": "CRASHED", "LOST": "GAVE_UP"}
"""Incidents that end jobs which never arrive, by outcome."""
POOLED = ("centralised", "pipeline", "cyclic")
"""Protocols without messages of clients."""
OVERLAPPING = ("routed", *POOLED)
"""Protocols with several jobs of a client at a time: in a queue, or on their way."""
ONE_MESSAGE = (
    *("asynchronous", "buffered", "synchronous", "t_synchronous", "collect"),
)
"""Protocols in which a job is one message down and one up, which may be lost."""
OTHER_MODELS = ("gossip", "push_gossip", "hierarchy", "routed")
"""Protocols whose clients read another state than the server's at that moment."""

Broken = Iterator[str]


@dataclass
class RunTables:
    """The tables of one run.

    Attributes:
        study: The study.
        entry: Entry of the run in the manifest.
    """

    study: Study
    entry: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Returns the rows of the run in a table; none where there is no table."""
        if name not in self.study.files:
            return pd.DataFrame()
        found = self.study.table(name)
        return found[found["run"] == self.entry["run"]].reset_index(drop=True)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        return self.table("jobs")

    @cached_property
    def work(self) -> pd.DataFrame:
        return self.jobs[self.jobs["kind"] == "work"]

    @cached_property
    def incidents(self) -> pd.DataFrame:
        found = self.table("incidents")
        if len(found.columns):
            return found
        types = {"time": float, "client": int, "incident": str, "messages": int}
        return pd.DataFrame({name: pd.Series(dtype=t) for name, t in types.items()})

    @cached_property
    def clients(self) -> pd.DataFrame:
        return self.table("clients").set_index("client")

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row per row of the timeline, whichever table has them."""
        if not self.of_engine:
            found = self.table("rows").drop_duplicates("row")
            made = found["kind"] == "COMMIT"
            return found.assign(commit=found["version"] + made)
        return self.table("commits")

    @cached_property
    def made(self) -> pd.DataFrame:
        """The commits."""
        return self.rows[self.rows["kind"] == "COMMIT"]

    @property
    def of_engine(self) -> bool:
        """Whether there are numerics, and the table `commits`."""
        return "commits" in self.study.files

    @property
    def protocol(self) -> str:
        return self.entry["protocol"]

    @property
    def end(self) -> float:
        return float(self.entry["virtual_s"])

    @cached_property
    def applied(self) -> pd.DataFrame:
        """The work that was applied, with its staleness."""
        found = self.work[self.work["outcome"] == "APPLIED"]
        commit = found["commit"].astype("int64")
        at_once = self.entry.get("commits_at_once", 1)
        age = (commit - 1) - (commit - 1) % at_once - found["read_version"]
        if at_once > 1:  # what was read within a round is of that round
            age = age.clip(lower=0)
        return found.assign(commit=commit, staleness=age)

    def counted(self, incident: str, column: str | None = None) -> pd.Series:
        """Returns the incidents of each client, or the sum of a column of them."""
        mine = self.incidents[self.incidents["incident"] == incident]
        by = mine.groupby("client")
        found = by.size() if column is None else by[column].sum()
        return found.reindex(self.clients.index, fill_value=0).astype(int)

    def ended(self, jobs: pd.DataFrame) -> pd.Series:
        """Returns when each job ended: it arrived, or came to nothing.

        Raises:
            AssertionError: Incidents and jobs do not go in pairs.
        """
        found = jobs["arrived_time"].copy()
        for outcome, incident in ENDS.items():
            for client, mine in jobs[jobs["outcome"] == outcome].groupby("client"):
                of = self.incidents[self.incidents["incident"] == incident]
                when = np.sort(of.loc[of["client"] == client, "time"])
                found[mine.sort_values("job").index] = when[: len(mine)]
        # Nothing but computing was done for what was rejected before it was sent.
        unsent = found.isna() & (jobs["outcome"] == "REJECTED")
        return found.where(~unsent, jobs["computed_time"])


def contradictions(study: Study) -> list[str]:
    """Returns in which ways the tables of a study contradict each other."""
    found = []
    for entry in study.manifest["runs"]:
        run = RunTables(study, entry)
        for law in LAWS:
            found += [f"{entry['label']}, {law.__name__}: {each}" for each in law(run)]
    return found


def one_fate_a_job(run: RunTables) -> Broken:
    """Jobs of a client are numbered without gaps, and each has one row."""
    for client, mine in run.jobs.groupby("client"):
        numbers = np.sort(mine["job"])
        if not np.array_equal(numbers, np.arange(len(numbers))):
            yield f"client {client} has jobs {numbers.tolist()}"
    started = run.jobs.groupby("client").size().reindex(run.clients.index, fill_value=0)
    if (started != run.clients["num_jobs"]).any():
        yield "clients.num_jobs is not the number of jobs"


def moments_in_order(run: RunTables) -> Broken:
    """A job is read, begun, computed, sent, has arrived and is applied, in order."""
    times = run.jobs[TIMES].to_numpy(np.float64)
    so_far = np.maximum.accumulate(np.where(np.isnan(times), -np.inf, times), axis=1)
    backward = times < so_far - TICK
    if backward.any():
        yield f"{backward.sum()} moments come before an earlier one"
    if (so_far > run.end + TICK).any():
        yield f"{(so_far > run.end + TICK).sum()} moments are after the end"
    if np.isnan(times[:, 0]).any():
        yield "jobs have no moment of reading"
    if run.incidents["time"].max() > run.end + TICK:
        yield "incidents are after the end"
    if not run.rows["time"].between(0, run.end + TICK).all():
        yield "rows are not between start and end"


def moments_fit_outcomes(run: RunTables) -> Broken:
    """What was applied has all moments and a commit; what was not has no commit."""
    jobs, work = run.jobs, run.work
    applied = jobs["outcome"] == "APPLIED"
    if (jobs["applied_time"].notna() != applied).any():
        yield "applied_time is not that of what was applied"
    if (jobs["commit"].notna() != (applied & (jobs["kind"] == "work"))).any():
        yield "commit is not that of work that was applied"
    arrived = work["arrived_time"].notna()
    if (~arrived & work["outcome"].isin(TAKEN)).any():
        yield "work was taken that had not arrived"
    if (arrived & work["outcome"].isin([*ENDS])).any():
        yield "work had arrived that was stopped, lost or crashed"


def versions_by_one(run: RunTables) -> Broken:
    """Commits are 1, 2, 3, ..., in order of time, as many as the manifest says."""
    made = run.made["commit"].to_numpy()
    if not np.array_equal(made, np.arange(1, len(made) + 1)):
        yield "commits are not 1, 2, 3, ..."
    if (np.diff(run.rows["time"]) < 0).any():
        yield "rows go back in time"
    if len(made) != run.entry["commits"]:
        yield f"{len(made)} commits, by the manifest {run.entry['commits']}"


def commits_as_jobs_say(run: RunTables) -> Broken:
    """Each commit has the number and staleness of the jobs that it applied."""
    commits = run.made.set_index("commit")
    by = run.applied.groupby("commit")
    when = by["applied_time"].agg(["min", "max"])
    if not when.index.isin(commits.index).all():
        yield "jobs are part of commits that were not made"
        return
    time = commits["time"].reindex(when.index)
    if ((when["min"] - time).abs() > TICK).any() or (when["max"] - time > TICK).any():
        yield "jobs were applied at another time than that of their commit"
    if "num_contributions" not in commits:
        return
    for column, found in {
        "num_contributions": by.size(),
        "staleness_mean": by["staleness"].mean(),
        "staleness_max": by["staleness"].max(),
    }.items():
        told = commits[column].to_numpy(np.float64)
        mine = found.reindex(commits.index, fill_value=0).to_numpy(np.float64)
        wrong = ~np.isclose(told, mine, rtol=1e-6)
        if wrong.any():
            yield f"{column} differs in {wrong.sum()} of {len(told)} commits"


def contributions_as_rows_say(run: RunTables) -> Broken:
    """Rows and jobs name the same contributions, as many as the manifest says."""
    taken = run.work[run.work["outcome"].isin(TAKEN)]
    if len(taken) != run.entry["contributions"]:
        yield f"{len(taken)} taken, by the manifest {run.entry['contributions']}"
    if run.of_engine:
        gathered = run.rows[run.rows["kind"] == "CONTRIBUTE"]
        if not gathered.empty and (gathered["num_contributions"] != 1).any():
            yield "a CONTRIBUTE is not one contribution"
        return
    rows = run.table("rows")
    rows = rows[rows["worker"].notna()]
    pairs = ["worker", "job", "read_version"]
    named = rows.loc[rows["kind"].isin(["COMMIT", "CONTRIBUTE"]), pairs]
    own = taken.rename(columns={"client": "worker"})[pairs]
    if sorted(map(tuple, named.astype(int).to_numpy())) != sorted(
        map(tuple, own.astype(int).to_numpy())
    ):
        yield "rows and jobs do not name the same contributions"
    again = rows[(rows["kind"] == "REFRESH") & (rows["place"] > 0)]
    refreshes = run.jobs[run.jobs["kind"] == "refresh"]
    if len(again) != len(refreshes):
        yield f"{len(again)} uploads of REFRESH, {len(refreshes)} jobs"


def staleness_of_reads(run: RunTables) -> Broken:
    """No staleness is negative; what the server's clients read was current then."""
    if (run.applied["staleness"] < 0).any():
        yield "staleness is negative"
    if run.protocol in OTHER_MODELS or run.work.empty:
        return
    times, read = run.made["time"].to_numpy(), run.work["read_time"].to_numpy()
    low = np.searchsorted(times, read - TICK, "left")
    high = np.searchsorted(times, read + TICK, "right")
    wrong = ~run.work["read_version"].between(low, high)
    if wrong.any():
        yield f"{wrong.sum()} jobs did not read the current version"


def clients_as_jobs_say(run: RunTables) -> Broken:
    """The table of clients sums up the jobs."""
    by = run.applied.groupby("client")["staleness"]
    index = run.clients.index
    count = by.size().reindex(index, fill_value=0)
    if (run.clients["num_applied"] != count).any():
        yield "clients.num_applied is not the number of contributions"
    for column, found in {"mean": by.mean(), "max": by.max()}.items():
        told = run.clients.loc[count > 0, f"staleness_{column}"].astype(float)
        if not np.allclose(told, found.reindex(told.index), rtol=1e-6):
            yield f"clients.staleness_{column} is not that of the jobs"


def histogram_as_jobs_say(run: RunTables) -> Broken:
    """The bins of staleness hold the contributions that were applied."""
    bins = run.table("staleness")
    if bins.empty:
        return
    bins = bins[bins["quantity"] == "contribution"]
    edges = sorted({*bins["low"], *bins["high"]})
    told = bins.groupby("low")["count"].sum()
    place = np.searchsorted(edges, run.applied["staleness"], "right") - 1
    mine = pd.Series(np.array(edges)[place]).value_counts()
    if told.to_dict() != mine.to_dict():
        yield "the bins of staleness are not those of the jobs"


def one_job_at_a_time(run: RunTables) -> Broken:
    """A client's next job reads when the one before has ended, not earlier."""
    if run.protocol in OVERLAPPING:
        return
    ended = run.ended(run.work)
    for client, mine in run.work.sort_values("job").groupby("client"):
        reads, over = mine["read_time"].to_numpy(), ended[mine.index].to_numpy()
        early = reads[1:] < over[:-1] - TICK
        if early.any() or np.isnan(over[:-1]).any():
            yield f"client {client} read before its last job had ended"


def in_flight_at_most(run: RunTables) -> Broken:
    """No more jobs are under way than the selection allows."""
    clients = run.entry["scenario"]["clients"] or {}
    selection = clients.get("selection")
    if not selection or run.protocol in OVERLAPPING:
        return
    ended = run.ended(run.work).fillna(np.inf).to_numpy()
    starts = np.sort(run.work["read_time"].to_numpy())
    # A client may read at the instant at which another one's job has ended.
    under_way = np.arange(1, len(starts) + 1)
    under_way -= np.searchsorted(np.sort(ended), starts + TICK, "right")
    if (under_way > selection["in_flight"]).any():
        yield f"{under_way.max()} jobs are under way"


def nobody_away_reads(run: RunTables) -> Broken:
    """A client that has left reads no more."""
    left = run.incidents[run.incidents["incident"] == "LEFT"].groupby("client")["time"]
    if not (left.size() <= 1).all():
        yield "a client left twice"
    last = run.work.groupby("client")["read_time"].max()
    gone = left.min().reindex(last.index)
    if (last > gone + TICK).any():
        yield "a client read after it had left"
    leave = (run.entry["scenario"]["clients"] or {}).get("leave")
    if leave is None or run.entry["scenario"]["clients"].get("groups"):
        return
    factor, of_number = str(leave).split("*")[0], "m" in str(leave)
    moment = float(factor) * (run.work["client"] if of_number else 1)
    if (run.work["read_time"] >= moment).any():
        yield f"{(run.work['read_time'] >= moment).sum()} jobs were read after leaving"


def incidents_as_jobs_say(run: RunTables) -> Broken:
    """Each job that came to nothing has its incident, and each repeat its message."""
    for outcome, incident in {**ENDS, "REJECTED": "REJECTED"}.items():
        mine = run.work[run.work["outcome"] == outcome].groupby("client").size()
        mine = mine.reindex(run.clients.index, fill_value=0)
        if (mine != run.counted(incident)).any():
            yield f"jobs that are {outcome} and incidents {incident} differ in number"
    if run.protocol not in ONE_MESSAGE:
        return
    arrived = run.work["arrived_time"].notna()
    lost = run.work["outcome"] == "LOST"
    of = run.work.assign(again=np.maximum(run.work["upload_messages"] - 1, 0))
    for what, mine, told in (
        ("RESENT and DUPLICATE", of.loc[arrived], ("RESENT", "DUPLICATE")),
        ("GAVE_UP", of.loc[lost].assign(again=of["upload_messages"]), ("GAVE_UP",)),
    ):
        again = mine.groupby("client")["again"].sum()
        again = again.reindex(run.clients.index, fill_value=0)
        noted = sum(run.counted(each, "messages") for each in told)
        if run.work["upload_messages"].any() and (again != noted).any():
            yield f"{what} differ from jobs by {(noted - again).to_dict()}"


def bytes_as_jobs_say(run: RunTables) -> Broken:
    """Bytes are messages of one size, up when sent and down when received."""
    for way in ("upload", "download"):
        some = run.jobs[run.jobs[f"{way}_messages"] > 0]
        sizes = {*(some[f"{way}_bytes"] / some[f"{way}_messages"])}
        none = run.jobs[run.jobs[f"{way}_messages"] == 0]
        if len(sizes) > 1 or none[f"{way}_bytes"].any():
            yield f"{way}_bytes are not messages of one size, but of {sizes}"
    if (run.work["sent_time"].isna() & (run.work["upload_messages"] > 0)).any():
        yield "messages were counted that were not sent"
    got = run.work["download_messages"] > 0
    if run.protocol not in ONE_MESSAGE or not (run.of_engine and got.any()):
        return
    if (got != run.work["begun_time"].notna()).any():
        yield "downloads are not those of jobs that have begun"


def evaluations_as_rows_say(run: RunTables) -> Broken:
    """Evaluations count the commits, contributions and bytes up to their time."""
    table = run.table("evaluations")
    if table.empty:
        return
    for column in ("time", "commits", "contributions", "upload_bytes"):
        if (np.diff(table[column]) < 0).any():
            yield f"evaluations.{column} falls"
    times = run.made["time"].to_numpy()
    low = np.searchsorted(times, table["time"] - TICK, "left")
    high = np.searchsorted(times, table["time"] + TICK, "right")
    if not table["commits"].between(low, high).all():
        yield "evaluations.commits is not the number of commits by then"
    last = table.iloc[-1]
    for column in ("commits", "contributions"):
        if last[column] != run.entry[column]:
            yield f"the last evaluation has {last[column]} {column}"
    if run.protocol not in ONE_MESSAGE:
        return
    taken = run.jobs["outcome"].isin(TAKEN)  # refreshes are sent, and ask for nothing
    for way in ("upload", "download"):
        some = run.jobs[taken & (run.jobs[f"{way}_messages"] > 0)]
        one_each = some[f"{way}_bytes"] / some[f"{way}_messages"]
        if not np.isclose(last[f"{way}_bytes"], one_each.sum()):
            yield f"evaluations.{way}_bytes is not that of what the server took"


def waste_as_jobs_say(run: RunTables) -> Broken:
    """What `wasted` says are the sums over the jobs that came to nothing."""
    ended = run.jobs[run.jobs["outcome"] != "IN_FLIGHT"]
    began = ended["begun_time"].fillna(ended["read_time"])
    ended = ended.assign(seconds=run.ended(ended) - began)
    vain = ended[~ended["outcome"].isin(TAKEN)]
    told = wasted(run.study)
    told = told[told["run"] == run.entry["run"]].set_index("outcome")
    sums = vain.groupby("outcome")[["seconds", "upload_bytes", "download_bytes"]].sum()
    sums["share"] = sums["seconds"] / ended["seconds"].sum()
    sums["jobs"] = vain.groupby("outcome").size()
    if vain["seconds"].isna().any():
        yield "it is not known when jobs ended"
    if sorted(told.index) != sorted(sums.index):
        yield f"outcomes are {sorted(told.index)}, of jobs {sorted(sums.index)}"
        return
    for column in sums:
        mine = sums[column].reindex(told.index).to_numpy(np.float64)
        if not np.allclose(told[column].to_numpy(np.float64), mine, equal_nan=True):
            yield f"{column} is {told[column].tolist()}, of jobs {mine.tolist()}"


def expenses_as_jobs_say(run: RunTables) -> Broken:
    """Joules of computing and of messages are rates times the jobs."""
    told = spent_by_activity(run.study)
    told = told[told["run"] == run.entry["run"]]
    jobs, over = run.jobs, run.ended(run.jobs).fillna(run.end)
    computing = (jobs["computed_time"].fillna(over) - jobs["begun_time"]).fillna(0)
    amounts = {
        "compute": computing,
        "upload_message": jobs["upload_messages"],
        "download_message": jobs["begun_time"].notna() & (jobs["kind"] == "work"),
    }
    for activity, of in told.groupby("activity"):
        if activity not in amounts:
            continue
        rates = pd.Series(0.0, run.clients.index)
        first = 1
        for tariff in run.entry["tariffs"]:
            rate = tariff["joules"].get(activity, 0.0)
            rates.loc[first : first + tariff["clients"] - 1] = rate
            first += tariff["clients"]
        mine = (amounts[activity] * jobs["client"].map(rates)).sum()
        if not np.isclose(of["joules"].sum(), mine):
            yield f"joules of {activity} are {of['joules'].sum()}, of jobs {mine}"


LAWS: tuple[Callable[[RunTables], Broken], ...] = (
    one_fate_a_job,
    moments_in_order,
    moments_fit_outcomes,
    versions_by_one,
    commits_as_jobs_say,
    contributions_as_rows_say,
    staleness_of_reads,
    clients_as_jobs_say,
    histogram_as_jobs_say,
    one_job_at_a_time,
    in_flight_at_most,
    nobody_away_reads,
    incidents_as_jobs_say,
    bytes_as_jobs_say,
    evaluations_as_rows_say,
    waste_as_jobs_say,
    expenses_as_jobs_say,
)
