"""A timeline with the frames of its tables and figures, made once."""

from functools import cached_property
from typing import Any

import pandas as pd

from ...simulator.trace import is_summary
from .. import clients, frames
from ..frames import Study
from . import measures, summarised
from .theory import ClosedForms, closed_forms

OF_ROWS = ("time", "kind", "node", "peer")
"""Columns of the rows that pictures and measures take."""


class View:
    """A recorded timeline with the frames of its tables and figures.

    Args:
        study: Timeline without numerics.
    """

    is_whole = True
    """Whether all that happened is there, and not statistics alone."""

    def __init__(self, study: Study) -> None:
        self.study, self.manifest = study, study.manifest

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.manifest["name"]

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """All jobs with their staleness.

        Raises:
            StudyError: Statistics alone were kept.
        """
        return frames.jobs(self.study)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that have ended, with the ends of their starts.

        Raises:
            StudyError: No run has ended.
        """
        known = frames.runs(self.study)
        return measures.with_starts(self.jobs, known)

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """The measures of each run."""
        return measures.by_run(self.jobs, self.runs)

    @cached_property
    def by_client(self) -> pd.DataFrame:
        """The measures of each client, means over replicates."""
        return measures.by_client(self.jobs, self.incidents, self.runs)

    @cached_property
    def starts(self) -> pd.DataFrame:
        """The jobs that started in each run, and the starts that were missed."""
        return measures.starts(self.jobs, self.incidents, self.runs)

    def by_client_group(self, divided: dict[str, "pd.Series[str]"]) -> pd.DataFrame:
        """Returns the staleness of the groups into which clients are divided.

        Args:
            divided: Names of their groups by their numbers, for each group of runs.
        """
        return measures.by_client_group(self.jobs, self.runs, divided)

    def histogram(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Returns how often each staleness occurred in some runs, after the start."""
        return measures.histogram(self.jobs, runs)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Rows of the timeline, one for each of their workers: when, and of what kind.

        Raises:
            StudyError: Statistics alone were kept.
        """
        return self.study.table("rows", ["run", "row", "place", *OF_ROWS])

    @cached_property
    def incidents(self) -> pd.DataFrame:
        """All incidents.

        Raises:
            StudyError: Statistics alone were kept.
        """
        return self.study.table("incidents")

    @cached_property
    def forms(self) -> dict[str, ClosedForms]:
        """The closed forms of each group."""
        found = {}
        for group in dict.fromkeys(self.runs["group"]):
            found[group] = closed_forms(self.entry(group))
        return found

    def entry(self, group: str) -> dict[str, Any]:
        """Returns the manifest's entry of the first run of a group.

        Raises:
            ValueError: There is no such group.
        """
        frames.check_groups(self.study, group)
        return next(run for run in self.manifest["runs"] if run["label"] == group)

    def who(self, group: str) -> pd.DataFrame:
        """Returns names and groups of the clients of a group's first run."""
        return clients.of_run(self.study, self.entry(group)["run"])


class SummaryView(View):
    """A timeline of which statistics alone were kept."""

    is_whole = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        return summarised.runs_of(self.study)

    @cached_property
    def by_run(self) -> pd.DataFrame:
        return summarised.by_run(self.study, self.runs)

    @cached_property
    def by_client(self) -> pd.DataFrame:
        return summarised.by_client(self.study, self.runs)

    @cached_property
    def starts(self) -> pd.DataFrame:
        return summarised.starts(self.runs)

    def by_client_group(self, divided: dict[str, "pd.Series[str]"]) -> pd.DataFrame:
        sizes = {
            group: names.value_counts(sort=False) for group, names in divided.items()
        }
        return summarised.by_client_group(self.study, self.runs, sizes)

    def histogram(self, runs: pd.DataFrame) -> pd.DataFrame:
        return summarised.histogram(self.study, runs)


def view(study: Study | View) -> View:
    """Returns the view of a study; a view is its own."""
    if isinstance(study, View):
        return study
    return SummaryView(study) if is_summary(study.manifest) else View(study)
