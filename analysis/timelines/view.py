"""A timeline with the frames of its tables and figures, made once."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import pandas as pd

from ...simulator.files.study import StudyError, is_summary
from ...simulator.files.study.jobs import KINDS, OUTCOMES, incidents_of, jobs_of
from ...simulator.files.summary import NO_JOBS
from ...simulator.files.timeline import Jobs
from ...simulator.world.expenses import seconds
from .. import clients, facts, frames
from ..facts import Entry
from ..frames import Study
from . import measures
from .theory import ClosedForms, closed_forms

OF_ROWS = ("time", "kind", "node", "peer")
"""Columns of the rows that pictures and measures take."""


class View:
    """A recorded timeline with the frames of its tables and figures.

    Rows and incidents raise StudyError where only statistics were kept, and counts of
    runs do where none has ended.

    Attributes:
        is_whole: Whether all that happened is there, and not statistics alone.
    """

    def __init__(self, study: Study) -> None:
        self.study, self.manifest = study, study.manifest
        self.is_whole = not is_summary(study.manifest)

    @property
    def runs(self) -> pd.DataFrame:
        """The runs that have ended, with the ends of their starts."""
        return self.counts[0]

    @cached_property
    def divided(self) -> dict[str, "pd.Series[str]"]:
        """Names of the clients' groups by their numbers, for each group of runs.

        Those groups alone are here of which the scenario divides the clients.
        """
        known = dict.fromkeys(frames.runs(self.study)["group"])
        names = {group: self.who(group)[clients.GROUP] for group in known}
        return {group: of for group, of in names.items() if of.notna().all()}

    @cached_property
    def counts(self) -> measures.Counts:
        """Counts of the runs that have ended, as in `measures`."""
        return measures.tally(self.study, self.divided)

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """The measures of each run."""
        runs, ages, _ = self.counts
        return measures.by_run(runs, ages)

    @cached_property
    def by_client(self) -> pd.DataFrame:
        """The measures of each client, means over replicates."""
        runs, _, clients = self.counts
        return measures.by_client(runs, clients)

    def histogram(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Returns the histogram of staleness in some runs, after the start."""
        _, ages, _ = self.counts
        return measures.histogram(ages.loc[ages["run"].isin(runs["run"])])

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Rows of the timeline, one per worker: their times and kinds."""
        return self.study.table("rows", ["run", "row", "place", *OF_ROWS])

    @cached_property
    def incidents(self) -> pd.DataFrame:
        """All incidents."""
        return self.study.table("incidents")

    @cached_property
    def forms(self) -> dict[str, ClosedForms]:
        """The closed forms of each group."""
        groups = dict.fromkeys(self.runs["group"])
        return {group: closed_forms(self.entry(group)) for group in groups}

    def entry(self, group: str) -> Entry:
        """Returns the manifest's entry of the first run of a group.

        Raises:
            ValueError: There is no such group.
        """
        frames.check_groups(self.study, group)
        return next(run for run in self.manifest["runs"] if run["label"] == group)

    def who(self, group: str) -> pd.DataFrame:
        """Returns names and groups of the clients of a group's first run."""
        return clients.of_run(self.study, self.entry(group)["run"])


def frame_of(pieces: Iterable[Jobs]) -> pd.DataFrame:
    """Returns jobs as rows, with clients from 1, and kinds and outcomes as words."""
    jobs = Jobs(*map(np.concatenate, zip(NO_JOBS, *pieces, strict=True)))
    kinds, outcomes = np.array(KINDS, object), np.array(OUTCOMES, object)
    columns = jobs._asdict() | {
        "client": jobs.client + 1,
        "kind": kinds[jobs.refresh],
        "outcome": outcomes[jobs.outcome],
    }
    return pd.DataFrame(columns).sort_values(["client", "job"], kind="stable")


def view(study: Study | View) -> View:
    """Returns the view of a study; a view is its own."""
    return study if isinstance(study, View) else View(study)


def by_client(study: Study | View) -> pd.DataFrame:
    """Returns how each client spent its time: seconds, and shares of the whole run.

    Returns:
        By group and client (from 1), means over replicates: `compute_s`,
        `messages_s` (a message is on its way, and it does not compute), `idle_s`
        (the rest, also while it is away); `compute`, `messages`, `idle`, their
        shares; and the columns of `View.by_client`. Where jobs do not record all
        messages, as in gossip, `messages_s` is NaN, and `idle_s` contains it.

    Raises:
        StudyError: No run has ended, statistics alone were kept, or no client has jobs.
    """
    seen, pieces = view(study), []
    for run in seen.runs.to_dict("records"):
        group, number, until = (run[k] for k in ("group", "num_clients", "virtual_s"))
        known = facts.of(seen.entry(group))
        stages = {*known.get("stages", ())}
        if stages.isdisjoint({"compute", "local steps"}):  # as for steps on pooled data
            continue
        of = seen.study, run["run"]
        spent = seconds(jobs_of(*of), incidents_of(*of), number, until)
        if known.get("queues_jobs") or not {"compute", "service"} <= stages:
            spent["idle_s"] += spent["messages_s"]
            spent["messages_s"] = np.full(number, np.nan)
        whole = until or np.nan
        spent |= {name.removesuffix("_s"): each / whole for name, each in spent.items()}
        who = {"group": group, "client": np.arange(1, number + 1)}
        pieces.append(pd.DataFrame({**who, **spent}))
    if not pieces:
        raise StudyError(
            "clients must have jobs of their own to have times, but none has"
        )
    keys = ["group", "client"]
    table = measures.averaged(pd.concat(pieces), keys)
    return table.merge(seen.by_client, on=keys)
